"""A process beside the keeper that does one thing: see that nothing is left when the keeper cannot see to it itself.

The keeper ends its calls when the runtime goes. Killed it cannot, and stopped it does not. Standard library only.
"""

import contextlib
import os
import select
import signal
import time

from hermes.tools.supervisor.keeper import tree

_PATIENCE_S = 0.6  # what a keeper that runs gets to end its calls in good order
_POLL_S = 0.05


def start(runtime_pid: int, mark: str) -> int:
    """Fork the watcher; returns its pid in the keeper. 0 where processes cannot be watched."""
    if not hasattr(os, "pidfd_open"):
        return 0
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.closerange(3, 1024)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _watch(keeper, runtime_pid, mark)
    finally:
        os._exit(0)


def _watch(keeper: int, runtime_pid: int, mark: str) -> None:
    poller = select.poll()
    lives = {}
    for pid in (keeper, runtime_pid):
        try:
            lives[os.pidfd_open(pid)] = pid
        except OSError:
            return
    for fd in lives:
        poller.register(fd, select.POLLIN)
    ended = {lives[fd] for fd, _ in poller.poll()}
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    if keeper not in ended:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and tree.look(keeper) is not None and not _is_stopped(keeper):
            time.sleep(_POLL_S)
        if not _is_stopped(keeper):
            return  # it runs, and takes the time it needs
        left = _below(keeper)
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
        tree.signal_all(left, signal.SIGKILL)
    _end_marked(mark, now)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            return stat.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def _below(keeper: int) -> list[tree.ProcessEntry]:
    """All that descends from the keeper, but for this process and what outlives the runtime by intention."""
    apart = {os.getpid()}
    apart |= {each.pid for each in tree.below([keeper]) if each.parent == keeper and _is_keeper(each.pid)}
    kept = {each.pid for each in tree.below(apart)} | apart
    return [each for each in tree.below([keeper]) if each.pid not in kept]


def _is_keeper(pid: int) -> bool:
    """Whether it is a fork of the keeper that never became another program: one that holds a background child."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as theirs, open("/proc/self/cmdline", "rb") as ours:  # noqa: PTH123
            return theirs.read() == ours.read()
    except OSError:
        return False


def _end_marked(mark: str, before: float) -> None:
    """End what carries the runtime's mark, and all in the same sessions: a mark is easier to shed than a session.

    What was started since is a new keeper's, and none of ours.
    """
    for _ in range(3):
        marked = [each for each in tree.marked(f"{mark}:".encode()) if started(each.pid) <= before]
        sessions = {each.session for each in marked} - {os.getsid(0)}
        found = [each for each in tree.table() if each.session in sessions]
        if not found:
            return
        tree.signal_all(found, signal.SIGKILL)
        time.sleep(_POLL_S)


def started(pid: int) -> float:
    """When a process began, in seconds since the machine did."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            return int(stat.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0
