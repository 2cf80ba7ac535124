"""An answer as far as it has arrived; what all protocols have in common in putting one together."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hermes import types
from hermes.config.sections.agent import AnswerLimits
from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.wires.answer_values import UNREADABLE, any_json, is_deep, read_json
from hermes.models.wires.classify import provider_error
from hermes.models.wires.sse import SseParser
from hermes.typed import json_decoder

Event = TypeVar("Event")

_END = b"[DONE]"  # the last event of an OpenAI-style stream


class CallDraft(Struct):
    """A call that is still being written."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    size: int = 0  # characters of the arguments
    provider_data: types.JsonObject | None = None

    def finished(self) -> types.ToolCall:
        return types.ToolCall(self.id, self.name, "".join(self.arguments) or "{}", self.provider_data)


class AnswerReader(ABC):
    """Takes bytes, gives deltas; at the end, the one response. One reading per request.

    Whatever the bytes are, all that it raises is `ProviderError` and `HttpBodyError`; what came before stays readable.
    """

    finish: types.FinishReason | None = None
    usage = types.Usage()
    tokens: types.JsonObject | None = None
    is_complete = False  # the provider has said that this was all; what comes later is passed over
    _shows_words = True
    _is_overrun = False  # cut off by us, at one of the limits
    _told = 0  # how many pieces of `text` are among the deltas
    _said_chars = 0
    _thought_chars = 0
    _call_chars = 0  # in the arguments of calls
    _kept_chars = 0  # beside words and calls
    _held_bytes = 0

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self.asked = endpoint.model
        self.model = endpoint.model  # as the provider calls the one that answers
        self.limits: AnswerLimits = endpoint.answer
        self.text: list[str] = []
        self.thought: list[str] = []
        self.calls: dict[int, CallDraft] = {}
        self.deltas: list[types.ModelEvent] = []  # not given out yet
        self._held: list[bytes] = []  # of an answer that is not streamed

    @abstractmethod
    def feed(self, chunk: bytes) -> list[types.ModelEvent]:
        """The deltas of one piece of a stream. A failure that the stream reports is a `ProviderError`."""

    @abstractmethod
    def take_whole(self, body: Any) -> None:
        """Report an answer that came as one JSON object."""

    @abstractmethod
    def end(self) -> list[types.ModelEvent]:
        """The deltas that the stream still holds when its bytes have ended."""

    def extras(self) -> types.JsonObject:
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
            self.deltas.append(types.ReasoningDelta(text))
            self._thought_chars += len(text)
            if self._thought_chars > self.limits.max_thinking_chars:
                raise self.endless("characters of reasoning", "max_thinking_chars")

    def call(self, place: int, call_id: str = "", name: str = "", arguments: str = "") -> None:
        """A piece of the call at `place`."""
        limits, draft = self.limits, self.calls.get(place)
        if draft is None:
            if len(self.calls) >= limits.max_calls:
                raise self.endless("tool calls", "max_calls")
            draft = self.calls[place] = CallDraft()
        if call_id and not draft.id and len(call_id) <= limits.max_name_chars:
            draft.id = call_id  # a call without one is given one before it runs
        if arguments:
            draft.arguments.append(arguments)
            draft.size += len(arguments)
            self._call_chars += len(arguments)
            if draft.size > limits.max_arguments_chars:
                raise self.endless("characters of arguments for one call", "max_arguments_chars")
            if self._call_chars > limits.max_chars:
                raise self.endless("characters of arguments", "max_chars")
        if name and not draft.name:
            if len(name) > limits.max_name_chars:
                raise self.endless("characters of a tool's name", "max_name_chars")
            draft.name = name
            self.tell_words()
            self.deltas.append(types.CallAnnounced(name))

    def tell_words(self) -> None:
        """Make one delta of the words that have come since the last one."""
        words = "".join(self.text[self._told :])
        self.text[self._told :] = [words]  # many small pieces take many times the memory
        self._told = len(self.text)
        if words:
            if self._shows_words:
                self.deltas.append(types.TextDelta(words))
            self._said_chars += len(words)
            if self._said_chars > self.limits.max_chars:
                raise self.endless("characters of text", "max_chars")

    def keep(self, size: int) -> None:
        """Count `size` characters that are kept beside words and calls, for the next request."""
        self._kept_chars += size
        if self._kept_chars > self.limits.max_event_bytes:
            raise self.endless("bytes beside its words", "max_event_bytes")

    def served_by(self, name: str) -> None:
        """The provider's own name for the model that answers."""
        if name:
            self.model = name[: self.limits.max_name_chars]

    @property
    def size(self) -> int:
        """How much has come of all that makes an answer; signs of life do not count."""
        return (
            self._said_chars
            + self._thought_chars
            + self._call_chars
            + self._kept_chars
            + self._held_bytes
            + len(self.calls)
        )

    def fresh(self) -> list[types.ModelEvent]:
        """The deltas since the last time."""
        if len(self.text) > self._told:
            self.tell_words()
        deltas, self.deltas = self.deltas, []
        return deltas

    def hold(self, chunk: bytes) -> list[types.ModelEvent]:
        """`feed` for an answer that is not streamed: it says nothing before its end."""
        self._held.append(chunk)
        self._held_bytes += len(chunk)
        if self._held_bytes > self.limits.max_event_bytes:
            raise self.endless("bytes in one piece", "max_event_bytes")
        return []

    def end_held(self) -> list[types.ModelEvent]:
        """`end` for an answer that is not streamed."""
        return self.whole(b"".join(self._held))

    def whole(self, body: bytes) -> list[types.ModelEvent]:
        """The deltas of an answer that came as one JSON object."""
        decoded = self.decode(body)
        if isinstance(decoded, dict) and decoded.get("error"):
            raise provider_error(decoded, self.provider, self.asked)
        if not isinstance(decoded, dict):
            raise self.broken("it is not a JSON object")
        self.take_whole(decoded)
        return self.fresh()

    def decode(self, data: bytes | msgspec.Raw) -> Any:
        try:
            return any_json(data)
        except msgspec.DecodeError as error:
            raise self.broken(str(error)) from error

    def typed(self, decode: Callable[[bytes | msgspec.Raw], Event], data: bytes | msgspec.Raw) -> Event:
        """`data` as `decode` reads it; `ProviderError` when it cannot."""
        try:
            return read_json(decode, data)
        except msgspec.DecodeError as error:
            raise self.broken(str(error)) from error

    def broken(self, why: str) -> ProviderError:
        """The error for an answer that is none."""
        return ProviderError(f"the answer of {self.asked!r} is not valid: {why}", reason="server_error", retryable=True)

    def endless(self, what: str, setting: str) -> ProviderError:
        """The error for an answer that is cut off because it does not come to an end by itself."""
        self._is_overrun = True
        most = getattr(self.limits, setting)
        return ProviderError(
            f"{self.asked!r} sent more than {most:,} {what}, the most that agent.answer.{setting} allows",
            reason="server_error",
            retryable=True,
        )

    # -- the result -----------------------------------------------------------------------------------------------

    @property
    def has_text(self) -> bool:
        """Whether enough has come to be worth keeping when the rest does not."""
        return not self.calls and any(text.strip() for text in self.text)

    @property
    def has_ended(self) -> bool:
        """Whether the provider has said that, or why, the model stopped: nothing of the answer can follow."""
        return (self.is_complete or self.finish is not None) and not self._is_overrun

    @property
    def is_worth_keeping(self) -> bool:
        """Whether there is an answer, whole or not, when nothing more comes."""
        return self.has_text or (self.has_ended and bool(self.calls))

    def response(self, *, broken_by: str = "") -> types.ModelResponse:
        """The answer. One whose end never came is partial, or an error when it has no words.

        `broken_by` says why nothing more has come, where that is known.
        """
        partial = not self.has_ended if broken_by else not self.is_complete
        if partial:
            broken_by = broken_by or f"the stream of {self.asked!r} ended before its answer did"
            if not self.has_text:
                raise ProviderError(broken_by, reason="server_error", retryable=True)
        calls: tuple[types.ToolCall, ...] = ()
        if self.calls and not partial:
            drafts = sorted(self.calls.items())
            calls = tuple([draft.finished() for _, draft in drafts if draft.name or draft.arguments])
        finish = self.finish or "stop"
        if self.finish is None and not all(draft.arguments for draft in self.calls.values()):
            finish = "length"  # nobody said that the call was finished, and nothing of its arguments has come
        if calls and finish == "stop":
            finish = "tool_calls"
        message = types.Message(
            role="assistant",
            content="".join(self.text),
            tool_calls=calls,
            finish_reason=finish,
            reasoning="".join(self.thought) or None,
        )
        if extras := {name: value for name, value in self.extras().items() if not is_deep(value)}:
            message = replace(message, **extras)
        return types.ModelResponse(
            message=message,
            finish_reason=finish,
            usage=self.usage,
            model=self.model,
            partial=partial,
            broken_by=broken_by if partial else "",
            tokens=self.tokens,
        )


def joined(events: list[types.ModelEvent]) -> list[types.ModelEvent]:
    """The same with neighbouring pieces of text as one: what arrived together is shown together."""
    out: list[types.ModelEvent] = []
    for kind, run in groupby(events, type):
        if kind is types.TextDelta or kind is types.ReasoningDelta:
            out.append(kind("".join([one.text for one in run])))  # type: ignore[union-attr]  # both have text
        else:
            out += run
    return out


class Decoding(Generic[Event]):
    """How the events of one protocol are decoded: one by one, or those that arrived together at once."""

    __slots__ = ("_all", "_one")

    def __init__(self, kind: type[Event]) -> None:
        decoder = json_decoder(kind)
        self._one = decoder.decode
        self._all = decoder.decode_lines

    def events(self, datas: list[bytes], reading: AnswerReader) -> Iterable[Event]:
        """The events of `datas`; those before one that is not valid are given, then `ProviderError` is raised."""
        if len(datas) > 1:
            try:
                found = self._all(b"\n".join(datas))
            except UNREADABLE:
                pass  # told below, of the event that it is about
            else:
                if len(found) == len(datas):
                    return found
        return (reading.typed(self._one, data) for data in datas)


class SseReading(AnswerReader):
    """A reading of server-sent events."""

    decoding: ClassVar[Decoding[Any]]

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._parser = SseParser(self.limits.max_event_bytes)

    @abstractmethod
    def take(self, events: Iterable[Any]) -> None:
        """Report what `events` say, up to the one that completes the answer."""

    def feed(self, chunk: bytes) -> list[types.ModelEvent]:
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

    def end(self) -> list[types.ModelEvent]:
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
