"""A session of a server, as a screen of another process talks to it. It finds its way back when the server ends.

Everything that is said has a key, so that a message whose reply was lost can be said again and is heard once. Events
are numbered, so that whoever comes back goes on after the last one it has seen.
"""

import asyncio
import secrets
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import ValidationError
from msgspec.structs import replace

from hermes.errors import HermesError
from hermes.host.command import CommandResult, SurfaceFacts
from hermes.host.events import (
    TERMINAL,
    LiveEvent,
    MessageTaken,
    ModeChanged,
    Notice,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    WorkChanged,
)
from hermes.host.host_errors import NothingPending, RequestRefused
from hermes.host.hosted_session import SessionListener, SessionStart
from hermes.host.message_queue import WaitingMessage
from hermes.host.session_figures import SessionFigures
from hermes.host.wire.connection import ServerConnection, ServerGone
from hermes.host.wire.frames import WireEvent
from hermes.host.wire.shown_turn import ShownTurn
from hermes.runtime.setup.process import shared
from hermes.state.message_line import MODES, BusyMode
from hermes.tools.environments.command_env import redactor_of
from hermes.typed import convert
from hermes.types import Content, JsonObject, Question, SessionRotated, text_of
from hermes.work_mode import WORK_MODES, WorkModeName

if TYPE_CHECKING:
    from hermes.host.wire.remote_host import RemoteHost
    from hermes.state import SessionDB

TOLD_S = 0.05  # how often it is looked whether all that is stored was told
UNKNOWN = (
    "The server ended during this turn. How far it came is in the session; the outcome of what had been started is"
    " unknown, and the model is told so."
)
READ_ONLY = "attached read-only; attach without --read-only to say something"


class KnownLine:
    """`WaitingLine` as the server told it last."""

    def __init__(self) -> None:
        self.open_ones: tuple[WaitingMessage, ...] = ()


class KnownQuestions:
    """`OpenQuestions` as far as they were told."""

    def __init__(self) -> None:
        self.asked: dict[str, Question] = {}

    @property
    def open_ones(self) -> tuple[Question, ...]:
        return tuple(self.asked.values())


class RemoteSession:
    """`Conversation` over a connection. `session_id` is that of the stored session, None one that is to be made."""

    def __init__(self, host: "RemoteHost", start: SessionStart, session_id: str | None, *, is_read_only: bool) -> None:
        self._host, self._start = host, start
        self.settings, self.asked = start.settings, start.asked
        self.redactor = redactor_of(start.settings)
        self.session_id = session_id or ""
        self.figures = SessionFigures()
        self.queue = KnownLine()
        self.questions = KnownQuestions()
        self.is_busy = False
        self._is_read_only = is_read_only
        self._busy_mode: BusyMode = "queue"
        self._work_mode: WorkModeName = "edits"
        self._listeners: list[SessionListener] = []
        self._live_id = ""
        self._after: int | None = None  # the number of the newest stored event that was told
        self._turn = ShownTurn()
        self._taken = ""  # the message of the turn that is shown
        self._is_closed = False
        self._cwd = ""

    # -- what a screen reads -----------------------------------------------------------------------------------------

    @property
    def db(self) -> "SessionDB":
        return self._host.db(self.settings)

    @property
    def start(self) -> SessionStart:
        return self._start

    @property
    def cwd(self) -> str:
        return self._cwd or self._start.folder or self._start.launched_in

    @property
    def busy_mode(self) -> BusyMode:
        return self._busy_mode

    @busy_mode.setter
    def busy_mode(self, mode: BusyMode) -> None:
        if mode != self._busy_mode and self._live_id:
            self.later(self._ask_quietly("config.set", key="busy", value=mode), "busy mode")
        self._busy_mode = mode

    @property
    def work_mode(self) -> WorkModeName:
        return self._work_mode

    @work_mode.setter
    def work_mode(self, mode: WorkModeName) -> None:
        if mode != self._work_mode and self._live_id:
            self.later(self._ask_quietly("config.set", key="mode", value=mode), "work mode")

    def listen(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def unlisten(self, listener: SessionListener) -> None:
        self._listeners.remove(listener)

    async def in_thread(self, work: Any, *args: Any) -> Any:
        return await shared.pool.run(work, *args)

    async def exists(self) -> bool:
        return bool(self.session_id) and await self.in_thread(self.db.get_session, self.session_id) is not None

    def later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._host.begin(work, name)

    # -- the way to the server ---------------------------------------------------------------------------------------

    async def open(self) -> int:
        """Attach; nothing waits for a word of the person where a server works."""
        await self.attach(await self._host.connection())
        return 0

    async def attach(self, connection: ServerConnection) -> None:
        """Be told of the session from where it was left, through this connection."""
        was_told = self._after is not None
        self._host.expect(self)
        try:
            found: JsonObject = await connection.ask(
                "session.attach",
                session_id=self.session_id,
                after=self._after,
                read_only=self._is_read_only,
                source=self.asked.source,
            )
            if not self._is_closed:
                self._attached(found, was_told=was_told)
        finally:
            self._host.settled()

    def _attached(self, found: JsonObject, *, was_told: bool) -> None:
        self._live_id = found["session_id"]
        is_busy = bool(found["is_busy"])
        known, self.questions.asked = self.questions.asked, {}
        for one in found["questions"]:
            self.questions.asked[one["id"]] = convert(one, Question)
        for gone in known.keys() - self.questions.asked.keys():
            self._tell(QuestionAnswered(question_id=gone, answer="", by="interrupt"))
        self._stands(found)
        if was_told and not is_busy:
            self.later(self._settle(), "the end of a turn")
        elif is_busy != self.is_busy:
            self._work(is_busy)
        if not was_told:
            self._after = found["after"]
            self._turn.begin(is_under_way=is_busy)
        else:
            self._tell(Notice("Connected again."))
        if is_busy and not was_told:
            self.later(self._tell_questions(), "what is asked")
        else:
            for question in self.questions.open_ones:
                self._tell(QuestionAsked(question))
        self._host.attached(self._live_id, self)

    async def _tell_questions(self) -> None:
        """Tell what is asked behind the turn it belongs to, which is told from its beginning, not above it."""
        while not self._is_closed:
            if not await self.in_thread(self.db.queries.events, self.session_id, self._after, 1):
                break
            await asyncio.sleep(TOLD_S)
        for question in self.questions.open_ones:
            self._tell(QuestionAsked(question))

    async def _settle(self) -> None:
        """A turn may have been shown that nobody works on any more: say so, once all that is stored was told."""
        while not self._is_closed:
            connection = await self._host.connection()
            try:
                state = (await connection.ask("session.status", session_id=self._live_id))["state"]
            except HermesError:  # gone again, and whoever attaches next sees to it
                return
            if not await self.in_thread(self.db.queries.events, self.session_id, self._after, 1):
                if state == "idle" and (self.is_busy or self._taken):
                    self._cut_off()
                    self._work(False)
                return
            await asyncio.sleep(TOLD_S)

    def _cut_off(self) -> None:
        """The turn that was shown did not end: tell how far it came."""
        for event in self._turn.cut_off():
            self._tell(event)
        if self._taken:
            self._tell(Notice(UNKNOWN, "warning"))
        self._taken = ""

    def lost(self) -> None:
        """The connection is gone; the host looks for another."""
        self._tell(Notice("The server is gone; connecting again …", "warning"))

    def heard(self, event: WireEvent) -> None:
        """What the server tells of this session."""
        if event.type == "session.state" and event.payload is not None:
            self._stands(event.payload)
            if self.is_busy and not event.payload["is_busy"]:
                self._work(False)
        elif event.type == "session.closed":
            self._live_id = ""
            self._work(False)
            self._tell(Notice("The session was closed on the server; the next message opens it again.", "warning"))
        elif event.type == "host.event" and event.payload is not None:
            self._host_event(event, event.payload)

    def _host_event(self, event: WireEvent, payload: JsonObject) -> None:
        if payload.get("is_stored"):
            if self._after is not None and event.number <= self._after:
                return
            self._after = event.number
        try:
            told: LiveEvent = convert(payload.get("event"), LiveEvent)
        except ValidationError:  # of a kind that this version does not know, which says so when it connects
            return
        match told:
            case ModeChanged():
                self._work_mode = told.mode
            case QuestionAsked():
                self.questions.asked.setdefault(told.question.id, told.question)
            case QuestionAnswered():
                self.questions.asked.pop(told.question_id, None)
                told = replace(told, by=TERMINAL if told.by == self._host.name else told.by)
            case MessageTaken():
                if self._taken:  # the turn before did not end
                    self._cut_off()
                    self._turn.begin()
                self._taken = told.key
                self.queue.open_ones = tuple(one for one in self.queue.open_ones if one.id != told.key)
                if not self.is_busy:
                    self._work(True)
            case WorkChanged():
                self._work(told.is_busy)
                return
            case SessionRotated():
                self.session_id = told.session_id
            case TurnEnded() if not self.is_busy:
                self._work(True)
        for each in self._turn.shown(told):
            self._tell(each)
        if isinstance(told, TurnEnded):
            self._taken = ""
            self._work(False)

    def _work(self, is_busy: bool) -> None:
        if is_busy != self.is_busy:
            self.is_busy = is_busy
            if is_busy:
                self._turn.begin()
            self._tell(WorkChanged(is_busy))

    def _stands(self, found: JsonObject) -> None:
        self.session_id = found["stored_session_id"]
        self.figures = convert(found["figures"], SessionFigures)
        self._cwd = found["cwd"]
        self._busy_mode = next((mode for mode in MODES if mode == found["busy_mode"]), "queue")
        self._work_mode = next((mode for mode in WORK_MODES if mode == found["work_mode"]), "edits")
        self.queue.open_ones = tuple(WaitingMessage(one["id"], one["text"]) for one in found["waiting"])

    def _tell(self, event: LiveEvent) -> None:
        for listener in self._listeners:
            listener.emit(event)

    # -- what a person does ------------------------------------------------------------------------------------------

    async def submit(self, content: Content, mode: BusyMode | None = None, key: str | None = None) -> Any:
        """Send a message; it is stored when this returns. None: the running turn was steered with it."""
        key = key or secrets.token_hex(6)
        found = await self._ask("prompt.submit", text=text_of(content), mode=mode, key=key)
        return None if found["status"] == "steered" else WaitingMessage(key, content)

    async def withdraw(self, key: str) -> None:
        await self._ask("prompt.withdraw", key=key)

    async def command(self, typed: str, surface: SurfaceFacts) -> CommandResult:
        words = typed.split(None, 1)[0]
        if words in ("quit", "exit", "detach"):  # needs nobody, also when the server is gone
            return CommandResult(leaves=True)
        told = {"kind": surface.kind, "shows_reasoning": surface.shows_reasoning, "keys": surface.keys}
        found = await self._ask("slash.exec", command=typed, whole=True, surface=told)
        return convert(found, CommandResult)

    def interrupt(self) -> bool:
        if self._is_read_only or not self.is_busy:
            return False
        self.later(self._ask_quietly("session.interrupt"), "an interrupt")
        return True

    def steer(self, text: str) -> bool:
        if self._is_read_only or not self.is_busy:
            return False
        self.later(self._ask_quietly("session.steer", text=text), "a word for the turn")
        return True

    def release(self) -> None:
        if not self._is_read_only:
            self.later(self._ask_quietly("prompt.release"), "go on")

    def answer(self, question_id: str | None, said: str | None, by: str) -> Question:
        """The first answer wins; whether this one did is told by the event."""
        if self._is_read_only:
            raise RequestRefused(READ_ONLY)
        wanted = question_id or next(iter(self.questions.asked), "")
        question = self.questions.asked.pop(wanted, None)
        if question is None:
            raise NothingPending("nothing is asked; it may have been answered, or its time is over")
        self.later(self._ask_quietly("question.answer", request_id=wanted, answer=said), "an answer")
        return question

    async def close(self, reason: str = "", *, keep_background: bool = False) -> None:
        """Leave it; whatever runs goes on."""
        self._is_closed = True
        self._host.left(self)
        if self._live_id and (connection := self._host.current) is not None:
            try:
                async with asyncio.timeout(1.0):
                    await connection.ask("session.detach", session_id=self._live_id)
            except (HermesError, TimeoutError):
                return

    async def _ask(self, method: str, **params: Any) -> Any:
        """Ask until somebody answers: a server that ends meanwhile is replaced, and asked the same again."""
        if self._is_read_only:
            raise RequestRefused(READ_ONLY)
        while True:
            connection = await self._host.connection()
            try:
                if not self._live_id:
                    await self.attach(connection)
                return await connection.ask(method, session_id=self._live_id, **params)
            except ServerGone:
                await self._host.lost(connection)

    async def _ask_quietly(self, method: str, **params: Any) -> None:
        try:
            await self._ask(method, **params)
        except HermesError as error:
            self._tell(Notice(str(error), "warning"))
