"""Stored messages to request units: one pure, total function, valid for every provider whatever was interrupted.

The output alternates strictly between the user's side (a user message, or all results of one assistant message) and
the assistant's. Every text is non-blank and encodable, every call has a unique id, a legal name, arguments that are a
JSON object, and exactly one result. Cutting the log anywhere gives a prefix of what the whole log gives, up to the
unit at the cut; so what was sent once is never sent differently.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hermes import types
from hermes.seams import Unit, UnitLog

OUTCOME_UNKNOWN = (
    "Outcome unknown: this call was started, and the runtime stopped before its result was recorded. "
    "It may or may not have taken effect. Check before you repeat it."
)
NOT_RUN = (
    "Not run: the runtime stopped before this call was started. It had no effect. Call it again if it is still wanted."
)
EMPTY = "(empty)"
NO_ANSWER = "(no answer was given)"
CONTINUES = "(the conversation continues)"

_ILLEGAL_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ILLEGAL_ID = re.compile(r"[^A-Za-z0-9_.:-]")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_UNPARSED_LIMIT = 2000
_any_json = msgspec.json.Decoder()


def build_units(messages: Sequence[types.Message], contexts: Mapping[int, str] | None = None) -> UnitLog:
    """The units of a history, in order. Nothing in `messages` makes this raise."""
    builder = UnitBuilder()
    for message in messages:
        builder.add(message, (contexts or {}).get(message.id or -1, ""))
    return builder.finish()


def sendable(units: Sequence[Unit]) -> Sequence[Unit]:
    """`units` with the user's side last, as every provider wants a request to end."""
    if units and units[-1].messages[0].role != "assistant":
        return units
    return (*units, Unit([types.Message(role="user", content=CONTINUES)]))


class UnitBuilder:
    """Builds units as messages arrive. Results are held until the message after them shows that all are there."""

    def __init__(self) -> None:
        self._units: list[Unit] = []
        self._memo: dict[str, tuple[int, Any]] = {}  # of the logs that are handed out
        self._ids: set[str] = set()
        self._next: dict[str, int] = {}  # for an id that is taken, the number to try behind it
        self._asked: list[tuple[str, types.ToolCall]] = []  # the stored id of each open call, and the call as sent
        self._open: set[str] = set()  # those ids
        self._results: dict[str, types.Message] = {}
        self._strays: list[types.Message] = []
        self._context = ""  # of the results held back

    def add(self, message: types.Message, context: str = "") -> None:
        if message.role == "tool":
            self._take_result(message, context)
            return
        self._settle()
        if message.role == "assistant":
            self._put(_sendable_assistant(message, self._name_calls(message) if message.tool_calls else ()))
        else:
            self._put(types.Message(role="user", content=_filled(message.content), id=message.id), _clean(context))

    def attach(self, text: str) -> None:
        """Add `text` to the context of the newest unit: the same as if that context had been stored with it."""
        self._settle()
        if self._units:
            last = self._units[-1]
            self._units[-1] = Unit(last.messages, _joined(last.context, _clean(text)))

    def mend(self, change: Callable[[Unit], Unit]) -> None:
        """Replace units that a provider refused; one that `change` gives back as it is stays as it is."""
        self._settle()
        self._units, self._memo = [change(unit) for unit in self._units], {}

    def knows(self, call_id: str) -> bool:
        """Whether a call of this history has that id."""
        return call_id in self._ids

    def finish(self) -> UnitLog:
        """The units so far; calls still open are answered with "outcome unknown"."""
        self._settle()
        return UnitLog(self._units, self._memo)

    def _take_result(self, message: types.Message, context: str) -> None:
        if context:
            self._context = _joined(self._context, _clean(context))
        asked = message.tool_call_id or ""
        if asked in self._open and asked not in self._results:
            self._results[asked] = message
        elif asked not in self._results:
            self._strays.append(message)

    def _settle(self) -> None:
        if not (self._asked or self._strays or self._context):
            return
        if self._asked:
            answers = [_answer(call, self._results.get(stored)) for stored, call in self._asked]
            self._units.append(Unit(answers, self._context))
        strays = [f"(late result of {m.tool_name or 'a tool'}) {types.text_of(m.content)}" for m in self._strays]
        self._asked, self._open, self._results, self._strays, self._context = [], set(), {}, [], ""
        for note in strays:
            self._put(types.Message(role="user", content=_clean(note)))

    def _put(self, message: types.Message, context: str = "") -> None:
        last_is_assistant = bool(self._units) and self._units[-1].messages[0].role == "assistant"
        if message.role == "assistant" and (last_is_assistant or not self._units):
            self._units.append(Unit([types.Message(role="user", content=CONTINUES)]))
        elif message.role == "user" and self._units and not last_is_assistant:
            self._units.append(Unit([types.Message(role="assistant", content=NO_ANSWER)]))
        self._units.append(Unit([message], context))

    def _name_calls(self, message: types.Message) -> tuple[types.ToolCall, ...]:
        """The message's calls as they can be sent, each under an id no call had before."""
        sent = []
        seen: set[str] = set()
        for number, call in enumerate(message.tool_calls):
            if call.id and call.id in seen:
                continue  # the same call twice in one message is one call
            seen.add(call.id)
            wanted = _ILLEGAL_ID.sub("_", call.id)[:60] or f"call_{len(self._units)}_{number}"
            unique, n = wanted, self._next.get(wanted, 2)
            while unique in self._ids:
                unique, n = f"{wanted}_{n}", n + 1
            self._next[wanted] = n
            self._ids.add(unique)
            legal = msgspec.structs.replace(
                call,
                id=unique,
                name=_ILLEGAL_NAME.sub("_", call.name)[:64] or "unknown",
                arguments=_object_text(call.arguments),
            )
            self._asked.append((call.id, legal))
            self._open.add(call.id)
            sent.append(legal)
        return tuple(sent)


def _sendable_assistant(message: types.Message, calls: tuple[types.ToolCall, ...]) -> types.Message:
    blank = not types.text_of(message.content).strip()
    content = None if blank and calls else _filled(message.content)
    if types.thoughts_of(message) == types.NO_THOUGHTS:
        return msgspec.structs.replace(message, content=content, tool_calls=calls)
    return msgspec.structs.replace(
        message,
        content=content,
        tool_calls=calls,
        reasoning=_clean(message.reasoning) if message.reasoning else None,
        reasoning_content=_clean(message.reasoning_content) if message.reasoning_content else None,
        reasoning_details=_clean_json(message.reasoning_details),
        codex_reasoning_items=_clean_json(message.codex_reasoning_items),
        codex_message_items=_clean_json(message.codex_message_items),
    )


def _answer(call: types.ToolCall, result: types.Message | None) -> types.Message:
    if result is None:
        return types.Message(
            role="tool", content=OUTCOME_UNKNOWN, tool_call_id=call.id, tool_name=call.name, status="unknown"
        )
    return types.Message(
        role="tool",
        content=_filled(result.content),
        tool_call_id=call.id,
        tool_name=call.name,
        status=result.status,
        id=result.id,
    )


def _filled(content: types.Content | None) -> types.Content:
    """Content that is never blank: providers refuse empty text."""
    if isinstance(content, str):
        return _clean(content) if content.strip() else EMPTY
    parts = [
        types.TextPart(_clean(part.text)) if isinstance(part, types.TextPart) else part
        for part in content or ()
        if not (isinstance(part, types.TextPart) and not part.text.strip())
    ]
    return tuple([_sendable_part(part) for part in parts]) or EMPTY


def _sendable_part(part: types.Part) -> types.Part:
    if isinstance(part, types.ImagePart):
        return part if part.url.isascii() else msgspec.structs.replace(part, url=_clean(part.url))
    return types.OpaquePart(_clean_json(part.raw)) if isinstance(part, types.OpaquePart) else part


def _joined(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second


def _clean(text: str) -> str:
    """Text every provider takes: lone surrogates cannot be encoded, and NUL is refused by some."""
    return _UNSENDABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _clean_json(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_json(item) for item in value]
    return value


def _object_text(arguments: str) -> str:
    """`arguments` when it is a JSON object; else an object that keeps the start of what the model wrote."""
    try:
        if isinstance(_any_json.decode(arguments.encode()), dict):
            return arguments
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    if not arguments.strip():
        return "{}"
    return msgspec.json.encode({"_unparsed": _clean(arguments[:_UNPARSED_LIMIT])}).decode()
