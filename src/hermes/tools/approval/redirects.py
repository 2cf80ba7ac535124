"""Redirections: what is written where, and what a later command would read back."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hermes.tools.approval.glob import plain
from hermes.tools.approval.paths import EMPTIES, classify, resolve, write_path
from hermes.tools.approval.state import DARK, Out, Run, Scope
from hermes.tools.approval.streams import pour

# Nobody starts one of these empty, but for a Python package.
_DATA = re.compile(r".*\.(?:db|sqlite3?|dump|rdb|mdb|kdbx|js|ts|go|rs|java|c)|(?!(?:.*/)?__init__\.py).*\.py")
_READS = frozenset({"dup", "<<", "<<<", "<"})


class Redirect(NamedTuple):
    """One redirection, resolved: `op` as written, `target` a path or None for a duplicated descriptor."""

    op: str
    fd: str
    target: str | None
    content: Out = DARK


def apply_writes(redirects: list[Redirect], out: Out, scope: Scope, run: Run, argv: Sequence[str] = ()) -> Out:
    """Record what the redirections of the command `argv` write; return what is left on standard output."""
    is_made = any(resolve(word, scope, run) in run.files for word in argv[1:])  # it prints what was made of the file
    for redirect in redirects:
        if redirect.target is None or redirect.op in _READS:
            continue
        path = resolve(redirect.target, scope, run)
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            _network(run, path, out)
            continue
        if redirect.op in (">", ">|") and path in run.found and not is_made:
            run.add("destroy_data", f"overwrite every file of {plain(redirect.target)}", (plain(redirect.target),))
        if redirect.op in (">", ">|") and out.text == "" and _DATA.fullmatch(redirect.target):
            run.add("destroy_data", f"empty {plain(redirect.target)}", (plain(redirect.target),))
        if "endless" in out.labels and classify(path, run.places) != "device":
            run.add("exhaustion", f"fill {plain(redirect.target)} without end", (plain(redirect.target),))
        how = EMPTIES if redirect.op in (">", ">|") and out.text == "" else f"{redirect.op} "
        write_path(run, scope, redirect.target, how + plain(redirect.target))
        pour(path, out, scope, run)
        if redirect.op != "<>" and redirect.fd in ("", "1") and path not in ("/dev/stdout", "/dev/stderr", "/dev/tty"):
            run.files[path] = out
            if "credential" in out.labels and classify(path, run.places) in ("workspace", "env"):
                run.add("exfiltration", f"put a credential into {plain(redirect.target)}", (plain(redirect.target),))
            out = Out("", out.labels)
    return out


def _network(run: Run, path: str, out: Out) -> None:
    host = path.split("/")[3] if path.count("/") > 2 else "?"
    if out.labels & {"private", "environment"}:
        run.add("exfiltration", f"send private data to {host}", hosts=(host,))
    else:
        run.add("reverse_shell", f"open a connection to {host}", hosts=(host,))
