"""A command line as its simple commands; quoted text and here-documents are no commands."""

import re
import shlex
from typing import NamedTuple

_HEREDOC = r"(?sm)<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2\s*$"
_SEPARATORS = frozenset(["&&", "||", ";", "|", "|&", "&", ";;", "(", ")", "\n"])
_ASSIGNMENT = r"\w+\+?="
_CARRIERS = frozenset(["sudo", "env", "time", "command", "exec", "builtin"])


class Segment(NamedTuple):
    """One simple command and the operator that follows it."""

    words: tuple[str, ...]
    end: str


def segments(command: str) -> list[Segment]:
    """The simple commands of `command`, in order; empty when its quotes do not close."""
    text = re.sub(_HEREDOC, "\n", command).replace("\\\n", " ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[Segment] = []
    words: list[str] = []
    try:
        for token in lexer:
            stripped = token.strip("\n") or "\n"
            if stripped in _SEPARATORS:
                found.append(Segment(tuple(words), stripped))
                words = []
            else:
                words.append(token)
    except ValueError:
        return []
    found.append(Segment(tuple(words), ""))
    return [each for each in found if each.words or each.end == "&"]


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
