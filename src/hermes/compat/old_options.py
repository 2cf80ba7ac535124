"""Options as the old scripts took them: `--name=value`, `--name value`, `--flag`, with underscores or hyphens."""

import sys
from collections.abc import Mapping, Sequence


def parse_old_options(words: Sequence[str], known: Mapping[str, type], usage: str) -> dict[str, object]:
    """The options by name; `SystemExit(2)` with one sentence for one that does not exist or has no value.

    Whoever asks for help gets `usage` and the names of all options.
    """
    if {"-h", "--help"} & set(words):
        listed = "".join(f"\n  --{name}{_VALUES[kind]}" for name, kind in known.items())
        sys.stdout.write(f"{usage}\n\nOptions:{listed}\n" if known else f"{usage}\n")
        raise SystemExit(0)
    found: dict[str, object] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or name not in known:
            there_are = f"; there are: {', '.join(f'--{one}' for one in known)}" if known else ""
            raise _Refused(f"there is no option {word!r}{there_are}")
        kind = known[name]
        if kind is bool and not has_value:
            value = rest.pop(0) if rest and rest[0].lower() in _BOOLEANS else "true"
        elif not has_value:
            if not rest:
                raise _Refused(f"--{name} needs a value")
            value = rest.pop(0)
        found[name] = _value(name, kind, value)
    return found


def as_words(options: Mapping[str, object]) -> list[str]:
    """The options as our own commands take them."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not False:
            words.append(f"{option}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}")
    return words


_BOOLEANS = {"true": True, "false": False}
_VALUES = {str: "=TEXT", int: "=NUMBER", float: "=NUMBER", bool: ""}


def _value(name: str, kind: type, value: str) -> object:
    if kind is bool:
        if value.lower() not in _BOOLEANS:
            raise _Refused(f"--{name} is true or false, not {value!r}")
        return _BOOLEANS[value.lower()]
    try:
        made: object = kind(value)
    except ValueError as error:
        raise _Refused(f"--{name} is a number, not {value!r}") from error
    return made


class _Refused(SystemExit):
    """Ends the program with one sentence and code 2, as click does."""

    def __init__(self, told: str) -> None:
        sys.stderr.write(f"error: {told}\n")
        super().__init__(2)
