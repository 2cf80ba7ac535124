"""One session as an editor sees it: prompts in, updates out. It listens to a live session and keeps nothing itself."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import assert_never

from msgspec import structs

from hermes.config.sections.context import Section as ContextSection
from hermes.errors import HermesError
from hermes.host.command import COMMANDS, SurfaceFacts, available, is_command, run_command, skill_names
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
from hermes.host.host_errors import NothingPending
from hermes.host.live_session import LiveSession
from hermes.host.turn_verdict import TurnVerdict
from hermes.surfaces.acp.call_ids import CallIds
from hermes.surfaces.acp.call_view import begun, ended, plan_of, text_content
from hermes.surfaces.acp.child_view import ChildEntries
from hermes.surfaces.acp.connection import EditorConnection
from hermes.surfaces.acp.edit_view import edits_of
from hermes.surfaces.acp.editor_modes import EditorMode, is_waved_through, mode_of, work_mode_of
from hermes.surfaces.acp.permission import DENY, PermissionDesk, is_sensitive
from hermes.surfaces.acp.prompt_blocks import content_of, text_alone
from hermes.surfaces.acp.protocol import (
    AnswerChunk,
    CallMoved,
    CommandOffered,
    CommandsTold,
    CommandWords,
    InfoTold,
    ModeTold,
    PromptReply,
    StopReason,
    TextBlock,
    ThoughtChunk,
    TurnUsage,
    Update,
    UpdateParams,
    UsageTold,
)
from hermes.types import (
    CallFinished,
    CallProgress,
    CallStarted,
    ChildProgress,
    Commentary,
    JsonObject,
    MinorEvent,
    ModelAnswered,
    OutputTail,
    Question,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TasksChanged,
    TextDelta,
    TurnFinished,
    Usage,
)

EDITOR = SurfaceFacts(kind="editor")
SPEC_NAMES = {"reset": "new", "compact": "compress"}  # names of the protocol's other agents for commands of ours
log = logging.getLogger(__name__)
GoTo = Callable[["EditorSession", str | None], Awaitable[None]]


class EditorSession:
    """`SessionListener` between a live session and its editor. `acp_id` stays when the session moves."""

    can_answer = True

    def __init__(self, acp_id: str, live: LiveSession, connection: EditorConnection, go_to: GoTo) -> None:
        self.acp_id = acp_id
        self.live = live
        self.mode: EditorMode = mode_of(live.work_mode)
        self.ids = CallIds()
        self._connection = connection
        self._go_to = go_to
        self._permissions = PermissionDesk(connection, acp_id, lambda: self.live.cwd)
        self._children = ChildEntries()
        self._in_order = asyncio.Lock()  # prompts reach the line in the order in which they came
        self._turns: dict[str, asyncio.Future[StopReason]] = {}
        self._lined: set[str] = set()  # those that are in the line, or were
        self._current = ""
        self._cancels = 0  # that are under way: the line is held until they have taken back what they found
        self._spent = Usage()
        self._has_streamed = False
        self._title = ""
        self._heard: asyncio.Queue[str] | None = None  # what Hermes itself says, while a command waits for it
        live.mode.watched = is_sensitive
        live.listen(self)

    # -- what the editor asks for --------------------------------------------------------------------------------------

    async def prompt(self, blocks: list[JsonObject]) -> PromptReply:
        """Run a turn with these blocks, after those that came before; how it ended."""
        text = text_alone(blocks)
        if text is not None and not text.strip():
            return PromptReply("end_turn")
        if text is not None and text.startswith("/steer ") and not self.live.is_busy:
            blocks = [{"type": "text", "text": text.removeprefix("/steer ")}]  # nothing to steer: an ordinary prompt
        elif text is not None and (command := self._command_in(text)):
            return await self._run(command)
        key = secrets.token_hex(8)
        turn: asyncio.Future[StopReason] = asyncio.get_running_loop().create_future()
        if self._turns:
            self._say(f"Queued for the next turn. ({len(self._turns)} queued)")
        self._turns[key] = turn  # from now on a cancel is for this one, too
        try:
            async with self._in_order:
                if not turn.done():
                    await self._line_up(key, blocks)
            reason = await turn
        except HermesError as error:
            self._say(str(error))
            return PromptReply("end_turn")
        finally:
            self._turns.pop(key, None)
            self._lined.discard(key)
        spent, self._spent = self._spent, Usage()
        return PromptReply(reason, _turn_usage(spent))

    async def _line_up(self, key: str, blocks: list[JsonObject]) -> None:
        content = await self.live.in_thread(content_of, blocks)
        await self.live.submit(content, "queue", key)
        self._lined.add(key)
        if self._turns[key].done():  # a cancel came meanwhile
            await self._take_back(key)
        elif not self.live.is_busy:
            self._go_on()

    async def cancel(self) -> None:
        """Stop the turn that runs, and take back the prompts that wait for theirs; those that come later wait on."""
        self.live.interrupt()
        self._cancels += 1
        try:
            for key in [key for key in self._turns if key != self._current]:
                if key not in self._lined or await self._take_back(key):
                    self._end(key, "cancelled")
        finally:
            self._cancels -= 1
        if not self.live.is_busy:
            self._go_on()

    async def _take_back(self, key: str) -> bool:
        """Whether a prompt was taken out of the line; one that is the turn which runs is stopped."""
        try:
            await self.live.withdraw(key)
        except NothingPending:
            self.live.interrupt()
            return False
        return True

    def set_mode(self, mode: EditorMode) -> None:
        self.mode = mode
        self.live.work_mode = work_mode_of(mode)

    def greet(self) -> None:
        """What an editor is told after it has opened a session."""
        offered = [_offered(name) for name in available("editor")]
        offered += [structs.replace(_offered(ours), name=theirs) for theirs, ours in SPEC_NAMES.items()]
        self.update(CommandsTold(tuple(sorted(offered, key=lambda one: one.name))))
        self._tell_usage()

    def update(self, update: Update) -> None:
        self._connection.notify("session/update", UpdateParams(self.acp_id, update))

    def leave(self) -> None:
        """Listen no more; whoever waits is told that it is over."""
        for key in list(self._turns):
            self._end(key, "cancelled")
        if self in self.live.listeners:
            self.live.unlisten(self)

    def move_to(self, live: LiveSession) -> None:
        """Go on with another session under the same name."""
        self.live.unlisten(self)
        self.live = live
        live.mode.watched = is_sensitive
        live.work_mode = work_mode_of(self.mode)
        live.listen(self)

    # -- commands ------------------------------------------------------------------------------------------------------

    def _command_in(self, text: str) -> str:
        """The slash command that a prompt is, without its slash; empty when it is for the model."""
        if not is_command(text):
            return ""
        word, _, rest = text.strip()[1:].partition(" ")
        name = SPEC_NAMES.get(word, word)
        known = {*available("editor")} | {
            alias for each in available("editor") for alias in COMMANDS.load(each).aliases
        }
        return f"{name} {rest}".strip() if name in known or name in skill_names(self.live) else ""

    async def _run(self, command: str) -> PromptReply:
        heard = self._heard = asyncio.Queue[str]()
        waits = command.partition(" ")[0] == "compress" and not self.live.is_busy
        try:
            result = await run_command(self.live, command, EDITOR)
            tables = (f"{head}\n{_rows(rows)}" for head, rows in result.sections)
            parts = [result.text, *tables, result.screen, result.note]
            if waits:  # it says how it went when it is done
                parts.append(await heard.get())
            self._say("\n".join(part.rstrip("\n") for part in parts if part))
            if result.goes_to is not None:
                await self._go_to(self, result.goes_to.session_id)
        except HermesError as error:
            self._say(str(error))
        finally:
            self._heard = None
        self._tell_usage()
        return PromptReply("end_turn")

    # -- what the session tells ----------------------------------------------------------------------------------------

    def offer(self, _text: str) -> bool:
        return True  # what did not reach the agent is told to the editor, and waits for nobody

    def emit(self, event: LiveEvent) -> None:  # noqa: C901, PLR0912 - one line for each kind of event
        match event:
            case TextDelta(text=text):
                self._has_streamed = True
                self.update(AnswerChunk(TextBlock(text)))
            case ReasoningDelta(text=text):
                self.update(ThoughtChunk(TextBlock(text)))
            case Commentary(text=text, already_streamed=was_streamed):
                if not was_streamed:
                    self.update(AnswerChunk(TextBlock(text)))
                self._has_streamed = False
            case CallStarted(call=call):
                named = structs.replace(call, id=self.ids.begin(call.id))
                self.update(begun(structs.replace(event, call=named), self.live.cwd))
            case CallFinished(call=call):
                named = structs.replace(call, id=self.ids.known(call.id))
                self._has_streamed = False
                self.update(ended(structs.replace(event, call=named), edits_of(event, self.live.cwd)))
            case OutputTail(call_id=call_id, text=text):
                self.update(CallMoved(tool_call_id=self.ids.known(call_id), content=text_content(text)))
            case CallProgress(call_id=call_id):
                self.update(CallMoved(tool_call_id=self.ids.known(call_id), content=text_content(event.words)))
            case TasksChanged(tasks=tasks):
                self.update(plan_of(tasks))
            case ChildProgress():
                self._tell_all(self._children.see(event))
            case ModelAnswered(usage=usage):
                self._spent = _sum(self._spent, usage)
            case SessionRotated():
                self.update(InfoTold(updated_at=_now(), meta={"hermes": {"currentHermesSessionId": event.session_id}}))
            case MessageTaken(key=key):
                self._current, self._has_streamed = key, False
            case MessageReturned(key=key, why=why):
                self._returned(key, why)
            case TurnEnded():
                self._turn_ended(event)
            case QuestionAsked(question=question):
                self.live.later(self._answer(question), f"question {question.id}")
            case ModeChanged(mode=mode):
                if work_mode_of(self.mode) != mode:
                    self.mode = mode_of(mode)
                self.update(ModeTold(self.mode))
            case Notice(text=text):
                if self._heard is not None:
                    self._heard.put_nowait(text)
                log.info("%s", text)
            case StatusChanged(message=message):
                log.info("%s", message)
            case WorkChanged(is_busy=is_busy):
                if not is_busy:
                    self._go_on()
            case QuestionAnswered() | TurnFinished() | MinorEvent():
                return
            case _:
                assert_never(event)

    def _tell_all(self, updates: Iterable[Update]) -> None:
        for update in updates:
            self.update(update)

    def _turn_ended(self, event: TurnEnded) -> None:
        self._tell_all(self._children.close())
        is_cancelled = event.verdict == TurnVerdict.CANCELLED.value
        if event.answer and not self._has_streamed:
            self.update(AnswerChunk(TextBlock(event.answer)))
        if event.why and not is_cancelled:
            self._say(event.why)
        if self.live.figures.title != self._title:
            self._title = self.live.figures.title
            self.update(InfoTold(title=self._title, updated_at=_now()))
        self._tell_usage()
        reason: StopReason = "end_turn"
        if is_cancelled:
            reason = "cancelled"
        elif event.verdict == TurnVerdict.BUDGET.value:
            reason = "max_turn_requests"
        self._end(self._current, reason)
        self._current = ""

    def _returned(self, key: str, why: str) -> None:
        if not self.live.is_stop_wanted:
            self._say(why)
        self._end(key, "cancelled" if self.live.is_stop_wanted else "end_turn")
        self._current = ""

    def _go_on(self) -> None:
        """A stop holds the line for a word of the person; here the next prompt is that word."""
        if self._cancels:
            return
        waiting = {one.id for one in self.live.queue.line}
        for key in self._lined - waiting:  # somebody else took it out of the line
            self._end(key, "end_turn")
        if self.live.is_held and not self.live.is_closing and not waiting.isdisjoint(self._turns):
            self.live.release()

    def _end(self, key: str, reason: StopReason) -> None:
        turn = self._turns.get(key)
        if turn is not None and not turn.done():
            turn.set_result(reason)

    async def _answer(self, question: Question) -> None:
        said = "once" if is_waved_through(self.mode, question, self.live.cwd) else await self._permissions.ask(question)
        try:
            self.live.answer(question.id, None if said == DENY else said, "editor")
        except NothingPending:
            log.info("question %s was over before the editor answered", question.id)

    def _say(self, text: str) -> None:
        if text:
            self.update(AnswerChunk(TextBlock(text)))

    def _tell_usage(self) -> None:
        figures = self.live.figures
        cost = {"amount": figures.cost_usd, "currency": "USD"} if figures.cost_usd else None
        window = figures.window or self.live.settings.of(ContextSection).assumed_window  # until the model is asked
        self.update(UsageTold(window, figures.in_context, cost))


def _offered(name: str) -> CommandOffered:
    args = COMMANDS.load(name).args
    return CommandOffered(name, COMMANDS.summary(name), CommandWords(args) if args else None)


def _rows(rows: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(f"- {name}: {words}" if words else f"- {name}" for name, words in rows)


def _sum(one: Usage, more: Usage) -> Usage:
    def both(name: str) -> int:
        return (getattr(one, name) or 0) + (getattr(more, name) or 0)

    return Usage(*(both(name) for name in Usage.__struct_fields__))


def _turn_usage(spent: Usage) -> TurnUsage:
    read, written = spent.prompt_tokens or 0, spent.output_tokens or 0
    return TurnUsage(read, written, read + written, spent.cache_read_tokens or 0, spent.reasoning_tokens or 0)


def _now() -> str:
    return datetime.now(UTC).isoformat()
