"""When a background process is worth a message, and how that reads."""

import time
from collections import deque
from collections.abc import Callable

from hermes.tools.environments.background import Record

WINDOW_S = 15.0
STRIKES = 3
GLOBAL_MOST, GLOBAL_WINDOW_S, COOL_DOWN_S = 15, 10.0, 30.0
_SHOWN = 2000


class WatchLimit:
    """At most one notice per window; three windows in a row with more than that, and watching is given up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window_ends = float("-inf")
        self._over_in_window = False
        self._strikes = 0
        self.given_up = False

    def allow(self) -> bool:
        """Whether a match may be told now."""
        if self.given_up:
            return False
        now = self._clock()
        if now < self._window_ends:
            if not self._over_in_window:
                self._over_in_window = True
                self._strikes += 1
                self.given_up = self._strikes >= STRIKES
            return False
        if not self._over_in_window:
            self._strikes = 0
        self._window_ends = now + WINDOW_S
        self._over_in_window = False
        return True


class Breaker:
    """The limit over all processes: 15 notices in 10 s, then none for 30 s."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=GLOBAL_MOST)
        self._closed_until = float("-inf")

    def allow(self) -> bool:
        now = self._clock()
        if now < self._closed_until:
            return False
        if len(self._times) == GLOBAL_MOST and now - self._times[0] < GLOBAL_WINDOW_S:
            self._closed_until = now + COOL_DOWN_S
            self._times.clear()
            return False
        self._times.append(now)
        return True


def completion(record: Record, exit_code: int | None, output: str) -> str:
    """The message that a process has ended."""
    code = "unknown" if exit_code is None else exit_code
    return (
        f"[IMPORTANT: background process {record.id} has ended with exit code {code}.\n"
        f"Command: {record.order.command}\nLast output:\n{output[-_SHOWN:]}]"
    )


def matches(record: Record, lines: list[str], limit: WatchLimit, breaker: Breaker) -> list[str]:
    """What there is to say of new lines: the first pattern that hit, that watching ends, or nothing."""
    for pattern in record.order.watch:
        hits = [line for line in lines if pattern in line]
        if hits and limit.allow() and breaker.allow():
            return [_matched(record, pattern, hits)]
        if hits:
            return [_given_up(record)] if limit.given_up else []
    return []


def _matched(record: Record, pattern: str, lines: list[str]) -> str:
    """The message that watched-for output has come."""
    text = "\n".join(lines)[-_SHOWN:]
    return (
        f"[IMPORTANT: background process {record.id} printed {pattern!r}.\n"
        f"Command: {record.order.command}\nMatching output:\n{text}]"
    )


def _given_up(record: Record) -> str:
    """The message that watching was too noisy."""
    return (
        f"[IMPORTANT: background process {record.id} prints watched-for text too often; it is no longer watched, "
        "and you are told once when it ends.]"
    )
