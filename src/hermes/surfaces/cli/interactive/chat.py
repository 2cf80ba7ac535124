"""One conversation in a terminal: what is typed goes into a durable line, and one worker takes it from there."""

import asyncio
import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from msgspec import structs

from hermes import AIAgent, dicts
from hermes.config.load import bound_settings
from hermes.config.sections.agent import Section as Agent
from hermes.config.sections.approvals import Section as Approvals
from hermes.config.sections.display import Section as Display
from hermes.config.sections.top import QuickCommand
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError, UserError
from hermes.extensions.skills.skill_book import SkillBook, names_of
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.runtime.setup.process import shared
from hermes.state import SessionDB
from hermes.state.message_line import BusyMode
from hermes.surfaces.cli.chat.keywords import agent_keywords
from hermes.surfaces.cli.chat.references import opened, surroundings
from hermes.surfaces.cli.chat.skills import Loaded
from hermes.surfaces.cli.chat.verdict import EMPTY, exit_code, why_for
from hermes.surfaces.cli.chat.wish import Wish
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.interactive.markup import Painter, folded
from hermes.surfaces.cli.interactive.questions import Questions
from hermes.surfaces.cli.interactive.recent_messages import recent
from hermes.surfaces.cli.interactive.slashes import SLASHES, find, run_quick
from hermes.surfaces.cli.interactive.status import ShownSpend
from hermes.surfaces.cli.interactive.view import Look, Screen, TurnView
from hermes.surfaces.cli.interactive.waiting import GONE, Waited, Waiting
from hermes.surfaces.cli.passwords import ask_password
from hermes.surfaces.logs import Logged, session_tag, turn_log
from hermes.tools.environments.command_env import redactor_of

STOP_S = 3.0
SOON_S = 1.0
log = logging.getLogger(__name__)


class Face(Screen, Protocol):
    """The terminal, as the conversation sees it. `echoes`: what is typed stays on the screen by itself."""

    echoes: bool

    def leave(self) -> None:
        """End the conversation."""
        ...

    def offer(self, text: str) -> bool:
        """Put words into the input line, for the person to change and send; False when something stands there."""
        ...

    def clear(self) -> None: ...
    def copy(self, text: str) -> bool:
        """Hand words to the terminal's clipboard; False when it has none."""
        ...

    def turn_ended(self) -> None:
        """Ring, if that is wanted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a conversation begins with. `folder` is where it works when that is not where Hermes was started."""

    cli: Cli
    wish: Wish
    settings: Settings
    loaded: Loaded | None = None
    folder: str | None = None


class Chat:
    """The session that is talked to, its agent, and what waits for it. Slash commands work on this."""

    def __init__(self, start: Start, db: SessionDB, face: Face) -> None:
        self.cli, self.wish, self.settings = start.cli, start.wish, start.settings
        self.db, self.face = db, face
        display = self.settings.of(Display)
        if self.wish.verbose or self.settings.of(Agent).verbose:
            display = structs.replace(display, tool_progress="verbose", show_reasoning=True)
        self.painter = Painter(self.cli.out, compact=display.compact)
        self.look = Look(display, display.show_reasoning, lambda: self.cwd)
        self.view = TurnView(face, self.painter, self.look)
        self.questions = Questions(face, self.say, self.settings.of(Approvals).timeout)
        self.busy_mode: BusyMode = display.busy_input_mode
        self._loaded = start.loaded
        self._untold: Loaded | None = None  # skills that reach a session with its next message
        self._folder = start.folder
        self.launched_in = start.folder or str(Path.cwd())
        self.redactor = redactor_of(self.settings)
        self.is_busy = False
        self.is_held = False  # the line waits for a word of the person
        self.is_leaving = False
        self._stop_wanted = False
        self._compress_wanted: str | None = None  # the topic to keep above all
        self.last_answer = ""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._use(None)

    agent: AIAgent
    session_id: str
    waiting: Waiting

    # -- what is typed -------------------------------------------------------------------------------------------

    async def hear(self, text: str) -> None:
        """Act on what was sent: a slash command, or a message for the agent."""
        if not text.strip():
            self.release()
            return
        try:
            if is_command(text):
                await self.command(text.strip()[1:])
            else:
                await self.message(text)
        except HermesError as error:
            self.say(f"{error}", "red")
        except Exception as error:  # the border: a fault in one command must not end the conversation
            log.exception("%r failed", text.split(" ", 1)[0])
            inside = f"That failed inside Hermes ({type(error).__name__}: {error}); see: hermes logs"
            self.say(disk_trouble(error) or inside, "red")

    async def message(self, text: str, *, first: bool = False) -> None:
        """Put a message into the line. While a turn runs, the busy mode says what becomes of it, and that is shown."""
        if self.is_busy and self.busy_mode == "steer" and self.agent.steer(text):
            self.say(f"steering: {text}", "dim")
            return
        is_first = first or (self.is_busy and self.busy_mode == "interrupt")
        await self.waiting.add(text, first=is_first, mode=self.busy_mode)
        if self.is_busy and self.busy_mode == "interrupt":
            self.agent.interrupt()
        if not self.is_busy:
            self.is_held = False
        self._wake.set()
        self.face.refresh()

    async def command(self, typed: str) -> None:
        """Run a slash command, given without its slash."""
        word, _, rest = typed.partition(" ")
        own, builtin = self.quick_commands, SLASHES.names()
        if word not in own and word not in builtin and word in self.skills:
            await self.message(f"/{word} {rest}".strip())
            return
        name = find(word.lower(), tuple(own))
        if name in own and name not in builtin:
            await run_quick(self, own[name], rest.strip())
            return
        slash = SLASHES.load(name)
        if not slash.when_busy and not await self._is_idle_soon():
            raise UserError(f"/{name} has to wait for the end of this turn; /stop ends it now")
        await slash.run(self, rest.strip())

    async def _is_idle_soon(self) -> bool:
        """A turn whose answer is on the screen may still be putting its record away."""
        try:
            async with asyncio.timeout(SOON_S):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    @property
    def quick_commands(self) -> dict[str, QuickCommand]:
        """Commands of the person's own, from config.yaml."""
        return self.settings.of(Top).quick_commands

    @property
    def skills(self) -> Collection[str]:
        """The names of skills; each is a command that sends its words along."""
        return () if self.wish.ignore_rules else names_of(SkillBook(self.settings, self.wish.source).usable())

    def said(self, text: str) -> str:
        """What the person said, as it stays on the screen."""
        when = time.strftime("%H:%M ") if self.look.display.timestamps else ""
        return self.painter.said(text, when)

    def typed(self, text: str) -> str:
        """A slash command as it stays on the screen, above what it answers. A message is shown when its turn begins."""
        return self.painter.line(f"> {self.redactor.redact(text.strip())}", "bold") if is_command(text) else ""

    def say(self, text: str, *styles: str) -> None:
        """Words of Hermes itself, broken between words where the terminal would break inside one."""
        width = self.painter.width if self.cli.out.is_terminal else len(text)
        rows = [row for line in text.splitlines() for row in folded(line, max(1, width))]
        self.face.write("".join(f"{self.painter.style(row, *styles)}\n" for row in rows))

    # -- the turn ------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Take messages from the line, one turn each, for as long as the conversation lasts."""
        while True:
            await self._wake.wait()
            if self._compress_wanted is not None:
                await self._compress()
                continue
            waiting = self.waiting.open_ones
            if not waiting or self.is_held:
                self._wake.clear()
                continue
            await self._turn(waiting[0])

    def compress(self, topic: str) -> None:
        """Sum up the session, `topic` above all, as soon as no turn runs."""
        self._compress_wanted = topic
        self._wake.set()

    def interrupt(self) -> bool:
        """Stop the turn that runs; what waits is held until the person says so. False when none runs."""
        if not self.is_busy:
            return False
        self.is_held = self._stop_wanted = True
        self.questions.deny()
        self.agent.interrupt()
        return True

    def release(self) -> None:
        """Go on with what is held."""
        self.is_held = False
        self._wake.set()

    async def finish(self) -> None:
        """Stop what runs and let go; bounded."""
        self.is_leaving = True
        self.interrupt()
        try:
            async with asyncio.timeout(STOP_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the turn did not end within %s s", STOP_S)
        await self._end_session("user_exit")
        try:
            async with asyncio.timeout(STOP_S):
                await self.agent.aclose()
        except TimeoutError:
            log.warning("the agent did not close within %s s", STOP_S)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """While the agent works: what is typed waits, and Esc stops it."""
        self.is_busy, self._stop_wanted = True, False
        self._idle.clear()
        self.view.begin()
        self.face.refresh()
        try:
            yield
        finally:
            self.is_busy = False
            self.view.end()
            self._idle.set()
            self.face.turn_ended()

    async def _turn(self, one: Waited) -> None:
        with self._busy():
            try:
                if not await self.waiting.take(one):
                    self.say(GONE, "yellow")
                    return
                if not self.face.echoes:
                    self.face.write(self.said(one.text))
                with bound_settings(self.settings):
                    result = await self._asked(one)
                if result is None:  # stopped before there was a turn of the agent that could be stopped
                    await self._not_sent(one, "Stopped before it was sent.")
                    return
                self._untold = None
                await self.waiting.done(one)
                await self._tell(result)
            except HermesError as error:
                await self._not_sent(one, str(error))
            except Exception as error:  # the border: a fault in one turn must not end the conversation
                log.exception("the turn failed")
                inside = f"the turn failed inside Hermes ({type(error).__name__}: {error})"
                await self._not_sent(one, disk_trouble(error) or inside)

    async def _asked(self, one: Waited) -> dict[str, Any] | None:
        content = dicts.content_to_json(one.content)  # parts that another surface has put together stay as they are
        if isinstance(content, str):
            content = await opened(content, surroundings(self.settings, self.cwd, self.wish.source))
        if self._stop_wanted:
            return None
        told = self._loaded.text(self.session_id) if self._loaded and not await self.exists() else None
        try:
            return await self.agent.arun_conversation(self._with_skills(content), system_message=told)
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
                self.say(str(error), "red")
                return
            if done["status"] == "compressed":
                self.spent.in_context = self.view.context_tokens = 0
                self.say(
                    f"About {done['before_tokens']} tokens are {done['after_tokens']} now; the rest can be searched."
                )
                await self._look_up()
            else:
                self.say(f"Nothing was changed: {done['reason']}.", "yellow")

    async def _follow(self) -> None:
        """A session that was compressed goes on under another id; what waits goes along."""
        if self.agent.session_id == self.session_id:
            return
        self.session_id = self.agent.session_id
        self._mark_session()
        await self.waiting.move_to(self.session_id)

    async def _not_sent(self, one: Waited, why: str) -> None:
        """It goes back into the line and is offered for a change: nothing that was typed is lost."""
        if self.face.offer(one.text):
            await self.waiting.drop(one)
        else:
            await self.waiting.put_back(one)
        self.is_held = bool(self.waiting.open_ones)
        self.say(why, "red")

    async def _tell(self, result: dict[str, Any]) -> None:
        self.view.end()
        text = str(result.get("final_response") or "").strip()
        code = exit_code(result)
        if text and text != EMPTY:
            self.last_answer = text
            if not self.view.has_answer and code is not Exit.CANCELLED:
                self.view.say_markdown(text)
        if code is Exit.CANCELLED:
            self.say("Stopped.", "yellow")
        elif code is not Exit.ANSWERED:
            why = why_for(code, result)
            turn_log.warning("%s", why)
            self.say(why, "red")
        self.spent.saw(result)
        await self._look_up()
        left = str(result.get("pending_steer") or "")
        if left:
            await self.waiting.add(left, first=True, mode="steer")
        if self.is_held and self.waiting.open_ones and not self.is_leaving:
            self.say(f"{len(self.waiting.open_ones)} waiting: Enter sends them, Up edits the last, /queue shows them")

    def _with_skills(self, content: Any) -> Any:
        """A session that goes on keeps its prompt, so the skills of this run reach it with the first message."""
        if self._untold is None:
            return content
        told = self._untold.text(self.session_id)
        return f"{told}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": told}, *content]

    # -- the session ---------------------------------------------------------------------------------------------

    async def open(self, session_id: str | None, *, is_copy: bool = False) -> None:
        """Go on with this session, or with a new one; what waits in it is shown and held.

        A copy of the session before it needs no word about its past, neither for the person nor for the model.
        """
        await self.agent.aclose(keep_background=is_copy)
        self._use(session_id)
        self._untold = self._loaded if session_id is not None and not is_copy else None
        await self._look_up()
        if session_id is not None and not is_copy:
            self.face.write(await self.in_thread(recent, self.db, session_id, self.look.display, self.painter))
        count = await self.waiting.open()
        self.is_held = count > 0
        if count:
            self.say(f"{count} waiting from before: Enter sends them, Up edits the last, /queue shows them", "yellow")
        self.face.refresh()

    async def leave_session(self, reason: str, session_id: str | None = None) -> None:
        """End this session and go to another, or to a new one."""
        await self._end_session(reason)
        await self.open(session_id)

    async def reconfigure(self, **flags: Any) -> None:
        """Change settings for this run (dotted keys, dots as two underscores); the session goes on."""
        changed = {name.replace("__", "."): value for name, value in flags.items()}
        settings = replace(self.settings, flags={**self.settings.flags, **changed}, _made={})
        resolve(settings, ModelQuery())
        self.settings = settings
        await self.agent.aclose(keep_background=True)
        self.agent = self._make_agent(self.session_id)
        await self._look_up()

    async def in_thread(self, work: Any, *args: Any) -> Any:
        """Blocking work, away from the input line."""
        return await shared.pool.run(work, *args)

    async def exists(self) -> bool:
        """Whether anything was said in this session yet."""
        return await self.in_thread(self.db.get_session, self.session_id) is not None

    @property
    def cwd(self) -> str:
        """Where the session works."""
        return self.spent.cwd or self.launched_in

    def _use(self, session_id: str | None) -> None:
        self.agent = self._make_agent(session_id)
        self.session_id = self.agent.session_id
        self._mark_session()
        self.waiting = Waiting(self.db, self.session_id, self.redactor.redact, self.in_thread)
        self.spent = ShownSpend()
        self.last_answer = ""

    def _mark_session(self) -> None:
        session_tag.set(self.session_id)
        if self.wish.yolo:
            from hermes.tools.approval.contract import enable_session_yolo  # rare, and brings the gate

            enable_session_yolo(self.session_id)

    def _make_agent(self, session_id: str | None) -> AIAgent:
        return AIAgent(
            **agent_keywords(self.wish, self.settings),
            session_id=session_id,
            cwd=self._folder,
            sink=Logged(self.view),
            approval_callback=self.questions,
            sudo_password_callback=ask_password,
            auto_title=True,
        )

    async def _look_up(self) -> None:
        """What the store knows of the session, for the status line."""
        row = await self.in_thread(self.db.get_session, self.session_id)
        try:
            endpoint = resolve(self.settings, ModelQuery()).endpoint
            self.spent.reads(endpoint.model or endpoint.provider, endpoint.context_length)
        except HermesError:
            self.spent.reads("no model", None)
        if (in_use := self.agent.model_in_use) is not None:  # it may have been asked what it is
            self.spent.reads(in_use[0], *in_use[1])
        self.spent.of_session(row)

    async def _end_session(self, reason: str) -> None:
        await self.in_thread(self.db.end_session, self.session_id, reason)


def is_command(text: str) -> bool:
    """Whether `text` is a slash command: `/usr/bin is full` is not one."""
    stripped = text.strip()
    word = stripped[1:].partition(" ")[0]
    return stripped.startswith("/") and "\n" not in stripped and bool(word) and "/" not in word


def stamp() -> str:
    """The time, for file names."""
    return time.strftime("%Y%m%d_%H%M%S")
