"""Tell the version, and what it runs on."""

import platform
import sys

import click

from hermes import __version__
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli


@click.command("version")
@as_json
@click.pass_obj
def version(cli: Cli, as_json: bool) -> None:
    """Tell the version, and what it runs on."""
    facts = {
        "hermes": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "home": str(cli.home),
        "executable": sys.executable,
    }
    if as_json:
        cli.out.json(facts)
        return
    cli.out.line(f"hermes {__version__}")
    for name, value in facts.items():
        if name != "hermes":
            cli.out.line(f"  {name:<11} {value}")


COMMAND = version
