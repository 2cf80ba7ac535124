"""A `MessageLine` in memory: the fake for tests. It passes the same contract suite."""

import time
from collections.abc import Callable, Collection
from threading import RLock
from typing import Any, Literal

from msgspec.structs import replace

from hermes.state.message_line import KEPT_S, QueuedMessage, QueueState
from hermes.types import Content


class MemoryMessageLine:
    """`newest` tells the newest user message of a session, `line_of` the ids it had, the present one last."""

    def __init__(self, newest: Callable[[str], int], line_of: Callable[[str], tuple[str, ...]]) -> None:
        self._newest, self._line_of = newest, line_of
        self._lines: dict[str, dict[str, QueuedMessage]] = {}
        self._lock = RLock()  # guards the lines: each call is one transaction

    def add(self, session_id: str, message: QueuedMessage, *, first: bool = False) -> QueuedMessage:
        with self._lock:
            line = self._line(session_id)
            waiting = [one.number for one in line.values() if one.state == "waiting"]
            number = max([one.number for one in line.values()], default=0) + 1
            if message.key in line:
                return line[message.key]
            if first and waiting:
                number = min(waiting) - 1
                taken = {key: one for key, one in line.items() if one.state == "taken" and one.number <= number}
                line.update({key: replace(one, number=one.number - 1) for key, one in taken.items()})
            line[message.key] = replace(message, number=number, at=message.at or time.time(), state="waiting")
            return line[message.key]

    def read(self, session_id: str) -> list[QueuedMessage]:
        with self._lock:
            return sorted(filter(_is_open, self._line(session_id).values()), key=lambda one: one.number)

    def take(self, session_id: str, key: str) -> bool:
        newest = self._newest(self._line_of(session_id)[-1])
        return self._change(session_id, key, "waiting", state="taken", taken_after=newest)

    def put_back(self, session_id: str, key: str) -> bool:
        return self._change(session_id, key, "taken", state="waiting", taken_after=None)

    def edit(self, session_id: str, key: str, content: Content) -> bool:
        return self._change(session_id, key, "waiting", content=content)

    def end(self, session_id: str, keys: Collection[str], state: Literal["done", "dropped"]) -> int:
        with self._lock:
            for name, line in self._lines.items():
                kept = {key: one for key, one in line.items() if _is_open(one) or one.at >= time.time() - KEPT_S}
                self._lines[name] = kept
            line = self._line(session_id)
            ended = [key for key in dict.fromkeys(keys) if key in line and _is_open(line[key])]
            line.update({key: _ended(line[key], state) for key in ended})
            return len(ended)

    def move(self, old: str, new: str) -> None:
        with self._lock:
            first = self._lines.pop(old, {})
            second = self._lines.get(new, {})
            if not first:
                return
            for key, one in first.items():
                if one.taken_after is not None and one.taken_after >= self._newest(old):
                    first[key] = replace(one, taken_after=max(one.taken_after, self._newest(new)))
            ahead = {key for key, one in first.items() if one.state != "waiting"}
            second = {key: one for key, one in second.items() if one.state != "waiting" or key not in ahead}
            last = max(one.number for one in first.values())
            by = min((one.number for one in second.values()), default=last + 1) - last - 1
            self._lines[new] = {key: replace(one, number=one.number + by) for key, one in first.items()} | second

    def forget(self, session_id: str) -> None:
        """The session is deleted, and its line with it."""
        with self._lock:
            self._lines.pop(session_id, None)

    def settle(self, session_id: str) -> list[QueuedMessage]:
        with self._lock:
            *earlier, tip = self._line_of(session_id)
            for old in reversed(earlier):
                self.move(old, tip)
            line, newest = self._line(tip), self._newest(tip)
            for key, one in line.items():
                if one.taken_after is not None:
                    is_there = one.taken_after < newest
                    line[key] = _ended(one, "done") if is_there else replace(one, state="waiting", taken_after=None)
            return self.read(tip)

    def _line(self, session_id: str) -> dict[str, QueuedMessage]:
        return self._lines.setdefault(self._line_of(session_id)[-1], {})

    def _change(self, session_id: str, key: str, wanted: QueueState, **changes: Any) -> bool:
        with self._lock:
            line = self._line(session_id)
            if key not in line or line[key].state != wanted:
                return False
            line[key] = replace(line[key], **changes)
            return True


def _is_open(one: QueuedMessage) -> bool:
    return one.state in ("waiting", "taken")


def _ended(one: QueuedMessage, state: Literal["done", "dropped"]) -> QueuedMessage:
    return replace(one, state=state, content="", taken_after=None)
