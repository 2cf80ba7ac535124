"""Which process began something, in a form that tells later whether it is still alive."""

import functools
import os
from pathlib import Path

_SEPARATOR = "/"  # between the parts of a place; no name of a machine holds one
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PIDS = Path("/proc/self/ns/pid")
_ENDED = ("Z", "X")  # states of a process that is gone and only not yet waited for


def this_process() -> str:
    """`place:pid:start`, unique to this process."""
    return _named(os.getpid())


def may_be_alive(owner: str) -> bool:
    """False only when it is certain that the process is gone.

    Nothing is certain about one of another machine, of another boot of this one (a copy of a machine has its name, too)
    or of another container: a pid means something else there.
    """
    place, _, pid_and_start = owner.partition(":")
    pid, _, start = pid_and_start.partition(":")
    # An owner of an earlier version has the name of the machine alone.
    here = _place() if _SEPARATOR in place else _host()
    if place != here or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state, started = _stat_of(int(pid))
    return state not in _ENDED and start in ("", started)


def is_alive_here(owner: str) -> bool:
    """True only when it is certain that the process is there: nothing is about one of another place."""
    return owner.partition(":")[0] == _place() and may_be_alive(owner)


def described(owner: str) -> str:
    """The process in words."""
    place, _, pid_and_start = owner.partition(":")
    pid = pid_and_start.partition(":")[0]
    if owner == this_process():
        return f"another agent of this process (pid {pid})"
    host, here = place.partition(_SEPARATOR)[0], _place()
    if host != _host():
        return f"pid {pid} on {host}"
    return f"pid {pid}" if place in (here, _host()) else f"pid {pid} of another container or boot"


@functools.lru_cache(maxsize=1)  # by pid: a fork is another process
def _named(pid: int) -> str:
    return f"{_place()}:{pid}:{_stat_of(pid)[1]}"


@functools.cache
def _place() -> str:
    """Where pids are those of this process: the machine, its boot, the namespace."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        pids = _PIDS.readlink().name
    except OSError:
        return _host()  # no /proc here: the name alone must do
    return _SEPARATOR.join((_host(), boot[:8], "".join(filter(str.isdigit, pids))))


@functools.cache
def _host() -> str:
    return os.uname().nodename


def _stat_of(pid: int) -> tuple[str, str]:
    """The state of a process and when it started; both empty where that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
