"""A session that is alive in this process: its line of messages, the turns that take from it, and who listens.

What is submitted is in the store before `submit` returns; a worker takes it from there, one turn at a time, and ends
when nothing is left to do, so a session that sleeps costs no task. Everything here is called on the host's loop.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs

from hermes import AIAgent, dicts
from hermes.config.load import bound_settings
from hermes.config.sections.approvals import Section as Approvals
from hermes.config.sections.display import Section as Display
from hermes.config.settings import Settings
from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError, UserError
from hermes.host.agent_settings import AgentSettings, agent_keywords
from hermes.host.attached_skills import AttachedSkills
from hermes.host.events import (
    LiveEvent,
    MessageReturned,
    MessageTaken,
    Notice,
    NoticeLevel,
    TurnEnded,
    WorkChanged,
)
from hermes.host.host_errors import NothingPending
from hermes.host.logs import Logged, session_tag
from hermes.host.message_queue import GONE, MessageQueue, WaitingMessage
from hermes.host.questions import QuestionDesk
from hermes.host.session_copy import copied
from hermes.host.session_figures import SessionFigures
from hermes.host.session_text import said
from hermes.host.turn_verdict import EMPTY, TurnVerdict, verdict_of, why_for
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.runtime.setup.process import shared
from hermes.state.message_line import BusyMode
from hermes.tools.environments.command_env import redactor_of
from hermes.types import Content, ModelAnswered, Question

if TYPE_CHECKING:
    from hermes.host.host import Host

STOP_S = 3.0
SOON_S = 1.0
log = logging.getLogger(__name__)


class SessionListener(Protocol):
    """Somebody in this process who watches a session. `can_answer`: questions may be put to it."""

    can_answer: bool

    def emit(self, event: LiveEvent) -> None:
        """Hear what happens, at once and in order; it must not wait."""
        ...

    def offer(self, text: str) -> bool:
        """Take back words that did not reach the agent, for the person to change; False: they stay in the line."""
        ...


class SessionStart(Struct, frozen=True, kw_only=True):
    """What a session is opened with. `folder` is where it works when that is not where the process was started."""

    settings: Settings
    asked: AgentSettings
    skills: AttachedSkills | None = None
    folder: str = ""
    launched_in: str = ""
    is_reached_later: bool = False  # whoever opened it can be asked later, too: a server, a chat


class LiveSession:
    """One session of a `Host`. It follows its session where a compression takes it."""

    def __init__(self, host: "Host", start: SessionStart, session_id: str | None, *, is_copy: bool = False) -> None:
        self.host, self._start = host, start
        self.settings, self.asked, self.db = start.settings, start.asked, host.db(start.settings)
        self.redactor = redactor_of(self.settings)
        self.listeners: list[SessionListener] = []
        approvals = self.settings.of(Approvals)
        self.questions = QuestionDesk(
            self.tell,
            lambda: start.is_reached_later or any(one.can_answer for one in self.listeners),
            approvals.gateway_timeout if start.is_reached_later else approvals.timeout,
        )
        self.busy_mode: BusyMode = self.settings.of(Display).busy_input_mode
        self.is_busy = False
        self.is_held = False  # the line waits for a word of the person
        self.is_closing = False
        self.last_answer = ""
        self.figures = SessionFigures()
        # Skills of this run reach a session that goes on with its next message; a copy knows them already.
        self._untold = start.skills if session_id is not None and not is_copy else None
        self._stop_wanted = False
        self._compress_wanted: str | None = None  # the topic to keep above all
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_working = False
        self.agent = self._make_agent(session_id)
        self.session_id = self.agent.session_id
        self._mark()
        self.queue = MessageQueue(self.db, self.session_id, self.redactor.redact, self.in_thread, self.asked.source)

    async def open(self) -> int:
        """Read what the store knows of it; how many messages wait from before. They are held."""
        await self.look_up()
        count = await self.queue.open()
        self.is_held = count > 0
        return count

    # -- listeners ---------------------------------------------------------------------------------------------------

    def listen(self, listener: SessionListener) -> None:
        """Let `listener` hear everything from now on, beside those that do already."""
        self.listeners.append(listener)

    def unlisten(self, listener: SessionListener) -> None:
        self.listeners.remove(listener)

    def tell(self, event: LiveEvent) -> None:
        """Let every listener hear it; one that fails is logged, and the turn goes on."""
        if type(event) is ModelAnswered:
            self.figures.in_context = event.usage.prompt_tokens or self.figures.in_context
        for listener in self.listeners:
            try:
                listener.emit(event)
            except Exception:  # the border to a surface: to watch a turn must not be able to end it
                log.exception("a listener of session %s failed", self.session_id)

    emit = tell  # a live session is the sink of its agent

    def notice(self, text: str, level: NoticeLevel = "info") -> None:
        """Say something of Hermes itself."""
        self.tell(Notice(text, level))

    # -- messages ----------------------------------------------------------------------------------------------------

    async def submit(
        self, content: Content, mode: BusyMode | None = None, key: str | None = None, *, first: bool = False
    ) -> WaitingMessage | None:
        """Put a message into the line; it is stored when this returns. None: the running turn was steered with it.

        While a turn runs, `mode` (else the session's own) says what becomes of it. A `key` is heard once.
        """
        mode = mode or self.busy_mode
        if self.is_busy and mode == "steer" and isinstance(content, str) and self.agent.steer(content):
            return None
        stops = self.is_busy and mode == "interrupt"
        added = await self.queue.add(content, first=first or stops, mode=mode, key=key)
        if stops:
            self.agent.interrupt()
        if not self.is_busy:
            self.is_held = False
        self._wake()
        return added

    async def withdraw(self, key: str) -> None:
        """Take a message that waits out of the line; `NothingPending` when it does not wait, or no longer."""
        one = next((each for each in self.queue.open_ones if each.id == key), None)
        if one is None:
            raise NothingPending("this message no longer waits")
        await self.queue.drop(one)

    def steer(self, text: str) -> bool:
        """Tell the model something after its current calls; False when no turn runs."""
        return self.agent.steer(text)

    def interrupt(self) -> bool:
        """Stop the turn that runs; what waits is held until the person says so. False when none runs."""
        if not self.is_busy:
            return False
        self.is_held = self._stop_wanted = True
        self.questions.deny("interrupt")
        self.agent.interrupt()
        return True

    def release(self) -> None:
        """Go on with what is held."""
        self.is_held = False
        self._wake()

    def answer(self, question_id: str | None, said: str | None, by: str) -> Question:
        """Answer an open question, without an id the oldest; the first answer wins, and `NothingPending` for others."""
        return self.questions.answer(question_id, said, by)

    def compress(self, topic: str) -> None:
        """Sum up the session, `topic` above all, as soon as no turn runs."""
        self._compress_wanted = topic
        self._wake()

    async def is_idle_soon(self) -> bool:
        """A turn whose answer was shown may still be putting its record away."""
        try:
            async with asyncio.timeout(SOON_S):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    # -- the worker --------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """See to it that somebody works on what waits."""
        if not self._is_working and (self._compress_wanted is not None or self._next() is not None):
            self._is_working = True
            self.host.begin(self._work(), f"session {self.session_id}")

    def _next(self) -> WaitingMessage | None:
        return None if self.is_held or self.is_closing else next(iter(self.queue.open_ones), None)

    async def _work(self) -> None:
        """Take messages from the line, one turn each, until nothing is left to do."""
        session_tag.set(self.session_id)
        try:
            while not self.is_closing:
                if self._compress_wanted is not None:
                    await self._compress()
                elif (one := self._next()) is not None:
                    await self._turn(one)
                else:
                    return
        finally:
            self._is_working = False

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """While the agent works: what is said waits, and an interrupt stops it."""
        self.is_busy, self._stop_wanted = True, False
        self._idle.clear()
        self.tell(WorkChanged(True))
        try:
            yield
        finally:
            self.is_busy = False
            self._idle.set()
            self.tell(WorkChanged(False))

    async def _turn(self, one: WaitingMessage) -> None:
        with self._busy():
            try:
                if not await self.queue.take(one):
                    self.notice(GONE, "warning")
                    return
                self.tell(MessageTaken(one.id, one.text))
                with bound_settings(self.settings):
                    result = await self._asked(one)
                if result is None:  # stopped before there was a turn of the agent that could be stopped
                    await self._not_sent(one, "Stopped before it was sent.")
                    return
                self._untold = None
                await self.queue.done(one)
                await self._ended(result)
            except HermesError as error:
                await self._not_sent(one, str(error))
            except Exception as error:  # the border: a fault in one turn must not end the session
                log.exception("the turn failed")
                inside = f"the turn failed inside Hermes ({type(error).__name__}: {error})"
                await self._not_sent(one, disk_trouble(error) or inside)

    async def _asked(self, one: WaitingMessage) -> dict[str, Any] | None:
        content = dicts.content_to_json(one.content)  # parts that another surface has put together stay as they are
        if isinstance(content, str):
            from hermes.host.references import opened, surroundings  # paid by the first message

            content = await opened(content, surroundings(self.settings, self.cwd, self.asked.source))
        async with self.host.turns:
            if self._stop_wanted:
                return None
            skills = self._start.skills
            told = skills.text(self.session_id) if skills and not await self.exists() else None
            try:
                return await self.agent.arun_conversation(self._with_skills(content), system_message=told)
            finally:
                await self._follow()

    def _with_skills(self, content: Any) -> Any:
        """A session that goes on keeps its prompt, so the skills of this run reach it with the first message."""
        if self._untold is None:
            return content
        told = self._untold.text(self.session_id)
        return f"{told}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": told}, *content]

    async def _ended(self, result: dict[str, Any]) -> None:
        verdict, text = verdict_of(result), str(result.get("final_response") or "").strip()
        answer = "" if text == EMPTY else text
        self.last_answer = answer or self.last_answer
        self.figures.saw(result)
        await self.look_up()
        if left := str(result.get("pending_steer") or ""):
            await self.queue.add(left, first=True, mode="steer")
        held = len(self.queue.open_ones) if self.is_held and not self.is_closing else 0
        why = "" if verdict is TurnVerdict.ANSWERED else why_for(verdict, result)
        self.tell(TurnEnded(verdict=verdict.value, answer=answer, why=why, held=held))

    async def _not_sent(self, one: WaitingMessage, why: str) -> None:
        """It goes back into the line, or to whoever takes it for a change: nothing that was said is lost."""
        if any(listener.offer(one.text) for listener in self.listeners):
            await self.queue.drop(one)
        else:
            await self.queue.put_back(one)
        self.is_held = bool(self.queue.open_ones)
        self.tell(MessageReturned(one.id, why))

    async def _compress(self) -> None:
        topic, self._compress_wanted = self._compress_wanted, None
        with self._busy():
            try:
                with bound_settings(self.settings):
                    done = await self.agent.acompress(topic)
                await self._follow()
            except HermesError as error:
                self.notice(str(error), "error")
                return
            if done["status"] != "compressed":
                self.notice(f"Nothing was changed: {done['reason']}.", "warning")
                return
            self.figures.in_context = 0
            before, after = done["before_tokens"], done["after_tokens"]
            self.notice(f"About {before} tokens are {after} now; the rest can be searched.")
            await self.look_up()

    async def _follow(self) -> None:
        """A session that was compressed goes on under another id; what waits goes along."""
        if self.agent.session_id == self.session_id:
            return
        old, self.session_id = self.session_id, self.agent.session_id
        self._mark()
        self.host.moved(self, old)
        await self.queue.move_to(self.session_id)

    # -- the session -------------------------------------------------------------------------------------------------

    async def branch(self, title: str = "") -> str:
        """Copy everything that was said to a new session; its id. This one is left as it is."""
        new: str = await self.in_thread(copied, self.db, self.session_id, title)
        return new

    async def undo(self) -> tuple[str, int]:
        """Set the last exchange aside; what was asked in it, and how many messages that were. Files stay."""
        rows = await self.in_thread(self.db.list_recent_user_messages, self.session_id, 1)
        if not rows:
            raise UserError("nothing was asked in this session yet")
        done = await self.in_thread(self.db.rewind_to_message, self.session_id, rows[0]["id"])
        return said(rows[0]).strip(), int(done["rewound"])

    async def reconfigure(self, **flags: Any) -> None:
        """Change settings for this run (dotted keys, dots as two underscores); the session goes on."""
        changed = {name.replace("__", "."): value for name, value in flags.items()}
        settings = replace(self.settings, flags={**self.settings.flags, **changed}, _made={})
        resolve(settings, ModelQuery())
        self.settings = settings
        await self.agent.aclose(keep_background=True)
        self.agent = self._make_agent(self.session_id)
        await self.look_up()

    async def close(self, reason: str = "", *, keep_background: bool = False) -> None:
        """Stop what runs and let go; bounded. `reason` is noted as the session's end, none leaves it open."""
        self.is_closing = True
        self.interrupt()
        try:
            async with asyncio.timeout(STOP_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the turn did not end within %s s", STOP_S)
        if reason:
            await self.in_thread(self.db.end_session, self.session_id, reason)
        try:
            async with asyncio.timeout(STOP_S):
                await self.agent.aclose(keep_background=keep_background)
        except TimeoutError:
            log.warning("the agent did not close within %s s", STOP_S)
        self.host.forget(self)

    async def in_thread(self, work: Any, *args: Any) -> Any:
        """Blocking work, away from the loop."""
        return await shared.pool.run(work, *args)

    async def exists(self) -> bool:
        """Whether anything was said in this session yet."""
        return await self.in_thread(self.db.get_session, self.session_id) is not None

    @property
    def start(self) -> SessionStart:
        """What another session is opened with that takes this one's place."""
        return structs.replace(self._start, settings=self.settings)

    @property
    def cwd(self) -> str:
        """Where the session works."""
        return self.figures.cwd or self._start.folder or self._start.launched_in

    async def look_up(self) -> None:
        """Bring the figures up to what the store knows of the session."""
        row = await self.in_thread(self.db.get_session, self.session_id)
        try:
            endpoint = resolve(self.settings, ModelQuery()).endpoint
            self.figures.reads(endpoint.model or endpoint.provider, endpoint.context_length)
        except HermesError:
            self.figures.reads("no model", None)
        if (in_use := self.agent.model_in_use) is not None:  # it may have been asked what it is
            self.figures.reads(in_use[0], *in_use[1])
        self.figures.of_session(row)

    def _mark(self) -> None:
        session_tag.set(self.session_id)
        if self.asked.yolo:
            from hermes.tools.approval.contract import enable_session_yolo  # rare, and brings the gate

            enable_session_yolo(self.session_id)

    def _make_agent(self, session_id: str | None) -> AIAgent:
        return AIAgent(
            **agent_keywords(self.asked, self.settings),
            session_id=session_id,
            cwd=self._start.folder or None,
            sink=Logged(self),
            approval_callback=self.questions.approve,
            sudo_password_callback=self.questions.sudo_password,
            auto_title=True,
        )
