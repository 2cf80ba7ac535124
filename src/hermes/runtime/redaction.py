"""The sinks without secrets: what is stored, sent to a model, told to a surface or put on the shelf.

Content is redacted when it enters the record, so what is sent is what is stored. A text that several sinks see is
scanned once: the redactor remembers what it found clean.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, get_origin

import msgspec

from hermes import ops, types
from hermes.redact import Redactor, StreamedText
from hermes.runtime.outcome import Outcome
from hermes.seams import Sink

log = logging.getLogger(__name__)


def clean_message(message: types.Message, redactor: Redactor) -> types.Message:
    """The message without secrets; the same object when it holds none."""
    changes: dict[str, Any] = {}
    if (thoughts := types.thoughts_of(message)) != types.NO_THOUGHTS:
        for name, value in zip(types.THOUGHTS, thoughts, strict=True):
            if value is not None and (clean := redactor.redact_all(value)) is not value:
                changes[name] = clean
    content, calls = message.content, message.tool_calls
    if content is not None and (words := clean_content(content, redactor)) is not content:
        changes["content"] = words
    if calls and (asked := tuple([clean_call(call, redactor) for call in calls])) != calls:
        changes["tool_calls"] = asked
    return msgspec.structs.replace(message, **changes) if changes else message


def clean_content(content: types.Content, redactor: Redactor) -> types.Content:
    """The words of `content` without secrets; pictures stay."""
    if isinstance(content, str):
        return redactor.redact(content)
    parts = tuple(
        types.TextPart(redactor.redact(part.text)) if isinstance(part, types.TextPart) else part for part in content
    )
    return content if parts == content else parts


def clean_call(call: types.ToolCall, redactor: Redactor) -> types.ToolCall:
    """The call with its arguments redacted."""
    arguments = redactor.redact(call.arguments)
    return call if arguments is call.arguments else msgspec.structs.replace(call, arguments=arguments)


Words = TypeVar("Words", bound=msgspec.Struct)


def clean_struct(struct: Words, redactor: Redactor) -> Words:
    """`struct` with every text in it redacted, also in fields that nobody has thought of yet; itself if it holds none.

    Ids stay, since others are found by them; so do pictures, and words that a type allows one by one.
    """
    changes = {
        name: clean
        for name in _fields_with_words(type(struct))
        if (clean := _clean_value(value := getattr(struct, name), redactor)) is not value
    }
    return msgspec.structs.replace(struct, **changes) if changes else struct


def _clean_value(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, msgspec.Struct):
        return value if isinstance(value, types.ImagePart) else clean_struct(value, redactor)
    if isinstance(value, tuple) and any(isinstance(item, msgspec.Struct) for item in value):
        items = tuple([_clean_value(item, redactor) for item in value])
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return redactor.redact_all(value)


@cache
def _fields_with_words(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(
        [
            field.name
            for field in msgspec.structs.fields(kind)
            if field.type not in (bool, int, float)
            and get_origin(field.type) is not Literal
            and field.name != "id"
            and not field.name.endswith("_id")
        ]
    )


def _clean_closed(op: ops.AttemptClosed, redactor: Redactor) -> ops.StoreOp:
    if op.record is not None:
        from hermes.models.call_record import clean_record  # for who keeps records

        op = msgspec.structs.replace(op, record=clean_record(op.record, redactor.redact))
    return op if op.error is None else msgspec.structs.replace(op, error=redactor.redact(op.error))


def _clean_approval(op: ops.ApprovalRecorded, redactor: Redactor) -> ops.StoreOp:
    return msgspec.structs.replace(op, action=redactor.redact(op.action), reason=redactor.redact(op.reason))


def _clean_session(op: ops.SessionCreated, redactor: Redactor) -> ops.SessionCreated:
    words = {"system_prompt": op.system_prompt, "title": op.title}
    return msgspec.structs.replace(op, **redactor.redact_all(words))


CLEANERS: dict[
    type, Callable[[Any, Redactor], ops.StoreOp]
] = {  # what is stored in place of an op; others hold no words
    ops.MessageAppended: lambda op, redactor: ops.MessageAppended(op.session_id, clean_message(op.message, redactor)),
    ops.CallJournalled: lambda op, redactor: msgspec.structs.replace(op, call=clean_call(op.call, redactor)),
    ops.ContextAttached: lambda op, redactor: ops.ContextAttached(op.session_id, redactor.redact(op.text)),
    ops.AttemptClosed: _clean_closed,
    ops.ApprovalRecorded: _clean_approval,
    ops.EventStored: lambda op, redactor: msgspec.structs.replace(op, body=redactor.redact_all(op.body)),
    ops.SessionChanged: lambda op, redactor: ops.SessionChanged(op.session_id, redactor.redact_all(op.changes)),
    ops.SessionCreated: _clean_session,
    ops.SessionContinued: lambda op, redactor: msgspec.structs.replace(op, child=_clean_session(op.child, redactor)),
}


def clean_outcome(outcome: Outcome, redactor: Redactor) -> None:
    """Take the secrets out of what a turn gives back: its answer, its error, what it says that was done."""
    for name in ("final_response", "last_reasoning", "error", "commands", "failed_calls", "guardrail"):
        if value := getattr(outcome, name):
            setattr(outcome, name, redactor.redact_all(value))


class CleanSink:
    """`Sink` that passes events on without secrets. Deltas come out word by word: half a secret waits for the rest."""

    def __init__(self, inner: Sink, redactor: Redactor) -> None:
        self._inner = inner
        self._redactor = redactor
        self._text, self._reasoning = StreamedText(redactor), StreamedText(redactor)

    def emit(self, event: types.Event) -> None:
        if isinstance(event, types.TextDelta):
            self._pass_on(types.ReasoningDelta(self._reasoning.rest()))
            self._pass_on(types.TextDelta(self._text.add(event.text)))
            return
        self._pass_on(types.TextDelta(self._text.rest()))
        if isinstance(event, types.ReasoningDelta):
            self._pass_on(types.ReasoningDelta(self._reasoning.add(event.text)))
            return
        self._pass_on(types.ReasoningDelta(self._reasoning.rest()))
        self._inner.emit(clean_struct(event, self._redactor))

    def _pass_on(self, delta: types.TextDelta | types.ReasoningDelta) -> None:
        if delta.text:
            self._inner.emit(delta)
