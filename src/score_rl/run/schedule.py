"""What is due when: calls of the compiled program, rows of metrics, evaluations, checkpoints, the end.

Pure rules on numbers. `FleetTrainer` asks them and does what they say.

A window is `log_every` updates long and ends with a row of metrics. Evaluations and the end of training fall on the
ends of windows. A slow device takes a window in several calls of the program, each of `updates_per_call` updates. No
rule depends on where training began: a resumed training goes on with the calls that an undisturbed one would make.
"""

import dataclasses
import math
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of the compiled program: the updates from number `first` to before `end`."""

    first: int
    updates: int
    ends_window: bool  # a row of metrics is due after it
    evaluates: bool  # the policies after it are to be evaluated
    ends_training: bool

    @property
    def end(self) -> int:
        return self.first + self.updates


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The calls of one fleet's training."""

    steps: int  # updates of every run; a multiple of `log_every`
    log_every: int  # updates in a window
    eval_every: int  # updates between evaluations; a multiple of `log_every`
    updates_per_call: int  # a divisor of `log_every`, at least unless training goes on from another machine's

    def calls(self, step: int) -> Iterator[Call]:
        """Every call that is left after `step` updates."""
        while step < self.steps:
            call = self.next_call(step)
            yield call
            step = call.end

    def next_call(self, step: int) -> Call:
        """A stop may have cut the window at a place where no call of this schedule ends. The rest of it is then taken
        in equal calls, so that it ends where it must."""
        updates = math.gcd(self.updates_per_call, self.log_every - step % self.log_every)
        end = step + updates
        last = end == self.steps
        return Call(
            first=step,
            updates=updates,
            ends_window=end % self.log_every == 0,
            evaluates=last or self.evaluates_at(end),
            ends_training=last,
        )

    def evaluates_at(self, step: int) -> bool:
        """Whether the policies after so many updates are evaluated, however long training is."""
        return step > 0 and step % self.eval_every == 0


def checkpoint_is_due(
    minutes_since_last: float, every_minutes: float, *, urgent: bool, still_writing: bool, evaluations_wait: bool
) -> bool:
    """Whether to write a checkpoint after this call.

    It is `urgent` at the end and where a stop was asked for. Else it waits for the one before, because a slow disk
    must not hold up training. It also waits for evaluations that are under way, but not for long: a checkpoint must
    come after the evaluations of earlier updates, and training would stand still for them.
    """
    if urgent:
        return True
    if minutes_since_last < every_minutes or still_writing:
        return False
    return not evaluations_wait or minutes_since_last >= 2 * every_minutes
