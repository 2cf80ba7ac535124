"""Fakes of the smaller seams: sink, clock, ids, gate, hooks, tool view and context engine."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hermes.errors import ToolError
from hermes.models.http.errors import HttpError, HttpStatusError
from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, Action, Body, Decision, Effects, HttpLimits, ToolContext, ToolRules, whole
from hermes.types import Content, Event, JsonObject, ToolDefinition


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

    async def gather(self, hook: str, payload: JsonObject) -> list[Any]:
        return []


class FakeTool(Struct, frozen=True):
    """One tool of a `FakeTools`: its answer to a call, and the arguments without which it is not called."""

    name: str
    answer: Callable[[JsonObject, ToolContext], Awaitable[Content]]
    required: tuple[str, ...] = ()
    rules: ToolRules = ToolRules()
    effects: Effects = Effects()


class FakeTools:
    """`ToolView` of these tools, in this order. `called` lists the calls that were made."""

    def __init__(self, *tools: FakeTool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.called: list[tuple[str, JsonObject]] = []

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(ToolDefinition(tool.name, f"Fake {tool.name}.", _schema(tool)) for tool in self._tools.values())

    def names(self) -> frozenset[str]:
        return frozenset(self._tools)

    def guidance(self) -> tuple[str, ...]:
        return ()

    def barred(self) -> frozenset[str]:
        return frozenset()

    def unwrap(self, name: str, args: JsonObject) -> tuple[str, JsonObject]:
        return name, args

    def check(self, name: str, args: JsonObject) -> JsonObject:
        missing = [argument for argument in self._tool(name).required if argument not in args]
        if missing:
            raise ToolError(f"{name} needs {', '.join(missing)}")
        return args

    def effects(self, name: str, args: JsonObject, ctx: ToolContext) -> Effects:
        return self._tools[name].effects if name in self._tools else Effects(barrier=True)

    def rules(self, name: str) -> ToolRules:
        return self._tools[name].rules if name in self._tools else ToolRules()

    async def call(self, name: str, args: JsonObject, ctx: ToolContext) -> Content:
        tool = self._tool(name)
        self.called.append((name, args))
        return await tool.answer(args, ctx)

    def _tool(self, name: str) -> FakeTool:
        if name not in self._tools:
            raise ToolError(f"Unknown tool: {name}")
        return self._tools[name]


def _schema(tool: FakeTool) -> JsonObject:
    return {"type": "object", "properties": {name: {} for name in tool.required}, "required": [*tool.required]}


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


class CannedHttp:
    """`HttpStream` that answers each request with the next entry: chunks of a body, or a status outside 2xx.

    An error in the place of an answer or among its chunks is raised there. A `None` among the chunks stalls until the
    request is left; `sent` holds the bodies that were posted.
    """

    def __init__(self, *answers: Sequence[bytes | HttpError | None] | HttpError | int) -> None:
        self._answers = list(answers)
        self.sent: list[bytes] = []
        self.closed_early = 0

    async def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncGenerator[bytes, None]:
        self.sent.append(whole(body))
        answer = self._answers.pop(0)
        if isinstance(answer, int):
            raise HttpStatusError(url, answer, {}, b"")
        if isinstance(answer, HttpError):
            raise answer
        is_whole = False
        try:
            for chunk in answer:
                if chunk is None:
                    await asyncio.Event().wait()
                elif isinstance(chunk, HttpError):
                    raise chunk
                else:
                    yield chunk
            is_whole = True
        finally:
            self.closed_early += not is_whole

    async def close(self) -> None:
        self._answers.clear()
