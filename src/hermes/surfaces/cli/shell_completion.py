"""What the shell offers where a session is named."""

from typing import TYPE_CHECKING

import click

from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

OFFERED = 50


def matching_sessions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The newest sessions whose id or title begins with what was typed; bash would not quote a title of two words."""
    from click.shell_completion import CompletionItem  # paid by whoever completes one

    from hermes.host.session_select import open_sessions

    cli = ctx.find_object(Cli)
    if cli is None:
        return []

    with open_sessions(cli) as db:
        rows = db.list_sessions_rich(limit=OFFERED, order_by_last_active=True, compact_rows=True) if db else []
    ids = [CompletionItem(str(row["id"]), help=str(row.get("title") or row.get("preview") or "")) for row in rows]
    titles = [CompletionItem(title) for row in rows if len((title := str(row.get("title") or "")).split()) == 1]
    return [item for item in [*ids, *titles] if item.value.startswith(incomplete)]


def matching_skills(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The skills whose name begins with what was typed."""
    from hermes.extensions.skills.skill_book import SkillBook  # paid by whoever completes one

    cli = ctx.find_object(Cli)
    heads = SkillBook(cli.settings()).usable() if cli else []
    return [head.name for head in heads if head.name.startswith(incomplete)]
