"""An experiment as Python sees it: open one, and use what came out."""

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from jaxtyping import Float

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.treatment import Treatment
from score_rl.deploy.exporting import export_policy, format_of
from score_rl.deploy.limits import Limits
from score_rl.engine.runs import run_identity
from score_rl.errors import InputError, count, unknown_name
from score_rl.notebook import html_table
from score_rl.rollout.episodes import Judgement
from score_rl.rollout.judging import judge_policies
from score_rl.rollout.policies import PolicyToPlay, fresh_seed
from score_rl.run.asking import AskedRun, CheckedActions
from score_rl.run.deployment import limits_of, origin_of, refuse_diverged, trained_policy
from score_rl.run.kept_states import KeptPolicy, KeptStates
from score_rl.run.trusted_modules import refuse_foreign_modules
from score_rl.store.folder import Folder
from score_rl.store.judgements import doubt_of
from score_rl.store.metrics import MetricsTable
from score_rl.store.records import RunRecord, RunStatus

Step = int | Literal["best"] | None  # None: the last


class TrainedRun:
    """One run of an experiment: its policy, its uncertainty, what was measured."""

    def __init__(self, experiment: "Experiment", record: RunRecord) -> None:
        self.experiment, self.record = experiment, record
        self.id, self.dataset, self.seed = record.id, record.dataset, record.seed

    def __repr__(self) -> str:
        try:
            where = f"{self.status.state} at update {self.status.step:,}"
        except (InputError, OSError):  # a repr must not raise
            where = "state unknown"
        return f"<run {self.id}: {where}>"

    def _repr_html_(self) -> str:
        about = [("algorithm", self.record.algorithm), ("data", self.dataset), ("seed", self.seed)]
        last = {row.name: row.value for row in self.metrics}  # the newest of each
        measured = [(name, f"{value:.4g}") for name, value in last.items()]
        return html_table(repr(self)[1:-1], ("", ""), [*about, *measured])

    @cached_property
    def algorithm(self) -> Algorithm:
        """The algorithm that trained it."""
        return get_algorithm(self.record.algorithm)

    @cached_property
    def config(self) -> Any:
        """All its settings."""
        return make_config(self.algorithm, self.record.config)

    @property
    def status(self) -> RunStatus:
        """How it stands: its state, its update, what is doubtful."""
        return self.experiment.folder.status().of(self.id)

    @property
    def metrics(self) -> MetricsTable:
        """Everything measured in this run."""
        return self.experiment.metrics.of(self.id)

    @cached_property
    def _loaded(self) -> tuple[int, Any, Treatment]:
        return self.experiment.states.load(self.record, self.algorithm, self.config)

    @property
    def step(self) -> int:
        """The update of the newest checkpoint."""
        return self._loaded[0]

    @property
    def state(self) -> Any:
        """Parameters, targets, optimisers: all that the newest checkpoint holds of this run."""
        return self._loaded[1]

    @property
    def treatment(self) -> Treatment:
        """How observations, actions and rewards of the data are scaled."""
        return self._loaded[2]

    @cached_property
    def _asked(self) -> AskedRun:
        return AskedRun(self.algorithm, self.config, self.state, self.treatment)

    @cached_property
    def _trusted(self) -> AskedRun:
        """What is asked for actions; the first time with what training or the judge found wrong."""
        self._warn()
        if doubt := doubt_of(self.experiment.path, self.id, self.step):
            warnings.warn(f"{self.id}: {doubt}", stacklevel=4)
        return self._asked

    @cached_property
    def _limits(self) -> Limits:
        return limits_of(self._asked, self.experiment.record, self.record)

    def _warn(self) -> None:
        """That training itself has found something wrong with this policy."""
        status = self.status
        if status.state == "diverged":
            warnings.warn(f"{self.id} diverged: do not trust its policy.", stacklevel=5)
        elif status.warning is not None:
            warnings.warn(f"{self.id}: {status.warning}", stacklevel=5)

    @overload
    def policy(self, observation: np.ndarray, *, check: Literal[False] = ...) -> np.ndarray: ...

    @overload
    def policy(self, observation: np.ndarray, *, check: Literal[True]) -> CheckedActions: ...

    def policy(self, observation: Any, *, check: bool = False) -> np.ndarray | CheckedActions:
        """The learned action for one `observation` or a batch of them, columns and units as in the data.

        NaN and infinite observations are refused: a policy would answer them with anything. With `check` the answer
        also says which observations lie far outside the data and which actions are not known, by the rule that
        exported files have. For that the data are read once more.
        """
        return self._trusted.checked(observation, self._limits) if check else self._trusted.actions(observation)

    def uncertainty(
        self, observation: Float[np.ndarray, "*batch observation"], action: Float[np.ndarray, "*batch action"]
    ) -> Float[np.ndarray, "*batch"]:
        """u(s, a) of an `observation` and an `action`, in units of the scaled reward. Both are as in the data.

        It has no scale of its own: compare it with what recorded pairs have.
        """
        return self._asked.uncertainty(observation, action)

    def value(
        self,
        observation: Float[np.ndarray, "*batch observation"],
        action: Float[np.ndarray, "*batch action"] | None = None,
    ) -> Float[np.ndarray, "*batch"]:
        """What the method expects of an `action` at an `observation`, or of its own: discounted rewards, scaled.

        It is Q(s, a) by which the policy was improved, with the method's pessimism in it. Without an action it is V(s)
        where the method learns that (IQL, MOReL), else Q(s, π(s)). It is no estimate of what the policy will earn.
        """
        return self._asked.value(observation, action)

    def export(self, path: Path | str, *, format: str | None = None, flags: bool = True) -> Path:
        """Write the policy to `path` as one file that acts without JAX and without this package: docs/deploy.md.

        `format` is onnx, numpy or stablehlo; the ending of the name says it too (.onnx, .npz, .stablehlo). With
        `flags` the data are read once more, and the file flags observations far outside them and unknown actions.
        """
        path, record, status = Path(path), self.experiment.record, self.status
        refuse_diverged(self.id, status)
        kind = format_of(path, format)  # refused before the data are read
        origin = origin_of(record, self.record, status, self.step)
        limits = self._limits if flags else None
        export_policy(trained_policy(self._trusted, record, self.record, limits, origin), path, kind)
        return path

    def evaluate(
        self, episodes: int = 10, *, physics: str | None = None, seed: int = 0, step: Step = None
    ) -> Judgement:
        """Act in the environment of its data for so many `episodes`, and return what happened.

        `physics` is that of training unless given; another `seed` draws other episodes. The last policy is the result.
        `step` judges another: that of a kept checkpoint, by its number of updates, or "best", where
        `train(keep_best=True)` kept the one that its own evaluations liked most.
        """
        (judgement,) = judge_policies([self.to_play(episodes, physics=physics, seed=seed, step=step)])
        return judgement

    def to_play(self, episodes: int, *, physics: str | None = None, seed: int = 0, step: Step = None) -> PolicyToPlay:
        """The policy, and fresh `episodes` for it: not those of training. The rest is as in `evaluate`."""
        if episodes < 1:
            raise InputError(f"episodes is {episodes}; it must be 1 or more.")
        environment = self.experiment.spec.environment or self.record.environment
        if environment in (None, "none"):
            raise InputError(
                f"{self.id} was trained without an environment, so there is nothing to act in; train it with "
                "--environment, or judge it from data alone with score judge."
            )
        refuse_foreign_modules(self.experiment.record)
        self._warn()
        kept = self._policy_at(step)
        return PolicyToPlay(
            algorithm=self.algorithm,
            config=self.config,
            treatment=kept.treatment,
            policy=kept.policy,
            environment=str(environment),
            physics=physics or self.experiment.spec.physics,
            identity=run_identity(self.record.algorithm, self.record.checksum, self.seed),
            step=kept.step,
            episodes=episodes,
            seed=fresh_seed(seed),
        )

    def _policy_at(self, step: Step) -> KeptPolicy:
        """The last policy, or another that is kept."""
        states = self.experiment.states
        if step == "best":
            return states.load_best(self.record, self.algorithm, self.config)
        found = self._loaded if step is None else states.load(self.record, self.algorithm, self.config, step)
        return KeptPolicy(found[0], self.algorithm.policy(found[1]), found[2])


class Experiment(Sequence[TrainedRun]):
    """All runs of a folder. With exactly one run, `policy`, `uncertainty` and `evaluate` are that run's."""

    def __init__(self, path: Path | str) -> None:
        self.folder = Folder.open(Path(path))
        self.record = self.folder.experiment()
        self.spec = self.record.request
        self.runs = [TrainedRun(self, run) for run in self.record.runs]
        self.states = KeptStates(self.folder)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[TrainedRun]:
        return iter(self.runs)

    def __contains__(self, which: object) -> bool:
        return any(which in (run, run.id) for run in self.runs)

    def keys(self) -> list[str]:
        """The ids of the runs; `experiment[id]` is one of them."""
        return [run.id for run in self.runs]

    _ipython_key_completions_ = keys

    def values(self) -> list[TrainedRun]:
        """The runs, as iterating gives them."""
        return list(self.runs)

    def items(self) -> list[tuple[str, TrainedRun]]:
        """Ids and runs."""
        return [(run.id, run) for run in self.runs]

    def get(self, which: Any, default: Any = None) -> Any:
        """The run with the id `which`, or `default` where there is none."""
        return dict(self.items()).get(which, default)

    def __getitem__(self, which: Any) -> Any:
        """A run by its id or its number, several by a slice."""
        if isinstance(which, TrainedRun):
            which = which.id
        names = self.keys()
        if isinstance(which, str) and which not in names:
            raise unknown_name("run", which, names)
        return self.runs[names.index(which) if isinstance(which, str) else which]

    def __repr__(self) -> str:
        try:
            state = self.folder.status().state
        except (InputError, OSError):  # a repr must not raise
            state = "state unknown"
        return f"<experiment {self.folder.path}: {count(len(self), 'run')}, {state}>"

    def _repr_html_(self) -> str:
        rows = []
        for run in self.runs:
            status, mine = run.status, run.metrics
            key = next((k for k in ("score", "success", "return") if f"evaluation/{k}" in mine.names), None)
            judged = "not judged" if key is None else f"{key} {mine.last(f'evaluation/{key}'):.1f}"
            state = status.state if status.warning is None else f"{status.state}, doubtful: {status.warning}"
            rows.append((run.id, f"{status.step:,}", judged, state))
        return html_table(repr(self)[1:-1], ("run", "updates", "last policy", "state"), rows)

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder.path

    @property
    def metrics(self) -> MetricsTable:
        """Everything measured in all runs."""
        return self.folder.metrics()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was told before training: warnings about the data, settings and schedules."""
        return self.folder.status().notes

    @property
    def run(self) -> TrainedRun:
        """The only run."""
        if len(self) != 1:
            raise InputError(f"{self.path} holds {len(self)} runs; pick one, such as experiment[{self.runs[0].id!r}].")
        return self.runs[0]

    @overload
    def policy(self, observation: np.ndarray, *, check: Literal[False] = ...) -> np.ndarray: ...

    @overload
    def policy(self, observation: np.ndarray, *, check: Literal[True]) -> CheckedActions: ...

    def policy(self, observation: Any, *, check: bool = False) -> np.ndarray | CheckedActions:
        """Of the only run: see `TrainedRun.policy`."""
        return self.run.policy(observation, check=check)  # type: ignore[call-overload]

    def uncertainty(
        self, observation: Float[np.ndarray, "*batch observation"], action: Float[np.ndarray, "*batch action"]
    ) -> Float[np.ndarray, "*batch"]:
        """Of the only run: see `TrainedRun.uncertainty`."""
        return self.run.uncertainty(observation, action)

    def value(
        self,
        observation: Float[np.ndarray, "*batch observation"],
        action: Float[np.ndarray, "*batch action"] | None = None,
    ) -> Float[np.ndarray, "*batch"]:
        """Of the only run: see `TrainedRun.value`."""
        return self.run.value(observation, action)

    def evaluate(
        self, episodes: int = 10, *, physics: str | None = None, seed: int = 0, step: Step = None
    ) -> Judgement:
        """Of the only run: see `TrainedRun.evaluate`."""
        return self.run.evaluate(episodes, physics=physics, seed=seed, step=step)

    def evaluate_runs(
        self,
        episodes: int = 10,
        *,
        runs: Sequence[TrainedRun] | None = None,
        physics: str | None = None,
        seed: int = 0,
        step: Step = None,
    ) -> Iterator[tuple[TrainedRun, Judgement]]:
        """Every run, or these `runs`, with what its policy did in fresh `episodes`, as soon as it is known.

        On many cores this is much faster than one after the other. The rest is as in `TrainedRun.evaluate`."""
        chosen = self.runs if runs is None else runs
        policies = [run.to_play(episodes, physics=physics, seed=seed, step=step) for run in chosen]
        return zip(chosen, judge_policies(policies), strict=True)


def load(path: Path | str) -> Experiment:
    """Open the experiment in the folder `path`."""
    return Experiment(path)
