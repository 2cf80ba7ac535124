"""List, search, read, move and delete sessions."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.config import paths
from hermes.errors import UserError
from hermes.host import session_text
from hermes.host.session_select import find_session, no_sessions, open_sessions
from hermes.surfaces.cli import session_views
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.shell_completion import matching_sessions

if TYPE_CHECKING:
    from hermes.state import SessionDB

BULK = ("archive", "export", "import", "optimize", "prune")

a_session = click.argument("session", shell_complete=matching_sessions)
by_source = click.option("--source", metavar="TAG", help="Only those from there: cli, cron, acp …")
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


class Sessions(Menu):
    """The commands of this module, and those on many sessions, which are loaded when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *BULK})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in BULK:
            from hermes.surfaces.cli.session_bulk import COMMANDS  # a list does without it

            return COMMANDS[cmd_name]
        return super().get_command(ctx, cmd_name)


@click.group("sessions", cls=Sessions, invoke_without_command=True)
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
@click.option("--archived", is_flag=True, help="Those that were archived.")
@as_json
@click.pass_obj
def list_(cli: Cli, /, source: str | None, limit: int, workspace: str | None, archived: bool, as_json: bool) -> None:
    """List the newest sessions, and what those that run are doing: working, waiting for an answer, asleep."""
    options: dict[str, Any] = {"cwd_prefix": str(Path(workspace).absolute())} if workspace else {}
    options |= {"archived_only": True} if archived else {}
    with open_sessions(cli) as db:
        found = _newest(db, source=source, limit=limit, compact_rows=True, **options)
        if db is not None and found:
            from hermes.host.session_states import session_states  # for who has any

            states = session_states(cli.home, db, [row["id"] for row in found])
            found = [{**row, "state": states.get(row["id"], "")} for row in found]
    if as_json:
        cli.out.json(found)
    elif found:
        session_views.table(cli.out, found)
    else:
        cli.out.note("There are no sessions yet; start one with: hermes chat -q …")


@sessions.command("show")
@a_session
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


@sessions.command("tree")
@a_session
@as_json
@click.pass_obj
def tree(cli: Cli, session: str, as_json: bool) -> None:
    """Show a session with the children it delegated to, how each ended, and what it cost."""
    from hermes.host.session_tree import session_tree, tree_lines  # rare

    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        found = session_tree(db, find_session(db, session))
    if as_json:
        cli.out.json(found)
        return
    for line in tree_lines(found):
        cli.out.line(line)


@sessions.command("search")
@click.argument("words", nargs=-1, required=True)
@by_source
@click.option(
    "--role",
    type=click.Choice(["user", "assistant", "tool"]),
    help="Only what one of them said; without it what you and the model said, not what tools printed.",
)
@click.option("--sort", type=click.Choice(["best", "newest", "oldest"]), default="best", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many conversations.")
@click.option("--each", type=click.IntRange(min=1), default=3, show_default=True, help="Lines of each, at most.")
@as_json
@click.pass_obj
def search(cli: Cli, /, words: tuple[str, ...], source: str | None, role: str | None, **options: Any) -> int:
    """Find what was said, conversation by conversation. "two words" in quotes are found as they stand.

    Go on with one that was found: hermes --resume SESSION
    """
    from hermes.state.recall import Recall, RecallRequest  # a list does without it

    as_json, each = options.pop("as_json"), options.pop("each")
    roles: dict[str, Any] = {"roles": (role,)} if role else {}
    asked = RecallRequest(query=" ".join(words), sources=(source,) if source else (), **roles, **options)
    with open_sessions(cli) as db:
        found = Recall(db.queries).conversations(asked, each) if db else []
        untitled = [str(group["session_id"]) for group in found if not group["title"]]
        began = {each: db.get_messages(each, limit=1) for each in untitled} if db and not as_json else {}
    if as_json:
        cli.out.json(found)
    elif found:
        session_views.hits(cli.out, found, began)
    else:
        cli.out.note("Nothing was found.")
    return Exit.ANSWERED if found else Exit.FAILED


@sessions.command("rename")
@a_session
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
@a_session
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


@sessions.command("stats")
@as_json
@click.pass_obj
def stats(cli: Cli, as_json: bool) -> None:
    """Count sessions and messages, and tell the size of the store."""
    with open_sessions(cli) as db:
        facts = session_text.stats(cli.home, db)
    if as_json:
        cli.out.json(facts)
        return
    cli.out.line(f"{facts['sessions']} sessions, {facts['messages']} messages, {facts['size_bytes'] / 1e6:.1f} MB")
    for source, count in facts["by_source"].items():
        cli.out.line(f"  {source:<12} {count}")


@sessions.command("repair")
@click.option("--check-only", is_flag=True, help="Only look, and change nothing.")
@as_json
@click.pass_obj
def repair(cli: Cli, check_only: bool, as_json: bool) -> int:
    """Check the store and mend what a crash or a bad disk left; exit code 1 when something was lost."""
    file = paths.state_file(cli.home)
    if not paths.has_sessions(cli.home):
        cli.out.note("There are no sessions yet, so there is nothing to repair.")
        return Exit.ANSWERED
    if not file.exists():
        if check_only:
            cli.out.note(f"{file} is missing, and its log is there: hermes sessions repair brings back what it holds.")
            return Exit.FAILED
        with open_sessions(cli):
            cli.out.note(f"{file} was missing, and was made again from its log.")
    if check_only:
        return _check(cli, as_json=as_json)
    from hermes.state import repair as repair_file

    report = repair_file(file)
    if as_json:
        aside = str(report.aside) if report.aside else None
        cli.out.json({"sound": report.was_sound, "done": report.done, "lost": report.lost, "aside": aside})
    else:
        for line in report.lines():
            cli.out.line(line)
        if report.aside:
            cli.out.line(f"  the damaged file is kept as {report.aside}")
    return Exit.FAILED if report.lost else Exit.ANSWERED


def _check(cli: Cli, *, as_json: bool) -> int:
    from hermes.host.doctor_checks.store import run as look

    found = list(look(cli))
    sound = not any(each.status == "problem" for each in found)
    if as_json:
        cli.out.json({"sound": sound, "findings": [each.text for each in found]})
    else:
        for each in found:
            cli.out.line(each.text)
    return Exit.ANSWERED if sound else Exit.FAILED


@sessions.command("browse")
@by_source
@click.option("--limit", type=click.IntRange(min=1), default=500, show_default=True, help="How many.")
@click.pass_obj
def browse(cli: Cli, source: str | None = None, limit: int = 500) -> int:
    """Pick a session in the terminal and go on with it: type to search, arrows to move, Enter to take it.

    Where there is no terminal, the newest sessions are listed.
    """
    with open_sessions(cli) as db:
        is_live = cli.out.is_terminal and sys.stdin is not None and sys.stdin.isatty()
        found = _newest(db, source=source, limit=limit if is_live else 20)
        if db is None or not found:
            cli.out.note("There are no sessions yet; start one with: hermes chat -q …")
            return Exit.FAILED if is_live else Exit.ANSWERED
        if not is_live:
            session_views.table(cli.out, found)
            return Exit.ANSWERED
        from hermes.surfaces.cli.session_picker import pick_session  # only this needs a live screen

        chosen = pick_session(db, found)
    return Exit.CANCELLED if chosen is None else _go_on(cli, chosen)


def _newest(db: "SessionDB | None", **options: Any) -> list[dict[str, Any]]:
    return db.list_sessions_rich(order_by_last_active=True, **options) if db else []


def _go_on(cli: Cli, session: str) -> int:
    """Take up the session here and now, where this version can talk; else say how."""
    if find_spec("hermes.surfaces.cli.interactive.start_chat") is None:
        cli.out.line(session)
        cli.out.note(f"Go on with: hermes chat --resume {session} -q …")
        return Exit.ANSWERED
    from hermes.surfaces.cli.chat import run_chat  # brings the kernel

    return run_chat(cli, {"resume": session})


COMMAND = sessions
