"""The messages that wait for a live session: what is in memory of its line, which the store keeps."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from hermes.errors import UserError
from hermes.state.message_line import BusyMode, QueuedMessage
from hermes.types import Content, TextPart, text_of

if TYPE_CHECKING:
    from hermes.state import SessionDB
    from hermes.state.message_line import MessageLine

GONE = "Another Hermes has sent or removed this message."


class WaitingMessage(Struct, frozen=True):
    """One message."""

    id: str
    content: Content
    is_taken: bool = False

    @property
    def text(self) -> str:
        """What it says."""
        return text_of(self.content)


class MessageQueue:
    """The line of one session. A change is on disk before it counts; secrets are hidden there, not in memory."""

    def __init__(self, db: "SessionDB", session_id: str, hide: Callable[[str], str], who: str = "cli") -> None:
        self._in_line = db.store.in_line
        self._session_id = session_id
        self._hide = hide
        self._who = who
        self.line: tuple[WaitingMessage, ...] = ()

    async def open(self) -> int:
        """Read what an earlier run left; how many wait. What had reached the session already is not among them."""
        found = await self._in_line(lambda line: line.settle(self._session_id))
        self.line = tuple(WaitingMessage(one.key, one.content) for one in found if one.state == "waiting")
        return len(self.line)

    async def refresh(self) -> None:
        """Take in what others have put into the line, or taken out of it, meanwhile."""
        before = {one.id for one in self.line}
        found = await self._in_line(lambda line: line.read(self._session_id))
        known = {one.id: one for one in self.line}
        waiting = [one for one in found if one.state == "waiting" or one.key in known]
        read = {one.key for one in waiting}
        # What was put into the line during the read is not in what was read, and not gone either.
        added = tuple(one for one in self.line if one.id not in before and one.id not in read)
        self.line = (*(known.get(one.key) or WaitingMessage(one.key, one.content) for one in waiting), *added)

    async def add(
        self, content: Content, *, first: bool = False, mode: BusyMode = "queue", key: str | None = None
    ) -> WaitingMessage:
        """Put a message at the end of the line, or at its head (behind one that is being worked on).

        One whose `key` was heard before is not heard again.
        """
        new = WaitingMessage(key or secrets.token_hex(6), content)
        hidden = self._hidden(content)
        kept = QueuedMessage(key=new.id, content=hidden, mode=mode, who=self._who)
        stored = await self._in_line(lambda line: line.add(self._session_id, kept, first=first))
        known = next((one for one in self.line if one.id == new.id), None)
        if known is not None:
            return known
        if stored.state != "waiting" or (key and stored.content != hidden):  # it is there from before
            return WaitingMessage(new.id, stored.content, is_taken=stored.state != "waiting")
        place = sum(one.is_taken for one in self.line) if first else len(self.line)
        self.line = (*self.line[:place], new, *self.line[place:])
        return new

    async def take(self, one: WaitingMessage) -> bool:
        """The agent is to be handed this one, which stays in the line until it is `done`. False if it is `GONE`."""
        return await self._changed(one, lambda line: line.take(self._session_id, one.id), is_taken=True)

    async def put_back(self, one: WaitingMessage) -> None:
        """It did not reach the agent after all."""
        await self._in_line(lambda line: line.put_back(self._session_id, one.id))
        self._update(one, is_taken=False)

    async def edit(self, one: WaitingMessage, text: str) -> None:
        """Say something else at the same place."""
        hidden = self._hide(text)
        if not await self._changed(one, lambda line: line.edit(self._session_id, one.id, hidden), content=text):
            raise UserError(GONE)

    async def drop(self, *gone: WaitingMessage) -> None:
        """The person took these away."""
        await self._end(gone, "dropped")

    async def withdraw(self, one: WaitingMessage) -> bool:
        """`drop` one that nobody has begun with; False when somebody has, if only just now."""
        if not await self._in_line(lambda line: line.take(self._session_id, one.id)):
            return False
        await self.drop(one)
        return True

    async def done(self, one: WaitingMessage) -> None:
        """It has reached the session."""
        await self._end((one,), "done")

    async def move_to(self, session_id: str) -> None:
        """The session goes on under another id; those that wait, wait there."""
        old, self._session_id = self._session_id, session_id
        await self._in_line(lambda line: line.move(old, session_id))

    @property
    def open_ones(self) -> tuple[WaitingMessage, ...]:
        """Those nobody works on yet."""
        return tuple(one for one in self.line if not one.is_taken)

    def _hidden(self, content: Content) -> Content:
        if isinstance(content, str):
            return self._hide(content)
        return tuple(
            replace(part, text=self._hide(part.text)) if isinstance(part, TextPart) else part for part in content
        )

    def _update(self, wanted: WaitingMessage, **changes: Any) -> None:
        self.line = tuple(replace(one, **changes) if one.id == wanted.id else one for one in self.line)

    async def _changed(self, one: WaitingMessage, work: Callable[["MessageLine"], bool], **changes: Any) -> bool:
        is_ours = await self._in_line(work)
        if is_ours:
            self._update(one, **changes)
        else:
            self._forget(one)
        return is_ours

    async def _end(self, gone: tuple[WaitingMessage, ...], state: Literal["done", "dropped"]) -> None:
        self._forget(*gone)
        await self._in_line(lambda line: line.end(self._session_id, [one.id for one in gone], state))

    def _forget(self, *gone: WaitingMessage) -> None:
        ids = {one.id for one in gone}
        self.line = tuple(one for one in self.line if one.id not in ids)
