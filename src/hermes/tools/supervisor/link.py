"""The runtime's end of the keeper: start it when first needed, hand requests over with their descriptors."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from hermes.errors import MissingPart
from hermes.tools.supervisor.keeper.start import in_memory_file

# The packages above the keeper are entered without running their `__init__`: the keeper needs none of them.
_BOOT = """
import sys, types
folder = sys.argv.pop(1)
name = ""
for part in ("hermes", "tools", "supervisor"):
    name, folder = (name + "." + part if name else part), folder + "/" + part
    sys.modules[name] = module = types.ModuleType(name)
    module.__path__ = [folder]
from hermes.tools.supervisor.keeper.main import main
main()
"""
_SOURCE_ROOT = str(Path(__file__).resolve().parents[3])
_LAST_WAIT_S = 6.0


class KeeperLink:
    """One keeper process, started at the first request and again if it was killed. Safe to use from any thread."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._was_killed = False
        self._lock = threading.Lock()  # guards the two fields below
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def was_killed(self) -> bool:
        """Whether a keeper was lost on the way, and with it the sight of what it had started."""
        return self._was_killed

    @property
    def pid(self) -> int | None:
        """The keeper's pid while it has been started."""
        return self._process.pid if self._process else None

    async def send(self, request: dict[str, object], fds: Sequence[int]) -> None:
        """Hand over one request; `fds` stay open here."""
        payload = in_memory_file(json.dumps(request).encode())
        try:
            for last_try in (False, True):
                control = self._open()
                try:
                    await _send_fds(control, [payload, *fds])
                except (BrokenPipeError, ConnectionResetError):
                    self._forget()  # somebody killed it; the next one ends what it left, and serves on
                    if last_try:
                        raise
                else:
                    return
        finally:
            os.close(payload)

    def close(self) -> None:
        """Let the keeper end, with every call child; blocks until that is done, so call it off the loop."""
        with self._lock:
            process, control = self._process, self._control
            self._process = self._control = None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(_LAST_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._was_killed = self._was_killed or process.returncode < 0

    def _open(self) -> socket.socket:
        with self._lock:
            if self._control is None:
                self._process, self._control = _start_keeper(self._mark, again=self._was_killed)
            return self._control

    def _forget(self) -> None:
        with self._lock:
            process, control = self._process, self._control
            self._process = self._control = None
            self._was_killed = True
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()


def _start_keeper(mark: str, *, again: bool) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    if not sys.executable:
        raise MissingPart("commands need a Python interpreter to watch over them, and sys.executable is empty here")
    ours, theirs = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)
    ours.setblocking(False)
    with theirs:
        words = [_SOURCE_ROOT, str(theirs.fileno()), str(os.getpid()), mark, "again" if again else ""]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, *words],
            cwd="/",
            env={},  # no secret of the runtime is needed there
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    return process, ours


async def _send_fds(control: socket.socket, fds: Sequence[int]) -> None:
    while True:
        try:
            socket.send_fds(control, [b"r"], list(fds))
        except BlockingIOError:
            await _writable(control)
        else:
            return


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    fd = os.dup(sock.fileno())  # several tasks may wait, and a loop knows one writer per descriptor
    loop.add_writer(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(fd)
        os.close(fd)


SOCKET_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
