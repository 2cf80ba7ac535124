"""How long a coroutine of others holds the loop: the time between two of its waits, in which nothing else runs."""

from collections.abc import Coroutine, Generator
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MOST_S = 0.5  # at a time; a person at a terminal notices a tenth of it


class LoopBlocked(Exception):
    """A coroutine did not let anything else run for so long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"everything else stood still for {seconds:.1f} s; a coroutine must not block, a plain function may"
        )


class TimedSteps(Generic[T]):
    """Awaits `inner` in its place, in the same task, and remembers the longest of its steps."""

    def __init__(self, inner: Coroutine[Any, Any, T]) -> None:
        self._inner = inner
        self.longest_s = 0.0

    @property
    def blocked(self) -> LoopBlocked | None:
        """What to tell of it, if it held the loop too long."""
        return LoopBlocked(self.longest_s) if self.longest_s > MOST_S else None

    def __await__(self) -> Generator[Any, Any, T]:
        error: BaseException | None = None
        while True:
            began = monotonic()
            try:
                awaited = self._inner.send(None) if error is None else self._inner.throw(error)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                self.longest_s = max(self.longest_s, monotonic() - began)
            error = None
            try:
                yield awaited
            except GeneratorExit:
                self._inner.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - a cancellation is for `inner` to see, as `await` would do it
                error = thrown
