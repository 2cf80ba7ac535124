"""Read a command's options the way getopt does: any order, clusters, abbreviations."""

from collections.abc import Iterable
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN


class Options(NamedTuple):
    """What was given. `dark` means that a word which may be an option could not be resolved."""

    flags: frozenset[str]
    values: dict[str, str]
    operands: list[str]
    dark: bool

    def has(self, letters: str, *names: str) -> bool:
        """Whether one of the short `letters` or the long `names` (also abbreviated) was given."""
        for flag in self.flags:
            if len(flag) == 1:
                if flag in letters:
                    return True
            elif any(name.startswith(flag) for name in names):
                return True
        return False

    def value(self, *keys: str) -> str | None:
        for given, value in self.values.items():
            if given in keys or (len(given) > 2 and any(key.startswith(given) for key in keys)):
                return value
        return None


def read_options(
    args: Iterable[str], short_values: str = "", long_values: frozenset[str] = frozenset(), *, stop: bool = False
) -> Options:
    """Split `args` into flags, their values and operands; with `stop`, the first operand ends the options."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    operands: list[str] = []
    dark = False
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            operands += rest
        elif arg.startswith("--"):
            name, equals, value = arg[2:].partition("=")
            flags.add(name or "-")
            dark = dark or UNKNOWN in name
            if equals:
                values[name] = value
            elif name in long_values:
                values[name] = next(rest, "")
        elif len(arg) > 1 and arg[0] == "-":
            dark = dark or UNKNOWN in arg
            _cluster(arg[1:], short_values, flags, values, rest)
        else:
            dark = dark or arg.startswith(UNKNOWN)
            operands.append(arg)
            if stop:
                operands += rest
    return Options(frozenset(flags), values, operands, dark)


def _cluster(letters: str, short_values: str, flags: set[str], values: dict[str, str], rest: Iterable[str]) -> None:
    for number, letter in enumerate(letters):
        flags.add(letter)
        if letter in short_values:
            values[letter] = letters[number + 1 :] or next(iter(rest), "")
            return


def after_options(args: list[str], short_values: str = "", long_values: frozenset[str] = frozenset()) -> list[str]:
    """What follows the leading options: the command that a wrapper starts."""
    position = 0
    while position < len(args):
        arg = args[position]
        if arg == "--":
            return args[position + 1 :]
        if len(arg) < 2 or arg[0] not in "-+":
            break
        if arg.startswith("--"):
            position += 1 if "=" in arg or arg[2:] not in long_values else 2
        elif any(letter in short_values for letter in arg[1:]):
            first = next(index for index, letter in enumerate(arg[1:]) if letter in short_values)
            position += 1 if first + 2 < len(arg) else 2
        else:
            position += 1
    return args[position:]
