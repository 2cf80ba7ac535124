"""Watch an agent work for a minute: a recorded model, everything else real."""

import click

from hermes.surfaces.cli.context import Cli


@click.command("demo")
@click.option("-y", "--yes", is_flag=True, help="Answer its one question with yes; for where nobody can be asked.")
@click.option(
    "--fast",
    is_flag=True,
    help="Without the pauses that a real model makes; nor are there any where the output is no terminal.",
)
@click.pass_obj
def demo(cli: Cli, yes: bool, fast: bool) -> int:
    """Watch an agent work for a minute: a recorded model, everything else real.

    The agent reads a small project in a scratch folder, runs its failing tests, finds the bug, asks you once, edits the
    file, runs the tests again and runs a script. The session stays, to look at, to search and to go on with.
    """
    from hermes.surfaces.cli.demo.play import play  # help does without the kernel

    return play(cli, says_yes=yes, is_slow=not fast and cli.out.is_terminal)


COMMAND = demo
