"""The module `hermes_tools` that a script imports, made for the tools it may call; and the words that describe it."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

# Dropped from a script's `terminal` calls: what they start must end with the call.
FOREGROUND_ONLY = frozenset({"background", "pty", "notify_on_complete", "watch_patterns", "check_interval"})


class Stub(Struct, frozen=True):
    """One tool as a script sees it."""

    name: str
    signature: str
    returns: str  # the shape of the result, for the docstring and for the model
    purpose: str
    from_outside: bool = False  # its results hold text that strangers wrote


STUBS: tuple[Stub, ...] = (
    Stub(
        "web_search",
        "query: str, limit: int = 5",
        '{"data": {"web": [{"title", "url", "description"}, …]}}',
        "Search the web.",
        from_outside=True,
    ),
    Stub(
        "web_extract",
        "urls: list",
        '{"results": [{"url", "title", "content", "error"}, …]}',
        "Read web pages as text.",
        from_outside=True,
    ),
    Stub(
        "read_file",
        "path: str, offset: int = 1, limit: int = 500",
        '{"content": "N|line…", "total_lines", "truncated"}',
        "Read lines of a text file; each comes with its number.",
    ),
    Stub(
        "write_file",
        "path: str, content: str, cross_profile: bool = False",
        '{"bytes_written", "dirs_created", "lint"}',
        "Write a whole file.",
    ),
    Stub(
        "search_files",
        'pattern: str, target: str = "content", path: str = ".", file_glob: "str | None" = None, limit: int = 50, '
        'offset: int = 0, output_mode: str = "content", context: int = 0',
        '{"matches": [{"path", "line", "content"}, …], "total_count"}; target="files": {"files": […]}',
        "Search text in files, or files by name.",
    ),
    Stub(
        "patch",
        'path: "str | None" = None, old_string: "str | None" = None, new_string: "str | None" = None, '
        'replace_all: bool = False, mode: str = "replace", patch: "str | None" = None',
        '{"success", "diff"} or {"error"}',
        "Change a part of a file.",
    ),
    Stub(
        "terminal",
        'command: str, timeout: "int | None" = None, workdir: "str | None" = None',
        '{"output", "exit_code"}',
        "Run a shell command in the foreground.",
    ),
)
CALLABLE = frozenset(stub.name for stub in STUBS)
HELPERS = ("json_parse", "shell_quote", "retry")


def callable_among(names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that a script may call, in the order of the module."""
    offered = frozenset(names)
    return tuple(stub.name for stub in STUBS if stub.name in offered)


@lru_cache(maxsize=128)  # one text per set of tools
def stub_module(names: tuple[str, ...]) -> str:
    """The text of `hermes_tools.py`. It runs on Python 3.8 and later, and imports next to nothing until a call."""
    prelude = Path(__file__).with_name("hermes_tools.py.txt").read_text(encoding="utf-8").rstrip()
    functions = [_function(stub) for stub in STUBS if stub.name in names]
    exported = ", ".join(repr(name) for name in (*names, *HELPERS))
    return f"{prelude}\n\n__all__ = [{exported}]\n\n\n" + "\n\n\n".join(functions) + "\n"


def described(names: Iterable[str]) -> str:
    """One line for each of these tools: how it is called and what it gives back."""
    wanted = frozenset(names)
    return "\n".join(
        f"- {stub.name}({_plain(stub.signature)}) -> {stub.returns}" for stub in STUBS if stub.name in wanted
    )


def import_example(names: tuple[str, ...]) -> str:
    """An import line for the model to start from."""
    first = [name for name in names if name in ("web_search", "terminal")]
    shown = [*first, *(name for name in names if name not in first)]
    return f"from hermes_tools import {', '.join(shown[:2])}"


def _plain(signature: str) -> str:
    """A signature without its types, which the defaults say well enough."""
    parts = []
    for part in signature.split(", "):
        name, _, default = part.partition(" = ")
        parts.append(name.partition(":")[0] + (f"={default}" if default else ""))
    return ", ".join(parts)


def _function(stub: Stub) -> str:
    parameters = [part.partition(":")[0] for part in stub.signature.split(", ")]
    given = ", ".join(f"{name!r}: {name}" for name in parameters)
    doc = f'    """{stub.purpose} Returns {stub.returns}; {{"error": …}} when it failed."""'.replace("\\", "\\\\")
    return f"def {stub.name}({stub.signature}) -> dict:\n{doc}\n    return _ask({stub.name!r}, {{{given}}})"
