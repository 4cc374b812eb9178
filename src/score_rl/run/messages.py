"""What training tells on the console: every sentence, and the one place that prints them.

Arguments stand in backticks, see `score_rl.errors`. Errors are not here: whoever finds one raises it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from score_rl.console import open_console, say
from score_rl.engine.memory import FleetSplit, Footprint, as_size
from score_rl.errors import as_read, count
from score_rl.live_line import as_duration
from score_rl.store.records import WARNING

RUNS_NAMED = 5  # in one message; status.json has them all


class Announcer:
    """Prints to the console, unless it is told to be quiet."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console if console is not None else open_console(stderr=True)
        self.quiet = quiet

    def say(self, message: str) -> None:
        if not self.quiet:
            self.insist(message)

    def say_all(self, messages: Iterable[str]) -> None:
        for message in messages:
            self.say(message)

    def insist(self, message: str) -> None:
        """Print it in any case: the answer to what somebody has just done."""
        say(self.console, as_read(message))


# -- before training ----------------------------------------------------------------------------------------------


def data_warning(dataset: str, what: str) -> str:
    return f"{WARNING} {dataset}: {what}"


def data_note(dataset: str, what: str) -> str:
    return f"Note, {dataset}: {what}"


def setting_of_some(name: str, titles: Sequence[str]) -> str:
    return f"Note: `config.{name}` goes to {' and '.join(titles)}; the other algorithms have no such setting."


def preset_settings(title: str, dataset: str, settings: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"Note, {title} on {dataset} has its authors' settings for such data: {shown}"


def standardised(title: str, dataset: str) -> str:
    return (
        f"Note, {title} on {dataset}: observations are standardised, since the data are no benchmark's; its authors "
        "took them raw. For raw ones: `config.normalise_states=False`"
    )


def said_before_training(warnings: Sequence[str]) -> str:
    """The warnings once more, where somebody who comes back after hours reads them."""
    return "As said before training:\n" + "\n".join(f"- {warning}" for warning in warnings)


def schedule_of_another_length(title: str, name: str, updates: int, steps: int, effect: str, usual: int) -> str:
    return (
        f"Note, {title}: {name} is {updates:,} and training has {steps:,} updates, so {effect}. "
        f"For the authors' share of a run: `config.{name}={usual}`"
    )


def trained_in_parts(split: FleetSplit, where: str, free: int) -> str:
    sizes = sorted({len(part) for part in split.parts}, reverse=True)
    return (
        f"{sum(map(len, split.parts))} runs would need {as_size(split.whole or 0)} on {where}, where {as_size(free)} "
        f"are free: they are trained as {len(split.parts)} fleets of {' or '.join(map(str, sizes))}, one after the "
        "other. The results are the same."
    )


def compiling(title: str, runs: int) -> str:
    return f"Compiling one program for {count(runs, 'run')} of {title} ..."


def compiled(seconds: float, needs: Footprint, device: str, devices: int) -> str:
    several = f" (each of {devices})" if devices > 1 else ""
    return (
        f"Compiled in {seconds:.0f} s. Memory: {as_size(needs.program)} on {device}{several}. "
        f"A checkpoint: {as_size(needs.checkpoint)}."
    )


def programs_not_kept(reason: str) -> str:
    return f"Note: compiled programs are not kept for the next start, since {reason.rstrip('.')}."


# -- checkpoints --------------------------------------------------------------------------------------------------


def damaged_checkpoint(path: Path, reason: Exception) -> str:
    return f"{path.name} is damaged ({reason}); falling back to the checkpoint before it."


def no_whole_checkpoint() -> str:
    return "No checkpoint is whole: it begins again from the start."


def metrics_restored(rows: int, step: int) -> str:
    return (
        f"Warning: metrics.csv lacked {count(rows, 'measurement')} or had them with other values; they were restored "
        f"from the checkpoint of update {step:,}."
    )


def metrics_lost(step: int) -> str:
    return f"Warning: metrics.csv lacks all that was measured before update {step:,}, and no checkpoint holds it."


def goes_on_otherwise(differences: str) -> str:
    return (
        f"Warning: this goes on with something else than it was trained with ({differences}). The result will not be "
        "that of an undisturbed training to the bit; experiment.json says from which update on."
    )


# -- while training -----------------------------------------------------------------------------------------------


def time_needed(updates: int, seconds: float, updates_left: int) -> str:
    """The first call of the program is the trial from which the rest is told."""
    return (
        f"The first {count(updates, 'update')} took {seconds:.1f} s: the other {updates_left:,} "
        f"will take about {as_duration(seconds * updates_left / updates)}, evaluation not counted."
    )


def diverged(run: str, step: int, metric: str) -> str:
    return f"{run} diverged by update {step:,} ({metric} is not finite); others go on."


def impossible_values(run: str, step: int, warning: str) -> str:
    return f"Warning, {run} by update {step:,}: {warning}"


def ended_with_impossible_values(runs: Sequence[str], of: int) -> str:
    shown = ", ".join(runs[:RUNS_NAMED]) + (", ..." if len(runs) > RUNS_NAMED else "")
    return (
        f"Warning: {len(runs)} of {of} runs ended with values that their rewards cannot add up to ({shown}); "
        "status.json has what they are."
    )


def evaluated_by_threads(title: str, operation: str) -> str:
    return (
        f"{title}'s policies are judged by threads, slower on many cores than by processes: there is no instruction "
        f"for {operation} (rollout/instructions.py)."
    )


def evaluation_given_up(which: str) -> str:
    return f"Warning: {which} was not evaluated, since three processes died of it; training goes on."


def training_waits(share: float, eval_every: int, eval_episodes: int) -> str:
    return (
        f"Training waits for evaluation {share:.0%} of the time. Fewer evaluations (`eval_every`, now {eval_every:,}) "
        f"or fewer episodes (`eval_episodes`, now {eval_episodes}) would make it faster."
    )


def stopping() -> str:
    return "Stopping in a moment, with a checkpoint. Once more to stop at once."


def stopped(where: str, folder: Path) -> str:
    return f"stopped {where} with a checkpoint; go on with `resume={folder}`"


# -- stages before training ---------------------------------------------------------------------------------------


def stage_diverged(run: str, stage: str, metric: str) -> str:
    return f"{run} diverged in its stage {stage!r} ({metric} is not finite); others go on."


def stage_reused(stage: str, reused: int, runs: int, cache: Path) -> str:
    whose = "" if runs == 1 else f" of {reused} of {runs} runs"
    return f"The stage {stage!r}{whose} was trained before on this data with these settings: reused from {cache}."


def damaged_stage(path: Path, reason: Exception) -> str:
    return f"{path} is damaged ({reason}); the stage is trained again."


def stage_not_trusted(stage: str, reason: Exception) -> str:
    return f"The stage {stage!r} is trained here, since its stored result is not trusted: {reason}"


def stage_not_kept(stage: str, reason: Exception) -> str:
    return f"{stage} is not kept for later: {reason}"
