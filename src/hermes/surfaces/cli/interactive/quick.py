"""Quick commands: slash commands of the person's own, from `quick_commands` in config.yaml."""

from typing import TYPE_CHECKING

from hermes.config.sections.top import QuickCommand
from hermes.errors import ToolError, UserError
from hermes.programs import find_program
from hermes.surfaces.cli.chat.children import Program, run_program
from hermes.surfaces.cli.interactive.painting import clean

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat


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
