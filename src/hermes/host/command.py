"""Commands of a conversation, free of any terminal: words in, a result out. One file of `host/commands` each.

Help, completion, menus and the lists that protocols ask for are read from the table.
"""

import asyncio
import inspect
import logging
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from hermes.config.sections.top import QuickCommand
from hermes.config.sections.top import Section as Top
from hermes.errors import ToolError, UserError
from hermes.host.conversation import CommandScene
from hermes.host.host_errors import SessionBusy
from hermes.host.live_session import LiveSession
from hermes.host.run_program import Program, run_program
from hermes.programs import find_program
from hermes.tables import Table
from hermes.tools.calling.captured_prints import quiet_prints
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.extensions.plugins.offers import CommandOffer
    from hermes.extensions.plugins.plugin import Plugin

PLUGIN_LIMIT_S = 30.0
log = logging.getLogger(__name__)

SurfaceKind: TypeAlias = Literal["terminal", "editor", "chat", "program"]
EVERYWHERE: tuple[SurfaceKind, ...] = ("terminal", "editor", "chat", "program")


class SessionTarget(Struct, frozen=True, kw_only=True):
    """The session that the conversation goes on in."""

    session_id: str | None = None  # None is a new one
    ends: str = ""  # the reason that is noted as the end of the present one; empty leaves that to itself
    is_copy: bool = False  # of the present one: nobody needs a word about its past


class CommandResult(Struct, frozen=True, kw_only=True):
    """What a command has to say. A surface shows `text`, `sections`, `screen` and `note` in this order."""

    text: str = ""
    form: Literal["text", "lines", "diff", "messages"] = "text"  # sentences, rows, `data.messages`
    sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()  # a heading and its rows of name and words
    screen: str = ""  # what a command of `hermes` printed
    note: str = ""  # a word beside it, less loud
    data: JsonObject = field(default_factory=dict)  # the same for programs
    offer: str = ""  # words for the input line
    withdraws: str = ""  # the waiting message that leaves the line when the offer is taken
    copies: str = ""  # words for the clipboard; `text` is true only where there is one
    goes_to: SessionTarget | None = None
    leaves: bool = False  # the conversation is over
    clears: bool = False  # the screen is to be empty


async def by_program(session: LiveSession, name: str, words: Sequence[str]) -> str:
    """What `hermes NAME WORDS` prints, run as a program of its own."""
    import sys  # for surfaces without a terminal

    argv = (sys.executable, "-m", "hermes", name, *words)
    env = {**session.settings.environ, "HERMES_HOME": str(session.settings.home)}
    try:
        ran = await run_program(Program(argv=argv, cwd=session.cwd, env=env, purpose=f"show hermes {name}"))
    except (ToolError, TimeoutError) as error:
        raise UserError(f"hermes {name} did not end well: {str(error) or 'it took longer than 30 s'}") from error
    if ran.exit_code:
        raise UserError(ran.output.strip().removeprefix("error: ") or f"hermes {name} failed")
    return ran.output


class SurfaceFacts(Struct, frozen=True, kw_only=True):
    """What commands may know of the surface they are called on."""

    kind: SurfaceKind = "program"
    shows_reasoning: bool = False
    keys: tuple[tuple[str, str], ...] = ()  # and what each does, for its help
    can_detach: bool = False  # the conversation goes on without it
    run_hermes: Callable[[LiveSession, str, Sequence[str]], Awaitable[str]] = by_program


class CommandCall(Struct, frozen=True):
    """One use of a command: whose session, the words after its name, and where it was typed."""

    session: LiveSession
    words: str
    surface: SurfaceFacts = SurfaceFacts()

    async def hermes(self, name: str, *words: str) -> str:
        """What `hermes NAME WORDS` prints; it is asked nothing."""
        return await self.surface.run_hermes(self.session, name, words)


class SlashCommand(Struct, frozen=True, kw_only=True):
    """A command. The first line of its file's docstring is its help."""

    run: Callable[[CommandCall], Awaitable[CommandResult]]
    args: str = ""
    aliases: tuple[str, ...] = ()
    when_busy: bool = True  # may be used while a turn runs
    surfaces: tuple[SurfaceKind, ...] = EVERYWHERE  # where it makes sense
    complete: Callable[[CommandScene, str], Iterable[str]] | None = None  # its arguments, from how they begin


COMMANDS: Table[SlashCommand] = Table("hermes.host.commands", "COMMAND")


def one_of(*words: str) -> Callable[[CommandScene, str], Iterable[str]]:
    """A completion with fixed words."""
    return lambda _session, begun: [word for word in words if word.startswith(begun)]


def available(kind: SurfaceKind) -> list[str]:
    """The names of the commands that make sense on a surface of this kind."""
    return [name for name in COMMANDS.names() if kind in COMMANDS.load(name).surfaces]


def is_command(text: str) -> bool:
    """Whether `text` is a slash command: `/usr/bin is full` is not one."""
    stripped = text.strip()
    word = stripped[1:].partition(" ")[0]
    return stripped.startswith("/") and "\n" not in stripped and bool(word) and "/" not in word


def find(word: str, own: tuple[str, ...] = ()) -> str:
    """The command that `word` means: its name, an alias, or the beginning of exactly one name.

    `own` are the names of quick commands. `UserError` names the nearest when there is none.
    """
    names = [*COMMANDS.names(), *own]
    if word in names:
        return word
    aliases = {alias: name for name in COMMANDS.names() for alias in COMMANDS.load(name).aliases}
    if word in aliases:
        return aliases[word]
    begun = [name for name in names if word and name.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UserError(f"/{word} could be {', '.join(f'/{name}' for name in begun)}; type more of it")
    near = get_close_matches(word, [*names, *aliases], n=1, cutoff=0.5)
    hint = f"; did you mean /{near[0]}?" if near else "; see /help"
    raise UserError(f"there is no command /{word}{hint}")


def words_of(text: str) -> list[str]:
    """The words after a command, as a shell would take them apart."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"{error}; quote what holds a quote") from error


def quick_commands(session: CommandScene) -> dict[str, QuickCommand]:
    """Commands of the person's own, from config.yaml."""
    return session.settings.of(Top).quick_commands


def skill_names(session: CommandScene) -> Iterable[str]:
    """The names of skills; each is a command that sends its words along."""
    if session.asked.ignore_rules:
        return ()
    from hermes.extensions.skills.skill_book import SkillBook, names_of  # paid by what is none of the table's

    return names_of(SkillBook(session.settings, session.asked.source).usable())


async def run_command(session: LiveSession, typed: str, surface: SurfaceFacts) -> CommandResult:
    """Run a slash command, given without its slash: one of the table, one of config.yaml, or a skill."""
    word, _, rest = typed.partition(" ")
    own, builtin = quick_commands(session), COMMANDS.names()
    theirs = {} if word in own or word in builtin else plugin_commands(session)
    if word not in own and word.lower() in theirs:
        return await run_plugin_command(session, *theirs[word.lower()], rest.strip())
    if word not in own and word not in builtin and word in skill_names(session):
        await session.submit(f"/{word} {rest}".strip())
        return CommandResult()
    name = find(word.lower(), (*own, *theirs))
    if name in theirs and name not in own:
        return await run_plugin_command(session, *theirs[name], rest.strip())
    if name in own and name not in builtin:
        return await _quick(session, own, name, rest.strip(), surface)
    command = COMMANDS.load(name)
    if surface.kind not in command.surfaces:
        raise UserError(f"/{name} makes no sense here; it is for {', '.join(command.surfaces)}")
    if not command.when_busy and not await session.is_idle_soon():
        raise SessionBusy(f"/{name} has to wait for the end of this turn; /stop ends it now")
    result = await command.run(CommandCall(session, rest.strip(), surface))
    if result.goes_to is not None and result.goes_to.ends == "new_session" and session.agent is not None:
        await session.agent.tell_reset("new_session")
    return result


def plugin_commands(session: CommandScene) -> "Mapping[str, tuple[Plugin, CommandOffer]]":
    """The commands of the plugins that are switched on."""
    if session.asked.ignore_rules or "plugins" not in session.settings.tree:
        return {}
    from hermes.extensions.plugins.plugin_set import plugins_of  # for who has plugins

    return plugins_of(session.settings.home).commands(session.settings, Path(session.cwd))


async def run_plugin_command(session: LiveSession, plugin: "Plugin", offer: "CommandOffer", rest: str) -> CommandResult:
    """What the plugin's handler says to the words after its name; `UserError` when it fails or takes too long."""

    def call() -> object:
        plugin.load()
        handler = plugin.live.commands.get(offer.name)
        if handler is None:
            raise UserError(
                f"the plugin {plugin.key!r} is not loaded: {plugin.error or 'it brings no such command now'}"
            )
        with quiet_prints(plugin.key):
            return handler(rest)

    try:
        async with asyncio.timeout(PLUGIN_LIMIT_S):
            answer = await session.in_thread(call)
            if inspect.isawaitable(answer):
                answer = await answer
    except UserError:
        raise
    except TimeoutError as error:
        raise UserError(f"/{offer.name} of the plugin {plugin.key!r} took longer than {PLUGIN_LIMIT_S:g} s") from error
    except Exception as error:  # the border to a plugin's code
        log.exception("command %r of plugin %r failed", offer.name, plugin.key)
        words = f"{type(error).__name__}: {error}"
        raise UserError(f"/{offer.name} of the plugin {plugin.key!r} failed ({words})") from error
    return CommandResult(text=session.redactor.redact(answer) if isinstance(answer, str) else "")


async def _quick(
    session: LiveSession, own: dict[str, QuickCommand], name: str, rest: str, surface: SurfaceFacts
) -> CommandResult:
    """Run the shell command and tell what it prints, or the command that it stands for."""
    quick = own[name]
    if quick.type == "alias":
        target = quick.target.strip().removeprefix("/")
        if not target or target.split()[0] in own:
            raise UserError(f"the target {quick.target!r} of this quick command is no command of Hermes")
        return await run_command(session, f"{target} {rest}".strip(), surface)
    if not quick.command:
        raise UserError("this quick command has no `command` to run; see quick_commands in config.yaml")
    environ = session.settings.environ
    bash = find_program("bash", environ, session.cwd) or "/bin/bash"
    program = Program(argv=(bash, "-c", quick.command), cwd=session.cwd, env=environ, purpose="a quick command")
    try:
        ran = await run_program(program)
    except (ToolError, TimeoutError) as error:
        raise UserError(f"the quick command did not end well: {str(error) or 'it took longer than 30 s'}") from error
    failed = f"exit code {ran.exit_code}" if ran.exit_code else ""
    said = session.redactor.redact(ran.output).rstrip("\n")
    return CommandResult(text=said, note=failed, data={"exit_code": ran.exit_code})
