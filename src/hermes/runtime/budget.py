"""How many iterations a turn, and whatever shares its budget, may still take."""

from threading import Lock


class IterationBudget:
    """A thread-safe count. A parent hands the same one to its children so that together they stay within it."""

    def __init__(self, max_total: int) -> None:
        self.max_total = max_total
        self._used = 0
        self._lock = Lock()  # guards _used

    def consume(self) -> bool:
        """Take one iteration; False when none is left."""
        with self._lock:
            if self._used >= self.max_total:
                return False
            self._used += 1
            return True

    def refund(self) -> None:
        """Give back one that was taken."""
        with self._lock:
            self._used = max(0, self._used - 1)

    @property
    def used(self) -> int:
        return self._used

    @property
    def remaining(self) -> int:
        return max(0, self.max_total - self._used)
