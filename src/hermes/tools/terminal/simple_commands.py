"""A command line as its simple commands; quoted text and here-documents are no commands."""

import contextlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes.tools.approval.grammar import Node

_ASSIGNMENT = r"\w+\+?="
_CARRIERS = frozenset(["sudo", "env", "time", "command", "exec", "builtin"])
_MAX_DEPTH = 200
_SIMPLE = frozenset(["command", "declaration_command", "test_command"])


class Segment(NamedTuple):
    """One simple command, and whether it is left to run beside what follows."""

    words: tuple[str, ...]
    is_backgrounded: bool = False


def segments(command: str) -> list[Segment]:
    """The simple commands of `command`, in order; none of a part that does not parse, or that is too long or intricate.

    The gate looks at the same text before it runs, and asks about one that cannot be told apart.
    """
    from hermes.tools.approval.budget import Budget, TooIntricate  # noqa: PLC0415 - as the next one
    from hermes.tools.approval.grammar import parse, pieces  # noqa: PLC0415 - a parser that only commands need

    found: list[Segment] = []
    with contextlib.suppress(TooIntricate):
        for piece in pieces(command, [], Budget()):
            root = parse(piece) if piece else None
            if piece and root is not None and not root.has_error:
                _gather(root, piece, found)
    return found


def _gather(node: "Node", source: str, found: list[Segment], depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        return
    if node.type in _SIMPLE:
        found.append(Segment(tuple(_unquoted(source[each.start_byte : each.end_byte]) for each in node.children)))
        return
    if node.type == "arithmetic_expansion" or node.type.endswith("_expression"):
        return  # '&' means something else there
    for child in node.children:
        if child.type == "&" and found:
            found[-1] = found[-1]._replace(is_backgrounded=True)
        _gather(child, source, found, depth + 1)


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def program(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The program a simple command runs, without its folder, and its arguments; assignments and `sudo` do not count."""
    rest = list(words)
    while rest and (re.match(_ASSIGNMENT, rest[0]) or rest[0] in _CARRIERS):
        carrier = rest.pop(0)
        while carrier in _CARRIERS and rest and rest[0].startswith("-"):
            rest.pop(0)
    if not rest:
        return "", ()
    return rest[0].rpartition("/")[2], tuple(rest[1:])


def calls_sudo(command: str) -> bool:
    """Whether one of the simple commands runs `sudo`."""
    for part in segments(command):
        for word in part.words:
            if word == "sudo":
                return True
            if not re.match(_ASSIGNMENT, word) and word not in _CARRIERS:
                break
    return False
