"""A cluster as a place to train: `score_rl.train(..., on=cluster("ray"))`, `score train --on ray`."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from score_rl.algorithms.algorithm import Algorithm
from score_rl.cluster.data import pack
from score_rl.cluster.driver import Driver
from score_rl.cluster.engines import Engine, Task, shared_by_all
from score_rl.cluster.orders import Order, differing, own_versions
from score_rl.cluster.planning import Group, plan_parts
from score_rl.cluster.speed import Pace
from score_rl.engine.runs import Run, group_fleets
from score_rl.errors import InputError
from score_rl.nets.precision import Precision
from score_rl.run.expansion import run_record
from score_rl.run.messages import Announcer
from score_rl.run.precision import choose_precision
from score_rl.store.folder import Folder
from score_rl.store.judgements import JudgementRecord, read_judgement
from score_rl.store.lock import held
from score_rl.store.parts import PARTS
from score_rl.store.provenance import provenance
from score_rl.store.request import ExperimentSpec

STORAGES = ("auto", "shared", "driver")
AT_ONCE = 2  # processes, where nothing says


def cluster(on: str, *task: str, quiet: bool = False) -> "Cluster":
    """Where to train: ray, ray:ADDRESS, slurm or processes:N. `task` is what a task asks for, such as "gpus=1".

    `score train --help` and docs/cluster.md explain what each engine knows.
    """
    asked = Task.parse(task)
    storage = dict(asked.values).pop("storage", "auto")
    if storage not in STORAGES:
        raise InputError(f"`task` holds storage={storage}; it must be {', '.join(STORAGES[:-1])} or {STORAGES[-1]}.")
    own = Task({name: value for name, value in asked.values.items() if name != "storage"})
    name, _, rest = on.partition(":")
    if name == "ray":
        return Cluster(lambda: _ray(rest or None, own, Announcer(quiet=quiet)), storage)
    if name == "processes":
        number = rest or str(AT_ONCE)
        if not number.isdecimal() or not int(number):
            raise InputError(f"`on` is {on!r}; give a number of processes, such as processes:2.")
        return Cluster(lambda: _processes(int(number), own), "shared")
    if name == "slurm":
        return Cluster(lambda: _slurm(rest or None, own, Announcer(quiet=quiet)), "shared")
    raise InputError(f"`on` is {on!r}; it must be ray, ray:ADDRESS, slurm or processes:N.")


def _ray(address: str | None, task: Task, announcer: Announcer) -> Engine:
    from score_rl.cluster.ray_engine import RayEngine

    return RayEngine(address, task, announcer)


def _processes(number: int, task: Task) -> Engine:
    from score_rl.cluster.process_engine import ProcessEngine

    return ProcessEngine(number, task)


def _slurm(executor: str | None, task: Task, announcer: Announcer) -> Engine:
    from score_rl.cluster.slurm_engine import SlurmEngine

    return SlurmEngine(executor, task, announcer)


class Cluster:
    """Trains an experiment's fleets as tasks of an engine. It stands where `ThisMachine` stands."""

    def __init__(self, make_engine: Callable[[], Engine], storage: str = "auto") -> None:
        self._make_engine, self._storage = make_engine, storage
        self._made: Engine | None = None

    @contextmanager
    def connected(self) -> Iterator[Engine]:
        """The engine; it is closed when the block fails."""
        try:
            if self._made is None:
                self._made = self._make_engine()
            yield self._made
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the cluster; a later training connects again."""
        if self._made is not None:
            made, self._made = self._made, None
            self.__dict__.pop("machines", None)
            made.close()

    @cached_property
    def machines(self) -> list[dict[str, Any]]:
        """What each kind of machine says of itself."""
        with self.connected() as engine:
            found = engine.survey({"kind": "survey"})
            if not found:
                raise InputError(f"no machine of {engine.title} answered; look whether its nodes are alive.")
            here = own_versions()
            for said in found:
                there = said["provenance"]["versions"]
                other = differing(here, there)
                if other is not None:
                    raise InputError(
                        f"{said['name']} has {other} {there.get(other)} and this machine {here.get(other)}, which may "
                        "give other results; install the same version on all machines."
                    )
            return found

    def precision(self, algorithm: Algorithm, asked: str) -> Precision:
        """That of the machines. Where they differ, float32, which all have."""
        if asked != "auto":
            return choose_precision(algorithm, asked)
        found = {said["precisions"].get(algorithm.name, "float32") for said in self.machines}
        return cast("Precision", found.pop() if len(found) == 1 else "float32")

    def provenance(self) -> dict[str, Any]:
        """That of the first machine, with the driver's code and all kinds of devices."""
        kinds = sorted({said["device"] for said in self.machines})
        with self.connected() as engine:
            about = {"engine": engine.title, "machines": len(self.machines), "devices": kinds}
        return self.machines[0]["provenance"] | {"code": provenance()["code"], "cluster": about}

    def fleets(
        self, runs: Sequence[Run], spec: ExperimentSpec, gibibytes: float | None, announcer: Announcer
    ) -> list[list[Run]]:
        """What fits into a device of each kind, and in so many parts that all devices end together."""
        by_id = {run.id: run for run in runs}
        groups: list[Group] = []
        paces: dict[str, Pace] = {}
        with self.connected() as engine, tempfile.TemporaryDirectory() as scratch:
            places = engine.places()
            splittable = places > 1 and any(len(fleet) > 1 for fleet in group_fleets(runs))
            answers = []
            order = _question(spec, runs, Path(scratch))
            question = {
                "kind": "divide", "order": json.loads(order.to_json()), "gibibytes": gibibytes, "widths": splittable,
            }  # fmt: skip
            for kind in dict.fromkeys(machine["device"] for machine in self.machines):
                answers.append(self._answer_of_a(kind, engine, question, order, announcer))
        largest = max(answers, key=lambda answer: len(answer["fleets"]))  # the kind with least memory
        for said in largest["said"]:
            announcer.say(said)
        slowest = max(answers, key=lambda answer: sum(pace["fixed"] + pace["per_run"] for pace in answer["paces"]))
        for pace in slowest["paces"]:
            paces |= dict.fromkeys(pace["runs"], Pace(pace["fixed"], pace["per_run"]))
        for fleet in group_fleets(runs):
            mine = [part for part in largest["fleets"] if by_id[part[0]].fleet_key == fleet[0].fleet_key]
            groups.append(Group(len(fleet), max(map(len, mine)), paces.get(fleet[0].id, Pace(0.0, 1.0))))
        sizes = plan_parts(groups, places)
        made: list[list[Run]] = []
        for fleet, parts in zip(group_fleets(runs), sizes, strict=True):
            begin = 0
            for size in parts:
                made.append(fleet[begin : begin + size])
                begin += size
        if len(made) > len(groups):
            announcer.say(
                f"{len(runs)} runs train as {len(made)} fleets on {places} devices at once; the results are those of "
                "the same fleets on one machine."
            )
        return made

    def _answer_of_a(
        self, kind: str, engine: Engine, question: dict[str, Any], order: Order, announcer: Announcer
    ) -> dict[str, Any]:
        """Of the first machine of this kind on which nothing is wrong."""
        wrong = ""
        for said in (machine for machine in self.machines if machine["device"] == kind):
            answer = engine.ask(question, order.data, said.get("node", ""))
            if "refused" in answer:
                raise InputError(f"{said['name']}: {answer['refused']}")
            if "broken" not in answer:
                if wrong:
                    announcer.insist(wrong)
                return answer
            wrong = f"{said['name']} cannot train: {answer['broken']}"
        raise InputError(wrong)

    def train(
        self,
        spec: ExperimentSpec,
        fleets: Sequence[Sequence[Run]],
        folder: Folder,
        announcer: Announcer,
        *,
        tensorboard: bool,
    ) -> None:
        """Every fleet as a task. The folder is left as if one machine had trained all of them."""
        with held(folder.path):
            try:
                with self.connected() as engine:
                    shared = self._storage == "shared"
                    if self._storage == "auto":
                        shared = shared_by_all(engine, folder.path / "experiment.json")
                    (folder.path / PARTS).mkdir(exist_ok=True)
                    if not shared:
                        announcer.say(
                            "The machines do not share this folder: checkpoints come back through the driver."
                        )
                    Driver(spec, folder, engine, announcer, tensorboard, shared).train(fleets)
            finally:
                self.close()

    def judge(
        self,
        experiment: Path | str,
        data: Path | str | None = None,
        *,
        runs: Sequence[str] = (),
        effort: str = "auto",
        discount: float | None = None,
    ) -> JudgementRecord:
        """`score_rl.judge` on one machine of the cluster, which has to see the experiment's folder and its data."""
        folder = Folder.open(Path(experiment))
        began_in = folder.experiment().began_in or str(Path.cwd())
        question = {
            "kind": "judge", "folder": str(folder.path.absolute()), "runs": list(runs), "effort": effort,
            "discount": discount, "began_in": began_in, "data": None if data is None else str(Path(data).absolute()),
        }  # fmt: skip
        try:
            with self.connected() as engine:
                if not shared_by_all(engine, folder.path / "experiment.json"):
                    raise InputError(
                        f"not every machine of {engine.title} sees {folder.path}, and judging needs all of it there; "
                        "put it on storage that they share, or judge here."
                    )
                best = max(self.machines, key=lambda said: (said["platform"] != "cpu", said["cores"]))
                answer = engine.ask(question, (), best.get("node", ""))
        finally:
            self.close()
        refused = answer.get("refused") or answer.get("broken")
        if refused is not None:
            raise InputError(str(refused))
        found = read_judgement(folder.path)
        if found is None:
            raise InputError(f"{answer.get('machine')} judged and nothing is stored in {folder.path}; judge here.")
        return found


def _question(spec: ExperimentSpec, runs: Sequence[Run], scratch: Path) -> Order:
    """The runs as an order that is not trained."""
    records = tuple(run_record(run, 0, row) for row, run in enumerate(runs))
    data = pack((run.dataset for run in runs), scratch)
    return Order(0, str(scratch), "", spec, records, data, own_versions(), shared=False)
