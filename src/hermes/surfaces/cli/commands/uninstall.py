"""Take back what `hermes install` wrote."""

import shlex

import click

from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit


@click.command("uninstall")
@click.option("-y", "--yes", is_flag=True, help="Remove without asking.")
@as_json
@click.pass_obj
def uninstall(cli: Cli, yes: bool, as_json: bool) -> int:
    """Take back what `hermes install` wrote: the link, the completion file, and folders made for them that are empty.

    What you have changed since stays. Sessions and settings stay, too; it says where they are.
    """
    from hermes.host.command_word import program_file
    from hermes.host.self_install import read_record, take_back
    from hermes.surfaces.cli.model_questions import is_interactive

    files = read_record(cli.root).files
    if not as_json:
        cli.out.note("This removes:" if files else "Nothing was written by `hermes install`, so nothing is taken back.")
        for one in files:
            cli.out.quote(f"  {one.path}")
    if files and not yes:
        if as_json or not is_interactive():
            cli.out.error("nobody can be asked here, so nothing was removed; to remove it: hermes uninstall --yes")
            return Exit.FAILED
        if not click.confirm("Remove it", default=True, err=True):
            cli.out.note("Nothing was removed.")
            return Exit.FAILED
    became = take_back(cli.root) if files else []
    if as_json:
        cli.out.json({"files": [{"path": one.path, "became": what} for one, what in became]})
        return Exit.ANSWERED
    words = {"removed": "removed", "gone": "was gone already:", "changed": "was changed by somebody, and stays:"}
    for one, what in became:
        cli.out.line(f"{words[what]} {one.path}")
    program = program_file(cli.environ)
    places = [cli.root, *([program.parent] if program and cli.environ.get("HERMES_LAUNCHER") else [])]
    cli.out.note("To be rid of everything, sessions and settings too:")
    cli.out.quote(f"  rm -rf {' '.join(shlex.quote(str(place)) for place in places)}")
    return Exit.ANSWERED


COMMAND = uninstall
