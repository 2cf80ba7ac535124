"""Whether a tool's check says yes: asked in a bounded time, cached for a short while, forgiving one flake."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from hermes.errors import ToolError

CACHE_S = 30.0
GRACE_S = 60.0
HANG_S = 5.0

log = logging.getLogger(__name__)


class _Seen(Struct):
    answer: bool
    at: float
    last_yes: float | None
    reason: str


class Checks:
    """Answers of `check_fn`s, per function object.

    An exception means no (a `ToolError` says why in its own words), and so does a check that takes longer than
    `hang_s`: its thread is left behind and counted. A check that says of itself `is_quick`, as ours do, gets none.
    A no within a minute of a yes is a flake: yes is served, and the no is not kept.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, hang_s: float = HANG_S) -> None:
        self._clock = clock
        self._hang_s = hang_s
        self._lock = threading.Lock()  # guards _seen and abandoned
        self._seen: dict[Callable[[], object], _Seen] = {}
        self.abandoned = 0

    def ask(self, check: Callable[[], object] | None) -> bool:
        """True when there is no check, or it says yes."""
        if check is None:
            return True
        with self._lock:
            seen = self._seen.get(check)
        now = self._clock()
        if seen is not None and now - seen.at < CACHE_S:
            return seen.answer
        answer, reason = self._run(check)
        last_yes = now if answer else (seen.last_yes if seen else None)
        if not answer and last_yes is not None and now - last_yes < GRACE_S:
            log.warning("availability check %r failed (%s) shortly after it passed; taken as a flake", check, reason)
            return True
        with self._lock:
            self._seen[check] = _Seen(answer, now, last_yes, reason)
        return answer

    def why_not(self, check: Callable[[], object] | None) -> str:
        """Why a tool with this check is not available; empty when it is."""
        return "" if self.ask(check) else self.reason(check) or "its check says no"

    def reason(self, check: Callable[[], object] | None) -> str:
        """Why the last answer was no; empty when it was yes or was never asked."""
        missing = getattr(check, "missing", None)
        if callable(missing):
            return str(missing())
        with self._lock:
            seen = self._seen.get(check) if check is not None else None
        return "" if seen is None or seen.answer else seen.reason

    def forget(self) -> None:
        """Ask afresh next time."""
        with self._lock:
            self._seen.clear()

    def _run(self, check: Callable[[], object]) -> tuple[bool, str]:
        box: list[tuple[bool, str]] = []

        def run() -> None:
            try:
                answer = bool(check())
                box.append((answer, "" if answer else "its check says no"))
            except ToolError as error:
                box.append((False, str(error)))
            except BaseException as error:  # noqa: BLE001 - a foreign check may raise anything, also SystemExit
                box.append((False, f"its check failed: {type(error).__name__}: {error}"))

        if getattr(check, "is_quick", False):
            run()
        else:
            thread = threading.Thread(target=run, name="tool-check", daemon=True)
            thread.start()
            thread.join(self._hang_s)
        if box:
            return box[0]
        with self._lock:
            self.abandoned += 1
        return False, f"its check did not answer within {self._hang_s:g} s"
