"""The `score` command: parses, calls, prints. Every command has its room.

Heavy imports stay inside the commands, so that `score --help` answers at once.
"""

import os
import select as system_select  # `score_rl.cli.select` is a command
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from score_rl.cli.act import act_command
from score_rl.cli.algorithms import algorithms_command
from score_rl.cli.completion import completion_command
from score_rl.cli.data import data_command
from score_rl.cli.evaluate import evaluate_command
from score_rl.cli.experiment import experiment_command
from score_rl.cli.export import export_command
from score_rl.cli.judge import judge_command
from score_rl.cli.options import in_lines
from score_rl.cli.report import report_command
from score_rl.cli.select import select_command
from score_rl.cli.status import status_command
from score_rl.cli.theory import theory_command
from score_rl.cli.train import train_command
from score_rl.errors import InputError, Stopped, as_read, in_command_line, printable

TRAINED_STOPPED = 130  # what shells use for Ctrl-C
IMPORT = "--import"
NOBODY_READS = 141  # what they use where a reader, as in `score train --help | head`, has left

COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "train": (train_command, "train policies from recorded data and judge them"),
    "status": (status_command, "say how far a training is, here or on a cluster"),
    "evaluate": (evaluate_command, "judge trained policies in fresh episodes"),
    "export": (export_command, "write a trained policy as one file that acts anywhere"),
    "act": (act_command, "act with an exported policy on the rows of a table"),
    "judge": (judge_command, "judge trained policies from recorded data, without a simulator"),
    "select": (select_command, "choose a method and its settings from recorded data alone"),
    "report": (report_command, "make a page of stored runs: tables, curves, statistics, provenance"),
    "data": (data_command, "list, show, build, check and re-collect data sets"),
    "algorithms": (algorithms_command, "list the algorithms and their settings"),
    "experiment": (experiment_command, "make the paper's tables and figures"),
    "theory": (theory_command, "check the paper's statements on small problems"),
    "completion": (lambda arguments: completion_command(arguments, _completed()), "complete all of this on TAB"),
}


def _completed() -> dict[str, Callable[[Sequence[str]], int]]:
    return {name: command for name, (command, _) in COMMANDS.items() if name != "completion"}


ABOUT = "Offline reinforcement learning: learn a policy from recorded data, judge it, keep it."
MORE = (
    "`score COMMAND --help` explains each. To begin: score train",
    "--import MODULE, with any command, runs a module of yours first: stored runs with your own algorithms and "
    "environments need it.",
)


def usage() -> str:
    """All commands, as wide as the terminal."""
    commands = [in_lines(f"  {name:<12} {summary}", beyond=15) for name, (_, summary) in COMMANDS.items()]
    return "\n\n".join(["usage: score COMMAND [OPTIONS]", in_lines(ABOUT), "\n".join(commands), *map(in_lines, MORE)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit code 0 when all went well, 2 for what the user can mend, 130 after Ctrl-C."""
    with in_command_line():
        try:
            try:
                _run(arguments)
            finally:
                sys.stdout.flush()  # else a pipe that nobody reads is noticed only when Python ends
        except BrokenPipeError:
            if not _reader_has_left():
                raise
            raise SystemExit(NOBODY_READS) from None


def _run(arguments: Sequence[str] | None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        raise SystemExit(0 if arguments else 2)
    if arguments[0] == "--version":
        from score_rl.versions import version_of

        print(version_of("score-rl"))
        raise SystemExit(0)
    try:
        if arguments[0] not in COMMANDS:
            from score_rl.errors import unknown_name

            raise unknown_name("command", arguments[0], COMMANDS)
        raise SystemExit(COMMANDS[arguments[0]][0](without_imports(arguments[1:])))
    except InputError as error:
        print(f"score: {printable(as_read(str(error)), lines=True)}", file=sys.stderr)
        raise SystemExit(2) from None
    except Stopped as stopped:
        print(f"score: {printable(as_read(str(stopped)), lines=True)}", file=sys.stderr)
        raise SystemExit(TRAINED_STOPPED) from None
    except PermissionError as error:
        where = printable(os.fsdecode(error.filename or "a file"))
        print(f"score: {where} cannot be used ({error.strerror}): ask its owner, or give another.", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("score: stopped.", file=sys.stderr)
        raise SystemExit(TRAINED_STOPPED) from None


def without_imports(arguments: Sequence[str]) -> list[str]:
    """The arguments without `--import MODULE`, after importing what is named there."""
    rest: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument != IMPORT and not argument.startswith(f"{IMPORT}="):
            rest.append(argument)
            continue
        named = next(given, "") if argument == IMPORT else argument.partition("=")[2]
        if not named or named.startswith("-"):
            raise InputError(f"{IMPORT} names no module; give one, such as {IMPORT} my_methods.")
        from score_rl.plugins import import_named

        import_named(named, IMPORT)
    return rest


def _reader_has_left() -> bool:
    """Whether what is printed goes to a pipe that nobody reads any more; nothing is printed from then on."""
    left = [stream for stream in (sys.stdout, sys.stderr) if _leads_nowhere(stream)]
    for stream in left:  # else Python complains at its end that it could not print what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return bool(left)


def _leads_nowhere(stream: TextIO) -> bool:
    if not hasattr(system_select, "poll"):  # Windows
        return False
    poll = system_select.poll()
    try:
        poll.register(stream.fileno(), system_select.POLLOUT)
    except OSError:  # not a file: a notebook's
        return False
    return any(event & system_select.POLLERR for _, event in poll.poll(0))
