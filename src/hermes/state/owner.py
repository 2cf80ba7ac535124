"""Which process began something, in a form that tells later whether it is still alive."""

import functools
import os
from pathlib import Path


def this_process() -> str:
    """`host:pid:start`, unique to this process on this machine."""
    return f"{_host()}:{os.getpid()}:{_start_of(os.getpid())}"


def may_be_alive(owner: str) -> bool:
    """False only when it is certain that the process is gone."""
    host, _, pid_and_start = owner.partition(":")
    pid, _, start = pid_and_start.partition(":")
    if host != _host() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return start in ("", _start_of(int(pid)))


@functools.cache
def _host() -> str:
    return os.uname().nodename


def _start_of(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # no /proc here: the pid alone must do
    return stat.rpartition(")")[2].split()[19]
