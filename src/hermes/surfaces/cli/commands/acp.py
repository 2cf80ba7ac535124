"""Let an editor talk to Hermes: the Agent Client Protocol on stdin and stdout."""

from importlib import import_module

import click

from hermes.surfaces.cli.context import Cli

# Another way in, found by its name: surfaces do not import each other.
SERVER = "hermes.surfaces.acp.main"


@click.command(
    "acp", add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(cli: Cli, words: tuple[str, ...]) -> int:
    """Let an editor talk to Hermes: the Agent Client Protocol on stdin and stdout."""
    cli.out.flush()
    code: int = import_module(SERVER).main(list(words), home=cli.home)
    return code


COMMAND = command
