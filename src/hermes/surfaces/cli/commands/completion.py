"""Print the completion script for a shell."""

import click
from click.shell_completion import ShellComplete, get_completion_class

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
    kind = get_completion_class(shell)
    assert kind is not None
    # Not `source()` of the class itself: that of bash starts a bash to ask for its version.
    script = ShellComplete.source(kind(ctx.find_root().command, {}, "hermes", "_HERMES_COMPLETE"))
    cli.out.line(script)
    if cli.out.is_terminal:
        cli.out.note(HINTS[shell])


COMMAND = completion
