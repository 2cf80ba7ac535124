"""Start one program from a request: descriptors, folder, signals, terminal."""

import array
import fcntl
import os
import signal
import socket
import sys

if sys.platform != "win32":
    import pty
    import struct
    import termios

# Python and the keeper ignore these, and an ignored signal would be inherited.
IGNORED_HERE = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
Request = dict[str, object]
_FIRST_SAFE_FD = 64


def receive(control: socket.socket) -> list[int] | None:
    """The descriptors of the next request; None when the runtime has closed its end."""
    room = array.array("i")
    data, ancillary, _, _ = control.recvmsg(
        1, socket.CMSG_SPACE(32 * room.itemsize), getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    )
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            room.frombytes(payload[: len(payload) - len(payload) % room.itemsize])
    return list(room) if data else None


def out_of_the_way(fds: list[int], targets: list[int]) -> list[int]:
    """The same descriptors under numbers that no target uses, closed on exec."""
    lowest = max([_FIRST_SAFE_FD, *(number + 1 for number in targets)])
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest) for fd in fds]
    for fd in fds:
        os.close(fd)
    return moved


def in_memory_file(data: bytes) -> int:
    """A descriptor of a nameless file that holds `data`, at its beginning."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("hermes")
    else:
        import tempfile  # Linux does without

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def spawn(argv: list[str], env: dict[str, str], places: dict[int, int], terminal: str | None = None) -> int:
    """Start `argv` in a session of its own; `places` maps its descriptors to ours. Returns the pid."""
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = []
    if terminal is not None:
        # Opened after setsid, so it becomes the controlling terminal.
        actions.append((os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0))
        actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in places.items()]
    return os.posix_spawn(
        find_program(argv[0], env),
        argv,
        env,
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=IGNORED_HERE,
    )


def open_terminal(rows: int, columns: int) -> tuple[int, int, str]:
    """A new pseudo terminal of that size: our end, theirs, and the name of theirs.

    Keep theirs open until the program runs; with no user at all, our end reports a hang-up.
    """
    ours, theirs = pty.openpty()
    resize(ours, rows, columns)
    return ours, theirs, os.ttyname(theirs)


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def find_program(name: str, env: dict[str, str]) -> str:
    if "/" in name:
        return name
    for folder in env.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{name}"
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, "no such program on PATH", name)
