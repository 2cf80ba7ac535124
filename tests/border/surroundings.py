"""What runs beside the session on the person's machine: servers on sockets, a program with a secret, a terminal."""

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.border import world

KEY_WORDS = "plain words of a key in the session keyring"
MEMORY_WORDS = "plain words in the memory of another program"
_KEYCTL, _ADD_KEY, _JOIN_SESSION, _SESSION = 250, 248, 1, -3

# A program of the person's: it holds a secret in its environment, its memory and an open file, and does nothing.
_VICTIM = """
import os, signal, sys
words = os.environ["VICTIM_WORDS"]
held = open(sys.argv[1])
signal.signal(signal.SIGHUP, lambda *_: sys.exit(3))
sys.stdout.write("ready\\n"); sys.stdout.flush()
while True:
    signal.pause()
"""


class Sockets:
    """Servers on the sockets that a person's machine has; each remembers who came."""

    def __init__(self, uid: int) -> None:
        self.reached: set[str] = set()
        self._open: dict[socket.socket, str] = {}
        self._held: list[socket.socket] = []
        self._wake_read, self._wake = socket.socketpair()
        streams = [
            "/run/docker.sock", "/run/adv.sock", f"/run/user/{uid}/bus", f"/run/user/{uid}/systemd/private",
            f"/run/user/{uid}/wayland-0", "/run/dbus/system_bus_socket", f"/tmp/tmux-{uid}/default",
            "/tmp/ssh-person/agent.1", "/tmp/.X11-unix/X0", "/run/containerd/containerd.sock",
            "/run/podman/podman.sock",
            f"/run/user/{uid}/gnupg/S.gpg-agent", f"/run/user/{uid}/pulse/native", "/run/screen/S-me/1.pts",
            f"{world.HOME}/.hermes/run/other.sock", f"{world.HOME}/.config/app/control.sock", f"{world.WORK}/dev.sock",
            "/var/tmp/cron.sock", "/dev/shm/app.sock",
        ]  # fmt: skip
        for name in (*streams, "\0adv", "\0/tmp/.X11-unix/X0", "\0/org/freedesktop/systemd1"):
            self._listen(name, socket.SOCK_STREAM)
        for name in ("/run/adv.dgram", "/run/systemd/notify", "/run/log.dgram", "\0adv.dgram"):
            self._listen(name, socket.SOCK_DGRAM)
        self._listen("/run/adv.seq", socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._wake.send(b"x")
        self._thread.join(5)
        for server in (*self._open, *self._held, self._wake, self._wake_read):
            server.close()

    def _listen(self, name: str, kind: socket.SocketKind) -> None:
        server = socket.socket(socket.AF_UNIX, kind)
        if not name.startswith("\0"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
        server.bind(name)
        if not name.startswith("\0"):
            Path(name).chmod(0o666)
        if kind is not socket.SOCK_DGRAM:
            server.listen(8)
        self._open[server] = name.replace("\0", "@")

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([*self._open, self._wake_read], [], [])
            if self._wake_read in ready:
                return
            for server in ready:
                self.reached.add(self._open[server])
                with contextlib.suppress(OSError):
                    if server.type == socket.SOCK_DGRAM:
                        server.recv(4096)
                    else:
                        self._held.append(server.accept()[0])


class Victim:
    """A program of the person's that nobody inside may look at, stop or end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _VICTIM, str(world.HOME / ".netrc")],
            env={"VICTIM_WORDS": MEMORY_WORDS}, cwd=world.HOME / "precious", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self.pid = self._process.pid
        world.VICTIM_PID.write_text(str(self.pid))

    def harm(self) -> list[str]:
        """What was done to it."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{self.pid}/status").read_text()
            traced = "TracerPid:\t0\n" not in status
            state = fields[0]
            nice = int(fields[16])
            done = ["stopped"] * (state in "Tt") + ["traced"] * traced + ["niced"] * (nice != os.nice(0))
            return (
                [f"the person's program was {each}" for each in done]
                if state != "Z"
                else ["the person's program was ended"]
            )
        return ["the person's program was ended"]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class PersonsTerminal:
    """The terminal that the person sits at; what arrives there was not theirs."""

    def __init__(self) -> None:
        self._screen, self._line = os.openpty()
        self.name = os.ttyname(self._line)
        Path(self.name).chmod(0o620)

    def harm(self) -> list[str]:
        if select.select([self._screen], [], [], 0)[0]:
            return [f"the person's terminal {self.name} showed {os.read(self._screen, 200)!r}"]
        return []

    def close(self) -> None:
        os.close(self._screen)
        os.close(self._line)


def own_keyring() -> None:
    """A session keyring with a secret in it, as a login gives one."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL, _JOIN_SESSION, None, 0, 0, 0)
    libc.syscall(_ADD_KEY, b"user", b"hermes-border", KEY_WORDS.encode(), len(KEY_WORDS), _SESSION)


def limits() -> None:
    """Whatever gets out of hand in the room stays small."""
    import resource

    for what, most in ((resource.RLIMIT_NPROC, 3000), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 29)):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
