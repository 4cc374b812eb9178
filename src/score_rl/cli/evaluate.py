"""`score evaluate`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.options import parse
from score_rl.cli.terminal import OUT, plus_minus

NOT_LAST = {
    False: "Policies of an earlier checkpoint. The result is the last policy.",
    True: "Policies chosen by their evaluations in training, judged afresh. The result is the last policy.",
}


@dataclasses.dataclass(frozen=True)
class EvaluateArguments:
    """Judge the last policies of an experiment in fresh episodes.

    The last policies are the result. With --step others are judged, and the table says so.

    Examples:
      score evaluate runs/hopper --episodes 100
      score evaluate runs/hopper --episodes 100 --step best
      score evaluate runs/hopper --physics stock --run replica-hopper-medium_seed=0
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder of the experiment."""
    episodes: int = 10
    """Episodes for each run."""
    physics: Literal["d4rl", "stock"] | None = None
    """Other physics than in training: how much does the policy depend on it?"""
    run: tuple[str, ...] = ()
    """Only these runs."""
    seed: int = 0
    """Another seed, other episodes."""
    step: str | None = None
    """Judge the policies after so many updates, of checkpoints that are kept (the newest two), or best: those that
    `train --keep-best` kept. The last ones unless given."""


def evaluate_command(arguments: Sequence[str]) -> int:
    asked = parse(EvaluateArguments, arguments, "score evaluate")
    from score_rl.data.progress_bar import row_progress
    from score_rl.run.experiment import load

    experiment = load(asked.folder)
    runs = [experiment[name] for name in asked.run] or list(experiment)
    step = chosen_step(asked.step)
    table = Table(title=f"{asked.episodes} episodes each, mean ± std over episodes", title_justify="left")
    for heading in ("run", "updates"):
        table.add_column(heading, overflow="fold")
    sound = [run for run in runs if run.status.state != "diverged"]
    found: dict[str, dict[str, float]] = {}
    updates: dict[str, int] = {}
    judged = experiment.evaluate_runs(asked.episodes, runs=sound, physics=asked.physics, seed=asked.seed, step=step)
    with row_progress("judging runs", len(sound), shown=bool(sound), unit="runs") as advance:
        for run, judgement in judged if sound else ():
            found[run.id] = judgement.summary(0)
            updates[run.id] = run.step if step is None else run.to_play(1, step=step).step
            advance(1)
    solved = ["success" in numbers for numbers in found.values()]
    score = "success (%)" if solved and all(solved) else "score (%)" if any(solved) else "normalised score"
    for heading in ("return", score, "episode length"):
        table.add_column(heading, justify="right")
    for run in runs:
        numbers = found.get(run.id)
        if numbers is None:
            table.add_row(escape(run.id), f"{run.step:,}", "diverged", "", "")
            continue
        table.add_row(
            escape(run.id),
            f"{updates[run.id]:,}",
            plus_minus(numbers["return"], numbers["return_std"]),
            plus_minus(numbers["score"], numbers["score_std"]) if "score" in numbers else "no reference",
            f"{numbers['episode_length']:.0f}",
        )
    OUT.print(table)
    if step is not None:
        OUT.print(NOT_LAST[step == "best"], soft_wrap=True)
    return 0


def chosen_step(text: str | None) -> "int | Literal['best'] | None":
    """A number of updates, or best."""
    if text is None or text == "best":
        return text  # type: ignore[return-value]
    from score_rl.errors import InputError
    from score_rl.store.request import whole_number

    try:
        return whole_number("`step`", float(text.replace("_", "").replace(",", "")))
    except ValueError as error:
        raise InputError(f"`step` is {text!r}; give a number of updates, or best.") from error
