"""A session with its agent and its listeners, as a host opens it: one question can be asked of it at once.

`LiveSession` adds what a conversation needs: the line of messages, streams of events, changes between turns.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs

from hermes import AIAgent
from hermes.config.sections.agent import Section as AgentSection
from hermes.config.settings import Settings
from hermes.errors import StoreError
from hermes.host.agent_settings import AgentSettings, agent_keywords
from hermes.host.events import LiveEvent, ModeChanged, QuestionAsked, WorkChanged
from hermes.host.logs import Logged, session_tag
from hermes.ops import EventStored
from hermes.runtime.setup.process import shared
from hermes.seams import OpenBuffers
from hermes.tools.environments.command_env import redactor_of
from hermes.types import JsonObject, Question
from hermes.work_mode import WorkMode, WorkModeName

if TYPE_CHECKING:  # one question and its answer do without these
    from hermes.host.attached_skills import AttachedSkills
    from hermes.host.host import Host
    from hermes.host.questions import QuestionDesk
    from hermes.state import SessionDB

STOP_S = 3.0
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
    skills: "AttachedSkills | None" = None
    folder: str = ""
    launched_in: str = ""
    work_mode: str = ""  # edits, ask or plan; of the settings when empty
    can_ask: bool = True  # else nobody is ever asked, and what needs an answer is a no
    is_reached_later: bool = False  # whoever opened it can be asked later, too: a server, a chat
    has_titles: bool = True  # a model gives the session its title
    open_buffers: OpenBuffers | None = None  # an editor whose unsaved words file tools read
    mcp_servers: JsonObject | None = None  # servers of tools for this session alone


class HostedSession:
    """One session of a `Host`. It follows its session where a compression takes it."""

    def __init__(self, host: "Host", start: SessionStart, session_id: str | None) -> None:
        self.host, self._start = host, start
        self.settings, self.asked = start.settings, start.asked
        self.redactor = redactor_of(self.settings)
        self.listeners: list[SessionListener] = []
        self.is_busy = False
        self.is_closing = False
        self.is_stop_wanted = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.mode = WorkMode(start.work_mode or self.settings.of(AgentSection).work_mode, self._mode_changed)
        self.agent = self._make_agent(session_id)
        self.session_id = self.agent.session_id
        self._mark()

    @cached_property
    def db(self) -> "SessionDB":
        """The sessions of its home."""
        return self.host.db(self._start.settings)

    @cached_property
    def questions(self) -> "QuestionDesk":
        """What people are asked."""
        from hermes.config.sections.agent import Section as Agent
        from hermes.config.sections.approvals import Section as Approvals
        from hermes.host.questions import QuestionDesk

        start, approvals = self._start, self.settings.of(Approvals)
        return QuestionDesk(
            self,
            lambda: start.is_reached_later or any(one.can_answer for one in self.listeners),
            timeout_s=approvals.gateway_timeout if start.is_reached_later else approvals.timeout,
            clarify_timeout_s=self.settings.of(Agent).clarify_timeout,
        )

    # -- listeners ---------------------------------------------------------------------------------------------------

    def listen(self, listener: SessionListener) -> None:
        """Let `listener` hear everything from now on, beside those that do already; first what is still asked."""
        self.listeners.append(listener)
        for question in self.questions.open_ones if "questions" in self.__dict__ else ():
            listener.emit(QuestionAsked(question))

    def tell(self, event: LiveEvent) -> None:
        """Let every listener hear it; one that fails is logged, and the turn goes on."""
        for listener in self.listeners:
            try:
                listener.emit(event)
            except Exception:  # the border to a surface: to watch a turn must not be able to end it
                log.exception("a listener of session %s failed", self.session_id)

    def later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside the session, as a task of its host."""
        self.host.begin(work, name)

    emit = tell  # a live session is the sink of its agent

    async def store_event(self, kind: str, about: str, body: JsonObject) -> None:
        """Keep an event that no turn stores; a store that fails costs listeners the row, not the turn."""
        clean = self.redactor.redact_all(body)
        try:
            await self.db.store.commit(EventStored(self.session_id, kind, about, clean))
        except StoreError as error:
            log.warning("an event of session %s was not stored: %s", self.session_id, error)

    # -- turns -------------------------------------------------------------------------------------------------------

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While the agent works: what is said waits, and an interrupt stops it."""
        self.is_busy, self.is_stop_wanted = True, False
        self._idle.clear()
        self.tell(WorkChanged(True))
        try:
            yield
        finally:
            self.is_busy = False
            self._idle.set()
            self.tell(WorkChanged(False))

    async def run(self, content: Any, system_message: str | None) -> dict[str, Any]:
        """One turn of the agent, when there is a place for it."""
        async with self.host.turns:
            try:
                return await self.agent.arun_conversation(content, system_message=system_message)
            finally:
                await self.follow()

    async def ask(self, content: Any, system_message: str | None = None) -> dict[str, Any]:
        """Run one turn with `content` at once, past the line, and return the kernel's result.

        It is durable with the turn's first commit. `SessionInUse` when another process works on the session.
        """
        with self.busy():
            return await self.run(content, system_message)

    async def follow(self) -> None:
        """A session that was compressed goes on under another id."""
        if self.agent.session_id == self.session_id:
            return
        old, self.session_id = self.session_id, self.agent.session_id
        self._mark()
        self.host.moved(self, old)

    def interrupt(self) -> bool:
        """Stop the turn that runs. False when none runs."""
        if not self.is_busy:
            return False
        self.is_stop_wanted = True
        if "questions" in self.__dict__:
            self.questions.deny("interrupt")
        self.agent.interrupt()
        return True

    @property
    def work_mode(self) -> WorkModeName:
        """How far the session goes by itself; whoever sets it changes it at once, also for the turn that runs."""
        return self.mode.name

    @work_mode.setter
    def work_mode(self, name: str) -> None:
        self.mode.change(name)

    def _mode_changed(self, name: WorkModeName) -> None:
        self.tell(ModeChanged(name))

    def answer(self, question_id: str | None, said: str | None, by: str) -> Question:
        """Answer an open question, without an id the oldest; the first answer wins, and `NothingPending` for others."""
        return self.questions.answer(question_id, said, by)

    async def close(self, reason: str = "", *, keep_background: bool = False, limit_s: float | None = STOP_S) -> None:
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
            async with asyncio.timeout(limit_s):
                await self.agent.aclose(keep_background=keep_background)
        except TimeoutError:
            log.warning("the agent did not close within %s s", limit_s)
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
        return structs.replace(self._start, settings=self.settings, work_mode=self.mode.name)

    @property
    def cwd(self) -> str:
        """Where the session works."""
        return self._start.folder or self._start.launched_in

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
            work_mode=self.mode,
            open_buffers=self._start.open_buffers,
            mcp_servers=self._start.mcp_servers,
            sink=Logged(self),
            approval_callback=self.questions.approve if self._start.can_ask else None,
            sudo_password_callback=self.questions.sudo_password if self._start.can_ask else None,
            clarify_callback=self.questions.clarify if self._start.can_ask else None,
            auto_title=self._start.has_titles,
            stores_events=True,
        )
