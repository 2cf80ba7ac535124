"""Watch an agent work for two minutes: a recorded model, everything else real."""

from pathlib import Path

import click

from hermes.surfaces.cli.context import Cli


@click.command("demo")
@click.option("-y", "--yes", is_flag=True, help="Answer its one question with yes; for where nobody can be asked.")
@click.option(
    "--fast",
    is_flag=True,
    help="Without the pauses that a real model makes; nor are there any where the output is no terminal.",
)
@click.option("--scene", type=click.Choice(["list"]), hidden=True)
@click.option("--session", hidden=True, default="")
@click.option("--folder", hidden=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_obj
def demo(cli: Cli, yes: bool, fast: bool, scene: str | None, session: str, folder: Path | None) -> int:
    """Watch an agent work for two minutes: a recorded model, everything else real.

    In a scratch folder it finds a bug and fixes it, asking you once; is killed in the middle of a command and goes on;
    is held back where it would leave the folder; lets two children look at once; asks a tool of an MCP server; and has
    a change rewound. The sessions stay, to look at and to search.
    """
    from hermes.surfaces.cli.demo.play import play, play_scene  # help does without the kernel

    if scene is not None:
        if not session or folder is None:
            raise click.UsageError("--scene needs --session and --folder.")
        return play_scene(cli, folder, session, is_slow=not fast)
    return play(cli, says_yes=yes, is_slow=not fast and cli.out.is_terminal)


COMMAND = demo
