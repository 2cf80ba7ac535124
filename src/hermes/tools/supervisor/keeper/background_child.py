"""Hold one background child: its log, its input and its end are files in a folder, so any runtime can find it again.

The folder: `log` (and `log.1`, the part before it; without secrets), `pid`, `exit` (JSON, once it has ended), `in` and
`ctl` (fifos), `lock` (held as long as this process lives: the only sign of life that a reused pid cannot fake).
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING

from hermes.tools.supervisor.keeper import start, tree

if TYPE_CHECKING:
    from hermes.tools.supervisor.keeper.clean_text import CleanText

_KILL_LIMIT_S = 5.0
_CHUNK = 65536
_QUIET_S = 0.1
FIRST_FILE = 10  # the descriptor that the first of the request's `files` gets


def hold(request: start.Request, fds: list[int]) -> None:
    """Start the program and stay until it and everything below it is gone."""
    line = socket.socket(fileno=fds.pop(0))
    os.setsid()
    os.chdir(str(request["folder"]))  # noqa: TID251 - this process exists for the child alone
    lock = os.open("lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        _use(str(request.get("in_use", "")))
        child = Held(request, start.out_of_the_way(fds, []))
    except OSError as error:
        facts = {"error": error.errno or 0, "text": error.strerror or str(error), "file": str(error.filename or "")}
        line.send(json.dumps(facts).encode())
        return
    _write("pid", f"{child.pid}\n")
    line.send(json.dumps({"pid": child.pid}).encode())
    line.close()
    child.see_to_its_end()
    _write("exit", json.dumps({"exit_code": child.code, "ended_at": time.time()}))


def _use(lock: str) -> None:
    """Hold on to the folders that the child was given: its session may end before it, even before it has begun."""
    if lock:
        fcntl.flock(os.open(lock, os.O_RDWR), fcntl.LOCK_SH | fcntl.LOCK_NB)


def _write(name: str, text: str) -> None:
    with open(f"{name}.new", "w") as file:  # noqa: PTH123 - pathlib is not worth its import here
        file.write(text)
    os.rename(f"{name}.new", name)  # noqa: PTH104


class Held:
    """A background child with its log and its input."""

    def __init__(self, request: start.Request, namespaces: list[int]) -> None:
        for name in ("in", "ctl"):
            os.mkfifo(name, 0o600)
        # Opened for both directions, a fifo never reports an end while writers come and go.
        self._in = os.open("in", os.O_RDWR | os.O_NONBLOCK)
        self._ctl = os.open("ctl", os.O_RDWR | os.O_NONBLOCK)
        self._most_log = int(str(request.get("log_bytes", 16 << 20)))
        self._log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._logged = 0
        self._secrets = request.get("secrets")
        self._clean: CleanText | None = None
        self._pending = b""
        self._close_when_sent = False
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.code: int | None = None
        self._is_terminal = bool(request.get("pty"))
        self._read, self._write = -1, -1
        self.pid = self._start(request, namespaces)
        for fd in namespaces:
            os.close(fd)
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def _start(self, request: start.Request, namespaces: list[int]) -> int:
        from hermes.tools.supervisor.keeper.confined_start import (
            given_namespaces,
            spawn_confined,
        )  # loaded in every keeper, here alone

        argv, env, cwd = request["argv"], request["env"], str(request["cwd"])
        assert isinstance(argv, list)
        assert isinstance(env, dict)
        files = request.get("files", [])
        assert isinstance(files, list)
        # In no file: what the child is given to read holds the user's variables.
        texts = [start.in_memory_file(str(text).encode("utf-8", "surrogateescape")) for text in files]
        given = start.out_of_the_way(texts, [])
        order = given_namespaces(request["confine"], namespaces)
        places = dict(enumerate(given, FIRST_FILE))
        here = os.open(".", os.O_RDONLY)
        os.chdir(cwd)  # noqa: TID251
        try:
            if self._is_terminal:
                rows, columns = int(str(request.get("rows", 30))), int(str(request.get("columns", 120)))
                ours, theirs, name = start.open_terminal(rows, columns)
                self._read, self._write = ours, os.dup(ours)
                try:
                    return spawn_confined(argv, env, places, order, terminal=name)
                finally:
                    os.close(theirs)
            stdin, self._write = os.pipe()
            self._read, stdout = os.pipe()
            try:
                return spawn_confined(argv, env, {0: stdin, 1: stdout, 2: stdout, **places}, order)
            finally:
                os.close(stdin)
                os.close(stdout)
        finally:
            os.fchdir(here)
            for fd in (here, *given):
                os.close(fd)

    def see_to_its_end(self) -> None:
        while self._collect():
            waiting_to_write = [self._write] if (self._pending or self._close_when_sent) and self._write >= 0 else []
            reads = [fd for fd in (self._read, self._ctl, self._woken) if fd >= 0]
            if not self._pending and self._write >= 0:
                reads.append(self._in)
            is_waiting = self._clean is not None and self._clean.is_waiting
            ready, writable, _ = select.select(reads, waiting_to_write, [], _QUIET_S if is_waiting else 1.0)
            if self._read in ready:
                self._drain(1)
            elif is_waiting and self._clean is not None:
                self._write_log(self._clean.quiet())
            if self._in in ready:
                self._pending = os.read(self._in, _CHUNK)
            if writable:
                self._feed()
            if self._ctl in ready and self._obey(os.read(self._ctl, 4096)):
                break
        self._drain(64)
        if self._clean is not None:
            self._write_log(self._clean.rest())

    def _obey(self, words: bytes) -> bool:
        """Do what was written to `ctl`; True when that was to stop."""
        for order in words.decode().splitlines():
            word, *values = order.split()
            if word == "stop":
                self._drain(4)
                self._end(float(values[0]))
                return True
            if word == "eof":
                self._close_when_sent = True
            if word == "size" and self._is_terminal:
                start.resize(self._write, int(values[0]), int(values[1]))
        return False

    def _feed(self) -> None:
        try:
            if self._pending:
                self._pending = self._pending[os.write(self._write, self._pending) :]
            elif self._close_when_sent:
                with contextlib.suppress(BlockingIOError):
                    self._pending = os.read(self._in, _CHUNK)
                    return
                self._close_when_sent = False
                if self._is_terminal:
                    os.write(self._write, b"\x04")
                else:
                    os.close(self._write)
                    self._write = -1
        except OSError:  # the program has closed its input
            self._pending = b""
            self._close_when_sent = False

    def _drain(self, chunks: int) -> None:
        for _ in range(chunks):
            if self._read < 0:
                return
            try:
                data = os.read(self._read, _CHUNK)
            except BlockingIOError:
                return
            except OSError:  # EIO: the last user of the terminal is gone
                data = b""
            if not data:
                os.close(self._read)
                self._read = -1
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        if self._clean is None and isinstance(self._secrets, list):
            from hermes.tools.supervisor.keeper.clean_text import CleanText  # the child runs meanwhile

            self._clean = CleanText(self._secrets)
        self._write_log(data if self._clean is None else self._clean.add(data))

    def _write_log(self, data: bytes) -> None:
        if self._logged + len(data) > self._most_log // 2:
            os.close(self._log)
            os.rename("log", "log.1")  # noqa: PTH104
            self._log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            self._logged = 0
        os.write(self._log, data)
        self._logged += len(data)

    def _end(self, grace_s: float) -> None:
        """TERM, grace, KILL for everything below; its last words are still logged."""
        now = time.monotonic()
        kill_at, give_up_at = now + grace_s, now + grace_s + _KILL_LIMIT_S
        processes = tree.below([os.getpid()])
        tree.signal_all(processes, signal.SIGTERM)
        tree.signal_all(processes, signal.SIGCONT)
        while self._collect() and time.monotonic() < give_up_at:
            if time.monotonic() >= kill_at:
                tree.signal_all(tree.below([os.getpid()]), signal.SIGKILL)
            self._drain(4)
            time.sleep(0.005)

    def _collect(self) -> bool:
        """Reap what has ended; True while anything is left."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 512)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)
