"""One conversation in a terminal: what is typed goes to a live session, and what it tells goes to the screen."""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec import structs

from hermes.config.sections.agent import Section as Agent
from hermes.config.sections.display import Section as Display
from hermes.config.sections.top import QuickCommand
from hermes.config.settings import Settings
from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError
from hermes.host.attached_skills import AttachedSkills
from hermes.host.command import SessionTarget, is_command, quick_commands, skill_names
from hermes.host.conversation import Conversation, Opener, WaitingLine
from hermes.host.events import (
    LiveEvent,
    MessageReturned,
    MessageTaken,
    ModeChanged,
    Notice,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    WorkChanged,
)
from hermes.host.hosted_session import SessionStart
from hermes.host.logs import turn_log
from hermes.host.mode_words import next_mode
from hermes.host.session_figures import SessionFigures
from hermes.host.turn_verdict import TurnVerdict
from hermes.redact import Redactor
from hermes.scope import TurnScope
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.interactive.command_view import key_help, show_result, terminal_facts
from hermes.surfaces.cli.interactive.markup import Painter, folded
from hermes.surfaces.cli.interactive.questions import Questions
from hermes.surfaces.cli.interactive.recent_messages import recent
from hermes.surfaces.cli.interactive.view import OWN, Look, Screen, TurnView
from hermes.types import CallFinished, CallStarted, OutputTail, ToolCall, ToolResult

WAITING = "Enter sends them, Up edits the last, /queue shows them"
_STYLES = {"info": (), "warning": ("yellow",), "error": ("red",)}
log = logging.getLogger(__name__)


class Face(Screen, Protocol):
    """The terminal, as the conversation sees it. `echoes`: what is typed stays on the screen by itself."""

    echoes: bool

    def leave(self) -> None:
        """End the conversation."""

    def offer(self, text: str) -> bool:
        """Put words into the input line, for the person to change and send; False when something stands there."""

    def clear(self) -> None: ...
    def pick(self, title: str, entries: Sequence[tuple[str, str]]) -> bool:
        """Let the person choose one (its label, the command it stands for); False where that cannot be drawn."""

    def copy(self, text: str) -> bool:
        """Hand words to the terminal's clipboard; False when it has none."""

    def turn_ended(self) -> None:
        """Ring, if that is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a conversation begins with. `folder` is where it works when that is not where Hermes was started."""

    cli: Cli
    wish: Wish
    settings: Settings
    loaded: AttachedSkills | None = None
    folder: str | None = None


class Chat:
    """A person at a terminal: `SessionListener` of the session that is talked to, and what types into it."""

    can_answer = True

    def __init__(self, start: Start, host: Opener, face: Face) -> None:
        self.cli, self.face, self._host = start.cli, face, host
        display = start.settings.of(Display)
        if start.wish.verbose or start.settings.of(Agent).verbose:
            display = structs.replace(display, tool_progress="verbose", show_reasoning=True)
        self.painter = Painter(self.cli.out, compact=display.compact)
        self.look = Look(display, display.show_reasoning, lambda: self.cwd)
        self.view = TurnView(face, self.painter, self.look)
        self.questions = Questions(face, self.say, lambda: self.live, self.painter, lists=not face.echoes)
        asked = SessionStart(
            settings=start.settings,
            asked=start.wish.agent,
            skills=start.loaded,
            folder=start.folder or "",
            launched_in=start.folder or str(Path.cwd()),
        )
        self._held_words: list[tuple[str, tuple[str, ...]]] = []
        self.own_scope: TurnScope | None = None  # of a command of the person's own that runs
        self._early: list[LiveEvent] | None = None  # what is heard before the past of the session is on the screen
        self.live: Conversation = host.session(asked)
        self.live.listen(self)

    # -- what is typed -------------------------------------------------------------------------------------------

    async def hear(self, text: str) -> None:
        """Act on what was sent: a slash command, or a message for the agent."""
        if not text.strip():
            self.live.release()
            return
        try:
            if text.strip() == "?":
                await show_result(self, key_help())
            elif text.startswith("!") and text[1:].strip():
                self.live.later(self._own(text[1:].strip()), "a command of the person's own")
            elif is_command(text):
                await show_result(self, await self.live.command(text.strip()[1:], terminal_facts(self)))
            else:
                await self.message(text)
        except HermesError as error:
            self.say(f"{error}", "red")
        except Exception as error:  # the border: a fault in one command must not end the conversation
            log.exception("%r failed", text.split(" ", 1)[0])
            inside = f"That failed inside Hermes ({type(error).__name__}: {error}); see: hermes logs"
            self.say(disk_trouble(error) or inside, "red")

    async def _own(self, command: str) -> None:
        """Run a command of the person's own and show it as calls are shown; its output joins the next message."""
        from hermes.host.live_session import LiveSession
        from hermes.host.own_command import run_own_command  # for who types one

        if not isinstance(self.live, LiveSession):
            self.say("This session runs in a server; type the command in a terminal of your own.", "yellow")
            return
        if self.own_scope is not None:
            self.say("A command of yours is still running; Esc stops it.", "yellow")
            return
        call = ToolCall(id=f"{OWN}{time.monotonic_ns()}", name="!")
        args = {"command": command}
        self.own_scope = scope = TurnScope("own command")
        self.view.emit(CallStarted(call, args))
        try:
            output, code = await run_own_command(
                self.live, command, scope, lambda tail: self.view.emit(OutputTail(call.id, self.redactor.redact(tail)))
            )
            details = {"exit_code": code}
        except HermesError as error:
            output, details = str(error), {"exit_code": 126}
        finally:
            self.own_scope = None
        result = ToolResult(call_id=call.id, name="!", content=output, details=details)
        self.view.emit(CallFinished(call, args, result))
        if not self.is_busy:
            self.view.end()
        self.say("It is told to the model with your next message.", "dim")
        self.face.refresh()

    async def message(self, text: str) -> None:
        """Send a message. While a turn runs, the busy mode says what becomes of it, and that is shown."""
        if await self.live.submit(text) is None:
            self.say(f"steering: {text}", "dim")
        self.face.refresh()

    def next_mode(self) -> None:
        """Change how far the session goes by itself: edits, ask, plan, and round again."""
        self.live.work_mode = next_mode(self.live.work_mode)

    def interrupt(self) -> bool:
        """Stop the turn that runs; what waits is held until the person says so. False when none runs."""
        return self._stop_own() or self.live.interrupt()

    def _stop_own(self) -> bool:
        if self.own_scope is None:
            return False
        self.own_scope.cancel("stopped by the person")
        return True

    def said(self, text: str) -> str:
        """What the person said, as it stays on the screen."""
        when = time.strftime("%H:%M ") if self.look.display.timestamps else ""
        return self.painter.said(text, when)

    def typed(self, text: str) -> str:
        """A slash command as it stays on the screen, above what it answers. A message is shown when its turn begins."""
        return self.painter.line(f"> {self.redactor.redact(text.strip())}", "bold") if is_command(text) else ""

    def say(self, text: str, *styles: str) -> None:
        """Words of Hermes itself, broken between words where the terminal would break inside one."""
        text = self.cli.out.typed(text)
        width = self.painter.width if self.cli.out.is_terminal else len(text)
        rows = [row for line in text.splitlines() for row in folded(line, max(1, width))]
        self.face.write("".join(f"{self.painter.style(row, *styles)}\n" for row in rows))

    def say_between(self, text: str, *styles: str) -> None:
        """The same, but not into the middle of a turn: then when it has ended."""
        if self.is_busy:
            self._held_words.append((text, styles))
        else:
            self.say(text, *styles)

    # -- what the session tells ----------------------------------------------------------------------------------

    def emit(self, event: LiveEvent) -> None:
        if self._early is not None:
            self._early.append(event)
            return
        match event:
            case WorkChanged():
                self._work_changed(event.is_busy)
            case MessageTaken():
                if not self.face.echoes:
                    self.face.write(self.said(event.text))
            case MessageReturned():
                self.say(event.why, "red")
            case Notice():
                self.say(event.text, *_STYLES[event.level])
            case ModeChanged():
                self.face.refresh()
            case TurnEnded():
                self._turn_ended(event)
            case QuestionAsked():
                self.view.asking(True)
                self.questions.refresh()
            case QuestionAnswered():
                self.view.asking(False)
                self.questions.answered(event.question_id, event.answer, event.by)
            case _:
                self.view.emit(event)

    def offer(self, text: str) -> bool:
        """Words that did not reach the agent go back into the input line, where there is room."""
        return self.face.offer(text)

    def _work_changed(self, is_busy: bool) -> None:
        if is_busy:
            self.view.begin()
            self.face.refresh()
        else:
            self.view.end()
            for text, styles in self._held_words:
                self.say(text, *styles)
            self._held_words.clear()
            self.face.turn_ended()

    def _turn_ended(self, event: TurnEnded) -> None:
        self.view.end()
        is_stopped = event.verdict == TurnVerdict.CANCELLED.value
        if event.answer and not self.view.has_answer and not is_stopped:
            self.view.say_markdown(event.answer)
        if is_stopped:
            self.say("Stopped.", "yellow")
        elif event.why:
            turn_log.warning("%s", event.why)
            self.say(event.why, "red")
        if event.held:
            self.say(f"{event.held} waiting: {WAITING}")

    # -- the session ---------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Begin with a new session."""
        await self._opened(None)

    async def go_to(self, target: SessionTarget) -> None:
        """Leave this session for another; what waits there is shown and held."""
        old = self.live
        self._stop_own()
        old.unlisten(self)
        await old.close(target.ends, keep_background=target.is_copy)
        self.live = self._host.session(old.start, target.session_id, is_copy=target.is_copy)
        self.live.busy_mode = old.busy_mode
        self.live.listen(self)
        self.view.context_tokens = 0
        await self._opened(None if target.is_copy else target.session_id)

    async def _opened(self, shown: str | None) -> None:
        early: list[LiveEvent] = []
        self._early = early
        try:
            count = await self.live.open()
            if shown is not None:
                live = self.live
                lines = await live.in_thread(recent, live.db, shown, self.look.display, self.painter, live.is_busy)
                self.face.write(lines)
        finally:
            self._early = None
            for event in early:
                self.emit(event)
        if count:
            self.say(f"{count} waiting from before: {WAITING}", "yellow")
        self.face.refresh()

    async def finish(self) -> None:
        """Stop what runs and let go; bounded."""
        self._stop_own()
        await self.live.close("user_exit")

    @property
    def quick_commands(self) -> dict[str, QuickCommand]:
        return quick_commands(self.live)

    @property
    def skills(self) -> Collection[str]:
        return tuple(skill_names(self.live))

    @property
    def is_busy(self) -> bool:
        return self.live.is_busy or self.own_scope is not None

    @property
    def session_id(self) -> str:
        return self.live.session_id

    @property
    def queue(self) -> WaitingLine:
        return self.live.queue

    @property
    def figures(self) -> SessionFigures:
        return self.live.figures

    @property
    def redactor(self) -> Redactor:
        return self.live.redactor

    @property
    def cwd(self) -> str:
        return self.live.cwd
