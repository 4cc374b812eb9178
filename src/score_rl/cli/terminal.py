"""What the commands share: where they print, how they read their arguments."""

from collections.abc import Sequence
from typing import Any

from score_rl.cli.options import offer, parse
from score_rl.console import open_console

OUT = open_console()


def subcommand(group: str, types: dict[str, type], arguments: Sequence[str]) -> Any:
    offer(types)
    if not arguments or arguments[0] in ("-h", "--help"):
        rows = "\n".join(f"  {name:<10} {(kind.__doc__ or '').splitlines()[0]}" for name, kind in types.items())
        print(f"usage: score {group} COMMAND [OPTIONS]\n\n{rows}\n\n`score {group} COMMAND --help` explains each.")
        raise SystemExit(0 if arguments else 2)
    if arguments[0] not in types:
        from score_rl.errors import unknown_name

        raise unknown_name(f"command of score {group}", arguments[0], types)
    return parse(types[arguments[0]], arguments[1:], f"score {group} {arguments[0]}")


def plus_minus(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "not judged"
    from score_rl.report.tables import mean_and_std

    return mean_and_std(mean, std)
