"""See what was approved and why, and take it back."""

import time
from textwrap import indent
from typing import Any

import click

from hermes.errors import UserError
from hermes.host.session_select import open_sessions
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli


@click.group("approvals", cls=Menu, invoke_without_command=True)
@click.pass_context
def approvals(ctx: click.Context) -> None:
    """See what was approved and why, and take it back. Without a command, tell the newest decisions.

    A yes for a task or session ends with it, at the latest after thirty days; one for good is an entry of
    `command_allowlist` in config.yaml.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(why)


@approvals.command("list")
@as_json
@click.pass_obj
def list_(cli: Cli, as_json: bool) -> None:
    """List what is approved now: for a task, a session, or for good."""
    rows = _held(cli)
    if as_json:
        cli.out.json(rows)
        return
    if not rows:
        cli.out.note("Nothing is approved beyond what the rules allow.")
        return
    cells = [[row["id"], row["scope"], row["what"], row["session_id"] or "", _day(row["expires_at"])] for row in rows]
    cli.out.table(["ID", "FOR", "WHAT", "SESSION", "ENDS"], cells, flexible=2)


@approvals.command("revoke")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Take back everything.")
@as_json
@click.pass_obj
def revoke(cli: Cli, ids: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Take approvals back, by the ID that `list` shows. It holds at once, also for sessions that are running."""
    if bool(ids) == everything:
        raise click.UsageError("Name what to take back, or say --all.")
    from hermes.tools.approval.grants import HomeGrants, forbid_again  # help does without

    held = {row["id"]: row for row in _held(cli)}
    unknown = [one for one in ids if one not in held]
    if unknown:
        raise UserError(f"there is no approval {unknown[0]!r}; see: hermes approvals list")
    taken = [held[one] for one in (held if everything else dict.fromkeys(ids))]
    for row in taken:
        if row["scope"] == "always":
            forbid_again(cli.home, row["what"])
    HomeGrants(cli.home).revoke(*(row["id"] for row in taken if row["scope"] != "always"))
    if as_json:
        cli.out.json(taken)
        return
    for row in taken:
        cli.out.line(f"Taken back: {row['what']} ({row['scope']})")


@approvals.command("why")
@click.argument("text", required=False)
@click.option("--session", "session_id", metavar="ID", help="Only decisions of this session.")
@click.option("-n", "--count", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest last.")
@as_json
@click.pass_obj
def why(cli: Cli, text: str | None, session_id: str | None, count: int, as_json: bool) -> None:
    """Tell why actions were allowed or denied: rule, reason and who decided. TEXT picks those that contain it."""
    with open_sessions(cli) as db:
        rows = db.list_approvals(session_id) if db else []
    found = [row for row in rows if text is None or text in str(row["action"])]
    newest = sorted(found, key=lambda row: int(row["id"]))[-count:]
    if as_json:
        cli.out.json(newest)
        return
    if not newest:
        cli.out.note("Nothing was decided yet." if not rows else "No such decision was made.")
        return
    from hermes.tools.approval.decide import for_person
    from hermes.tools.approval.visible_text import visible

    for row in newest:
        cli.out.line(f"{_when(row['at'])}  {row['verdict']}  {row['tool']} ({row['route']})")
        action = visible(str(row["action"]))
        cli.out.line(indent(f"{action[:300]}…" if len(action) > 300 else action, "    "))
        cli.out.line(f"    {row['decided_by']}, {row['rule'] or 'no rule'}: {visible(for_person(str(row['reason'])))}")


def _held(cli: Cli) -> list[dict[str, Any]]:
    from hermes.tools.approval.grants import KEPT_S, HomeGrants, read_allowlist  # help does without

    rows: list[dict[str, Any]] = [
        {
            "id": one.grant.id,
            "scope": one.grant.scope,
            "what": f"{one.grant.key} @ {one.grant.path_class}" if one.grant.path_class else one.grant.key,
            "session_id": one.grant.session_id or None,
            "task_id": one.grant.task_id or None,
            "given_at": one.at,
            "expires_at": one.at + KEPT_S,
        }
        for one in HomeGrants(cli.home).kept()
    ]
    rows += [
        {
            "id": f"a{number}",
            "scope": "always",
            "what": entry,
            "session_id": None,
            "task_id": None,
            "given_at": None,
            "expires_at": None,
        }
        for number, entry in enumerate(read_allowlist(cli.home) or (), 1)
    ]
    return rows


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _day(at: float | None) -> str:
    return "never" if at is None else time.strftime("%Y-%m-%d", time.localtime(at))


COMMAND = approvals
