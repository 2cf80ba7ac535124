"""Serve the runtime: start its children, and see to the end of each, also when the runtime itself is killed."""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from hermes.tools.supervisor.keeper import background_child, call, cgroups, network_namespace, start, tree, watcher
from hermes.tools.supervisor.keeper.confined_start import given_namespaces, spawn_confined

_LAST_WAIT_S = call.KILL_LIMIT_S


def main() -> None:
    """`main <control fd> <runtime pid> <mark> <again>`: serve until the runtime is gone, then until its children are.

    `again` says that a keeper before this one was killed: the processes that carry `mark` are what it left.
    """
    control, runtime_pid, mark = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    control.set_inheritable(False)
    tree.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the runtime is the only reason to stop
    if sys.argv[4]:
        tree.signal_all(tree.marked(f"{mark}:".encode()), signal.SIGKILL)
    watch = _watch(runtime_pid)
    beside = watcher.start(runtime_pid, mark)
    Server(control, watch, beside).serve()
    cgroups.remove()
    if beside:
        os.kill(beside, signal.SIGKILL)  # all is in order, and it has nothing to see to


def _watch(runtime_pid: int) -> int | None:
    """A descriptor that becomes readable when the runtime ends, however it ends (Linux)."""
    if not hasattr(os, "pidfd_open"):
        return None
    watch = os.pidfd_open(runtime_pid)
    if os.getppid() != runtime_pid:
        sys.exit(0)  # it ended before we looked
    return watch


class Server:
    """One thread, one poll: requests, ended children, stop requests, and the end of the runtime."""

    def __init__(self, control: socket.socket, watch: int | None, watcher_pid: int) -> None:
        control.setblocking(False)
        self._control = control
        self._watch = watch
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._calls: dict[int, call.KeptCall] = {}  # by pid, until gone
        self._lines: dict[int, call.KeptCall] = {}  # by the descriptor of their line
        self._held: set[int] = {watcher_pid}  # children that no call owns
        self._is_open = True
        self._poller = select.poll()
        for fd in (control.fileno(), self._woken, watch):
            if fd is not None:
                self._poller.register(fd, select.POLLIN)

    def serve(self) -> None:
        until = None
        while self._is_open or self._calls:
            ready = {fd for fd, _ in self._poller.poll(self._wait_ms())}
            if self._woken in ready:
                self._collect()
            if self._is_open and self._watch in ready:
                self._shut()
            for fd in ready & self._lines.keys():
                self._asked_to_stop(self._lines[fd])
            if self._is_open and self._control.fileno() in ready:
                self._take_request()
            self._tick()
            if not self._is_open and until is None:
                until = time.monotonic() + _LAST_WAIT_S
            if until is not None and time.monotonic() > until:
                return

    def _wait_ms(self) -> float | None:
        times = [each.wake_at for each in self._calls.values() if each.wake_at is not None]
        return max(0.0, (min(times) - time.monotonic()) * 1000) if times else None if self._is_open else 50.0

    def _take_request(self) -> None:
        try:
            fds = start.receive(self._control)
        except BlockingIOError:
            return None
        if fds is None:
            return self._shut()
        request = _read_request(fds.pop(0))
        if request.get("held"):
            return self._hold(request, fds)
        if request.get("network"):
            self._held.add(network_namespace.serve(request, fds))
            return None
        line = socket.socket(fileno=fds.pop(0))
        try:
            pid = _start(request, fds)
        except OSError as error:
            call.tell(line, error=error.errno or 0, text=error.strerror or str(error), file=str(error.filename or ""))
            return line.close()
        if request.get("await_start"):
            call.tell(line, pid=pid)
        line.setblocking(False)
        self._calls[pid] = self._lines[line.fileno()] = call.KeptCall(pid, line, request)
        self._poller.register(line, select.POLLIN)
        return None

    def _hold(self, request: start.Request, fds: list[int]) -> None:
        pid = os.fork()
        if pid:
            self._held.add(pid)
            for fd in fds:
                os.close(fd)
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            self._control.close()
            for each in self._calls.values():
                each.line.close()
            tree.adopt_orphans()
            background_child.hold(request, fds)
            code = 0
        finally:
            os._exit(code)

    def _collect(self) -> None:
        """Reap what has ended, and let each call judge what that means for it."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 512)
        self._reap()
        judged: set[int] = set()
        orphans: dict[int, list[tree.ProcessEntry]] = {}
        while (exited := self._exited()) != judged:
            judged, orphans = exited, self._orphans()
            self._reap()  # also what ended while we looked: when an end is told, not even a zombie is left
        if judged:
            for each in list(self._calls.values()):
                each.look(orphans.get(each.pid, []))
            self._forget_the_gone()

    def _exited(self) -> set[int]:
        return {pid for pid, each in self._calls.items() if each.has_exited}

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._held.discard(pid)
            if pid in self._calls and not self._calls[pid].has_exited:
                self._calls[pid].exited(status)

    def _tick(self) -> None:
        now = time.monotonic()
        due = [each for each in self._calls.values() if each.wake_at is not None and each.wake_at <= now]
        if due:
            orphans = self._orphans()
            for each in due:
                each.tick(orphans.get(each.pid, []))
            self._forget_the_gone()

    def _orphans(self) -> dict[int, list[tree.ProcessEntry]]:
        """The processes that lost their parent and came to us, by the pid of the call they belong to.

        By their mark, else by their session. One that has shed both belongs to the only call there is; with several,
        it waits until one is left.
        """
        found: dict[int, list[tree.ProcessEntry]] = {}
        marks = {each.mark: pid for pid, each in self._calls.items()}
        for process in tree.children_of_this():
            known = self._calls.get(process.pid)
            if process.pid in self._held or (known is not None and not known.has_exited):
                continue
            owner = marks.get(tree.mark_of(process.pid))
            if owner is None and process.session in self._calls:
                owner = process.session
            if owner is None and len(self._calls) == 1:
                owner = next(iter(self._calls))
            if owner is not None:
                found.setdefault(owner, []).append(process)
        return found

    def _asked_to_stop(self, stopped: call.KeptCall) -> None:
        try:
            grace_s = float(stopped.line.recv(64) or call.DEFAULT_GRACE_S)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            grace_s = call.DEFAULT_GRACE_S
        self._poller.unregister(stopped.line)
        del self._lines[stopped.line.fileno()]
        stopped.end(grace_s, self._orphans().get(stopped.pid, []))

    def _shut(self) -> None:
        """The runtime is gone, or wants us to go: end every call."""
        self._is_open = False
        self._poller.unregister(self._control)
        self._control.close()
        if self._watch is not None:
            self._poller.unregister(self._watch)
        orphans = self._orphans()
        for each in self._calls.values():
            each.end(call.DEFAULT_GRACE_S, orphans.get(each.pid, []))

    def _forget_the_gone(self) -> None:
        for fd, each in list(self._lines.items()):
            if each.is_gone:
                self._poller.unregister(fd)
                del self._lines[fd]
        for pid, each in list(self._calls.items()):
            if each.is_gone:
                del self._calls[pid]


def _read_request(fd: int) -> start.Request:
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        request: start.Request = json.load(file)
    return request


def _start(request: start.Request, fds: list[int]) -> int:
    argv, env, cwd, targets = request["argv"], request["env"], request["cwd"], request["pass_fds"]
    assert isinstance(argv, list)
    assert isinstance(env, dict)
    assert isinstance(cwd, str)
    assert isinstance(targets, list)
    moved = start.out_of_the_way(fds, targets)
    try:
        os.chdir(cwd)  # noqa: TID251 - one thread, and nothing here depends on it
        streams = 3 + len(targets)
        places = dict(zip([0, 1, 2, *targets], moved[:streams], strict=True))
        return spawn_confined(argv, env, places, given_namespaces(request["confine"], moved[streams:]))
    finally:
        os.chdir("/")  # noqa: TID251
        for fd in moved:
            os.close(fd)
