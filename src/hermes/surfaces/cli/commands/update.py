"""Bring Hermes to its newest version, or back to the one before."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes import __version__
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.host.self_update import CloneUpdate


@click.command("update")
@click.option("--check", "is_check", is_flag=True, help="Only tell what is new; nothing is changed but what git knows.")
@click.option("--back", "is_back", is_flag=True, help="Go back to where the last update came from.")
@as_json
@click.pass_obj
def update(cli: Cli, is_check: bool, is_back: bool, as_json: bool) -> int:
    """Bring Hermes to its newest version, and say what has changed.

    A git clone is fetched and fast-forwarded, never with changes of yours in it; its environment is made again, and a
    version that does not start is taken back at once. For one that pip installed, it tells the command.
    """
    if is_check and is_back:
        raise click.UsageError("--check and --back exclude each other; use one of them.")
    launcher = cli.environ.get("HERMES_LAUNCHER", "")
    if not launcher:
        from hermes.host.package_source import package_source

        command = package_source().update_command()
        if as_json:
            cli.out.json({"kind": "pip", "version": __version__, "command": command})
        else:
            cli.out.note(f"Hermes {__version__} was installed with pip; for the newest one:")
            cli.out.line(command)
        return Exit.ANSWERED
    return asyncio.run(_update_clone(cli, Path(launcher).parent, is_check=is_check, is_back=is_back, as_json=as_json))


async def _update_clone(cli: Cli, root: Path, *, is_check: bool, is_back: bool, as_json: bool) -> int:
    from hermes.host import command_word  # noqa: F401 - now: later its file may be that of another version
    from hermes.host.self_update import CloneUpdate
    from hermes.tools.supervisor.supervisor import ProcessSupervisor

    supervisor = ProcessSupervisor()
    try:
        clone = CloneUpdate(cli, root, supervisor)
        if is_back:
            version = await clone.back(cli.out.quote)
            _tell(cli, {"kind": "clone", "version": version, "is_back": True}, f"back at {version}", as_json=as_json)
            return Exit.ANSWERED
        return await _forward(cli, clone, is_check=is_check, as_json=as_json)
    finally:
        await supervisor.close()


async def _forward(cli: Cli, clone: "CloneUpdate", *, is_check: bool, as_json: bool) -> int:
    news = await clone.look()
    if news is None:
        facts = {"kind": "clone", "version": __version__, "commits": 0, "changes": []}
        _tell(cli, facts, f"hermes {__version__} is the newest", as_json=as_json)
        return Exit.ANSWERED
    if not as_json:
        for line in news.lines:
            cli.out.line(line)
    version = f"hermes {__version__}" if is_check else await clone.apply(news, cli.out.quote)
    count = f"{news.commits} commit{'s' * (news.commits != 1)}"
    words = f"{count} to come; take them: hermes update" if is_check else f"{version}, {count} newer"
    facts = {"kind": "clone", "version": version, "commits": news.commits, "changes": list(news.lines)}
    _tell(cli, {**facts, "from": news.old, "to": news.new}, words, as_json=as_json)
    if not is_check:
        cli.out.note("What runs already runs on as it was. Back to the version before: hermes update --back")
    return Exit.ANSWERED


def _tell(cli: Cli, facts: dict[str, object], words: str, *, as_json: bool) -> None:
    cli.out.json(facts) if as_json else cli.out.told(words)


COMMAND = update
