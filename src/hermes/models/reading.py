"""An answer as far as it has arrived; what all protocols have in common in putting one together."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.models.classify import provider_error
from hermes.models.sse import SseParser
from hermes.typed import json_decoder
from hermes.types import (
    CallAnnounced,
    FinishReason,
    JsonObject,
    Message,
    ModelEvent,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)

Event = TypeVar("Event")

_any_json = msgspec.json.Decoder()
_END = b"[DONE]"  # the last event of an OpenAI-style stream
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|" + _HALF.pattern + rb"|\\.")
encode = msgspec.json.Encoder().encode


class CallDraft(Struct):
    """A call that is still being written."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    provider_data: JsonObject | None = None

    def finished(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.arguments) or "{}", self.provider_data)


class Reading(ABC):
    """Takes bytes, gives deltas; at the end, the one response. One reading per request."""

    finish: FinishReason | None = None
    usage = Usage()
    is_complete = False  # the provider has said that this was all; what comes later is passed over
    _told = 0  # how many pieces of `text` are among the deltas

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self.text: list[str] = []
        self.thought: list[str] = []
        self.calls: dict[int, CallDraft] = {}
        self.deltas: list[ModelEvent] = []  # not given out yet

    @abstractmethod
    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """The deltas of one piece of a stream. A failure that the stream reports is a `ProviderError`."""

    @abstractmethod
    def take_whole(self, body: Any) -> None:
        """Report an answer that came as one JSON object."""

    @abstractmethod
    def end(self) -> list[ModelEvent]:
        """The deltas that the stream still holds when its bytes have ended."""

    def extras(self) -> JsonObject:
        """Fields of the message beside words and calls: reasoning as this protocol wants it back."""
        return {}

    # -- what protocols report ------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        if text:
            self.text.append(text)

    def think(self, text: str) -> None:
        if text:
            self.tell_words()
            self.thought.append(text)
            self.deltas.append(ReasoningDelta(text))

    def call(self, place: int, call_id: str = "", name: str = "", arguments: str = "") -> None:
        """A piece of the call at `place`."""
        draft = self.calls.get(place)
        if draft is None:
            draft = self.calls[place] = CallDraft()
        if call_id and not draft.id:
            draft.id = call_id
        if arguments:
            draft.arguments.append(arguments)
        if name and not draft.name:
            draft.name = name
            self.tell_words()
            self.deltas.append(CallAnnounced(name))

    def tell_words(self) -> None:
        """Make one delta of the words that have come since the last one."""
        words = "".join(self.text[self._told :])
        self._told = len(self.text)
        if words:
            self.deltas.append(TextDelta(words))

    def fresh(self) -> list[ModelEvent]:
        """The deltas since the last time."""
        if len(self.text) > self._told:
            self.tell_words()
        deltas, self.deltas = self.deltas, []
        return deltas

    def whole(self, body: bytes) -> list[ModelEvent]:
        """An answer that was not streamed, from its bytes."""
        decoded = self.decode(body)
        if isinstance(decoded, dict) and decoded.get("error"):
            raise provider_error(decoded, self.provider, self.model)
        if not isinstance(decoded, dict):
            raise self.broken("it is not a JSON object")
        self.take_whole(decoded)
        return self.fresh()

    def decode(self, data: bytes | msgspec.Raw) -> Any:
        return self.typed(_any_json.decode, data)

    def typed(self, decode: Callable[[bytes | msgspec.Raw], Event], data: bytes | msgspec.Raw) -> Event:
        """`data` as `decode` reads it; `ProviderError` when it cannot."""
        try:
            return decode(data)
        except msgspec.DecodeError as error:
            whole = bytes(data)
            mended = _ESCAPE.sub(_whole_character, whole)
            if mended == whole:
                raise self.broken(str(error)) from error
        return self.typed(decode, mended)

    def broken(self, why: str) -> ProviderError:
        """The error for an answer that is none."""
        return ProviderError(f"the answer of {self.model!r} is not valid: {why}", reason="server_error", retryable=True)

    # -- the result -----------------------------------------------------------------------------------------------

    @property
    def has_text(self) -> bool:
        """Whether enough has come to be worth keeping when the rest does not."""
        return not self.calls and any(text.strip() for text in self.text)

    def response(self, *, partial: bool = False) -> ModelResponse:
        """The answer. One whose end never came is partial, or an error when it has no words."""
        if not self.is_complete and not partial:
            if not self.has_text:
                raise ProviderError(
                    f"the stream of {self.model!r} ended before its answer did", reason="server_error", retryable=True
                )
            partial = True
        calls: tuple[ToolCall, ...] = ()
        if self.calls and not partial:
            drafts = sorted(self.calls.items())
            calls = tuple([draft.finished() for _, draft in drafts if draft.name or draft.arguments])
        finish = self.finish or "stop"
        if self.finish is None and not all(draft.arguments for draft in self.calls.values()):
            finish = "length"  # nobody said that the call was finished, and nothing of its arguments has come
        if calls and finish == "stop":
            finish = "tool_calls"
        message = Message(
            role="assistant",
            content="".join(self.text),
            tool_calls=calls,
            finish_reason=finish,
            reasoning="".join(self.thought) or None,
        )
        if extras := self.extras():
            message = replace(message, **extras)
        return ModelResponse(message=message, finish_reason=finish, usage=self.usage, model=self.model, partial=partial)


def joined(events: list[ModelEvent]) -> list[ModelEvent]:
    """The same with neighbouring pieces of text as one: what arrived together is shown together."""
    out: list[ModelEvent] = []
    for kind, run in groupby(events, type):
        if kind is TextDelta or kind is ReasoningDelta:
            out.append(kind("".join([one.text for one in run])))  # type: ignore[union-attr]  # both have text
        else:
            out += run
    return out


def _whole_character(escape: re.Match[bytes]) -> bytes:
    """Some servers cut text between the two halves of a character, which no decoder takes."""
    return b"\\ufffd" if _HALF.fullmatch(escape[0]) else escape[0]


class Decoding(Generic[Event]):
    """How the events of one protocol are decoded: one by one, or those that arrived together at once."""

    __slots__ = ("_all", "_one")

    def __init__(self, kind: type[Event]) -> None:
        decoder = json_decoder(kind)
        self._one = decoder.decode
        self._all = decoder.decode_lines

    def events(self, datas: list[bytes], reading: Reading) -> Iterable[Event]:
        """The events of `datas`; those before one that is not valid are given, then `ProviderError` is raised."""
        if len(datas) > 1:
            try:
                found = self._all(b"\n".join(datas))
            except msgspec.DecodeError:
                pass  # told below, of the event that it is about
            else:
                if len(found) == len(datas):
                    return found
        return (reading.typed(self._one, data) for data in datas)


class SseReading(Reading):
    """A reading of server-sent events."""

    decoding: ClassVar[Decoding[Any]]

    def __init__(self, provider: str, model: str) -> None:
        super().__init__(provider, model)
        self._parser = SseParser()

    @abstractmethod
    def take(self, events: Iterable[Any]) -> None:
        """Report what `events` say, up to the one that completes the answer."""

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """The deltas of `chunk`; words that arrive together are one delta."""
        if self.is_complete:
            return []
        datas = self._parser.datas(chunk)
        ends = _END in datas
        if ends:
            del datas[datas.index(_END) :]
        self.take(self.decoding.events(datas, self))
        if ends:
            self.is_complete = True
        return self.fresh()

    def end(self) -> list[ModelEvent]:
        """Some servers answer a streaming request with plain JSON."""
        if self.is_complete:
            return []
        rest = self._parser.rest()
        if rest.lstrip()[:1] == b"{" and not self.text and not self.calls:
            return self.whole(rest)
        if rest.lstrip()[:1] == b"<":
            raise ProviderError(
                f"{self.provider!r} answered with a web page, not with a model's answer. Check base_url: hermes model",
                reason="format_error",
            )
        return []
