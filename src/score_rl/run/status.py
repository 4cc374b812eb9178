"""The status of an experiment while it trains: the only writer of status.json."""

import contextlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from score_rl.errors import InputError, Stopped
from score_rl.store.folder import Folder
from score_rl.store.lock import held
from score_rl.store.records import RunStatus


def store_notes(folder: Folder, notes: Iterable[str]) -> None:
    """What was told before training, for whoever looks later. Refused where another process trains in the folder."""
    with held(folder.path):
        status = StatusKeeper(folder)
        status.record.notes = tuple(notes)
        status.save()


class StatusKeeper:
    """How far the experiment and each of its runs are. What changes is written by `save`, or where it is said."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.record = folder.status()

    def save(self) -> None:
        self._folder.write_status(self.record)

    @contextmanager
    def training(self) -> Iterator[None]:
        """The experiment is running in here; afterwards its status says how that ended."""
        self.record.state, self.record.error = "running", None
        try:
            yield
            self.record.state = "finished"
        except (Stopped, KeyboardInterrupt):
            self.record.state = "interrupted"
            raise
        except BaseException as error:
            self.record.state, self.record.error = "failed", str(error)
            raise
        finally:
            with contextlib.suppress(InputError):  # a full disk: the status stays that of the last checkpoint
                self.save()

    def make_longer(self) -> None:
        """More updates were asked for: nothing is finished any more."""
        self.record.state = "interrupted"
        for run in self.record.runs.values():
            if run.state == "finished":
                run.state = "training"
        self.save()

    def begin(self, runs: Iterable[str], step: int, steps: int) -> None:
        """These runs go on after `step` of `steps` updates. One that diverged later than that gets another try."""
        for run in runs:
            entry = self.record.runs.setdefault(run, RunStatus("training"))
            if entry.diverged_at is not None and entry.diverged_at > step:
                entry.state, entry.diverged_at = "training", None
            if entry.state == "finished" and step < steps:
                entry.state = "training"
            entry.step = step
        self.save()

    def has_diverged(self, run: str) -> bool:
        return self.record.of(run).state == "diverged"

    def sound(self, runs: Iterable[str]) -> list[str]:
        """Those that have not diverged."""
        return [run for run in runs if not self.has_diverged(run)]

    def set_diverged(self, run: str, step: int) -> None:
        """Its metrics are not finite after `step` updates; what it measured ends there."""
        entry = self.record.runs.setdefault(run, RunStatus())
        entry.state, entry.diverged_at = "diverged", step
        self.save()

    def set_step(self, runs: Iterable[str], step: int) -> None:
        for run in runs:
            self.record.runs[run].step = step

    def set_warning(self, run: str, warning: str | None) -> None:
        self.record.runs[run].warning = warning

    def warned(self, runs: Collection[str]) -> list[str]:
        """Those whose values are impossible now."""
        return [run for run in runs if self.record.of(run).warning is not None]

    def finish(self, runs: Iterable[str]) -> None:
        """These runs have all their updates."""
        for run in self.sound(runs):
            self.record.runs[run].state = "finished"
        self.save()
