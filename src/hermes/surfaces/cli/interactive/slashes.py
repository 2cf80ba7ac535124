"""Slash commands: what one is, the table of all, and how a word finds its command."""

import io
import shlex
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from hermes.config.sections.top import QuickCommand
from hermes.errors import ToolError, UserError
from hermes.host.run_program import Program, run_program
from hermes.programs import find_program
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.interactive.markup import clean
from hermes.surfaces.cli.output import Output
from hermes.tables import Table

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat


Run: TypeAlias = Callable[["Chat", str], Awaitable[None]]


class Slash(Struct, frozen=True, kw_only=True):
    """A slash command. `run` is handed the conversation and the words after the name."""

    run: Run
    args: str = ""
    aliases: tuple[str, ...] = ()
    when_busy: bool = True  # may be used while a turn runs


SLASHES: Table[Slash] = Table("hermes.surfaces.cli.slash", "COMMAND")


def all_names() -> list[str]:
    """Every name, without loading any command."""
    return SLASHES.names()


def find(word: str, own: tuple[str, ...] = ()) -> str:
    """The command that `word` means: its name, an alias, or the beginning of exactly one name.

    `own` are the names of quick commands. `UserError` names the nearest when there is none.
    """
    names = [*SLASHES.names(), *own]
    if word in names:
        return word
    aliases = {alias: name for name in SLASHES.names() for alias in SLASHES.load(name).aliases}
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


async def run_quick(chat: "Chat", quick: QuickCommand, rest: str) -> None:
    """Run the shell command and show what it prints, or the slash command that it stands for."""
    if quick.type == "alias":
        target = quick.target.strip().removeprefix("/")
        if not target or target.split()[0] in chat.quick_commands:
            raise UserError(f"the target {quick.target!r} of this quick command is no command of Hermes")
        await chat.command(f"{target} {rest}".strip())
        return
    if not quick.command:
        raise UserError("this quick command has no `command` to run; see quick_commands in config.yaml")
    bash = find_program("bash", chat.cli.environ, chat.cwd) or "/bin/bash"
    program = Program(argv=(bash, "-c", quick.command), cwd=chat.cwd, env=chat.cli.environ, purpose="a quick command")
    try:
        ran = await run_program(program)
    except (ToolError, TimeoutError) as error:
        raise UserError(f"the quick command did not end well: {str(error) or 'it took longer than 30 s'}") from error
    chat.say(clean(chat.redactor.redact(ran.output)).rstrip("\n"))
    if ran.exit_code:
        chat.say(f"exit code {ran.exit_code}", "red")


async def show_command(chat: "Chat", name: str, *words: str) -> None:
    """Run `hermes NAME WORDS` in a thread and show what it prints; it is asked nothing."""
    chat.face.write(await chat.in_thread(printed, chat.cli, chat.cli.out, name, words))


def printed(cli: Cli, out: Output, name: str, words: tuple[str, ...]) -> str:
    """What the command prints, in the colours and the width of `out`; `UserError` when it fails."""
    import click

    from hermes.surfaces.cli.app import COMMANDS

    text = io.StringIO()
    own = Output(text, text, cli.environ)
    own.is_terminal, own.colours, own.error_colours = out.is_terminal, out.colours, out.colours
    inner = Cli(home=cli.home, environ=cli.environ, out=own)
    command = COMMANDS.load(name)
    try:
        with command.make_context(name, list(words), obj=inner) as ctx:
            command.invoke(ctx)
    except click.exceptions.Exit:
        return text.getvalue()
    except click.ClickException as error:
        raise UserError(error.format_message()) from error
    return text.getvalue()
