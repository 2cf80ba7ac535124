"""A command line as its simple commands; quoted text and here-documents are no commands.

With it: which of them would never return in the foreground, and what to do instead.
"""

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
    from hermes.tools.approval.effects_model import Budget, TooIntricate  # as the next one
    from hermes.tools.approval.grammar import parse, pieces  # a parser that only commands need

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


_RUNNERS = frozenset(["npm", "pnpm", "yarn", "bun"])
_SERVING = frozenset(["dev", "start", "serve", "watch", "preview"])
_SERVERS = frozenset(["nodemon", "uvicorn", "gunicorn", "vite", "webpack-dev-server", "http-server", "live-server"])
_ASKS_ONLY = frozenset(["--help", "-h", "--version", "-V", "help", "version"])
_DETACHERS = frozenset(["nohup", "disown", "setsid"])


def misuse(command: str) -> str | None:
    """One sentence on what to do instead, or None when the command is fine in the foreground."""
    parts = segments(command)
    for position, part in enumerate(parts):
        name, args = program(part.words)
        if name in _DETACHERS and not _ASKS_ONLY.intersection(args):
            return f"{name} detaches a process that a foreground call ends with itself; {_INSTEAD}"
        if part.is_backgrounded and not _waits_later(parts[position + 1 :]):
            return f"'&' leaves a process that a foreground call ends with itself; {_INSTEAD}"
        server = _server(name, args)
        if server:
            return f"{server} runs until it is stopped; {_INSTEAD}"
    return None


_INSTEAD = (
    "start it with background=true (without '&' or nohup) and follow it with the process tool; "
    "give notify_on_complete=true for a long job, or watch_patterns for a server's ready line"
)


def _server(name: str, args: tuple[str, ...]) -> str:
    """How the long-running program is called, or "" when it is none."""
    if _ASKS_ONLY.intersection(args):
        return ""
    plain = [arg for arg in args if not arg.startswith("-")]
    if name in _SERVERS and not (name == "vite" and plain[:1] in (["build"], ["optimize"])):
        return name
    if name in _RUNNERS:
        script = plain[1] if plain[:1] == ["run"] and len(plain) > 1 else plain[0] if plain else ""
        return f"{name} {script}" if script in _SERVING else ""
    if name == "next" and plain[:1] in (["dev"], ["start"]):
        return f"next {plain[0]}"
    if _compose_up(name, plain) and not {"-d", "--detach"}.intersection(args):
        return "docker compose up"
    if name.startswith("python") and ("http.server" in args or "SimpleHTTPServer" in args):
        return "python -m http.server"
    if name in ("flask", "rails", "artisan", "hugo") and plain[:1] in (["run"], ["server"], ["serve"], ["s"]):
        return f"{name} {plain[0]}"
    return ""


def _compose_up(name: str, plain: list[str]) -> bool:
    return (name in ("docker", "podman") and plain[:1] == ["compose"] and "up" in plain) or (
        name in ("docker-compose", "podman-compose") and "up" in plain
    )


def _waits_later(rest: list[Segment]) -> bool:
    """`a & b & wait` ends by itself."""
    return any(program(part.words)[0] == "wait" for part in rest)
