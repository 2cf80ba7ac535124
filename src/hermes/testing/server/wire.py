"""What each wire protocol tells the scripted server: is this request right, and how does an answer look."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hermes.testing.replies import Reply, ScriptedCall
from hermes.types import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class Frames:
    """A streamed answer, ready to send: what carries words, and what ends it (finish, usage, terminator)."""

    content: list[bytes]
    ending: list[bytes]


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error in the provider's own shape."""

    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAnswer:
    """One reply with everything that makes it concrete: the model's name, ids, and the tokens it reports."""

    reply: Reply
    number: int
    model: str
    usage: Usage | None  # None: nothing is said about tokens
    raw_usage: JsonObject | None = None  # sent in place of `usage`, whatever it holds

    @property
    def calls(self) -> list[ScriptedCall]:
        """The calls, each with an id."""
        return [
            call if call.id else ScriptedCall(call.name, call.arguments, f"call_{self.number}_{index}")
            for index, call in enumerate(self.reply.calls)
        ]

    def pieces(self, text: str) -> Iterator[str]:
        """`text` in pieces of the reply's chunk size."""
        size = max(1, self.reply.pace.chunk_size)
        return (text[start : start + size] for start in range(0, len(text), size))


class ServerWire(Protocol):
    """One provider's protocol, seen from the server."""

    @property
    def content_type(self) -> str:
        """Of a streamed answer."""

    def mistake(self, body: JsonObject) -> str | None:
        """Why the real provider would refuse this request, or None."""

    def whole(self, answer: WireAnswer) -> JsonObject:
        """The answer to a request that does not stream."""

    def frames(self, answer: WireAnswer) -> Frames:
        """The answer to a request that streams."""

    def error(self, status: int, kind: str, message: str) -> ErrorAnswer:
        """An error; `kind` is the provider-neutral name of a fault."""


def sse(payload: JsonObject, event: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + msgspec.json.encode(payload) + b"\n\n"


def openai_error(status: int, kind: str, message: str) -> ErrorAnswer:
    """The error shape that chat completions and Responses share."""
    types = {401: "authentication_error", 404: "invalid_request_error", 429: "rate_limit_error"}
    error = {
        "message": message,
        "type": types.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": None,
        "code": {"context_overflow": "context_length_exceeded", "unauthorized": "invalid_api_key"}.get(kind, kind),
    }
    return ErrorAnswer(msgspec.json.encode({"error": error}), {})


def unanswered(calls: list[str], results: list[str]) -> str | None:
    """The first thing wrong between the ids of some calls and of the results that follow them."""
    known, times = set(calls), Counter(results)
    for found in results:
        if found not in known:
            return f"result {found!r} has no call before it"
    for wanted in calls:
        if times[wanted] != 1:
            return f"call {wanted!r} has {times[wanted]} results; it must have one"
    return None
