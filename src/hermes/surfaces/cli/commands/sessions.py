"""List, search, read, move and delete sessions."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from hermes.config import paths
from hermes.errors import UserError
from hermes.surfaces.cli import session_views
from hermes.surfaces.cli.app import Menu
from hermes.surfaces.cli.chat.resume import find_session
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.store import no_sessions, open_sessions

as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
by_source = click.option("--source", metavar="TAG", help="Only those from there: cli, cron, telegram …")
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group("sessions", cls=Menu, invoke_without_command=True)
@click.pass_context
def sessions(ctx: click.Context) -> int | None:
    """List, search, read, move and delete sessions. Without a command, pick one in the terminal.

    A session is named by its id, the beginning of it, or its title.
    """
    if ctx.invoked_subcommand is None:
        return int(ctx.invoke(browse))
    return None


@sessions.command("list")
@by_source
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--workspace", metavar="FOLDER", help="Only those that worked in this folder.")
@as_json
@click.pass_obj
def list_(cli: Cli, source: str | None, limit: int, workspace: str | None, as_json: bool) -> None:
    """List the newest sessions."""
    with open_sessions(cli) as db:
        options: dict[str, Any] = {"cwd_prefix": str(Path(workspace).absolute())} if workspace else {}
        found = (
            db.list_sessions_rich(source=source, limit=limit, order_by_last_active=True, compact_rows=True, **options)
            if db
            else []
        )
    if as_json:
        cli.out.json(found)
    elif found:
        session_views.table(cli.out, found)
    else:
        cli.out.note("There are no sessions yet; start one with: hermes chat -q …")


@sessions.command("show")
@click.argument("session")
@click.option("--tools", "with_tools", is_flag=True, help="Results of tools as well.")
@as_json
@click.pass_obj
def show(cli: Cli, session: str, with_tools: bool, as_json: bool) -> None:
    """Show a session: its facts, and what was said."""
    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        exported = db.export_session(find_session(db, session))
    assert exported is not None
    if as_json:
        cli.out.json(exported)
    else:
        session_views.transcript(cli.out, exported, with_tools=with_tools)


@sessions.command("search")
@click.argument("words", nargs=-1, required=True)
@by_source
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@as_json
@click.pass_obj
def search(cli: Cli, words: tuple[str, ...], source: str | None, limit: int, as_json: bool) -> int:
    """Find what was said, in all sessions. "two words" in quotes are found as they stand."""
    with open_sessions(cli) as db:
        sources = [source] if source else None
        found = db.search_messages(" ".join(words), source_filter=sources, limit=limit) if db else []
    if as_json:
        cli.out.json(found)
    elif found:
        session_views.hits(cli.out, found)
    else:
        cli.out.note("Nothing was found.")
    return Exit.ANSWERED if found else Exit.FAILED


@sessions.command("export")
@click.argument("output", required=False, default="-", metavar="[FILE]")
@click.option("--session-id", "session", metavar="SESSION", help="Only this one.")
@by_source
@click.pass_obj
def export(cli: Cli, output: str, session: str | None, source: str | None) -> None:
    """Write sessions as JSON lines, one each, to a file or stdout."""
    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        found = [db.export_session(find_session(db, session))] if session else [*db.export_all(source)]
    if output == "-":
        for each in found:
            cli.out.json(each)
        return
    from hermes.config.atomic import write_private  # noqa: PLC0415

    write_private(Path(output), "".join(msgspec.json.encode(each).decode() + "\n" for each in found))
    cli.out.note(f"{len(found)} sessions are in {output}")


@sessions.command("import")
@click.argument("file", type=click.Path(allow_dash=True, exists=True, dir_okay=False))
@as_json
@click.pass_obj
def import_(cli: Cli, file: str, as_json: bool) -> int:
    """Add sessions from what `export` wrote; those that are there already stay as they are."""
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    read: list[dict[str, Any]] = []
    for number, line in enumerate(raw.splitlines(), 1):
        if line.strip():
            try:
                read.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.MsgspecError as error:
                raise UserError(f"{file}, line {number}: this is no exported session ({error})") from error
    with open_sessions(cli, make=True) as db:
        assert db is not None
        report = db.import_sessions(read)
    if as_json:
        cli.out.json(report)
    else:
        cli.out.line(f"{report['imported']} added, {report['skipped']} were there already")
        for each in report["errors"]:
            cli.out.error(f"{each['id']}: {each['error']}")
    return Exit.FAILED if report["errors"] else Exit.ANSWERED


@sessions.command("rename")
@click.argument("session")
@click.argument("title", nargs=-1, required=True)
@click.pass_obj
def rename(cli: Cli, session: str, title: tuple[str, ...]) -> None:
    """Give a session a title."""
    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        found = find_session(db, session)
        try:
            db.set_session_title(found, " ".join(title))
        except ValueError as error:
            raise UserError(f"{error}; choose another title") from error
    cli.out.line(f"{found} is now called {' '.join(title)!r}")


@sessions.command("delete")
@click.argument("session")
@yes
@click.pass_obj
def delete(cli: Cli, session: str, yes: bool) -> None:
    """Delete a session with everything in it."""
    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        found = find_session(db, session)
        if not yes:
            row = db.get_session(found) or {}
            said = f"{found} ({row.get('title') or 'no title'}, {row.get('message_count', 0)} messages)"
            click.confirm(f"Delete {said}?", abort=True, err=True)
        db.delete_session(found)
    cli.out.line(f"{found} is deleted")


@sessions.command("prune")
@click.option("--older-than", type=click.FloatRange(min=0), default=90, show_default=True, metavar="DAYS", help="Age.")
@by_source
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@yes
@click.pass_obj
def prune(cli: Cli, older_than: float, source: str | None, dry_run: bool, yes: bool) -> None:
    """Delete ended sessions that are older."""
    with open_sessions(cli) as db:
        candidates = db.list_prune_candidates(older_than, source) if db else []
        if dry_run or not candidates or db is None:
            cli.out.line(f"{len(candidates)} sessions are older than {older_than:g} days")
            return
        if not yes:
            click.confirm(f"Delete {len(candidates)} sessions?", abort=True, err=True)
        cli.out.line(f"{db.prune_sessions(older_than, source)} sessions are deleted")


@sessions.command("stats")
@as_json
@click.pass_obj
def stats(cli: Cli, as_json: bool) -> None:
    """Count sessions and messages, and tell the size of the store."""
    with open_sessions(cli) as db:
        facts = session_views.stats(cli.home, db)
    if as_json:
        cli.out.json(facts)
        return
    cli.out.line(f"{facts['sessions']} sessions, {facts['messages']} messages, {facts['size_bytes'] / 1e6:.1f} MB")
    for source, count in facts["by_source"].items():
        cli.out.line(f"  {source:<12} {count}")


@sessions.command("repair")
@as_json
@click.pass_obj
def repair(cli: Cli, as_json: bool) -> int:
    """Check the store and mend what a crash or a bad disk left; exit code 1 when something was lost."""
    file = paths.state_file(cli.home)
    if not file.exists():
        cli.out.note("There are no sessions yet, so there is nothing to repair.")
        return Exit.ANSWERED
    from hermes.state.repair import repair as repair_file  # noqa: PLC0415

    report = repair_file(file)
    if as_json:
        cli.out.json({"sound": report.was_sound, "done": report.done, "lost": report.lost})
    else:
        for line in report.lines():
            cli.out.line(line)
    return Exit.FAILED if report.lost else Exit.ANSWERED


@sessions.command("browse")
@by_source
@click.option("--limit", type=click.IntRange(min=1), default=500, show_default=True, help="How many.")
@click.pass_obj
def browse(cli: Cli, source: str | None = None, limit: int = 500) -> int:
    """Pick a session in the terminal: type to search, arrows to move, Enter to take it."""
    if not (cli.out.is_terminal and sys.stdin.isatty()):
        raise UserError("picking needs a terminal; in a script use: hermes sessions list --json")
    with open_sessions(cli) as db:
        found = db.list_sessions_rich(source=source, limit=limit, order_by_last_active=True) if db else []
        if db is None or not found:
            cli.out.note("There are no sessions yet; start one with: hermes chat -q …")
            return Exit.FAILED
        from hermes.surfaces.cli.picker import pick_session  # noqa: PLC0415 - only this needs a live screen

        chosen = pick_session(db, found)
    if chosen is None:
        return Exit.CANCELLED
    cli.out.line(chosen)
    cli.out.note(f"Go on with: hermes chat --resume {chosen} -q …")
    return Exit.ANSWERED


COMMAND = sessions
