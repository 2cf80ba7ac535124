"""See, clean and go back to snapshots of workspaces."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.context.checkpoints import Checkpoints

Result = TypeVar("Result")

limited = click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")


@click.group("checkpoints", cls=Menu, invoke_without_command=True)
@click.pass_context
def checkpoints(ctx: click.Context) -> None:
    """See, clean and go back to snapshots of workspaces. Without a command, tell how much there is."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@checkpoints.command("status")
@limited
@as_json
@click.pass_obj
def status(cli: Cli, limit: int = 20, as_json: bool = False) -> None:
    """Tell how much there is, project by project."""
    facts = _run(cli, lambda made: made.status())
    if as_json:
        cli.out.json(facts)
        return
    projects = facts["projects"]
    count = sum(each["snapshots"] for each in projects)
    cli.out.line(f"{count} snapshots of {len(projects)} projects, {facts['size_bytes'] / 1e6:.1f} MB")
    from hermes.context.checkpoints.rollback import when  # see `_run`

    rows = [
        [
            each["directory"] + (" (gone)" if each["is_orphan"] else ""),
            each["snapshots"],
            when(each["newest"]) if each["newest"] else "",
        ]
        for each in projects[:limit]
    ]
    if rows:
        cli.out.table(["FOLDER", "SNAPSHOTS", "NEWEST"], rows, flexible=0)


@checkpoints.command("list")
@limited
@as_json
@click.pass_obj
def list_(cli: Cli, limit: int, as_json: bool) -> None:
    """List the newest snapshots of all projects."""
    found = _run(cli, lambda made: made.every())[:limit]
    if as_json:
        cli.out.json([msgspec.to_builtins(each) for each in found])
        return
    if not found:
        cli.out.note("There are no checkpoints; take them with: hermes chat --checkpoints …")
        return
    from hermes.context.checkpoints.rollback import when  # see `_run`

    rows = [[each.short_hash, when(each.timestamp), each.directory, each.reason] for each in found]
    cli.out.table(["SNAPSHOT", "TAKEN", "FOLDER", "BEFORE"], rows, flexible=3)


@checkpoints.command("rollback", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
@click.pass_obj
def rollback(cli: Cli, words: tuple[str, ...]) -> None:
    """Go back in the project you stand in: no words list, N goes back, `diff N` shows, `N FILE` is for one file.

    Files that you have changed since are kept; --force takes them back as well.
    """
    import shlex

    from hermes.context.checkpoints.rollback import rollback as go  # see `_run`

    told = _run(cli, lambda made: go(made, str(Path.cwd()), shlex.join(words)))
    cli.out.line(told.text.rstrip("\n"))


@checkpoints.command("prune")
@click.option("--retention-days", type=click.FloatRange(min=0), default=7, show_default=True, help="Older ones go.")
@click.option("--max-size-mb", type=click.FloatRange(min=0), default=500, show_default=True, help="Space for all.")
@click.option("--keep-orphans", is_flag=True, help="Keep those of folders that are gone.")
@as_json
@click.pass_obj
def prune(cli: Cli, retention_days: float, max_size_mb: float, keep_orphans: bool, as_json: bool) -> None:
    """Delete old snapshots, and those of folders that are gone."""

    async def work(made: "Checkpoints") -> dict[str, int]:
        limits = msgspec.structs.replace(
            made.limits,
            retention_s=retention_days * 86_400,
            max_total_bytes=int(max_size_mb * 1_000_000),
            delete_orphans=not keep_orphans,
        )
        return await made.prune(limits)

    freed = _run(cli, work)
    if as_json:
        cli.out.json(freed)
    else:
        cli.out.line(f"{freed['snapshots']} snapshots deleted, {freed['bytes'] / 1e6:.1f} MB freed")


@checkpoints.command("clear")
@click.option("-f", "--force", is_flag=True, help="Do not ask.")
@click.pass_obj
def clear(cli: Cli, force: bool) -> None:
    """Delete every snapshot there is."""
    if not force:
        click.confirm("Delete every checkpoint of every project?", abort=True, err=True)
    _run(cli, lambda made: made.clear())
    cli.out.line("All checkpoints are deleted.")


def _run(cli: Cli, work: "Callable[[Checkpoints], Awaitable[Result]]") -> Result:
    """Do something with the home's checkpoints."""
    from hermes.config.sections import checkpoints as section  # `hermes --help` loads none of this
    from hermes.config.values import plain
    from hermes.context.checkpoints import CheckpointLimits, Checkpoints
    from hermes.runtime.setup.process import ProcessParts

    async def main() -> Any:
        parts = ProcessParts()
        limits = CheckpointLimits.of(plain(cli.settings().of(section.Section)))
        made = Checkpoints(cli.home, parts.supervisor, parts.pool.run, limits, parts.clock.now)
        try:
            return await work(made)
        finally:
            await parts.close()

    found: Result = asyncio.run(main())
    return found


COMMAND = checkpoints
