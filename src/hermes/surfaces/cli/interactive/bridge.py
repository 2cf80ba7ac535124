"""A command of `hermes`, run inside the conversation: the same words, shown above the input line."""

import io
from typing import TYPE_CHECKING

from hermes.errors import UserError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.output import Output

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat


async def show_command(chat: "Chat", name: str, *words: str) -> None:
    """Run `hermes NAME WORDS` in a thread and show what it prints; it is asked nothing."""
    chat.face.write(await chat.in_thread(printed, chat.cli, chat.cli.out, name, words))


def printed(cli: Cli, out: Output, name: str, words: tuple[str, ...]) -> str:
    """What the command prints, in the colours and the width of `out`; `UserError` when it fails."""
    import click  # noqa: PLC0415

    from hermes.surfaces.cli.app import COMMANDS  # noqa: PLC0415

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
