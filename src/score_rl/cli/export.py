"""`score export`."""

import dataclasses
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from score_rl.cli.terminal import OUT, parse
from score_rl.console import say
from score_rl.errors import InputError


@dataclasses.dataclass(frozen=True)
class ExportArguments:
    """Write a trained policy as one file that acts without JAX and without score-rl.

    The file holds the policy, the scaling and bounds, the names and units of the columns, and where it comes from. It
    flags observations far outside the data and, where the method has an uncertainty, actions that are not known.

    Examples:
      score export runs/heating --out policy.onnx
      score export runs/heating --run logs_seed=0 --format numpy --out policy.npz
      score export --reader > policy_reader.py
    """

    folder: Annotated[Path | None, tyro.conf.Positional] = None
    """Folder of the experiment."""
    run: str | None = None
    """Which run, by its id; best: the one with the best last evaluation in a simulator, else the one that score judge
    ranks first if it is better than the behaviour. Not needed where there is one."""
    format: Literal["onnx", "numpy", "stablehlo"] | None = None
    """onnx: for onnxruntime. numpy: one .npz and a reader of about 60 lines. stablehlo: for compilers. The ending of
    --out says it too."""
    out: Path | None = None
    """The file to write; policy.onnx, policy.npz or policy.stablehlo unless given."""
    flags: bool = True
    """Flag observations and actions that the data do not know. It reads the data once more."""
    reader: bool = False
    """Print the reader of the numpy format, to be copied."""


def export_command(arguments: Sequence[str]) -> int:
    asked = parse(ExportArguments, arguments, "score export")
    if asked.reader:
        from score_rl.deploy.numpy_file import reader_text

        sys.stdout.write(reader_text())
        return 0
    if asked.folder is None:
        raise InputError("no folder is given; name that of an experiment, such as score export runs/heating.")
    from score_rl.deploy.exporting import ENDINGS
    from score_rl.run.experiment import load

    run = chosen_run(load(asked.folder), asked.run)
    path = asked.out or Path(f"policy{ENDINGS[asked.format or 'onnx']}")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        run.export(path, format=asked.format, flags=asked.flags)
    OUT.print(f"{path}: the policy of {run.id} after {run.step:,} updates", soft_wrap=True, markup=False)
    for doubt in found:
        say(OUT, f"Careful: {doubt.message}")
    return 0


def chosen_run(experiment: Any, named: str | None) -> Any:
    """The run that is named, the best one, or the only one."""
    sound = [run for run in experiment if run.status.state != "diverged"]
    if named == "best":
        return _best(experiment, sound)
    if named is not None:
        return experiment[named]
    if len(experiment) == 1:
        return experiment.run
    ids = ", ".join(run.id for run in experiment)
    raise InputError(f"{experiment.path} holds {len(experiment)} runs; give `run` as one of {ids}, or best.")


def _best(experiment: Any, runs: Sequence[Any]) -> Any:
    """By the last evaluation in the simulator, else by what was judged from data."""
    for key in ("evaluation/score", "evaluation/success", "evaluation/return"):
        judged = [(run.metrics.last(key), run) for run in runs if key in run.metrics.names]
        if judged:
            return max(judged, key=lambda pair: pair[0])[1]
    return _best_judged(experiment, runs)


def _best_judged(experiment: Any, runs: Sequence[Any]) -> Any:
    """The run that score judge ranks first."""
    from score_rl.store.judgements import BETTER, rank_of, read_judgement

    record = read_judgement(experiment.path)
    if record is None:
        raise InputError(
            "no run was evaluated in a simulator or judged by score judge, so none is known as the best; judge them, "
            "or give `run` as an id."
        )
    judged = {name: found for data in record.data for name, found in data.runs.items()}
    ranked = sorted((run for run in runs if run.id in judged), key=lambda run: rank_of(judged[run.id]), reverse=True)
    better = [run for run in ranked if judged[run.id].verdict == BETTER]
    if not better:
        raise InputError(
            f"no run of {experiment.path} was judged better than what recorded the data; give `run` as an id to export "
            "one all the same."
        )
    if judged[better[0].id].step not in (None, better[0].step):
        raise InputError(f"{better[0].id} has been trained on since it was judged; call score judge once more.")
    return better[0]
