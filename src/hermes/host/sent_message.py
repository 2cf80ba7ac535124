"""A message to a session that another process works on: it goes into that session's line, and is followed from here.

Whoever owns the session takes it from the line after its turn. When nobody works on the session any more, because the
owner ended, died or lost its lease, the sender takes it itself. Of the two, the line lets exactly one have it.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hermes import dicts
from hermes.errors import SessionInUse, SessionMoved, UserError
from hermes.host.event_log import read_events
from hermes.host.events import LiveEvent, MessageTaken, QuestionAsked, TurnEnded
from hermes.host.message_queue import GONE
from hermes.state import owner
from hermes.state.message_line import QueuedMessage
from hermes.types import Content, StatusChanged, TextPart

if TYPE_CHECKING:
    from hermes.host.hosted_session import HostedSession

LOOK_S = 0.1  # how often it is looked what has become of it
# Looks at a session that nobody works on, before it is taken over: one whose owner is gone, and one whose owner is
# there and, between two turns, about to go on with its line; on a busy machine that takes a while.
LOOKS_GONE, LOOKS_THERE = 2, 30
SentState: TypeAlias = Literal["waiting", "there", "here"]
RunHere: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
LOST = (
    "the process that worked on this message is gone; how far it came is in the session, and the next turn"
    " is told what is not known"
)


async def put_in_line(live: "HostedSession", content: Any) -> str:
    """Put a message, as the model is to read it, into the line of a session that others work on, too; its key."""
    key = secrets.token_hex(6)
    given: Content = dicts.content_from_json(content) or ""
    # As parts: what it refers to was opened here, and is not opened once more where it runs.
    parts = (TextPart(given),) if isinstance(given, str) else given
    redact = live.redactor.redact
    hidden = tuple(TextPart(redact(part.text)) if isinstance(part, TextPart) else part for part in parts)
    message = QueuedMessage(key=key, content=hidden, who=live.asked.source)
    await live.db.store.in_line(lambda line: line.add(live.session_id, message))
    return key


class SendStopped(Exception):
    """Whoever sent the message no longer waits for it."""

    def __init__(self, *, is_waiting: bool) -> None:
        super().__init__("stopped")
        self.is_waiting = is_waiting  # in the line, from which it may be taken back; else it runs elsewhere


class SentMessage:
    """A message of a line that another process takes from. `tell` hears what happens to it, `run` runs it here.

    `stop` is called on the same loop.
    """

    def __init__(self, live: "HostedSession", key: str, tell: Callable[[LiveEvent], None], run: RunHere) -> None:
        self._live = live
        self._key = key
        self._tell = tell
        self._run = run
        self._state: SentState = "waiting"
        self._free = 0  # looks in a row at which nobody worked on the session
        self._owner = ""  # whoever did so before
        self._looks = 0  # in a row at which it was neither in the line nor at work
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Wait for it no longer. Where it runs here, that is the turn's matter."""
        self._stopped.set()

    async def result(self, why: SessionInUse, after: int) -> dict[str, Any]:
        """What came of it, in the words of the kernel's result; `SendStopped` when nobody waits for it any more.

        `after` is the number of the newest event before it was put into the line.
        """
        live = self._live
        who = str(why).partition(";")[0]
        self._tell(StatusChanged("waiting", f"{who}; your message waits in its line"))
        while True:
            for item in await live.in_thread(read_events, live.db, live.session_id, after):
                after = item.number
                if (ended := self._hear(item.event)) is not None:
                    return _as_result(ended, live.session_id)
            if (result := await self._taken_over()) is not None:
                return result
            await self._pause()

    def _hear(self, event: LiveEvent) -> TurnEnded | None:
        if isinstance(event, MessageTaken):
            self._state = "there" if event.key == self._key else "waiting"
        if self._state != "there":
            return None
        if isinstance(event, TurnEnded):
            return event
        if isinstance(event, QuestionAsked):
            self._tell(StatusChanged("waiting", f"a question is asked where the session runs: {event.question.text}"))
        elif not isinstance(event, MessageTaken):
            self._tell(event)
        return None

    async def take_back(self) -> None:
        """Take it out of the line."""
        live = self._live
        await live.db.store.in_line(lambda line: line.end(live.session_id, [self._key], "dropped"))

    async def _taken_over(self) -> dict[str, Any] | None:
        """Run it here, when nobody works on the session; None when it runs elsewhere, or still waits."""
        live = self._live
        lease = await live.in_thread(live.db.queries.lease, live.session_id)
        if lease is not None:
            self._free, self._owner = 0, lease.owner
            return None
        self._free += 1
        if self._free < (LOOKS_GONE if self._owner and not owner.may_be_alive(self._owner) else LOOKS_THERE):
            return None
        in_line = live.db.store.in_line
        if not await in_line(lambda line: line.take(live.session_id, self._key)):
            await self._require_news()
            return None
        self._state = "here"
        self._tell(StatusChanged("waiting", "the session is free; your message runs here"))
        try:
            result = await self._run()
        except (SessionInUse, SessionMoved):
            self._state = "waiting"
            await in_line(lambda line: line.put_back(live.session_id, self._key))
            return None
        await in_line(lambda line: line.end(live.session_id, [self._key], "done"))
        return result

    async def _require_news(self) -> None:
        """It is not ours to take and nobody works: its turn begins or has just ended, or its process is gone."""
        live = self._live
        waiting = await live.db.store.in_line(lambda line: line.read(live.session_id))
        if any(one.key == self._key for one in waiting):
            self._looks = 0
            return
        self._looks += 1
        if self._looks > 1:  # what a turn's last commit tells has been read since
            raise UserError(LOST if self._state == "there" else GONE)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._stopped.wait()
        except TimeoutError:
            return
        raise SendStopped(is_waiting=self._state == "waiting")


def _as_result(ended: TurnEnded, session_id: str) -> dict[str, Any]:
    record = {**ended.record, "turn_exit_reason": ended.record.get("exit_reason", ""), "session_id": session_id}
    return {"final_response": ended.answer, "messages": [], **record, "ran_elsewhere": True}
