"""Take a live session back to one of its messages: what was said, what was changed in files, or both."""

import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from hermes.config.sections import checkpoints as checkpoints_section
from hermes.config.values import plain
from hermes.context.checkpoints import CheckpointLimits, Checkpoints
from hermes.context.checkpoints.rewind import RewindDone, Rewinder, RewindPlan
from hermes.context.checkpoints.step_keeper import StepKeeper
from hermes.errors import UserError
from hermes.host.session_text import said
from hermes.runtime.setup.process import shared

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession

What: TypeAlias = Literal["both", "conversation", "files"]
MOST = 50


class RewindPoint(Struct, frozen=True, kw_only=True):
    """A message of the person's that one can go back to: to just before it was said."""

    number: int  # 1 is the newest
    message_id: int
    text: str
    at: float
    files: tuple[str, ...]  # changed in its turn


class Rewound(Struct, frozen=True, kw_only=True):
    """What a rewind did. `text` is what was said at the point, where the conversation was taken back."""

    messages: int = 0
    text: str = ""
    files: RewindDone = RewindDone()


class SessionRewind:
    """The way back in one session."""

    def __init__(self, session: "LiveSession") -> None:
        self._session = session
        limits = CheckpointLimits.of(plain(session.settings.of(checkpoints_section.Section)))
        run, now = shared.pool.run, shared.clock.now
        kept = Checkpoints(session.settings.home, shared.supervisor, run, limits, now)
        self._files = Rewinder(StepKeeper(kept, run, now), kept.store, run, limits.max_file_bytes)

    async def points(self) -> list[RewindPoint]:
        """The messages to go back to, newest first, with the files that each turn changed."""
        session = self._session
        rows = await session.in_thread(session.db.list_recent_user_messages, session.session_id, MOST)
        steps = await self._files.steps(session.session_id)
        found, until = [], float("inf")
        for number, row in enumerate(rows, 1):
            at = float(row["timestamp"] or 0)
            files = dict.fromkeys(path for step in steps if at <= step.at < until for path in step.changed)
            found.append(
                RewindPoint(number=number, message_id=row["id"], text=said(row).strip(), at=at, files=tuple(files))
            )
            until = at
        return found

    async def plan(self, point: RewindPoint) -> list[RewindPlan]:
        """What would happen to files."""
        return await self._files.plan(self._session.session_id, point.at)

    async def diff(self) -> str:
        """What the session has changed, from how files were before it to how they are."""
        from hermes.tools.files.diff import unified_diff  # for who asks

        parts: list[str] = []
        for plan in await self._files.plan(self._session.session_id, 0.0):
            for path in plan.files:
                before, after = await self._files.texts(plan, path)
                parts.append(unified_diff(path, before, after))
        return "".join(parts)

    async def go(self, point: RewindPoint, what: What) -> Rewound:
        """Go back to just before this message."""
        session = self._session
        plans = await self.plan(point) if what != "conversation" else []
        told = point.message_id if what != "files" else 0
        files = await self._files.go(session.session_id, plans, told, time.time())
        if not told:
            return Rewound(files=files)
        done: dict[str, Any] = await session.in_thread(
            session.db.rewind_to_message, session.session_id, point.message_id
        )
        await session.look_up()
        return Rewound(messages=int(done["rewound"]), text=point.text, files=files)

    async def back(self) -> Rewound:
        """Take the newest rewind back."""
        session = self._session
        rewinds = await self._files.last(session.session_id)
        if not rewinds:
            raise UserError("there is no rewind to take back in this session")
        message = rewinds[0].message
        if message:
            newest = await session.in_thread(session.db.list_recent_user_messages, session.session_id, 1)
            if newest and newest[0]["id"] > message:
                raise UserError("something was said since, so the conversation cannot be put back; see /history")
        files = await self._files.back(session.session_id, rewinds)
        count = await session.in_thread(session.db.restore_rewound, session.session_id, message) if message else 0
        await session.look_up()
        return Rewound(messages=count, files=files)
