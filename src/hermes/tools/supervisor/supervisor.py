"""`ProcessSupervisor`: the one place that starts processes, and the owner of each until it is gone."""

import itertools
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.confinement.policy import AnyConfinement, Confinement
from hermes.errors import ToolError
from hermes.seams import Decision, SpawnSpec
from hermes.tools.supervisor.keeper.start import in_memory_file
from hermes.tools.supervisor.link import SOCKET_KIND, KeeperLink
from hermes.tools.supervisor.threads import in_daemon_thread

if TYPE_CHECKING:  # who starts nothing does without
    from hermes.tools.supervisor.child import CallChild, Pipes
    from hermes.tools.supervisor.confine.order import Orders

OWNER_VARIABLE = "HERMES_CHILD_OF"  # in every child's environment: who started it, for whoever finds it later


class ProcessSupervisor:
    """Starts call children through the keeper. One per runtime; usable from any loop and thread."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(6)
        self._link = KeeperLink(self.id)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards `_children` and `_is_closed`
        self._children: set[CallChild] = set()
        self._is_closed = False
        self._orders: Orders | None = None
        self._notes: dict[Path, Path | None] = {}  # by folder: what tells of this runtime should it be killed

    @property
    def keeper_pid(self) -> int | None:
        return self._link.pid

    @property
    def children(self) -> "tuple[CallChild, ...]":
        """The call children that have not been released."""
        with self._lock:
            return tuple(self._children)

    async def spawn(self, decision: Decision, spec: SpawnSpec) -> "CallChild":
        """Start a call child. Raises `ToolError` when it was not allowed, `StartFailed` when it cannot start.

        Nothing is started without a confinement, or a name in the table of what starts outside.

        The caller releases the child: `child.release()` in a `finally`.
        """
        from hermes.tools.supervisor.child import CallChild

        if not decision.allowed:
            raise ToolError(decision.reason or "this was not allowed")
        if self._is_closed:
            raise ToolError("the runtime is shutting down; nothing more is started")
        confine = self._confine(spec.confinement)
        line, theirs = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)
        try:
            pipes, given = _streams(spec)
            with theirs:
                child = CallChild(line, pipes, self._forget)
                try:
                    fds = [theirs.fileno(), *given[:3], *spec.pass_fds, *_namespaces(spec.confinement)]
                    await self._link.send(self._request(spec, confine), fds)
                except BaseException:
                    child.release()
                    raise
                finally:
                    for fd in set(given):
                        os.close(fd)
        except BaseException:
            line.close()
            raise
        with self._lock:
            self._children.add(child)
        if not spec.await_start:
            return child
        try:
            return await child.started()
        except BaseException:
            child.release()
            raise

    async def hold(self, decision: Decision, request: dict[str, object], confinement: AnyConfinement) -> int:
        """Start a background child, which outlives this runtime in the care of a keeper of its own; return its pid.

        `request` says folder, argv, env, cwd, whether it gets a terminal, `files` (texts it can read as /dev/fd/10 and
        so on) and `secrets` (what its log must not hold; without it the log is raw); see `keeper.held`.
        """
        from hermes.tools.supervisor.child import CallChild, Pipes

        if not decision.allowed:
            raise ToolError(decision.reason or "this was not allowed")
        confine = self._confine(confinement)
        line, theirs = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)
        env = request["env"]
        assert isinstance(env, dict)
        marked = {
            **request,
            "held": True,
            "confine": confine,
            "env": {**env, OWNER_VARIABLE: f"held:{self.id}:{request['folder']}"},
        }
        nothing = os.open(os.devnull, os.O_RDWR)
        child = CallChild(line, Pipes(nothing, None, None), lambda _: None)
        try:
            with theirs:
                await self._link.send(marked, [theirs.fileno(), *_namespaces(confinement)])
            return (await child.started()).pid
        finally:
            child.release()

    async def network(self, wanted: dict[str, object], namespaces: Sequence[int] = ()) -> socket.socket:
        """Have a network namespace made, or more sockets in one; what comes over the line is theirs to read."""
        line, theirs = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)
        try:
            with theirs:
                await self._link.send({"network": wanted}, [theirs.fileno(), *namespaces])
        except BaseException:
            line.close()
            raise
        return line

    def note_in(self, folder: Path) -> None:
        """Have the next start on the home of `folder` look for what is left, should this runtime be killed."""
        from hermes.tools.supervisor.left_processes import leave_note  # at level full nothing is left

        with self._lock:
            if folder not in self._notes:
                self._notes[folder] = leave_note(folder, self.id)

    async def close(self) -> None:
        """End every call child and the keeper; returns when they are gone. Background children stay."""
        await in_daemon_thread(self.close_now)

    def close_now(self) -> None:
        """`close` for plain synchronous code; it blocks until the children are gone."""
        with self._lock:
            self._is_closed = True
            children = tuple(self._children)
        for child in children:
            child.hang_up()
        self._link.close()
        for note in self._notes.values():
            if note is not None and not self._link.was_killed:
                note.unlink(missing_ok=True)

    def _confine(self, confinement: AnyConfinement | None) -> dict[str, object]:
        """The keeper's words for it. Here and not in a thread: after the first time it is a look at one small file."""
        if confinement is None:
            raise ToolError("nothing is started without a confinement")
        if isinstance(confinement, Confinement):
            if self._orders is None:
                from hermes.tools.supervisor.confine.order import Orders  # who starts nothing does without

                self._orders = Orders()
            return self._orders.words(confinement)
        return {"level": "none", "limits": {}}

    def _request(self, spec: SpawnSpec, confine: dict[str, object]) -> dict[str, object]:
        return {
            "confine": confine,
            "argv": spec.argv,
            "env": {**spec.env, OWNER_VARIABLE: f"{self.id}:{next(self._numbers)}:{spec.owner}"},
            "cwd": spec.cwd,
            "pass_fds": spec.pass_fds,
            "linger_s": spec.linger_s,
            "await_start": spec.await_start,
            "max_processes": spec.max_processes,
        }

    def _forget(self, child: "CallChild") -> None:
        with self._lock:
            self._children.discard(child)


def _namespaces(confinement: AnyConfinement | None) -> tuple[int, ...]:
    return confinement.namespaces if isinstance(confinement, Confinement) and confinement.level == "full" else ()


def _streams(spec: SpawnSpec) -> "tuple[Pipes, list[int]]":
    """Our ends of the streams, and the child's stdin, stdout and stderr."""
    from hermes.tools.supervisor.child import Pipes

    ours_in: int | None = None
    if spec.keep_stdin:
        theirs_in, ours_in = os.pipe()
    elif spec.stdin is None:
        theirs_in = os.open(os.devnull, os.O_RDONLY)
    else:
        # A file needs no writer: the child reads it to its end or leaves it.
        theirs_in = in_memory_file(spec.stdin)
    ours_out, theirs_out = os.pipe()
    if spec.merge_stderr:
        return Pipes(ours_out, None, ours_in), [theirs_in, theirs_out, theirs_out]
    ours_err, theirs_err = os.pipe()
    return Pipes(ours_out, ours_err, ours_in), [theirs_in, theirs_out, theirs_err]
