"""`hermes sessions export`, `import`, `prune`, `archive` and `optimize`: many sessions at once."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from hermes.errors import UserError
from hermes.host.session_export import ExportForm, export_texts, exported
from hermes.host.session_select import DAY_S, SessionChoice, ended_sessions, find_session, no_sessions, open_sessions
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.session_filter import filter_options, taken_filter
from hermes.typed import from_json

DEFAULT_AGE_DAYS = 90

dry_run = click.option("--dry-run", is_flag=True, help="Only say which sessions it would be.")
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.command("export")
@click.argument("output", required=False, default="-", metavar="[FILE]")
@click.option(
    "--session-id", "session", metavar="SESSION", help="Only this one: its id, the start of it, or its title."
)
@click.option("--format", "form", type=click.Choice(["jsonl", "md"]), default="jsonl", show_default=True, help="How.")
@click.option("--only", type=click.Choice(["user-prompts"]), help="Only what you said, a JSON line each.")
@click.option("--lineage", type=click.Choice(["single", "logical"]), default="single", help="With all it grew out of.")
@click.option("--redact", is_flag=True, help="Take out what looks like a secret.")
@click.option("--tools", "with_tools", is_flag=True, help="Results of tools as well, in Markdown.")
@dry_run
@filter_options
@click.pass_obj
def export(cli: Cli, /, output: str, session: str | None, **options: Any) -> None:
    """Write sessions as JSON lines, one each, or as Markdown, to a file or stdout."""
    wanted = taken_filter(options)
    with open_sessions(cli) as db:
        if db is None:
            raise no_sessions(session)
        ids = [find_session(db, session)] if session else [str(row["id"]) for row in wanted.select(db)]
        if options["dry_run"]:
            cli.out.line(f"{len(ids)} sessions would be written")
            return
        texts = _texts(cli, exported(db, ids, lineage=options["lineage"]), options)
        if output == "-":
            for text in texts:
                cli.out.write(text)
            return
        _write(Path(output), texts)
    cli.out.note(f"{len(ids)} sessions are in {output}")


@click.command("import")
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
                found = from_json(line, dict[str, Any])
            except msgspec.MsgspecError as error:
                raise UserError(f"{file}, line {number}: this is no exported session ({error})") from error
            read += found["sessions"] if isinstance(found.get("sessions"), list) else [found]
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


@click.command("prune")
@click.option("--include-archived", is_flag=True, help="Archived ones as well.")
@click.option("--include-open", is_flag=True, help="Those that a crash left open as well, when idle for a day.")
@dry_run
@yes
@as_json
@filter_options
@click.pass_obj
def prune(cli: Cli, /, include_archived: bool, include_open: bool, **options: Any) -> None:
    """Delete ended sessions that match; without a filter, those older than 90 days."""
    wanted = taken_filter(options)
    if wanted.is_empty or (wanted.source is not None and wanted == SessionChoice(source=wanted.source)):
        wanted = msgspec.structs.replace(wanted, older_than=DEFAULT_AGE_DAYS * DAY_S)
    with open_sessions(cli) as db:
        found = ended_sessions(db, wanted, with_archived=include_archived, with_open=include_open)
        if _is_settled(cli, "deleted", found, options):
            return
        assert db is not None
        _confirm(f"Delete {len(found)} sessions?", options)
        _tell(cli, "deleted", db.delete_sessions(found), found, options)


@click.command("archive")
@dry_run
@yes
@as_json
@filter_options
@click.pass_obj
def archive(cli: Cli, /, **options: Any) -> None:
    """Hide ended sessions that match from lists; they are still found by id and by search."""
    wanted = taken_filter(options)
    if wanted.is_empty:
        raise UserError("say which sessions, such as: hermes sessions archive --older-than 30d")
    with open_sessions(cli) as db:
        found = ended_sessions(db, wanted, with_archived=False)
        if _is_settled(cli, "archived", found, options):
            return
        assert db is not None
        _confirm(f"Archive {len(found)} sessions?", options)
        _tell(cli, "archived", sum(db.archive_sessions(id_query=each) for each in found), found, options)


@click.command("optimize")
@as_json
@click.pass_obj
def optimize(cli: Cli, as_json: bool) -> None:
    """Merge the search index and rewrite the store without gaps."""
    with open_sessions(cli) as db:
        freed = db.vacuum() if db else 0
    cli.out.json({"freed_bytes": freed}) if as_json else cli.out.line(f"{freed / 1e6:.1f} MB are free again")


COMMANDS: dict[str, click.Command] = {str(each.name): each for each in (archive, export, import_, optimize, prune)}


def _texts(cli: Cli, sessions: Iterator[Mapping[str, Any]], options: Mapping[str, Any]) -> Iterator[str]:
    """Each session as the text to be written."""
    if options["redact"]:
        from hermes.host.logs import redactor

        settings = cli.settings()
        sessions = map(redactor(settings.environ, settings.secrets).redact_all, sessions)
    form: ExportForm = "prompts" if options["only"] else "md" if options["form"] == "md" else "jsonl"
    return export_texts(sessions, form, with_tools=options["with_tools"])


def _write(file: Path, texts: Iterator[str]) -> None:
    """Write to a file only its owner can read; it appears when it is whole."""
    from hermes.config.paths import write_private

    write_private(file, "".join(texts))


def _is_settled(cli: Cli, done: str, found: list[str], options: Mapping[str, Any]) -> bool:
    """Whether saying what there is was all: a dry run, or nothing matches."""
    if found and not options["dry_run"]:
        return False
    if options["as_json"]:
        cli.out.json({done: 0, "sessions": found})
        return True
    cli.out.line(f"{len(found)} sessions would be {done}" if found else "No ended session matches.")
    for each in found:
        cli.out.line(f"  {each}")
    return True


def _confirm(question: str, options: Mapping[str, Any]) -> None:
    if not options["yes"]:
        click.confirm(question, abort=True, err=True)


def _tell(cli: Cli, done: str, count: int, found: list[str], options: Mapping[str, Any]) -> None:
    cli.out.json({done: count, "sessions": found}) if options["as_json"] else cli.out.line(
        f"{count} sessions are {done}"
    )
