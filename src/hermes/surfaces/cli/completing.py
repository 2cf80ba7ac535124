"""What the shell offers where a session is named."""

import click

from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.store import open_sessions

OFFERED = 50


def matching_sessions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The newest sessions whose id or title begins with what was typed."""
    cli = ctx.find_object(Cli)
    if cli is None:
        return []
    with open_sessions(cli) as db:
        rows = db.list_sessions_rich(limit=OFFERED, order_by_last_active=True, compact_rows=True) if db else []
    names = [str(name) for row in rows for name in (row["id"], row.get("title")) if name]
    return [name for name in names if name.startswith(incomplete)]


def matching_skills(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The skills whose name begins with what was typed."""
    from hermes.extensions.skills import Skills  # noqa: PLC0415 - paid by whoever completes one

    cli = ctx.find_object(Cli)
    return [name for name in Skills(cli.settings()).files() if name.startswith(incomplete)] if cli else []
