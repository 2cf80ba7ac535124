"""A session that is alive in this process: its line of messages, the turns that take from it, and who listens.

What is submitted is in the store before `submit` returns; a worker takes it from there, one turn at a time, and ends
when nothing is left to do, so a session that sleeps costs no task. Everything here is called on the host's loop.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs

from hermes import AIAgent, dicts
from hermes.config.load import bound_settings
from hermes.config.settings import Settings
from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError, StoreError, UserError
from hermes.host.agent_settings import AgentSettings, agent_keywords
from hermes.host.events import (
    LiveEvent,
    MessageReturned,
    MessageTaken,
    Notice,
    NoticeLevel,
    NumberedEvent,
    QuestionAsked,
    TurnEnded,
    WorkChanged,
)
from hermes.host.logs import Logged, session_tag
from hermes.host.session_figures import SessionFigures
from hermes.host.turn_verdict import EMPTY, TurnVerdict, verdict_of, why_for
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.ops import EventStored
from hermes.runtime.setup.process import shared
from hermes.tools.environments.command_env import redactor_of
from hermes.types import Content, JsonObject, ModelAnswered, Question

if TYPE_CHECKING:  # one question and its answer do without these
    from hermes.host.attached_skills import AttachedSkills
    from hermes.host.event_log import Calls, EventLog, EventStream
    from hermes.host.host import Host
    from hermes.host.message_queue import MessageQueue, WaitingMessage
    from hermes.host.questions import QuestionDesk
    from hermes.state import SessionDB
    from hermes.state.message_line import BusyMode

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
    skills: "AttachedSkills | None" = None
    folder: str = ""
    launched_in: str = ""
    can_ask: bool = True  # else nobody is ever asked, and what needs an answer is a no
    is_reached_later: bool = False  # whoever opened it can be asked later, too: a server, a chat
    has_titles: bool = True  # a model gives the session its title


class LiveSession:
    """One session of a `Host`. It follows its session where a compression takes it."""

    def __init__(self, host: "Host", start: SessionStart, session_id: str | None, *, is_copy: bool = False) -> None:
        self.host, self._start = host, start
        self.settings, self.asked = start.settings, start.asked
        self.redactor = redactor_of(self.settings)
        self.listeners: list[SessionListener] = []
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
        self._rest: asyncio.TimerHandle | None = None
        self._log: EventLog | None = None  # for the first stream
        self.agent = self._make_agent(session_id)
        self.session_id = self.agent.session_id
        self._mark()

    @property
    def db(self) -> "SessionDB":
        """The sessions of its home."""
        return self.host.db(self._start.settings)

    @cached_property
    def questions(self) -> "QuestionDesk":
        """What people are asked."""
        from hermes.config.sections.approvals import Section
        from hermes.host.questions import QuestionDesk

        start, approvals = self._start, self.settings.of(Section)
        return QuestionDesk(
            self,
            lambda: start.is_reached_later or any(one.can_answer for one in self.listeners),
            approvals.gateway_timeout if start.is_reached_later else approvals.timeout,
        )

    @cached_property
    def busy_mode(self) -> "BusyMode":
        """What a message does that comes during a turn; commands change it for this run."""
        from hermes.config.sections.display import Section

        return self.settings.of(Section).busy_input_mode

    @cached_property
    def queue(self) -> "MessageQueue":
        """What waits for its turn."""
        from hermes.host.message_queue import MessageQueue

        return MessageQueue(self.db, self.session_id, self.redactor.redact, self.in_thread, self.asked.source)

    async def open(self) -> int:
        """Read what the store knows of it; how many messages wait from before. They are held."""
        await self.look_up()
        count = await self.queue.open()
        self.is_held = count > 0
        return count

    # -- listeners ---------------------------------------------------------------------------------------------------

    def listen(self, listener: SessionListener) -> None:
        """Let `listener` hear everything from now on, beside those that do already; first what is still asked."""
        self.listeners.append(listener)
        for question in self.questions.open_ones if "questions" in self.__dict__ else ():
            listener.emit(QuestionAsked(question))

    def unlisten(self, listener: SessionListener) -> None:
        self.listeners.remove(listener)
        self.rest()

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody listens and nothing is to be done, so that its rows are all it needs."""
        is_heard = bool(self.listeners) or (self._log is not None and self._log.has_streams)
        is_due = self._compress_wanted is not None or ("queue" in self.__dict__ and self._next() is not None)
        return not (is_heard or is_due or self.is_busy or self._is_working or self.is_closing)

    def rest(self) -> None:
        """Fall asleep in a while, unless something happens until then."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(self.host.sleeps_after_s, self._fall_asleep)

    def _fall_asleep(self) -> None:
        self._rest = None
        if self.is_at_rest:
            self.host.begin(self.host.put_to_sleep(self), f"sleep of {self.session_id}")

    def tell(self, event: LiveEvent) -> None:
        """Let every listener hear it; one that fails is logged, and the turn goes on."""
        if type(event) is ModelAnswered:
            self.figures.in_context = event.usage.prompt_tokens or self.figures.in_context
        if self._log is not None:
            self._log.put(event)
        for listener in self.listeners:
            try:
                listener.emit(event)
            except Exception:  # the border to a surface: to watch a turn must not be able to end it
                log.exception("a listener of session %s failed", self.session_id)

    def events(self, after: int = 0) -> "EventStream":
        """What was told after this number, as it is stored, then what happens; for as long as it is not closed."""
        if self._log is None:
            from hermes.host.event_log import EventLog

            self._log = EventLog(self._read_events, self.host.begin)
        return self._log.stream(after)

    async def _read_events(self, after: int, known: "Calls") -> list[NumberedEvent]:
        from hermes.host.event_log import read_events

        found: list[NumberedEvent] = await self.in_thread(read_events, self.db, self.session_id, after, known)
        return found

    async def store_event(self, kind: str, about: str, body: JsonObject) -> None:
        """Keep an event that no turn stores; a store that fails costs listeners the row, not the turn."""
        clean = self.redactor.redact_all(body)
        try:
            await self.db.store.commit(EventStored(self.session_id, kind, about, clean))
        except StoreError as error:
            log.warning("an event of session %s was not stored: %s", self.session_id, error)

    def later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside the session, as a task of its host."""
        self.host.begin(work, name)

    emit = tell  # a live session is the sink of its agent

    def notice(self, text: str, level: NoticeLevel = "info") -> None:
        """Say something of Hermes itself."""
        self.tell(Notice(text, level))

    # -- messages ----------------------------------------------------------------------------------------------------

    async def submit(
        self, content: Content, mode: "BusyMode | None" = None, key: str | None = None, *, first: bool = False
    ) -> "WaitingMessage | None":
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
        from hermes.host.host_errors import NothingPending  # rare

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
        if "questions" in self.__dict__:
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

    def _next(self) -> "WaitingMessage | None":
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
                    await self.queue.refresh()  # others may have put something into the line meanwhile
                else:
                    return
        finally:
            self._is_working = False
            if not self.listeners:
                self.rest()

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

    async def _turn(self, one: "WaitingMessage") -> None:
        with self._busy():
            try:
                if not await self.queue.take(one):
                    from hermes.host.message_queue import GONE

                    self.notice(GONE, "warning")
                    return
                self.tell(MessageTaken(one.id, one.text))
                self.agent.note_event("message_taken", one.id, {"text": one.text, "who": self.asked.source})
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

    async def _asked(self, one: "WaitingMessage") -> dict[str, Any] | None:
        content = dicts.content_to_json(one.content)
        if isinstance(one.content, tuple):  # put together elsewhere, where references were opened already
            content = one.text if len(one.content) == 1 and one.text else content
        else:
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

    async def _not_sent(self, one: "WaitingMessage", why: str) -> None:
        """It goes back into the line, or to whoever takes it for a change: nothing that was said is lost."""
        if any(listener.offer(one.text) for listener in self.listeners):
            await self.queue.drop(one)
        else:
            await self.queue.put_back(one)
        self.is_held = bool(self.queue.open_ones)
        self.tell(MessageReturned(one.id, why))

    async def ask(self, content: Any, system_message: str | None = None) -> dict[str, Any]:
        """Run one turn with `content` at once, past the line, and return the kernel's result.

        It is durable with the turn's first commit. `SessionInUse` when another process works on the session.
        """
        with self._busy():
            async with self.host.turns:
                try:
                    return await self.agent.arun_conversation(content, system_message=system_message)
                finally:
                    await self._follow()

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
        if "queue" in self.__dict__:
            await self.queue.move_to(self.session_id)

    # -- the session -------------------------------------------------------------------------------------------------

    async def branch(self, title: str = "") -> str:
        """Copy everything that was said to a new session; its id. This one is left as it is."""
        from hermes.host.session_copy import copied  # rare

        new: str = await self.in_thread(copied, self.db, self.session_id, title)
        return new

    async def undo(self) -> tuple[str, int]:
        """Set the last exchange aside; what was asked in it, and how many messages that were. Files stay."""
        from hermes.host.session_text import said  # rare

        rows = await self.in_thread(self.db.list_recent_user_messages, self.session_id, 1)
        if not rows:
            raise UserError("nothing was asked in this session yet")
        done = await self.in_thread(self.db.rewind_to_message, self.session_id, rows[0]["id"])
        return said(rows[0]).strip(), int(done["rewound"])

    async def reconfigure(self, *, cwd: str = "", **flags: Any) -> None:
        """Change settings for this run (dotted keys, dots as two underscores), or the folder; the session goes on.

        `SessionBusy` while a turn runs. Another model acts from the next request on; toolsets in the next session.
        """
        if self.is_busy:
            from hermes.host.host_errors import SessionBusy  # rare

            raise SessionBusy("this can be changed when the turn has ended; stop it, or wait for its end")
        changed = {name.replace("__", "."): value for name, value in flags.items()}
        settings = replace(self.settings, flags={**self.settings.flags, **changed}, _made={})
        resolve(settings, ModelQuery())
        if cwd:
            await self._stand_in(cwd)
        self.settings = settings
        await self.agent.aclose(keep_background=True)
        self.agent = self._make_agent(self.session_id)
        await self.look_up()

    async def _stand_in(self, cwd: str) -> None:
        folder = await self.in_thread(_folder, self.cwd, cwd)
        self._start = structs.replace(self._start, folder=folder)
        if await self.exists():
            await self.in_thread(self.db.update_session_cwd, self.session_id, folder)

    async def close(self, reason: str = "", *, keep_background: bool = False, limit_s: float | None = STOP_S) -> None:
        """Stop what runs and let go; bounded. `reason` is noted as the session's end, none leaves it open."""
        self.is_closing = True
        if self._rest is not None:
            self._rest.cancel()
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
            approval_callback=self.questions.approve if self._start.can_ask else None,
            sudo_password_callback=self.questions.sudo_password if self._start.can_ask else None,
            auto_title=self._start.has_titles,
            stores_events=True,
        )


def _folder(here: str, wanted: str) -> str:
    folder = Path(here, Path(wanted).expanduser())
    if not folder.is_dir():
        raise UserError(f"there is no folder {str(folder)!r}")
    return str(folder)
