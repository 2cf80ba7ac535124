"""One call child in the keeper's care: how it started, how it ends, what is left of it."""

import json
import os
import signal
import socket
import time

from hermes.tools.supervisor.keeper import start, tree
from hermes.tools.supervisor.keeper.usage import CallUsage

KILL_LIMIT_S = 5.0
DEFAULT_GRACE_S = 0.5
STORM_CHECK_S = 0.2
_KILL_AGAIN_S = 0.005
_LEFT_TOLD = 20


class KeptCall:
    """A call child after its start. The server tells it what happened; it decides what is next, and never blocks."""

    def __init__(self, pid: int, line: socket.socket, request: start.Request) -> None:
        env = request["env"]
        assert isinstance(env, dict)
        self.pid = pid
        self.line = line
        self.mark = str(env.get("HERMES_CHILD_OF", "")).encode()
        self.has_exited = False
        self._code: int | None = None
        self._exit_told = False
        self.is_gone = False
        self.wake_at: float | None = None  # monotonic: when `tick` is wanted
        self._linger_s = float(str(request.get("linger_s", 0.3)))
        confine = request.get("confine")
        assert isinstance(confine, dict)
        limits = {**confine.get("limits", {})}
        if request.get("max_processes"):
            limits["processes"] = request["max_processes"]
        self._usage = CallUsage(limits, str(confine.get("temp", "")))
        self._phase = "running"  # running, lingering, terminating, killing
        self._phase_ends = 0.0
        if self._usage.is_limited:
            self.wake_at = time.monotonic() + STORM_CHECK_S

    def exited(self, status: int) -> None:
        self.has_exited = True
        self._code = os.waitstatus_to_exitcode(status)

    def look(self, orphans: list[tree.ProcessEntry]) -> None:
        """Judge the call by what it has left behind; `orphans` are the processes that are its own now."""
        if not self.has_exited:
            return
        if not orphans:
            self._leave([])
            return
        self._tell_exit()
        if self._phase == "running":
            # Something below the program still runs: give it a moment to finish writing.
            self._enter("lingering", self._linger_s)

    def _tell_exit(self) -> None:
        if not self._exit_told:
            self._exit_told = True
            tell(self.line, pid=self.pid, exit=self._code)

    def tick(self, orphans: list[tree.ProcessEntry]) -> None:
        """The time asked for in `wake_at` has come."""
        self.wake_at = None
        if self._phase == "running":
            self._watch_usage(orphans)
        elif self._phase == "lingering":
            self.end(DEFAULT_GRACE_S, orphans)
        elif self._phase == "terminating":
            self._enter("killing", KILL_LIMIT_S)
            self._kill(orphans)
        elif time.monotonic() > self._phase_ends:
            self._leave([process.pid for process in self.processes(orphans)][:_LEFT_TOLD])
        else:
            self._kill(orphans)

    def end(self, grace_s: float, orphans: list[tree.ProcessEntry]) -> None:
        """TERM now, KILL after the grace."""
        if self._phase in ("terminating", "killing"):
            return
        processes = self.processes(orphans)
        tree.signal_all(processes, signal.SIGTERM)
        tree.signal_all(processes, signal.SIGCONT)
        self._enter("terminating", grace_s)

    def processes(self, orphans: list[tree.ProcessEntry]) -> list[tree.ProcessEntry]:
        """Everything that belongs to the call."""
        own = None if self.has_exited else tree.look(self.pid)
        roots = [*orphans, *([own] if own else [])]
        return [*roots, *tree.below(process.pid for process in roots)]

    def _enter(self, phase: str, seconds: float) -> None:
        self._phase = phase
        self._phase_ends = self.wake_at = time.monotonic() + seconds

    def _kill(self, orphans: list[tree.ProcessEntry]) -> None:
        tree.signal_all(self.processes(orphans), signal.SIGKILL)
        self.wake_at = time.monotonic() + _KILL_AGAIN_S

    def _watch_usage(self, orphans: list[tree.ProcessEntry]) -> None:
        excess = self._usage.excess(self.processes(orphans)) if self._usage.may_be_over() else ""
        if excess:
            tell(self.line, excess=excess)
            self._enter("killing", KILL_LIMIT_S)
            self._kill(orphans)
        else:
            self.wake_at = time.monotonic() + STORM_CHECK_S

    def _leave(self, left: list[int]) -> None:
        self.is_gone = True
        # One message for both: each costs the runtime a wake-up.
        tell(self.line, pid=self.pid, **({} if self._code is None else {"exit": self._code}), gone=left)
        self.line.close()


def tell(line: socket.socket, **facts: object) -> None:
    """One message to the runtime; when nobody listens any more, the end of the children does not depend on it."""
    try:
        line.send(json.dumps(facts).encode())
    except OSError:
        return
