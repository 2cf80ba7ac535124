"""Where a local session's shell state lies between two commands.

Two folders: `own` is written by the runtime and the login shell alone, `shared` by the commands themselves. In a
sandbox a command can write to `shared` only, so nothing in there is believed: it is read without following links, up
to a limit, and never taken outside. Blocking, all of it on small files in a temporary folder.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

_MOST_BYTES = 4 << 20


class ShellState:
    """The snapshots of one session, numbered by the call that left them; 0 is the login shell's."""

    def __init__(self, own: Path, shared: Path) -> None:
        self.own = own
        self.shared = shared
        self._present = 0
        self._next = 1
        self._begun: dict[int, int] = {}  # call -> the snapshot it started from

    @classmethod
    def make(cls, private_root: Path | None) -> "ShellState":
        """Fresh folders, readable by this user only. `private_root` is a place that no sandbox shows."""
        shared = Path(tempfile.mkdtemp(prefix="hermes-shell-"))
        if private_root is None:
            return cls(shared, shared)
        private_root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(Path(tempfile.mkdtemp(prefix="shell-", dir=private_root)), shared)

    def remove(self) -> None:
        for folder in (self.own, self.shared):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def login(self) -> str:
        """The snapshot of the login shell."""
        return f"{self.own}/snapshot-0"

    def begin(self) -> int:
        """A number for a call, which starts from the present state."""
        number, self._next = self._next, self._next + 1
        self._begun[number] = self._present
        return number

    def files(self, number: int, *, outside: bool) -> tuple[str, str, str]:
        """The snapshot to take up, the one to write, and the file for the folder.

        Outside the sandbox a command starts from the login shell's state: what sandboxed commands have defined must not
        decide what an approved command does.
        """
        if outside:
            return self.login, "/dev/null", f"{self.own}/cwd-{number}"
        return self._snapshot(self._begun[number]), f"{self.shared}/snapshot-{number}", f"{self.shared}/cwd-{number}"

    def end(self, number: int, *, outside: bool) -> str | None:
        """The folder the call ended in, or None when it left no state: it was killed, or replaced itself by `exec`."""
        del self._begun[number]
        file = (self.own if outside else self.shared) / f"cwd-{number}"
        where = (_read(file, 8192) or b"").decode("utf-8", "surrogateescape")
        (self.own / f"command-{number}").unlink(missing_ok=True)
        if not where.endswith("\n") or number < self._present:
            return None
        file.unlink(missing_ok=True)
        if not outside:
            old, self._present = self._present, number
            if old and old not in self._begun.values():
                (self.shared / f"snapshot-{old}").unlink(missing_ok=True)
        return where[:-1]

    def present(self) -> bytes:
        """The present state, as a shell takes it up."""
        data = _read(Path(self._snapshot(self._present)), _MOST_BYTES)
        return data if data is not None else Path(self.login).read_bytes()

    def _snapshot(self, number: int) -> str:
        return f"{self.shared}/snapshot-{number}" if number else self.login


def _read(path: Path, most: int) -> bytes | None:
    """A regular file's bytes, or None: a fifo would make us wait, a link would lead us elsewhere."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return file.read(most)
    return None
