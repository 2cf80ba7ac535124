"""The calls that one server works on, and their time limits: one timer for all of them.

All calls of a server have the same limit, so a timer that stands for an older call rings early enough for a younger
one. It is left standing when its call ends: arming one for each call would cost as much as the gate.
"""

import asyncio
import contextvars
import math

from msgspec import Struct

from hermes.seams import ToolContext


class CallUnderWay(Struct, eq=False):
    """A call that a server works on: whom its questions belong to, and until when. A person who is asked stops time."""

    ctx: ToolContext
    context: contextvars.Context
    task: "asyncio.Task[object]"
    cancels: int  # that were asked of the task before
    deadline: float
    asked: int = 0
    is_late: bool = False

    @property
    def ends_late(self) -> bool:
        """Whether the cancellation that has arrived is that of the clock, and of nobody else."""
        return self.is_late and self.task.cancelling() - 1 <= self.cancels


class CallClock:
    """Cancels, at its limit, the task of a call. `calls` are those under way, newest last."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.calls: list[CallUnderWay] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, ctx: ToolContext, loop: asyncio.AbstractEventLoop) -> CallUnderWay:
        """A call of the running task begins."""
        task = asyncio.current_task(loop)
        assert task is not None
        if self._loop is not loop:
            self._loop, self._timer = loop, None
        deadline = loop.time() + self.limit_s
        call = CallUnderWay(ctx, contextvars.copy_context(), task, task.cancelling(), deadline)
        self.calls.append(call)
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._ring)
        return call

    def end(self, call: CallUnderWay) -> None:
        """The call is over; what the clock asked of its task is taken back, also where that came out as an error."""
        self.calls.remove(call)
        if call.is_late:
            call.task.uncancel()

    def pause(self, call: CallUnderWay) -> None:
        """A person is asked."""
        assert self._loop is not None
        if not call.asked:
            call.deadline -= self._loop.time()  # what is left, meanwhile
        call.asked += 1

    def resume(self, call: CallUnderWay) -> None:
        """An answer is there; a second at least is left for what the server makes of it."""
        assert self._loop is not None
        call.asked -= 1
        if not call.asked:
            call.deadline = self._loop.time() + max(call.deadline, 1.0)
            self._arm()

    def stop(self) -> None:
        """No call is made any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        assert self._loop is not None
        self._timer, now = None, self._loop.time()
        for call in self.calls:
            if not call.asked and not call.is_late and call.deadline <= now:
                call.is_late = True
                call.task.cancel()
        self._arm()

    def _arm(self) -> None:
        """Ring when the next one is due."""
        assert self._loop is not None
        due = min((call.deadline for call in self.calls if not call.asked and not call.is_late), default=math.inf)
        if due < (self._timer.when() if self._timer is not None else math.inf):
            self.stop()
            self._timer = self._loop.call_at(due, self._ring)
