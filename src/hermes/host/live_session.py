"""A session that is alive in this process: its line of messages, its agent, and who listens.

What is submitted is in the store before `submit` returns; a worker takes it from there, one turn at a time, and ends
when nothing is left to do, so a session that sleeps costs no task. Everything here is called on the host's loop.
"""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import structs

from hermes.config.settings import Settings
from hermes.errors import HermesError
from hermes.host.events import LiveEvent, Notice, NoticeLevel, NumberedEvent
from hermes.host.hosted_session import STOP_S, HostedSession, SessionListener, SessionStart
from hermes.host.logs import session_tag
from hermes.host.mode_words import hear
from hermes.host.session_figures import SESSION_FIGURES, SessionFigures
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.state.queries import SessionFilter
from hermes.types import Content, JsonObject, ModelAnswered, TasksChanged

if TYPE_CHECKING:  # for the first message or the first stream
    from hermes.host.command import CommandResult, SurfaceFacts
    from hermes.host.event_log import Calls, EventLog, EventStream
    from hermes.host.host import Host
    from hermes.host.message_queue import MessageQueue, WaitingMessage
    from hermes.host.turn_worker import TurnWorker
    from hermes.state.message_line import BusyMode

SOON_S = 1.0


class LiveSession(HostedSession):
    """A session with its line. What is submitted is in the store before `submit` returns."""

    def __init__(self, host: "Host", start: SessionStart, session_id: str | None, *, is_copy: bool = False) -> None:
        self.is_held = False  # the line waits for a word of the person
        self.last_answer = ""
        self.figures = SessionFigures()
        # Skills of this run reach a session that goes on with its next message; a copy knows them already.
        self.tasks: tuple[JsonObject, ...] = ()  # the list that the model works by, as it was told last
        self.own_output: list[str] = []  # of commands of the person's own, for the next message
        self._untold = start.skills if session_id is not None and not is_copy else None
        self._compress_wanted: str | None = None  # the topic to keep above all
        self._at_ease = asyncio.Event()  # no worker is at work
        self._at_ease.set()
        self._busy_mode: BusyMode | None = None
        self._opened: asyncio.Event | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._log: EventLog | None = None  # for the first stream
        self._worker: TurnWorker | None = None  # for the first message
        super().__init__(host, start, session_id)

    @property
    def busy_mode(self) -> "BusyMode":
        """What a message does that comes during a turn; commands change it for this run."""
        if self._busy_mode is None:
            from hermes.config.sections.display import Section

            self._busy_mode = self.settings.of(Section).busy_input_mode
        return self._busy_mode

    @busy_mode.setter
    def busy_mode(self, mode: "BusyMode") -> None:
        self._busy_mode = mode

    @cached_property
    def queue(self) -> "MessageQueue":
        """What waits for its turn."""
        from hermes.host.message_queue import MessageQueue

        return MessageQueue(self.db, self.session_id, self.redactor.redact, self.asked.source)

    async def open(self) -> int:
        """Read what the store knows of it; how many messages wait from before. They are held."""
        self._opened = asyncio.Event()
        try:
            await self.look_up()
            count = await self.queue.open()
            self.is_held = count > 0
        finally:
            self._opened.set()
        return count

    async def until_open(self) -> None:
        """Wait for whoever opens it just now: what is said before its line was read would be lost in that."""
        if self._opened is not None:
            await self._opened.wait()

    # -- listeners ---------------------------------------------------------------------------------------------------

    def unlisten(self, listener: SessionListener) -> None:
        self.listeners.remove(listener)
        self.rest()

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody listens and nothing is to be done, so that its rows are all it needs."""
        is_heard = bool(self.listeners) or (self._log is not None and self._log.has_streams)
        is_due = self._compress_wanted is not None or ("queue" in self.__dict__ and self._next() is not None)
        return not (is_heard or is_due or self.is_busy or not self._at_ease.is_set() or self.is_closing)

    @property
    def is_at_ease(self) -> bool:
        """Whether nobody works on it, and nothing waits that somebody would begin with."""
        return self._at_ease.is_set() and not self.is_busy

    def rest_if_alone(self) -> None:
        """`rest`, unless somebody listens; whoever stops to listen says so again."""
        if not self.is_closing and not self.listeners and not (self._log is not None and self._log.has_streams):
            self.rest()

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
        if type(event) is TasksChanged:
            self.tasks = event.tasks
        if type(event) is ModelAnswered:
            self.figures.in_context = event.usage.prompt_tokens or self.figures.in_context
        if self._log is not None:
            self._log.put(event)
        super().tell(event)

    emit = tell  # a session is the sink of its agent

    def events(self, after: int = 0) -> "EventStream":
        """What was told after this number, as it is stored, then what happens; for as long as it is not closed."""
        if self._log is None:
            from hermes.host.event_log import EventLog

            self._log = EventLog(self._read_events, self.host.begin, self.rest_if_alone)
        return self._log.stream(after)

    async def _read_events(self, after: int, known: "Calls") -> list[NumberedEvent]:
        from hermes.host.event_log import read_events

        found: list[NumberedEvent] = await self.in_thread(read_events, self.db, self.session_id, after, known)
        return found

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
        hear(self.mode, content)
        if self.own_output and isinstance(content, str):
            content, self.own_output = "\n\n".join((*self.own_output, content)), []
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
        if one is None or not await self.queue.withdraw(one):
            raise NothingPending("this message no longer waits")

    def steer(self, text: str) -> bool:
        """Tell the model something after its current calls; False when no turn runs."""
        return self.agent.steer(text)

    def interrupt(self) -> bool:
        """Stop the turn that runs; what waits is held until the person says so. False when none runs."""
        if not super().interrupt():
            return False
        self.is_held = True
        if self._worker is not None:
            self._worker.stop()
        return True

    def release(self) -> None:
        """Go on with what is held."""
        self.is_held = False
        self._wake()

    def compress(self, topic: str) -> None:
        """Sum up the session, `topic` above all, as soon as no turn runs."""
        self._compress_wanted = topic
        self._wake()

    async def compress_now(self, topic: str) -> dict[str, Any]:
        """Sum up the session; the kernel's figures. `SessionBusy` while a turn runs, `HermesError` when it fails."""
        from hermes.host.host_errors import SessionBusy  # rare

        try:
            async with asyncio.timeout(SOON_S):
                await self._at_ease.wait()
        except TimeoutError:
            raise SessionBusy("a turn runs in this session; stop it, or wait for its end") from None
        self._at_ease.clear()
        try:
            return await self._made_worker().compress(topic)
        finally:
            self._at_ease.set()
            self._wake()

    async def command(self, typed: str, surface: "SurfaceFacts") -> "CommandResult":
        """Run a slash command, given without its slash."""
        from hermes.host.command import run_command  # which knows this class

        return await run_command(self, typed, surface)

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
        if self._at_ease.is_set() and (self._compress_wanted is not None or self._next() is not None):
            worker = self._made_worker()
            self._at_ease.clear()
            self.host.begin(self._work(worker), f"session {self.session_id}")

    def _made_worker(self) -> "TurnWorker":
        from hermes.host.turn_worker import TurnWorker  # a question past the line does without

        if self._worker is None:
            self._worker = TurnWorker(self, self._untold)
        return self._worker

    def _next(self) -> "WaitingMessage | None":
        return None if self.is_held or self.is_closing else next(iter(self.queue.open_ones), None)

    async def _work(self, worker: "TurnWorker") -> None:
        session_tag.set(self.session_id)
        try:
            while not self.is_closing:
                if self._compress_wanted is not None:
                    topic, self._compress_wanted = self._compress_wanted, None
                    await worker.compress_and_tell(topic)
                elif (one := self._next()) is not None:
                    await worker.turn(one)
                    await self.queue.refresh()  # others may have put something into the line meanwhile
                else:
                    return
        finally:
            self._at_ease.set()
            self.rest_if_alone()

    async def follow(self) -> None:
        """A session that was compressed goes on under another id; what waits goes along."""
        old = self.session_id
        await super().follow()
        if self.session_id != old:
            await self.queue.move_to(self.session_id)

    # -- the session -------------------------------------------------------------------------------------------------

    async def branch(self, title: str = "") -> str:
        """Copy everything that was said to a new session; its id. This one is left as it is."""
        from hermes.host.session_copy import copied  # rare

        new: str = await self.in_thread(copied, self.db, self.session_id, title)
        return new

    async def undo(self) -> tuple[str, int]:
        """Set the last exchange aside; what was asked in it, and how many messages that were. Files stay."""
        from hermes.host.session_changes import undo  # rare

        return await undo(self)

    async def reconfigure(self, *, cwd: str = "", **flags: Any) -> None:
        """Change settings for this run (dotted keys, dots as two underscores), or the folder; the session goes on.

        `SessionBusy` while a turn runs. Another model acts from the next request on; toolsets in the next session.
        """
        from hermes.host.session_changes import changed_settings, folder_for  # rare

        settings = changed_settings(self, flags)
        if cwd:
            folder = await folder_for(self, cwd)
            self._start = structs.replace(self._start, folder=folder)
        self.settings = settings
        await self.agent.aclose(keep_background=True)
        self.agent = self._make_agent(self.session_id)
        await self.look_up()

    async def close(self, reason: str = "", *, keep_background: bool = False, limit_s: float | None = STOP_S) -> None:
        if self._rest is not None:
            self._rest.cancel()
        await super().close(reason, keep_background=keep_background, limit_s=limit_s)
        if self._log is not None:
            self._log.close()

    @property
    def cwd(self) -> str:
        """Where the session works."""
        return self.figures.cwd or super().cwd

    async def look_up(self) -> None:
        """Bring the figures up to what the store knows of the session."""
        rows = await self.db.queries.sessions_soon(SessionFilter(ids=(self.session_id,), limit=1), SESSION_FIGURES)
        if (in_use := self.agent.model_in_use) is not None:  # it may have been asked what it is
            self.figures.reads(in_use[0], *in_use[1])
        else:
            try:
                self.figures.reads(*self.settings.once(_model_named))
            except HermesError:
                self.figures.reads("no model", None)
        self.figures.of_session(rows[0] if rows else None)


def _model_named(settings: Settings) -> tuple[str, int | None]:
    """The model of the settings and what it is known to read at once, until its first turn knows better."""
    endpoint = resolve(settings, ModelQuery()).endpoint
    return endpoint.model or endpoint.provider, endpoint.context_length
