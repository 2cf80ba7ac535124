"""Between a transport and the SDK: one tool that is described wrongly must not cost a server all of them.

The SDK refuses a whole page of tools for one that does not fit its types. Here each is brought into shape or left out.
It passes over an answer that it cannot read, whose call would wait; here that becomes an error of the call.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hermes.tools.mcp.unread_answer import refusal, unreadable
from hermes.types import JsonObject

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream
    from mcp.shared.message import SessionMessage

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
MAX_LISTED = 20_000


class SoundStream:
    """The messages of `inner`, with the tools of listings in shape; what is left out is told in `left_out`."""

    def __init__(self, inner: "ReadStream[SessionMessage | Exception]", left_out: dict[str, str]) -> None:
        self._inner = inner
        self._left_out = left_out

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> "SessionMessage | Exception":
        return self._sound(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        return self._sound(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    def _sound(self, item: "SessionMessage | Exception") -> "SessionMessage | Exception":
        if isinstance(item, ValueError):
            return _refused(item) or item
        message = getattr(item, "message", None)
        if (error := getattr(message, "error", None)) is not None and "validation error" in error.message:
            error.message = unreadable(error.message)  # in place of all that the parser has to say
        result = getattr(message, "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            kept = [made for one in result["tools"][:MAX_LISTED] if (made := self._tool(one)) is not None]
            result["tools"] = kept
        return item

    def _tool(self, one: Any) -> JsonObject | None:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            self._left_out[repr(one)[:40]] = "it has no name"
            return None
        schema = one.get("inputSchema", {})
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            self._left_out[one["name"]] = "its schema is that of no object"
            return None
        schema = {**schema, "type": "object"}
        if not isinstance(schema.get("properties", {}), dict):
            schema["properties"] = {}
        if not isinstance(schema.get("required", []), list):
            del schema["required"]
        made: JsonObject = {"name": one["name"], "inputSchema": schema, "description": _text(one.get("description"))}
        if isinstance(one.get("title"), str):
            made["title"] = one["title"]
        output = one.get("outputSchema")
        if isinstance(output, dict) and output.get("type") == "object":
            made["outputSchema"] = output
        hints = one.get("annotations")
        if isinstance(hints, dict):
            made["annotations"] = {name: hints[name] for name in _HINTS if isinstance(hints.get(name), bool)}
        return made


def _refused(fault: ValueError) -> "SessionMessage | None":
    """What stands for the answer that could not be read; None where it cannot be told what was answered."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not isinstance(fault, ValidationError) or not isinstance(data := fault.errors()[0]["input"], str | bytes):
        return None
    line = data.encode("utf-8", "replace") if isinstance(data, str) else data
    refused = refusal(line, line, unreadable(str(fault)))
    return None if refused is None else SessionMessage(jsonrpc_message_adapter.validate_json(refused))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
