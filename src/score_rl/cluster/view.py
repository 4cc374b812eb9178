"""All machines in one view: runs, devices, updates per second, time left."""

import time
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from score_rl.errors import count
from score_rl.live_line import Fact, LiveLine, as_duration, bar_line
from score_rl.run.messages import Announcer

SECONDS_BETWEEN_LINES = 20.0
SECONDS_BETWEEN_LOOKS = 2.0
SHARE, LEFT, RUNS, SPEED, DEVICES, LOST, TITLE = range(7)


class View:
    """One line: live in a terminal, now and then in a log."""

    clock = staticmethod(time.monotonic)

    def __init__(self, announcer: Announcer, title: str, steps: int, runs: Mapping[int, int]) -> None:
        """`runs` is how many each fleet has."""
        self._announcer, self._title, self._steps, self._runs = announcer, title, steps, dict(runs)
        self._said: dict[int, Mapping[str, Any]] = {}  # by fleets that are trained now
        self._step = dict.fromkeys(runs, 0)
        self._done: set[int] = set()
        self._failed: set[int] = set()
        self._losses = 0
        self.live = (announcer.console.is_terminal or announcer.console.is_jupyter) and not announcer.quiet
        self._bar = LiveLine(self._line, announcer.console)
        self._printed = self._looked = self.clock()

    def __enter__(self) -> "View":
        if self.live:
            self._bar.__enter__()
        return self

    def __exit__(self, *of_the_error: Any) -> None:
        if self.live:
            self._bar.__exit__(*of_the_error)
        else:
            self._print()

    @property
    def wants_more(self) -> bool:
        """Whether it is time to look at the machines again."""
        return self.clock() - self._looked > SECONDS_BETWEEN_LOOKS

    def tell(self, fleet: int, said: Mapping[str, Any]) -> None:
        """What a machine says of a fleet."""
        self._said[fleet] = said
        step = said.get("step")
        if isinstance(step, int):
            self._step[fleet] = min(max(step, 0), self._steps)

    def finished(self, fleet: int) -> None:
        self._done.add(fleet)
        self._step[fleet] = self._steps
        self._said.pop(fleet, None)

    def failed(self, fleet: int) -> None:
        self._failed.add(fleet)
        self._said.pop(fleet, None)

    def lost(self, fleet: int) -> None:
        self._losses += 1
        self._said.pop(fleet, None)

    def show(self) -> None:
        self._looked = self.clock()
        if not self.live and self.clock() - self._printed > SECONDS_BETWEEN_LINES:
            self._print()

    def _print(self) -> None:
        self._printed = self.clock()
        self._announcer.say(f"{self._title}: " + ", ".join(fact.text for fact in self._facts()[:-1] if fact.text))

    # -- what it says --------------------------------------------------------------------------------------------

    def _line(self, width: int) -> Text:
        return bar_line(self._share, self._facts(), width)

    def _facts(self) -> list[Fact]:
        done = sum(self._runs[fleet] for fleet in self._done)
        rate, left = self._rate, self._left
        failed = sum(self._runs[fleet] for fleet in self._failed)
        return [
            Fact(f"{self._share:4.0%}".strip(), SHARE),
            Fact(f"{as_duration(left)} left" if left is not None else "", LEFT, "cyan"),
            Fact(f"{done:,} of {count(sum(self._runs.values()), 'run')} done", RUNS, "bold"),
            Fact(f"{rate:,.0f} run-updates/s" if rate else "", SPEED),
            Fact(f"on {count(len(self._said), 'device')}", DEVICES),
            Fact(f"{self._losses} taken up again" if self._losses else "", LOST, "yellow"),
            Fact(f"{failed} failed" if failed else "", LOST, "red"),
            Fact(self._title, TITLE, "dim"),
        ]

    @property
    def _share(self) -> float:
        of = sum(self._runs.values()) * self._steps
        return sum(self._runs[fleet] * step for fleet, step in self._step.items()) / of if of else 1.0

    @property
    def _rate(self) -> float:
        """Updates per second of all runs together."""
        rates = {fleet: said.get("updates_per_second") for fleet, said in self._said.items()}
        return sum(self._runs[fleet] * rate for fleet, rate in rates.items() if isinstance(rate, int | float))

    @property
    def _left(self) -> float | None:
        """Seconds at the present pace; None while nothing is known."""
        left = sum(
            self._runs[fleet] * (self._steps - step) for fleet, step in self._step.items() if fleet not in self._failed
        )
        return left / self._rate if self._rate else None
