"""What reaches the console: whole lines, arguments or flags, and nothing where nobody wants it."""

import io
from pathlib import Path

from rich.console import Console

from score_rl.engine.memory import GIBIBYTE, FleetSplit, Footprint
from score_rl.errors import in_command_line
from score_rl.run import messages
from score_rl.run.messages import Announcer


def told(message: str, *, quiet: bool = False, insist: bool = False) -> str:
    out = io.StringIO()
    announcer = Announcer(Console(file=out, width=40), quiet=quiet)
    (announcer.insist if insist else announcer.say)(message)
    return out.getvalue()


def test_a_message_is_one_line_however_narrow_the_console_and_no_markup() -> None:
    message = "[bold]a folder named so[/bold] " + "and many more words " * 5
    assert told(message) == message + "\n"


def test_quiet_is_quiet_but_for_answers() -> None:
    assert told("anything", quiet=True) == ""
    assert told("anything", quiet=True, insist=True) == "anything\n"


def test_commands_read_flags_and_python_reads_arguments() -> None:
    advice = messages.training_waits(0.3, 5_000, 10)
    assert "`eval_every`, now 5,000" in told(advice)
    with in_command_line():
        assert "--eval-every, now 5,000" in told(advice)
        assert told(messages.stopped("at update 40", Path("runs/x"))) == (
            "stopped at update 40 with a checkpoint; go on with --resume runs/x\n"
        )


def test_the_first_call_tells_how_long_the_rest_takes() -> None:
    assert messages.time_needed(100, 2.0, 9_900) == (
        "The first 100 updates took 2.0 s: the other 9,900 will take about 3 min 18 s, evaluation not counted."
    )
    assert messages.time_needed(1, 2.0, 1).startswith("The first 1 update took")


def test_what_a_fleet_takes() -> None:
    needs = Footprint(program=3 * GIBIBYTE, available=None, checkpoint=2**20)
    assert messages.compiled(12.3, needs, "H200", 1) == (
        "Compiled in 12 s. Memory: 3.00 GiB on H200. A checkpoint: 1.00 MiB."
    )
    assert "on H200 (each of 4)." in messages.compiled(12.3, needs, "H200", 4)


def test_parts_are_counted_and_their_sizes_named() -> None:
    split = FleetSplit([[None] * 4, [None] * 3, [None] * 3], whole=10 * GIBIBYTE)  # type: ignore[list-item]
    message = messages.trained_in_parts(split, "cpu", 4 * GIBIBYTE)
    assert message.startswith("10 runs would need 10.00 GiB on cpu, where 4.00 GiB are free: they are trained as 3")
    assert "fleets of 4 or 3, one after the other" in message
