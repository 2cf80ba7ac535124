"""The module `hermes_tools` that a script imports, made for the tools it may call; and the words that describe it."""

from collections.abc import Iterable
from functools import lru_cache

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
    functions = [_function(stub) for stub in STUBS if stub.name in names]
    exported = ", ".join(repr(name) for name in (*names, *HELPERS))
    return f"{_PRELUDE}\n\n__all__ = [{exported}]\n\n\n" + "\n\n\n".join(functions) + "\n"


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


_PRELUDE = '''"""The tools of this session, for a script: every function waits for its result and returns it parsed.

Several threads may call at once. In asyncio code use `await asyncio.to_thread(read_file, "x")`.
"""

import os as _os
from _thread import _local, allocate_lock as _allocate_lock

_own = _local()  # a connection for each thread
_lock = _allocate_lock()  # guards _count
_count = [0]


def _ask(tool, args):
    import json

    args = {name: value for name, value in args.items() if value is not None}
    token = _os.environ.get("HERMES_RPC_TOKEN", "")
    request = json.dumps({"token": token, "tool": tool, "args": args}).encode()
    answer = _over_files(request) if "HERMES_RPC_DIR" in _os.environ else _over_socket(request + b"\\n")
    value = answer.decode("utf-8")
    for _ in range(3):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value, strict=False)
        except ValueError:
            break
    return value


def _connected(_socket, where):
    if not where.startswith("fd:"):
        line = _socket.socket(_socket.AF_UNIX)
        line.connect(where)
        return line
    # Where no socket can be made, one end of a pair goes over a line that was open before.
    line, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    mother = _socket.socket(fileno=_os.dup(int(where[3:])))
    number = theirs.fileno().to_bytes(4, __import__("sys").byteorder)
    mother.sendmsg([b"c"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
    mother.close()
    theirs.close()
    return line


def _over_socket(request):
    import _socket  # without the layers above it, which take longer to import than a call takes

    if getattr(_own, "pid", None) != _os.getpid():  # a forked process must not share its parent's connection
        _own.line = _connected(_socket, _os.environ["HERMES_RPC_SOCKET"])
        _own.pid = _os.getpid()
    parts = [b""]
    try:
        try:
            _own.line.sendall(request)
        except (BrokenPipeError, ConnectionResetError):  # refused on its way: the answer says why
            _own.pid = None
        while not parts[-1].endswith(b"\\n"):
            parts.append(_own.line.recv(1 << 18))
            if not parts[-1]:
                raise ConnectionError("the runtime closed the connection")
    except OSError as error:
        _own.pid = None
        raise ConnectionError("%s; whether the call ran is not known" % error) from error
    return b"".join(parts)


def _over_files(request):
    import time

    with _lock:
        _count[0] += 1
        name = "%d_%06d" % (_os.getpid(), _count[0])
    folder = _os.environ["HERMES_RPC_DIR"]
    with open(folder + "/req_" + name + ".tmp", "wb") as file:
        file.write(request)
    _os.rename(folder + "/req_" + name + ".tmp", folder + "/req_" + name)
    wait = 0.05
    while True:
        try:
            with open(folder + "/res_" + name, "rb") as file:
                answer = file.read()
        except FileNotFoundError:
            time.sleep(wait)
            wait = min(wait * 1.2, 0.25)
        else:
            _os.unlink(folder + "/res_" + name)
            return answer


def json_parse(text):
    """The value that JSON text stands for; raw control characters inside strings are forgiven."""
    import json

    return json.loads(text, strict=False)


def shell_quote(s):
    """`s` as one word for a shell."""
    import shlex

    return shlex.quote(str(s))


def retry(fn, max_attempts=3, delay=2):
    """What `fn()` returns; when it raises, try again, waiting twice as long each time."""
    import time

    for attempt in range(1, max_attempts + 1):
        try:
            return fn()
        except Exception:
            if attempt == max_attempts:
                raise
            time.sleep(delay * 2 ** (attempt - 1))'''
