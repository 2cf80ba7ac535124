"""Events of a session as a stream: the stored ones after a number, then what is live, with no gap and no doubling.

What is stored is told from its rows, so that everybody hears the same in the same order, here and in another process;
an event of the running turn only says that there are new ones. What is not stored (deltas, status) goes in between.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import DecodeError, json
from msgspec.structs import replace

from hermes import dicts
from hermes.errors import StoreError
from hermes.host.events import (
    LiveEvent,
    MessageTaken,
    NumberedEvent,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
)
from hermes.host.turn_verdict import EMPTY, TurnVerdict, verdict_of, why_for
from hermes.runtime.delegation.child_record import brief
from hermes.typed import convert
from hermes.types import (
    CallFinished,
    CallStarted,
    ChildProgress,
    ChildStage,
    JsonObject,
    Question,
    ReasoningDelta,
    SessionRotated,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnFinished,
    TurnStarted,
)

if TYPE_CHECKING:
    from hermes.state import SessionDB

PAGE = 500  # rows read at once
MOST = 1_000  # events that a slow listener is behind before it is sent to the rows
JOINED_FROM = 16  # so many are waiting: then deltas are joined
MOST_JOINED = 64_000  # characters; more of them are dropped, since the stored message has them all
NEWEST = 64  # messages that are looked through for a call before all are
STORED = (
    MessageTaken,
    TurnStarted,
    CallStarted,
    CallFinished,
    QuestionAsked,
    QuestionAnswered,
    SessionRotated,
    TurnEnded,
)
log = logging.getLogger(__name__)
Row: TypeAlias = dict[str, Any]
Calls: TypeAlias = dict[str, tuple[ToolCall, JsonObject, ToolResult | None]]
Read: TypeAlias = Callable[[int, Calls], Awaitable[list[NumberedEvent]]]


def read_events(db: "SessionDB", session_id: str, after: int, known: Calls | None = None) -> list[NumberedEvent]:
    """The next stored events of a session, at most `PAGE`; `known` are calls that need not be looked up."""
    rows = db.queries.events(session_id, after, PAGE)
    calls = dict(known or {})
    for session in {row["session_id"] for row in rows if row["kind"].startswith("call_")}:
        about = {row["about"] for row in rows if row["session_id"] == session and row["kind"].startswith("call_")}
        asked = {each for each in about - calls.keys() if "/" not in each}  # those of scripts are in no message
        if asked:
            calls |= _stored_calls(db, session, asked)
    return [NumberedEvent(row["number"], _event(row, calls), is_stored=True) for row in rows]


class EventStream:
    """`async for` over the events of a session. One that is slow gets deltas joined, then none; stored ones, always."""

    def __init__(self, log: "EventLog", after: int) -> None:
        self._log = log
        self._last = after  # the number of the newest stored event that is in the buffer or was told
        self._buffer: deque[NumberedEvent] = deque()
        self._ready = asyncio.Event()
        self._is_behind = True  # it reads rows, until there are no more
        self._has_missed = False  # something was stored meanwhile
        self._is_closed = False

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> NumberedEvent:
        while not self._buffer:
            if self._is_closed:
                raise StopAsyncIteration
            if self._is_behind:
                await self._catch_up()
            else:
                self._ready.clear()
                await self._ready.wait()
        return self._buffer.popleft()

    def close(self) -> None:
        """Tell nothing more; what is in the buffer can still be taken."""
        self._is_closed = True
        self._log.detach(self)
        self._ready.set()

    async def _catch_up(self) -> None:
        self._has_missed = False
        found = await self._log.read(self._last, {})
        for item in found:
            self._buffer.append(item)
            self._last = item.number
        if not found and not self._has_missed:  # no await since the read: nothing is in between
            self._is_behind = False
            self._log.reached(self._last)

    def send_back(self) -> None:
        """Go on with the rows, whose reader learns of it when they cannot be read."""
        self._is_behind = self._has_missed = True
        self._ready.set()

    def put(self, item: NumberedEvent) -> None:
        """Take an event as it happens."""
        if self._is_behind:
            self._has_missed = self._has_missed or item.is_stored
        elif not item.is_stored:
            self._put_passing(item)
        elif item.number > self._last:
            self._put_stored(item)
        self._ready.set()

    def _put_stored(self, item: NumberedEvent) -> None:
        if len(self._buffer) >= MOST:
            self._buffer = deque(kept for kept in self._buffer if kept.is_stored)
        if len(self._buffer) >= MOST:  # the rest is read when this has been told
            self._is_behind = self._has_missed = True
            return
        self._buffer.append(item)
        self._last = item.number

    def _put_passing(self, item: NumberedEvent) -> None:
        newest = self._buffer[-1].event if len(self._buffer) >= JOINED_FROM else None
        event = item.event
        if isinstance(event, TextDelta | ReasoningDelta) and isinstance(newest, type(event)):
            if len(newest.text) < MOST_JOINED:
                self._buffer[-1] = replace(item, event=type(event)(newest.text + event.text))
        elif len(self._buffer) < MOST:
            self._buffer.append(item)


class EventLog:
    """The streams of one live session. Without any, an event costs it nothing; `on_quiet` hears when the last goes."""

    def __init__(
        self, read: Read, begin: Callable[[Any, str], None], on_quiet: Callable[[], None] | None = None
    ) -> None:
        self.read = read
        self._on_quiet = on_quiet
        self._begin = begin
        self._streams: list[EventStream] = []
        self._waiting: deque[LiveEvent | None] = deque()  # None: there are new rows
        self._calls: Calls = {}
        self._last = 0
        self._is_pumping = False

    def stream(self, after: int) -> EventStream:
        """The stored events after this number, then what is live."""
        made = EventStream(self, after)
        self._streams.append(made)
        return made

    @property
    def has_streams(self) -> bool:
        return bool(self._streams)

    def detach(self, stream: EventStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
        if not self._streams:
            self._calls.clear()
            if self._on_quiet is not None:
                self._on_quiet()

    def close(self) -> None:
        """The session is closed: its streams end."""
        for stream in list(self._streams):
            stream.close()

    def reached(self, number: int) -> None:
        """A stream is at this number, and live."""
        self._last = max(self._last, number)

    def put(self, event: LiveEvent) -> None:
        """Something happens in the session."""
        if not self._streams or isinstance(event, TurnFinished):  # which `TurnEnded` tells
            return
        if isinstance(event, CallFinished):
            self._calls[event.call.id] = (event.call, event.args, event.result)
        elif isinstance(event, CallStarted):
            self._calls[event.call.id] = (event.call, event.args, None)
        if not _is_stored(event):
            self._waiting.append(event)
        elif not self._waiting or self._waiting[-1] is not None:
            self._waiting.append(None)
        if not self._is_pumping:
            self._is_pumping = True
            self._begin(self._pump(), "events")

    async def _pump(self) -> None:
        try:
            while self._waiting:
                event = self._waiting.popleft()
                if event is not None:
                    self._tell(NumberedEvent(self._last, event))
                    continue
                while self._streams and (found := await self.read(self._last, self._calls)):
                    for item in found:
                        self._last = item.number
                        self._tell(item)
        except StoreError as error:
            log.warning("events could not be read: %s", error)
            for stream in self._streams:
                stream.send_back()
        finally:
            self._is_pumping = False

    def _tell(self, item: NumberedEvent) -> None:
        if isinstance(item.event, CallFinished):
            self._calls.pop(item.event.call.id, None)
        for stream in list(self._streams):
            stream.put(item)


def _is_stored(event: LiveEvent) -> bool:
    """Whether its row tells it. The rows of a child are in its parent's session, which may be below this one."""
    if isinstance(event, ChildProgress):
        return event.stage in ("start", "complete") and len(event.path) == 1
    return isinstance(event, STORED)


def _child(row: Row, stage: ChildStage) -> ChildProgress:
    body = row["body"]
    result = body.get("result")
    return ChildProgress(
        stage=stage,
        path=tuple(map(str, body.get("path") or ())),
        child_session_id=str(row["about"]),
        task_index=int(body.get("task_index") or 0),
        task_count=int(body.get("task_count") or 0),
        goal=str(body.get("goal") or ""),
        model=str((result or {}).get("model") or ""),
        outcome=brief(result) if result else None,
    )


def _event(row: Row, calls: Calls) -> LiveEvent:
    """A row as the event that it was."""
    about, body = str(row["about"]), row["body"]
    call, args, result = calls.get(about) or (ToolCall(about, ""), {}, None)
    match row["kind"]:
        case "message_taken":
            return MessageTaken(about, str(body.get("text", "")), str(body.get("who", "")))
        case "turn_started":
            return TurnStarted(row["session_id"], about, str(body.get("model", "")))
        case "call_started":
            return CallStarted(call, args)
        case "call_finished":
            gone = ToolResult(call_id=about, name=call.name, content="")
            status = {"status": body.get("status", "unknown"), "duration_ms": body.get("duration_ms", 0.0)}
            return CallFinished(call, args, replace(result or gone, **status))
        case "question_asked":
            return QuestionAsked(convert(body, Question))
        case "question_answered":
            return QuestionAnswered(question_id=about, answer=str(body.get("answer", "")), by=str(body.get("by", "")))
        case "child_started":
            return _child(row, "start")
        case "child_ended":
            return _child(row, "complete")
        case "session_moved":
            return SessionRotated(session_id=row["session_id"], previous=str(body.get("previous", "")))
        case _:
            return turn_ended(about, body)


def turn_ended(turn_id: str, record: Mapping[str, Any]) -> TurnEnded:
    """The end of a turn, from what was stored of it."""
    result = {**record, "turn_exit_reason": record.get("exit_reason", "")}
    verdict, text = verdict_of(result), str(record.get("final_response") or "").strip()
    why = "" if verdict is TurnVerdict.ANSWERED else why_for(verdict, result)
    answer = "" if text == EMPTY else text
    return TurnEnded(verdict=verdict.value, answer=answer, why=why, turn_id=turn_id, record=dict(record))


def _stored_calls(db: "SessionDB", session_id: str, wanted: set[str]) -> Calls:
    """Calls and their results, as the transcript has them: among the newest messages, or else among all."""
    from hermes.state.queries import MessageFilter  # paid by who comes late

    found: Calls = {}
    for limit in (NEWEST, -1):
        where = MessageFilter(
            session_id=session_id, is_active=None, roles=("assistant", "tool"), newest_first=True, limit=limit
        )
        rows = db.queries.messages(where, ("role", "content", "tool_calls", "tool_call_id", "tool_name", "status"))
        results = {str(row["tool_call_id"]): row for row in rows if row["role"] == "tool"}
        for row in rows:
            for packed in row["tool_calls"] or ():
                call = dicts.call_from_dict(packed)
                if call.id in wanted:
                    found[call.id] = (call, _arguments(call.arguments), _result(call, results.get(call.id)))
        if len(found) == len(wanted) or len(rows) < limit:
            break
    return found


def _arguments(text: str) -> JsonObject:
    try:
        found = json.decode(text)
    except (DecodeError, UnicodeDecodeError, RecursionError):  # as the model wrote it
        return {}
    return found if isinstance(found, dict) else {}


def _result(call: ToolCall, row: Row | None) -> ToolResult | None:
    if row is None:
        return None
    content = dicts.content_from_json(row["content"]) or ""
    return ToolResult(call_id=call.id, name=call.name, content=content, status=row["status"] or "ok")
