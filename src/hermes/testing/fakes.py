"""Fakes of the smaller seams: sink, clock, ids, gate, hooks and context engine."""

import itertools
from collections.abc import Mapping
from typing import Any

from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.types import Event, JsonObject


class MemorySink:
    """`Sink` that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class HandClock:
    """`Clock` that stands still until it is moved."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.at = now

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


class CountedIds:
    """`Ids` that are the same in every run."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def session(self) -> str:
        return f"20260101_000000_{next(self._numbers):06x}"

    def new(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers)}"


class FixedGate:
    """`Gate` that always says the same, and remembers what it was asked."""

    def __init__(self, *, allowed: bool = True, reason: str = "") -> None:
        self._decision = Decision(allowed=allowed, reason=reason, rule="test", decided_by="test")
        self.asked: list[Action] = []

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        self.asked.append(action)
        return self._decision


class OpenHooks:
    """`HookBus` without hooks; it remembers what was observed."""

    def __init__(self) -> None:
        self.observed: list[tuple[str, JsonObject]] = []

    async def allow(self, hook: str, payload: JsonObject) -> str | None:
        return None

    async def observe(self, hook: str, payload: JsonObject) -> None:
        self.observed.append((hook, payload))

    async def transform(self, hook: str, value: str, payload: JsonObject) -> str:
        return value


class KeepLast:
    """`ContextEngine` that keeps the newest messages and says how many it left out."""

    name = "keep_last"

    def __init__(self, keep: int = 4, share: float = 0.5) -> None:
        self._keep = keep
        self._share = share
        self.context_length = 0
        self.compression_count = 0
        self.last_error = ""
        self.sessions: list[str] = []  # those that ended and began

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None:
        self.context_length = context_length

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Counts are no matter here."""

    def has_content_to_compress(self, messages: list[JsonObject]) -> bool:
        return len(messages) > self._keep

    def on_session_start(self, session_id: str, **_: Any) -> None:
        self.sessions.append(session_id)

    def on_session_end(self, session_id: str, messages: list[JsonObject]) -> None:
        self.sessions.append(f"{session_id} ends")

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (prompt_tokens or 0) > self.context_length * self._share

    def compress(
        self, messages: list[JsonObject], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[JsonObject]:
        first = max(0, len(messages) - self._keep)
        while first and messages[first]["role"] == "tool":  # its call comes along
            first -= 1
        if not first:
            return messages
        self.compression_count += 1
        return [{"role": "user", "content": f"[{first} messages left out]"}, *messages[first:]]
