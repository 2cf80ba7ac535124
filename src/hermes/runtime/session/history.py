"""What a turn starts from: the stored session, repaired if a crash left it open, or the history a caller brought."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from hermes.context.limits import CHARS_PER_TOKEN
from hermes.context.marks import PREFIX
from hermes.dicts import from_dict, to_dict
from hermes.ops import CallClosed, MessageAppended, OpenCall, SessionRecord, StoreOp
from hermes.runtime.requests import NOT_RUN, OUTCOME_UNKNOWN, UnitBuilder
from hermes.types import ImagePart, JsonObject, Message, ResultStatus, ToolCall, text_of

CARRIED = "carried"  # the key of a session's model_config: what parts took along from the one before it
PROJECT = "project"  # the key for where its project's rules were looked for
QUARANTINED_IMAGES = "quarantined_images"  # the key for pictures that its provider refused
TASK_TOOL = "todo"
PICTURE_CHARS = 6_400  # what a picture takes of a window, in characters of text
_SHOWN_CHARS = 300
_MAX_NESTED = 16  # calls in calls that are told apart; an id that a model wrote may hold any number of slashes
_STARTED: ResultStatus = "unknown"  # what becomes of a call that a crash left without a result
_WAITING: ResultStatus = "cancelled"


class History(Struct):
    """A session's past in memory, for as long as a turn runs: units for the model, dicts for the caller."""

    builder: UnitBuilder = field(default_factory=UnitBuilder)
    dicts: list[JsonObject] = field(default_factory=list)
    last_user: str = ""
    answers: int = 0  # since the user's last words
    chars: int = 0  # bytes where they are not ASCII: such a character is about a token by itself
    tasks: Message | None = None  # the newest message that holds the task list
    tokens: int = 0  # of the last prompt, as its provider counted them; 0 when nobody has
    tokens_at: int = 0  # how many characters there were then
    places: dict[str, int] = field(default_factory=dict)  # of the newest calls, in the order they were asked for
    project: str = ""  # the folder that the session's rules are from; empty in one that begins
    carried: JsonObject = field(default_factory=dict)  # what parts took along when the session was compressed
    _task_calls: frozenset[str] = frozenset()  # the newest calls that read or wrote the task list
    _shown: list[int] = field(default_factory=list)  # places of the results that stand last in `dicts`

    def add(self, message: Message, context: str = "") -> None:
        """Take one more message. What is added is never changed afterwards."""
        self.builder.add(message, context)
        self._show(message)
        text = message.content
        if not isinstance(text, str):
            self.chars += PICTURE_CHARS * sum([isinstance(part, ImagePart) for part in text or ()])
            text = text_of(text)
        self.chars += _size(text)
        if message.tool_calls:
            self.places = {call.id: place for place, call in enumerate(message.tool_calls)}
            self.chars += sum([_size(call.arguments) for call in message.tool_calls])
            self._task_calls = frozenset([call.id for call in message.tool_calls if call.name.lower() == TASK_TOOL])
        self.answers += message.role == "assistant"
        if message.role == "user" and not text.startswith(PREFIX):
            self.last_user, self.answers = text, 0
        if message.role == "tool" and message.tool_call_id in self._task_calls:
            self.tasks = message if message.status in (None, "ok") else self.tasks
        elif text.startswith(PREFIX):
            self.tasks = message

    def counted(self, prompt_tokens: int) -> None:
        """A provider has counted the prompt that all of this made."""
        self.tokens, self.tokens_at = prompt_tokens, self.chars

    @property
    def about_tokens(self) -> int:
        """What was counted, and an estimate of what came since."""
        return self.tokens + (self.chars - self.tokens_at) // CHARS_PER_TOKEN

    def _show(self, message: Message) -> None:
        """Results are stored as they come; a caller sees them in the order of their calls."""
        dicts, places = self.dicts, self.places
        if message.role == "tool" and len(places) > 1:
            mine = places.get(message.tool_call_id or "", -1)
            if mine >= 0 and self._shown:
                # Those that are shown are in order already, at the end of the list.
                place = bisect(self._shown, mine)
                self._shown.insert(place, mine)
                dicts.insert(len(dicts) - (len(self._shown) - 1 - place), to_dict(message))
                return
            self._shown = [mine]
        else:
            self._shown = []
        dicts.append(to_dict(message))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class RecoveredCall(Struct, frozen=True):
    """What is known of a call that a crash left open, and the rows that are stored with its answer."""

    content: str
    status: ResultStatus
    ops: tuple[StoreOp, ...] = ()


def from_record(
    record: SessionRecord, known: Mapping[str, RecoveredCall] | None = None
) -> tuple[History, list[StoreOp]]:
    """The stored past, and the rows that close what a crash left open.

    A call that was started and has no result is answered once, with what is `known` of it, else with "outcome unknown",
    and never run again by itself; one that was still waiting for others is told as not run.
    """
    config = record.model_config or {}
    history = History(project=config.get(PROJECT) or "", carried=config.get(CARRIED) or {})
    for message in record.messages:
        history.add(message, record.contexts.get(message.id or -1, ""))
    if refused := config.get(QUARANTINED_IMAGES):
        from hermes.runtime.request_repair import without_pictures  # paid by who was refused one

        history.builder.mend(without_pictures(frozenset(refused)))
    repairs = _close_open_calls(record, known or {})
    for op in repairs:
        if isinstance(op, MessageAppended):
            history.add(op.message)
    return history, repairs


def from_caller(
    given: Iterable[Mapping[str, Any]], record: SessionRecord | None, session_id: str
) -> tuple[History, list[StoreOp]]:
    """The past as the caller tells it; messages that the store does not have yet are to be stored, each once."""
    history = History()
    missing: list[StoreOp] = []
    stored = Counter(_fingerprint(message) for message in (record.messages if record else ()))
    for raw in given:
        message = from_dict(raw)
        if message.role == "system":
            continue
        history.add(message)
        print_ = _fingerprint(message)
        if stored[print_]:
            stored[print_] -= 1
        else:
            missing.append(MessageAppended(session_id, message))
    return history, missing


def _close_open_calls(record: SessionRecord, known: Mapping[str, RecoveredCall]) -> list[StoreOp]:
    asked = {call.id for message in record.messages for call in message.tool_calls}
    answered = {message.tool_call_id for message in record.messages if message.role == "tool"}
    made = _made_by(record.open_calls)
    ops: list[StoreOp] = []
    for one in _unanswered(record.messages, record.open_calls):
        call, status = one.call, _STARTED if one.is_started else _WAITING
        # A call that another call made is no part of the transcript; the one that made it tells of it.
        if call.id in asked and call.id not in answered:
            text = OUTCOME_UNKNOWN + _made_meanwhile(made.get(call.id, ())) if one.is_started else NOT_RUN
            if (found := known.get(call.id)) is not None:
                text, status = found.content, found.status
                ops += found.ops
            result = Message(role="tool", content=text, tool_call_id=call.id, tool_name=call.name, status=status)
            ops.append(MessageAppended(record.session_id, result))
        ops.append(CallClosed(record.session_id, call.id, status))
    return ops


def _made_by(open_calls: Sequence[OpenCall]) -> dict[str, list[ToolCall]]:
    """Calls that other calls had begun, by the id of each that they were made under: `a` and `a/2` for `a/2/1`."""
    made: dict[str, list[ToolCall]] = defaultdict(list)
    for one in open_calls:
        parts = one.call.id.split("/")
        for end in range(1, min(len(parts), _MAX_NESTED)):
            made["/".join(parts[:end])].append(one.call)
    return made


def _made_meanwhile(begun: Sequence[ToolCall]) -> str:
    """The calls that a call had begun itself and that have no result either."""
    if not begun:
        return ""
    shown = ", ".join(f"{call.name}({call.arguments[:_SHOWN_CHARS]})" for call in begun)
    return f" It was waiting for calls of its own whose outcome is unknown, too: {shown}."


def _unanswered(messages: Sequence[Message], open_calls: Sequence[OpenCall]) -> list[OpenCall]:
    """Open calls in the order the model asked for them, so that repair is the same in every process."""
    order = {call.id: place for place, call in enumerate(c for m in messages for c in m.tool_calls)}
    return sorted(open_calls, key=lambda one: order.get(one.call.id, len(order)))


def _fingerprint(message: Message) -> tuple[str, str, str, tuple[tuple[str, str, str], ...]]:
    calls = tuple((call.id, call.name, call.arguments) for call in message.tool_calls)
    return message.role, text_of(message.content), message.tool_call_id or "", calls
