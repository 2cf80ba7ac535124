"""Events of a session as clients are shown them: the one place that knows both vocabularies.

A client that resumes or creates a session gets the display events of the protocol (`shown`); one that attaches gets
the host's own events, whole (`told`). Both carry the number of the stored event, so that whoever comes back can name
the last one it has seen.
"""

from typing import TypeAlias, assert_never

from msgspec import to_builtins

from hermes.host.events import (
    LiveEvent,
    MessageReturned,
    MessageTaken,
    ModeChanged,
    Notice,
    NumberedEvent,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    WorkChanged,
)
from hermes.host.turn_verdict import TurnVerdict
from hermes.host.wire.frames import WireEvent
from hermes.types import (
    CallAnnounced,
    CallFinished,
    CallStarted,
    Commentary,
    Event,
    JsonObject,
    MinorEvent,
    Question,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TextDelta,
    TurnFinished,
    TurnStarted,
    text_of,
)

TELLING = ("command", "path", "pattern", "query", "url", "name")  # the argument that says most about a call
MOST_CONTEXT = 120
HOST_EVENT = "host.event"
SESSION_STATE = "session.state"
Shown: TypeAlias = tuple[str, JsonObject | None]


def told(item: NumberedEvent, live_id: str) -> WireEvent:
    """An event as the host has it."""
    payload = {"event": to_builtins(item.event), "is_stored": item.is_stored}
    return WireEvent(HOST_EVENT, live_id, payload, item.number)


def shown(item: NumberedEvent, live_id: str) -> WireEvent | None:
    """An event in the words of the protocol; None for what it has no word for."""
    found = _shown(item.event)
    if found is None:
        return None
    kind, payload = found
    return WireEvent(kind, live_id, payload, item.number if item.is_stored else 0)


def _shown(event: LiveEvent) -> Shown | None:
    """What the host tells around turns; what a turn tells is `_of_turn`."""
    match event:
        case MessageTaken():
            return "message.taken", {"key": event.key, "text": event.text, "who": event.who}
        case MessageReturned():
            return "error", {"message": event.why, "key": event.key}
        case Notice():
            if event.level == "error":
                return "error", {"message": event.text}
            return "status.update", {"kind": event.level, "text": event.text}
        case QuestionAsked():
            return asked(event.question)
        case QuestionAnswered():
            answered = {"request_id": event.question_id, "answer": event.answer, "by": event.by}
            return "question.answered", answered
        case TurnEnded():
            return "message.complete", _ended(event)
        case ModeChanged():
            return "session.mode", {"mode": event.mode}
        case WorkChanged():
            return None  # session.info follows it
        case _:
            return _of_turn(event)


def _of_turn(event: Event) -> Shown | None:
    match event:
        case TurnStarted():
            return "message.start", None
        case TextDelta():
            return "message.delta", {"text": event.text}
        case ReasoningDelta():
            return "reasoning.delta", {"text": event.text}
        case CallAnnounced():
            return "tool.generating", {"name": event.name}
        case CallStarted():
            name = event.call.name
            return "tool.start", {"tool_id": event.call.id, "name": name, "context": call_context(name, event.args)}
        case CallFinished():
            return "tool.complete", _completed(event)
        case Commentary():
            return "message.interim", {"text": event.text, "already_streamed": event.already_streamed}
        case StatusChanged():
            return "status.update", {"kind": event.kind, "text": event.message}
        case SessionRotated():
            return "session.moved", {"session_key": event.session_id, "previous": event.previous}
        case TurnFinished() | MinorEvent():
            return None  # what they tell is in message.start, message.complete and session.info
        case _:
            assert_never(event)


def asked(question: Question) -> tuple[str, JsonObject]:
    """A question as its request. Every one has an id, and a deadline in seconds of the clock."""
    known: JsonObject = {"request_id": question.id, "deadline": question.deadline}
    match question.kind:
        case "approval" | "edit":
            facts = ("command", "pattern_key", "pattern_keys", "effects", "tool", "cwd", "asked_by")
            told = {name: question.details[name] for name in facts if name in question.details}
            choices = list(question.choices)
            return "approval.request", {
                **told,
                "id": question.id,
                **known,
                "kind": question.kind,
                "description": question.text,
                "allow_permanent": "always" in choices,
                "choices": choices,
            }
        case "clarify":
            return "clarify.request", {**known, "question": question.text, "choices": list(question.choices) or None}
        case "sudo":
            return "sudo.request", {**known, "prompt": question.text}
        case "secret":
            return "secret.request", {**known, "prompt": question.text}
        case _:
            assert_never(question.kind)


def call_context(name: str, args: JsonObject) -> str:
    """A call in a few words."""
    wanted = [args.get(each) for each in TELLING if each in args] or list(args.values())
    preview = next((one for one in wanted if isinstance(one, str) and one), "")
    line = " ".join(f"{name} {preview}".split())
    return line if len(line) <= MOST_CONTEXT else f"{line[: MOST_CONTEXT - 1]}…"


def _completed(event: CallFinished) -> JsonObject:
    result, details = event.result, event.result.details
    told: JsonObject = {
        "tool_id": event.call.id,
        "name": event.call.name,
        "args": event.args,
        "duration_s": round(result.duration_ms / 1000, 3),
        "result": {"status": result.status, "content": text_of(result.content)},
    }
    if isinstance(diff := details.get("diff"), str) and diff:
        told["inline_diff"] = diff
    if details.get("exit_code") is not None:
        told["result"]["exit_code"] = details["exit_code"]
    return told


def _ended(event: TurnEnded) -> JsonObject:
    match TurnVerdict(event.verdict):
        case TurnVerdict.ANSWERED | TurnVerdict.BUDGET if event.answer:
            status = "complete"
        case TurnVerdict.CANCELLED:
            status = "interrupted"
        case _:
            status = "error"
    told: JsonObject = {"text": event.answer, "status": status, "verdict": event.verdict}
    return {**told, "error": event.why} if event.why else told
