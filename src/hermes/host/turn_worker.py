"""The turns of a live session: a message from its line to the agent, and what came of it to the listeners."""

import logging
from typing import TYPE_CHECKING, Any

from hermes import dicts
from hermes.config.load import bound_settings
from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError, SessionInUse
from hermes.host.events import MessageReturned, MessageTaken, TurnEnded
from hermes.host.message_queue import GONE, WaitingMessage
from hermes.host.references import opened, surroundings
from hermes.host.sent_message import RunHere, SendStopped, SentMessage
from hermes.host.turn_verdict import EMPTY, TurnVerdict, verdict_of, why_for

if TYPE_CHECKING:
    from hermes.host.attached_skills import AttachedSkills
    from hermes.host.live_session import LiveSession

log = logging.getLogger(__name__)


class TurnWorker:
    """Works on one thing at a time; its session says what is next. `untold` are skills for the next message."""

    def __init__(self, session: "LiveSession", untold: "AttachedSkills | None") -> None:
        self._session = session
        self._untold = untold
        self._sent: SentMessage | None = None  # what is followed where another process works on the session

    def stop(self) -> None:
        """Wait no longer for another process."""
        if self._sent is not None:
            self._sent.stop()

    async def turn(self, one: WaitingMessage) -> None:
        """Hand a message to the agent, or back to whoever sent it; everything that happens is told."""
        with self._session.busy():
            try:
                if not await self._session.queue.take(one):
                    self._session.notice(GONE, "warning")
                    return
                self._session.tell(MessageTaken(one.id, one.text))
                self._session.agent.note_event(
                    "message_taken", one.id, {"text": one.text, "who": self._session.asked.source}
                )
                with bound_settings(self._session.settings):
                    result = await self._asked(one)
                if result is None:  # stopped before there was a turn of the agent that could be stopped
                    await self._not_sent(one, "Stopped before it was sent.")
                    return
                self._untold = None
                await self._session.queue.done(one)
                await self._ended(result)
            except HermesError as error:
                await self._not_sent(one, str(error))
            except Exception as error:  # the border: a fault in one turn must not end the session
                log.exception("the turn failed")
                inside = f"the turn failed inside Hermes ({type(error).__name__}: {error})"
                await self._not_sent(one, disk_trouble(error) or inside)

    async def _asked(self, one: WaitingMessage) -> dict[str, Any] | None:
        content = dicts.content_to_json(one.content)
        if isinstance(one.content, tuple):  # put together elsewhere, where references were opened already
            content = one.text if len(one.content) == 1 and one.text else content
        else:
            content = await opened(
                content, surroundings(self._session.settings, self._session.cwd, self._session.asked.source)
            )
        if self._session.is_stop_wanted:
            return None
        skills = self._session.start.skills
        told = skills.text(self._session.session_id) if skills and not await self._session.exists() else None
        content = self._with_skills(content)
        try:
            return await self._session.run(content, told)
        except SessionInUse as error:
            return await self._run_elsewhere(one, error, lambda: self._session.run(content, told))

    async def _run_elsewhere(self, one: WaitingMessage, error: SessionInUse, run: RunHere) -> dict[str, Any] | None:
        """Leave a message in the line for the process that works on the session; None when it was stopped."""
        after = await self._session.in_thread(self._session.db.queries.newest_event)
        await self._session.queue.put_back(one)
        self._sent = sent = SentMessage(self._session, one.id, self._session.tell, run)
        try:
            return await sent.result(error, after)
        except SendStopped as stopped:
            if stopped.is_waiting:
                return None
            return {"interrupted": True, "ran_elsewhere": True, "session_id": self._session.session_id}
        finally:
            self._sent = None

    def _with_skills(self, content: Any) -> Any:
        """A session that goes on keeps its prompt, so the skills of this run reach it with the first message."""
        if self._untold is None:
            return content
        told = self._untold.text(self._session.session_id)
        return f"{told}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": told}, *content]

    async def _ended(self, result: dict[str, Any]) -> None:
        verdict, text = verdict_of(result), str(result.get("final_response") or "").strip()
        answer = "" if text == EMPTY else text
        self._session.last_answer = answer or self._session.last_answer
        self._session.figures.saw(result)
        await self._session.look_up()
        if left := str(result.get("pending_steer") or ""):
            await self._session.queue.add(left, first=True, mode="steer")
        held = len(self._session.queue.open_ones) if self._session.is_held and not self._session.is_closing else 0
        why = "" if verdict is TurnVerdict.ANSWERED else why_for(verdict, result)
        self._session.tell(TurnEnded(verdict=verdict.value, answer=answer, why=why, held=held))

    async def _not_sent(self, one: WaitingMessage, why: str) -> None:
        """It goes back into the line, or to whoever takes it for a change: nothing that was said is lost."""
        if any(listener.offer(one.text) for listener in self._session.listeners):
            await self._session.queue.drop(one)
        else:
            await self._session.queue.put_back(one)
        self._session.is_held = bool(self._session.queue.open_ones)
        self._session.tell(MessageReturned(one.id, why))

    async def compress(self, topic: str) -> dict[str, Any]:
        """Sum up the session, `topic` above all; the kernel's figures. `HermesError` when it could not be done."""
        session = self._session
        with session.busy():
            with bound_settings(session.settings):
                done = await session.agent.acompress(topic)
            await session.follow()
            if done["status"] == "compressed":
                session.figures.in_context = 0
                await session.look_up()
            return done

    async def compress_and_tell(self, topic: str) -> None:
        """`compress`, its outcome told to whoever listens."""
        session = self._session
        try:
            done = await self.compress(topic)
        except HermesError as error:
            session.notice(str(error), "error")
            return
        if done["status"] != "compressed":
            session.notice(f"Nothing was changed: {done['reason']}.", "warning")
            return
        before, after = done["before_tokens"], done["after_tokens"]
        session.notice(f"About {before} tokens are {after} now; the rest can be searched.")
