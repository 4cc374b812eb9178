"""Which fleet is next, which is tried again, what is gathered: the same for every engine."""

import contextlib
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from score_rl.cluster.data import pack
from score_rl.cluster.engines import Ended, Engine
from score_rl.cluster.orders import BROKEN, FAILED, FINISHED, DataEntry, Order, Outcome, own_versions
from score_rl.cluster.view import View
from score_rl.cluster.work import STOP
from score_rl.disk import write_file
from score_rl.engine.runs import Run
from score_rl.errors import InputError, Stopped
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.run.signals import StopRequest
from score_rl.run.status import StatusKeeper
from score_rl.store.checkpoints import checkpoints
from score_rl.store.folder import Folder
from score_rl.store.parts import LOG, ORDER, OUTCOME, PARTS, PROGRESS, Part, gather, gather_all, read_json, read_status
from score_rl.store.parts import settle as settle_gathering
from score_rl.store.request import ExperimentSpec

LOOK = 0.5  # seconds between two looks at the engine
SAVE = 10.0  # seconds between two writes of status.json
MOST_DEATHS = 5  # of one fleet's tasks in a row, none of which came further
MOST_BROKEN = 2  # tasks in a row that break on one machine before they come further; then it gets no more
GRACE = 120.0  # seconds in which tasks may end with a checkpoint when they are asked to stop


class Driver:
    """Trains the fleets of an experiment with an engine, whose tasks may die at any time."""

    clock = staticmethod(time.monotonic)

    def __init__(
        self,
        spec: ExperimentSpec,
        folder: Folder,
        engine: Engine,
        announcer: Announcer,
        tensorboard: bool,
        shared: bool,
    ) -> None:
        self.spec, self.folder, self.engine = spec, folder, engine
        self.announcer, self.tensorboard, self.shared = announcer, tensorboard, shared
        self.status = StatusKeeper(folder)
        self.stop = StopRequest()
        self.records = {run.id: run for run in folder.experiment().runs}
        self._queue: deque[Part] = deque()
        self._parts: dict[int, Part] = {}  # that are being trained
        self._deaths: dict[int, int] = {}
        self._broken: dict[str, int] = {}  # by machine: its newest tasks that broke before they came further
        self._reached: dict[int, int] = {}  # the newest checkpoint when a fleet's task was started last
        self._data: Mapping[str, DataEntry] = {}
        self._failed: dict[int, str] = {}
        self._saved = 0.0

    def train(self, fleets: Sequence[Sequence[Run]]) -> None:
        """To the end, or until a stop is asked for. The caller holds the folder's lock."""
        settle_gathering(self.folder)
        (self.folder.path / PARTS / STOP).unlink(missing_ok=True)
        ids = [[run.id for run in fleet] for fleet in fleets]
        apart = [Part(self.folder, number, runs) for number, runs in enumerate(ids)]
        todo = [part for part in apart if not self._is_done(part)]
        entries = pack((run.dataset for part in todo for run in fleets[part.number]), self.folder.path / PARTS)
        self._data = {entry.checksum: entry for entry in entries}
        self._queue = deque(sorted(todo, key=lambda part: -len(part.runs)))  # the longest first: all end together
        view = View(self.announcer, self.engine.title, self.spec.steps, {part.number: len(part.runs) for part in apart})
        for part in apart:
            if part not in todo:
                view.finished(part.number)
        with self.status.training(), self.stop.listening(self.announcer):
            try:
                with view:
                    self._follow(view)
            finally:
                self.engine.close()
            self._conclude()

    def _is_done(self, part: Part) -> bool:
        """Whether the experiment's folder has all of a fleet, and nothing of it is apart."""
        if part.newest is not None:
            return False
        states = [self.status.record.of(run).state for run in part.runs]
        if "finished" in states:
            return True
        newest = next(iter(checkpoints(self.folder.fleet(part.number))), None)
        return set(states) == {"diverged"} and newest is not None and int(newest.stem[5:]) == self.spec.steps

    def _follow(self, view: View) -> None:
        while self._queue or self.engine.active():
            self._start_tasks()
            for ended in self.engine.ended(LOOK):
                self._deal_with(ended, view)
            self._look(view)
            if self.stop.asked:
                self._stop_all(view)
                raise Stopped(messages.stopped("on all machines", self.folder.path))

    def _start_tasks(self) -> None:
        """As many as the engine has places for. The next one is tried again where a machine has taken none."""
        for _ in range(min(len(self._queue), max(0, self.engine.places() - self.engine.active()))):
            if self.stop.asked:
                return
            part = self._queue.popleft()
            self._start(part)

    def _start(self, part: Part) -> None:
        newest = part.newest
        if newest is not None:
            before = Outcome.from_json(read_json(newest / OUTCOME))
            if before is not None and before.state == FINISHED:  # an earlier driver died before it took this in
                self._gather(part)
                return
            order = _stored_order(newest)
            if order is not None and order.path == newest.absolute() and self.engine.adopt(order):
                self._parts[part.number] = part
                return
        attempt = part.begin()
        self._parts[part.number] = part
        self._reached[part.number] = _step_of(attempt, part.number)
        order = Order(
            number=part.number,
            attempt=str(attempt.absolute()),
            token=uuid.uuid4().hex,
            request=self.spec,
            runs=tuple(self.records[run] for run in part.runs),
            data=tuple(self._data[checksum] for checksum in dict.fromkeys(self.records[r].checksum for r in part.runs)),
            versions=own_versions(),
            shared=self.shared,
            tensorboard=self.tensorboard,
            began_in=str(Path.cwd()),
        )
        write_file(attempt / ORDER, order.to_json())
        self.engine.start(order)

    def _deal_with(self, ended: Ended, view: View) -> None:
        part = self._parts.pop(ended.number)
        outcome = ended.outcome
        if outcome is not None and outcome.state == FINISHED:
            self._broken.pop(ended.place, None)
            self._gather(part)
            view.finished(part.number)
            return
        if outcome is not None and outcome.state == FAILED:
            self._failed[part.number] = outcome.error or "no reason was given"
            view.failed(part.number)
            self.announcer.insist(f"Fleet {part.number} failed: {self._failed[part.number]}")
            return
        if self.stop.asked:
            return
        self._try_again(part, ended, view)

    def _try_again(self, part: Part, ended: Ended, view: View) -> None:
        """Unless one task after the other dies and none comes further."""
        newest, outcome = part.newest, ended.outcome
        reason = ended.reason if outcome is None else outcome.error or outcome.state
        reached = 0 if newest is None else _step_of(newest, part.number)
        further = reached > self._reached.get(part.number, 0)
        if outcome is not None and outcome.state == BROKEN:
            self._avoid_what_breaks(ended.place, outcome, further)
        deaths = self._deaths[part.number] = 1 if further else self._deaths.get(part.number, 0) + 1
        if deaths >= MOST_DEATHS:
            log = "" if newest is None else f"; {newest / LOG} has what it said"
            self._failed[part.number] = f"{MOST_DEATHS} tasks in a row died before a checkpoint ({reason}){log}"
            view.failed(part.number)
            self.announcer.insist(f"Fleet {part.number} failed: {self._failed[part.number]}.")
            return
        view.lost(part.number)
        self.announcer.say(f"Fleet {part.number} goes on from update {reached:,} elsewhere: {reason}")
        self._queue.appendleft(part)

    def _avoid_what_breaks(self, place: str, outcome: Outcome, further: bool) -> None:
        """A machine whose disk is full is free again at once, and would break one fleet after the other."""
        self._broken[place] = 0 if further or not place else self._broken.get(place, 0) + 1
        if self._broken[place] == MOST_BROKEN and self.engine.avoid(place):
            self.announcer.insist(f"{outcome.machine} gets no more tasks: {MOST_BROKEN} broke there ({outcome.error}).")

    def _gather(self, part: Part) -> None:
        gather(part, self.status.record)

    def _look(self, view: View) -> None:
        """How far every machine is."""
        due = self.clock() - self._saved > SAVE
        if not due and not view.wants_more:
            return
        for part in self._parts.values():
            attempt = part.newest
            if attempt is None:
                continue
            said = read_json(attempt / PROGRESS)
            view.tell(part.number, said)
            if due:
                self._copy_status(part, attempt, said.get("step"))
        view.show()
        if due:
            self.status.save()
            self._saved = self.clock()

    def _copy_status(self, part: Part, attempt: Path, step: object) -> None:
        with contextlib.suppress(InputError):  # being written: there is a next time
            self.status.record.runs |= read_status(attempt).runs
        for run in part.runs:
            entry = self.status.record.runs.get(run)
            if entry is not None and isinstance(step, int) and entry.state == "training":
                entry.step = max(entry.step, step)

    def _stop_all(self, view: View) -> None:
        """Ask, and wait for the last checkpoints. Everything is gathered: the folder is as after a stop elsewhere."""
        (self.folder.path / PARTS / STOP).touch()
        self.engine.stop()
        until = self.clock() + GRACE
        while self.engine.active() and self.clock() < until:
            for ended in self.engine.ended(LOOK):
                self._deal_with(ended, view)
        self.engine.close()
        gather_all(self.folder, self.status.record)

    def _conclude(self) -> None:
        if self._failed:
            number, reason = next(iter(self._failed.items()))
            raise InputError(
                f"{len(self._failed)} of {len({run.fleet for run in self.records.values()})} fleets failed; fleet "
                f"{number}: {reason.rstrip('.')}. What the others trained is in {self.folder.path}."
            )
        gather_all(self.folder, self.status.record)
        if any(self.status.record.of(run).warning is not None for run in self.records):
            warned = [run for run in self.records if self.status.record.of(run).warning is not None]
            self.announcer.say(messages.ended_with_impossible_values(warned, len(self.records)))


def _step_of(attempt: Path, fleet: int) -> int:
    """The update of the newest checkpoint."""
    newest = next(iter(checkpoints(attempt / f"fleet-{fleet}")), None)
    return 0 if newest is None else int(newest.stem.removeprefix("step-"))


def _stored_order(attempt: Path) -> Order | None:
    try:
        return Order.from_json((attempt / ORDER).read_text())
    except (OSError, ValueError, RecursionError):
        return None
