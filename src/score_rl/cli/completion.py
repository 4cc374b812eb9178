"""`score completion`: what TAB offers in bash and zsh, made from the very types that the commands parse."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from score_rl.cli.options import Offered, documented, offering, parse

SCRIPT = """# What TAB offers behind `score`, in bash and zsh. Written by `score completion`.
[ -n "$ZSH_VERSION" ] && autoload -Uz compinit bashcompinit && compinit -u && bashcompinit
_score() {{
  local line="${{COMP_LINE:0:$COMP_POINT}}" where="${{COMP_WORDS[1]}}" option="" offered="" i
  local cur="${{line##*[[:space:]]}}"
  case "$where" in {groups}) [ "$COMP_CWORD" -gt 2 ] && where="$where ${{COMP_WORDS[2]}}" ;; esac
  for ((i = COMP_CWORD - 1; i > 0; i--)); do
    case "${{COMP_WORDS[i]}}" in --*) option="${{COMP_WORDS[i]}}"; break ;; esac
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    offered="{commands}"
  elif [ "${{cur#-}}" != "$cur" ]; then
    case "$where" in
{options}
    esac
  else
    case "$where $option" in
{values}
    esac
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$cur"))
  case "$COMP_WORDBREAKS" in  # bash takes what stands behind the last colon for the word
    *:*) local before="${{cur%"${{cur##*:}}"}}"; [ -n "$before" ] && COMPREPLY=("${{COMPREPLY[@]#"$before"}}") ;;
  esac
  return 0
}}
complete -o bashdefault -o default -F _score score
"""


@dataclasses.dataclass(frozen=True)
class CompletionArguments:
    """Write what bash or zsh needs to complete commands, options, algorithms and data sets on TAB.

    For this terminal: eval "$(score completion)". For each new one, once: score completion >> ~/.bashrc
    (or ~/.zshrc).
    """


Command = Callable[[Sequence[str]], int]


def completion_command(arguments: Sequence[str], commands: Mapping[str, Command]) -> int:
    parse(CompletionArguments, arguments, "score completion")
    print(script(commands), end="")
    return 0


def script(commands: Mapping[str, Command]) -> str:
    """The script for these commands."""
    groups: list[str] = []
    options: list[str] = []
    values: list[str] = []
    for name, kind in _parsed(commands):
        if isinstance(kind, dict):
            groups.append(name)
            values.append(_case(f"{name} ", kind))
            continue
        known = dict(_options(kind))
        options.append(_case(name, known))
        values += [_case(f"{name} {option}", offered) for option, offered in known.items() if offered]
        if name == "algorithms":
            values.append(_case(f"{name} ", _algorithms()))
    return SCRIPT.format(
        commands=" ".join(commands), groups="|".join(groups), options="\n".join(options), values="\n".join(values)
    )


def _case(pattern: str, words: Any) -> str:
    return f'      "{pattern}") offered="{" ".join(map(str, words))}" ;;'


def _parsed(commands: Mapping[str, Command]) -> Iterator[tuple[str, Any]]:
    """Each command's name and the type that it parses; of a group its commands first, by name, then each of them."""
    for name, command in commands.items():
        kind = _asked(command, ["--algorithm", *_algorithms()] if name == "train" else [])
        yield name, kind
        if isinstance(kind, dict):
            for inner in kind:
                yield f"{name} {inner}", kind[inner]


def _asked(command: Command, arguments: Sequence[str]) -> Any:
    with offering():
        try:
            command(arguments)
        except Offered as offered:
            return offered.kind
    raise AssertionError("every command parses its arguments first")


def _options(kind: type) -> Iterator[tuple[str, Sequence[str]]]:
    """Every option of a type, and the values that it takes where they are known."""
    for field in dataclasses.fields(documented(kind)):
        marks = get_args(field.type)[1:] if get_origin(field.type) is Annotated else ()
        plain = get_args(field.type)[0] if marks else field.type
        if tyro.conf.Positional in marks:
            continue
        if dataclasses.is_dataclass(plain):  # a group of settings
            for inner, hint in get_type_hints(plain, include_extras=True).items():
                yield f"--config.{inner.replace('_', '-')}", _choices(hint)
            continue
        option = f"--{field.name.replace('_', '-')}"
        if option == "--algorithm":
            yield option, _algorithms()
        elif option == "--dataset":
            yield option, _datasets()
        else:
            yield option, _choices(plain)
        if plain is bool:
            yield option.replace("--", "--no-", 1), ()


def _choices(hint: Any) -> Sequence[str]:
    """The literal values somewhere in a type."""
    if get_origin(hint) is Literal:
        return [str(value) for value in get_args(hint)]
    return next((found for inner in get_args(hint) if (found := _choices(inner))), ())


def _algorithms() -> list[str]:
    from score_rl.algorithms.registry import algorithm_names

    return algorithm_names()


def _datasets() -> list[str]:
    from score_rl.data.catalogue import named_datasets

    return [entry.name for entry in named_datasets()]
