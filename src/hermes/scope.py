"""`TurnScope`: the one deadline and the one cancellation of a turn. Nobody invents another."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct, field

Result = TypeVar("Result")
ScopeState: TypeAlias = Literal["new", "open", "done", "failed", "cancelled", "expired"]


class CallInterrupted(asyncio.CancelledError):
    """The cancellation that stopped a call, carrying the result that the call has come to all the same."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.content = content


class TurnScope(Struct, eq=False):
    """A deadline, a reason, children and a clean-up budget, bound to the task that enters it.

    `async with scope:` runs its body until it ends, the deadline passes or `cancel` is called. The scope's own
    cancellation stops at its border: the body is cancelled, the block is left without an exception, and `state`
    says why. A cancellation from outside always passes through. A child never outlives the time of its parent.
    """

    name: str = "turn"
    timeout_s: float | None = None
    parent: "TurnScope | None" = None
    cleanup_s: float = 3.0
    reason: str | None = None
    state: ScopeState = "new"
    _children: "set[TurnScope]" = field(default_factory=set)
    _deadline: float | None = None  # its own or one above it, whichever comes first
    _task: asyncio.Task[object] | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _timer: asyncio.TimerHandle | None = None
    _delivery: asyncio.Handle | None = None
    _delivered: bool = False
    _cancels_before: int = 0
    _asked: Literal["cancelled", "expired"] | None = None

    def child(self, name: str, *, timeout_s: float | None = None) -> "TurnScope":
        """A scope below this one, with at most its remaining time."""
        return TurnScope(name, timeout_s, self, self.cleanup_s)

    def remaining(self) -> float | None:
        """Seconds left here or in any scope above; None when nothing limits them."""
        scope = self if self._loop is not None or self.parent is None else self.parent
        if scope._deadline is None or scope._loop is None:
            return self.timeout_s
        return max(0.0, scope._deadline - scope._loop.time())

    def limit(self, timeout_s: float | None) -> float | None:
        """`timeout_s`, or what is left of the scope when that is less."""
        left = self.remaining()
        if timeout_s is None or left is None:
            return left if timeout_s is None else timeout_s
        return min(timeout_s, left)

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the body to stop at its next await. After the end it does nothing.

        Call it on the scope's own loop; from another thread use `cancel_threadsafe`.
        """
        self._stop("cancelled", reason)

    def cancel_threadsafe(self, reason: str = "cancelled") -> None:
        """`cancel`, from any thread."""
        if self._loop is None:
            self._stop("cancelled", reason)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, "cancelled", reason)

    @property
    def cancelled(self) -> bool:
        return self.state == "cancelled" or self._asked == "cancelled"

    @property
    def expired(self) -> bool:
        return self.state == "expired" or self._asked == "expired"

    @property
    def children(self) -> frozenset["TurnScope"]:
        """The scopes below this one that are still open."""
        return frozenset(self._children)

    def cleanup(self) -> AbstractAsyncContextManager[object]:
        """The time a `finally` block may take; past it `TimeoutError` is raised."""
        return asyncio.timeout(self.cleanup_s)

    async def sleep(self, seconds: float) -> None:
        """Wait, but never past the deadline: the scope expires first."""
        await asyncio.sleep(seconds)

    async def __aenter__(self) -> "TurnScope":
        if self.state != "new":
            raise RuntimeError(f"scope {self.name!r} was entered twice")
        loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._cancels_before = task.cancelling()
        self.state = "open"
        if self.parent is not None:
            self.parent._children.add(self)
            self._deadline = self.parent._deadline
        if self.timeout_s is not None:
            own = loop.time() + self.timeout_s
            self._timer = loop.call_at(own, self._stop, "expired", "deadline")
            self._deadline = own if self._deadline is None else min(own, self._deadline)
        if self._asked is not None:
            self._deliver_soon()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        assert self._task is not None
        if self._timer is not None:
            self._timer.cancel()
        if self._delivery is not None:
            self._delivery.cancel()
        if self.parent is not None:
            self.parent._children.discard(self)
        if self._asked is None:
            self.state = "done" if error is None else "failed"
            self._task = None
            return False
        still_cancelled = self._delivered and self._task.uncancel() > self._cancels_before
        self._task = None
        self.state = self._asked
        if error is None or still_cancelled or not self._delivered:
            return False
        return isinstance(error, asyncio.CancelledError) or _only_cancellations(error)

    def _stop(self, how: Literal["cancelled", "expired"], reason: str) -> None:
        if self._asked is not None or self.state not in ("new", "open"):
            return
        self._asked, self.reason = how, reason
        if self._task is not None:
            self._deliver_soon()

    def _deliver_soon(self) -> None:
        """Cancel the task when it is next suspended. Cancelling it while it runs cannot be taken back before 3.13."""
        assert self._loop is not None
        self._delivery = self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        if self._task is not None:
            self._delivered = True
            self._task.cancel()


def _only_cancellations(error: BaseException) -> bool:
    """Whether a group holds nothing but the cancellation this scope asked for."""
    return isinstance(error, BaseExceptionGroup) and error.split(asyncio.CancelledError)[1] is None


async def unbroken(work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns. A cancellation meanwhile is held back until it has ended, so it is never half done.

    For short work that must be known to have happened or not, such as a commit.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        if not task.cancelled() and task.exception() is not None:
            raise cancellation from task.exception()
        raise cancellation
    return task.result()
