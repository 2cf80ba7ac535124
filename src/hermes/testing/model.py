"""`ScriptedModel`: a model that says what it was told to, in the same process, and fails loudly when asked for more."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from msgspec.structs import replace

from hermes import types
from hermes.errors import ProviderError
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.replies import Reply

Line: TypeAlias = Reply | ProviderError | Callable[[ModelRequest], Reply]


class ScriptedModel:
    """`Model` that plays a script, one line per call.

    A line is a reply, an error to raise, or a function of the request. `requests` holds the messages of each call as
    the model saw them. A stall (`fault("stall")`) waits until the call is cancelled; `stalled` is set meanwhile.
    """

    name = "scripted"
    provider = "testing"
    base_url = ""

    def __init__(self, *script: Line) -> None:
        self._script = list(script)
        self._calls = 0
        self.requests: list[tuple[types.Message, ...]] = []
        self.full_requests: list[ModelRequest] = []
        self.stalled = asyncio.Event()

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[types.ModelEvent]:
        self.full_requests.append(replace(request, units=tuple(request.units)))  # as it is now
        self.requests.append(tuple(message for unit in request.units for message in unit.messages))
        if self._calls >= len(self._script):
            raise AssertionError(f"the script has {len(self._script)} lines and the model was asked once more")
        line = self._script[self._calls]
        self._calls += 1
        if isinstance(line, ProviderError):
            raise line
        reply = line if isinstance(line, Reply) else line(request)
        if reply.pace.latency_s:
            await asyncio.sleep(reply.pace.latency_s)
        for event in self._deltas(reply):
            yield event
        if reply.fault is not None:
            await self._fail(reply)
        yield self._response(reply)

    def assert_finished(self) -> None:
        """Every line was played."""
        assert self._calls == len(self._script), (
            f"{len(self._script) - self._calls} lines of the script were not asked for"
        )

    def _deltas(self, reply: Reply) -> list[types.ModelEvent]:
        size = max(1, reply.pace.chunk_size)
        events: list[types.ModelEvent] = [types.ReasoningDelta(reply.thinking)] if reply.thinking else []
        events += [types.TextDelta(reply.text[at : at + size]) for at in range(0, len(reply.text), size)]
        return events + [types.CallAnnounced(call.name) for call in reply.calls]

    def _response(self, reply: Reply) -> types.ModelResponse:
        calls = tuple(
            types.ToolCall(call.id or f"call_{self._calls}_{place}", call.name, call.arguments)
            for place, call in enumerate(reply.calls)
        )
        message = types.Message(
            role="assistant",
            content=reply.text,
            tool_calls=calls,
            reasoning=reply.thinking or None,
            finish_reason=reply.finish_reason,
        )
        usage = reply.usage or types.Usage(input_tokens=10, output_tokens=5)
        return types.ModelResponse(
            message=message,
            finish_reason=reply.finish_reason,
            usage=usage if reply.reports_usage else types.Usage(),
            model=self.name,
        )

    async def _fail(self, reply: Reply) -> None:
        assert reply.fault is not None
        if reply.fault.name != "stall":
            raise ProviderError(f"scripted fault {reply.fault.name!r}", reason="server_error", retryable=True)
        self.stalled.set()
        await asyncio.Event().wait()
