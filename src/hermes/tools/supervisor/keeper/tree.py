"""The process table: who descends from whom, who carries which mark, and how to signal many at once."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from typing import NamedTuple

MARK = b"HERMES_CHILD_OF="
PR_SET_CHILD_SUBREAPER = 36


class ProcessEntry(NamedTuple):
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    session: int


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it, so that `setsid` and `disown` lead nowhere (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def table() -> list[ProcessEntry]:
    """The process table as it stands."""
    if sys.platform != "linux":
        return _table_by_ps()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is not worth its import here
        if name.isdigit():
            process = look(int(name))
            if process is not None:
                found.append(process)
    return found


def look(pid: int) -> ProcessEntry | None:
    """One process, or None when it is gone (Linux)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            # The command name may hold anything, blanks and brackets too; fields count from its end.
            state, parent, group, session = stat.read().rpartition(b")")[2].split()[:4]
    except OSError:
        return None
    return None if state == b"Z" else ProcessEntry(pid, int(parent), int(group), int(session))


def children_of_this() -> list[ProcessEntry]:
    """The live children of this process, cheaply."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
            pids = [int(pid) for pid in file.read().split()]
    except OSError:  # a kernel without that file, or another system
        own = os.getpid()
        return [process for process in table() if process.parent == own]
    return [process for process in map(look, pids) if process is not None]


def below(roots: Iterable[int]) -> list[ProcessEntry]:
    """Every process that descends from one of `roots`, parents before children."""
    children: dict[int, list[ProcessEntry]] = {}
    for process in table():
        children.setdefault(process.parent, []).append(process)
    found: list[ProcessEntry] = []
    todo = list(roots)
    while todo:
        for process in children.get(todo.pop(), []):
            found.append(process)
            todo.append(process.pid)
    return found


def mark_of(pid: int) -> bytes:
    """The mark a process was started with; empty when it has none or is not ours to read (Linux)."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            variables = file.read().split(b"\0")
    except OSError:
        return b""
    return next((each[len(MARK) :] for each in variables if each.startswith(MARK)), b"")


def marked(prefix: bytes) -> list[ProcessEntry]:
    """Every process whose mark begins with `prefix`."""
    return [process for process in table() if mark_of(process.pid).startswith(prefix)]


def signal_all(processes: Iterable[ProcessEntry], number: int) -> None:
    """Send `number` to each that still exists and is ours to signal.

    Groups are signalled whole: the kernel does that in one step, so a storm of forks inside one cannot outrun us.
    """
    own = os.getpgrp()
    groups = set()
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if process.group == own:
                os.kill(process.pid, number)
            elif process.group not in groups:
                groups.add(process.group)
                os.killpg(process.group, number)


def total() -> int:
    """How many tasks the machine runs, cheaply; 0 where there is no such figure."""
    try:
        with open("/proc/loadavg") as file:  # noqa: PTH123
            return int(file.read().split()[3].partition("/")[2])
    except OSError:
        return 0


def _table_by_ps() -> list[ProcessEntry]:
    with os.popen("/bin/ps -axo pid=,ppid=,pgid=,sess=") as lines:  # noqa: S605 - fixed words, in the supervisor's program
        return [ProcessEntry(*map(int, line.split())) for line in lines]
