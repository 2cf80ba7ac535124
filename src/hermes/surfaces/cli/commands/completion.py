"""Print the completion script for a shell."""

import click

from hermes.surfaces.cli.completion_script import completion_script
from hermes.surfaces.cli.context import Cli

HINTS = {
    "bash": 'eval "$(hermes completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(hermes completion zsh)"    # in ~/.zshrc',
    "fish": "hermes completion fish | source    # in ~/.config/fish/config.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), default="bash")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell; load it in the shell's start file."""
    cli: Cli = ctx.obj
    cli.out.line(completion_script(ctx.find_root().command, shell))
    if cli.out.is_terminal:
        cli.out.note(HINTS[shell])


COMMAND = completion
