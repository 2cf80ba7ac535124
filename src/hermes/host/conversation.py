"""A session as a screen sees it: one of this process, or one of a server that the screen is attached to."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from hermes.config.settings import Settings
from hermes.host.agent_settings import AgentSettings
from hermes.host.hosted_session import SessionListener, SessionStart
from hermes.host.session_figures import SessionFigures
from hermes.redact import Redactor
from hermes.types import Content, Question
from hermes.work_mode import WorkModeName

if TYPE_CHECKING:
    from hermes.host.command import CommandResult, SurfaceFacts
    from hermes.host.message_queue import WaitingMessage
    from hermes.state import SessionDB
    from hermes.state.message_line import BusyMode


class WaitingLine(Protocol):
    """What waits for its turn."""

    @property
    def open_ones(self) -> "tuple[WaitingMessage, ...]": ...


class OpenQuestions(Protocol):
    """What people are asked."""

    @property
    def open_ones(self) -> tuple[Question, ...]: ...


class CommandScene(Protocol):
    """As much of a session as the table of commands needs for its lists and completions."""

    settings: Settings
    asked: AgentSettings

    @property
    def db(self) -> "SessionDB": ...
    @property
    def cwd(self) -> str: ...


class Conversation(CommandScene, Protocol):
    """What a screen talks to; `LiveSession` says what each of these does."""

    session_id: str
    is_busy: bool
    busy_mode: "BusyMode"
    work_mode: WorkModeName
    figures: SessionFigures
    redactor: Redactor

    @property
    def queue(self) -> WaitingLine: ...
    @property
    def questions(self) -> OpenQuestions: ...
    @property
    def start(self) -> SessionStart: ...

    def listen(self, listener: SessionListener) -> None: ...
    def unlisten(self, listener: SessionListener) -> None: ...
    async def open(self) -> int: ...
    async def submit(self, content: Content, mode: "BusyMode | None" = None, key: str | None = None) -> Any: ...
    async def withdraw(self, key: str) -> None: ...
    async def command(self, typed: str, surface: "SurfaceFacts") -> "CommandResult": ...
    def interrupt(self) -> bool: ...
    def steer(self, text: str) -> bool: ...
    def release(self) -> None: ...
    def answer(self, question_id: str | None, said: str | None, by: str) -> Question: ...
    def later(self, work: Coroutine[Any, Any, None], name: str) -> None: ...
    async def close(self, reason: str = "", *, keep_background: bool = False) -> None: ...
    async def in_thread(self, work: Any, *args: Any) -> Any: ...
    async def exists(self) -> bool: ...


class Opener(Protocol):
    """Where a screen's sessions come from."""

    def session(self, start: SessionStart, session_id: str | None = None, *, is_copy: bool = False) -> Conversation: ...
