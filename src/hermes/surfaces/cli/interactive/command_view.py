"""What a command answered, on the terminal."""

import io
from typing import TYPE_CHECKING

from hermes.errors import UserError
from hermes.host.command import CommandResult, SurfaceFacts
from hermes.host.live_session import LiveSession
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.interactive.markup import clean, hanging
from hermes.surfaces.cli.interactive.recent_messages import shown
from hermes.surfaces.cli.output import Output, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.surfaces.cli.interactive.chat import Chat

NAME_WIDTH = 17
LEAST_BESIDE = 24  # columns for words beside a name
KEYS = (
    ("Enter", "send; while a turn runs, wait in line (see /busy)"),
    ("Alt-Enter, Ctrl-J", "a new line"),
    ("Tab", "complete a command, a path or an @ reference"),
    ("Up", "what was typed before; while messages wait, edit the last"),
    ("Shift-Tab", "how far it goes by itself: edits, ask before each, plan only"),
    ("Ctrl-O", "unfold the last call: arguments, whole output, diff; again folds it"),
    ("Ctrl-R", "search what was typed before"),
    ("!command", "run it yourself; the model reads the output with your next message"),
    ("? and Enter", "this list"),
    ("Esc", "stop the turn; at a question: no"),
    ("Ctrl-C", "stop the turn; twice leaves"),
    ("Ctrl-D", "leave"),
    ("Ctrl-V, Alt-V", "add the picture that is in the clipboard"),
    ("Ctrl-G", "write in $EDITOR; also Ctrl-X Ctrl-E"),
    ("Ctrl-L, Ctrl-Z", "draw anew; suspend"),
)


def key_help() -> CommandResult:
    """The keys, for who types `?`."""
    return CommandResult(sections=(("Keys", KEYS),), note="/help lists the commands.")


def terminal_facts(chat: "Chat") -> SurfaceFacts:
    """What commands may know of this terminal."""

    async def run_hermes(session: LiveSession, name: str, words: "Sequence[str]") -> str:
        text: str = await session.in_thread(printed, chat.cli, chat.cli.out, name, tuple(words))
        return text

    return SurfaceFacts(kind="terminal", shows_reasoning=chat.look.show_reasoning, keys=KEYS, run_hermes=run_hermes)


async def show_result(chat: "Chat", result: CommandResult) -> None:
    """Do and show what a command answered."""
    if result.copies and not chat.face.copy(result.copies):
        raise UserError("this terminal has no clipboard; /save writes the session to a file")
    if result.offer:
        is_taken = chat.face.offer(result.offer)
        if result.withdraws and not is_taken:
            raise UserError("something stands in the input line already; send it or clear it first")
        if result.withdraws:
            await chat.live.withdraw(result.withdraws)
    if (shows := result.data.get("shows_reasoning")) is not None:
        chat.look.show_reasoning = bool(shows)
    if result.goes_to is not None:
        await chat.go_to(result.goes_to)
    if result.clears:
        chat.face.clear()
    choices = result.data.get("choices")
    if choices and chat.face.pick(result.text, [(one["label"], one["command"]) for one in choices]):
        return
    _show(chat, result)
    if result.leaves:
        chat.face.leave()
    chat.face.refresh()


def _show(chat: "Chat", result: CommandResult) -> None:
    write, painter = chat.face.write, chat.painter
    match result.form:
        case "text":
            chat.say(clean(result.text))
        case "lines":
            write("".join(painter.line(line) for line in result.text.splitlines()))
        case "diff":
            write(painter.diff(result.text))
        case "messages":
            write(shown(result.data["messages"], chat.look.display, painter))
    for heading, rows in result.sections:
        chat.say(heading, "bold")
        for head, told in rows:
            chat.say("\n".join(section_rows(head, told, painter.width)))
    write(result.screen)
    is_failure = bool(result.data.get("exit_code"))
    chat.say(result.note, "red" if is_failure else "dim")


def section_rows(head: str, told: str, width: int) -> list[str]:
    """A name and what is told of it beside it; below it where the terminal is too narrow for two columns."""
    if width - NAME_WIDTH - 4 >= LEAST_BESIDE:
        return [row.rstrip() for row in hanging(f"  {padded(head, NAME_WIDTH)}  ", told, width)]
    return [f"  {head}", *(hanging("      ", told, width) if told else ())]


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
