"""Tell what model calls used and cost."""

import time
from typing import Any

import click

from hermes.config import paths
from hermes.host.session_select import open_sessions
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.output import cache_share

DAY_S = 86_400
GROUPS = ("day", "model", "purpose", "session", "all")
HEADINGS = {"session_id": "SESSION", "purpose": "FOR"}


@click.command("usage")
@click.option("--by", type=click.Choice(GROUPS), default="all", show_default=True, help="What each line is about.")
@click.option("--days", type=click.IntRange(min=1), default=30, show_default=True, help="How far back.")
@as_json
@click.pass_obj
def usage(cli: Cli, by: str, days: int, as_json: bool) -> None:
    """Tell what model calls used and cost: by day, model, purpose or session, or by model and purpose.

    Helpers' calls and those of subagents are counted like any other. A price or a count that nobody knows is told as
    unknown, never counted as nothing. Beside the tokens read from a provider's cache stands their share of all it read.
    """
    rows: list[dict[str, Any]] = []
    with open_sessions(cli) as db:
        if db is not None:
            rows = db.usage(by, time.time() - days * DAY_S)
    total = {name: sum(row[name] for row in rows) for name in ("calls", "failed", "uncounted", "unpriced")}
    cost = float(sum(row["cost_usd"] or 0 for row in rows))
    from hermes.models.providers.metadata import snapshot  # help does without it

    taken = snapshot(paths.cache_dir(cli.home))
    for row in rows:
        row["cache_share"] = cache_share(_read(row), row["cache_read_tokens"])
    if as_json:
        key = "models" if by in ("all", "model") else f"by_{by}"
        cli.out.json({"days": days, key: rows, "cost_usd": cost, "prices_of": taken, **total})
        return
    if not rows:
        cli.out.note(f"No model was called in the last {days} days.")
        return
    names = [name for name in rows[0] if isinstance(rows[0][name], str)]
    cells = [[*(row[name] or "-" for name in names), *_figures(row)] for row in rows]
    heads = [HEADINGS.get(name, name.upper()) for name in names]
    cli.out.table([*heads, "CALLS", "FAILED", "READ", "CACHED", "WRITTEN", "COST"], cells, flexible=0)
    price = _price(cost, total["unpriced"], total["calls"] - total["failed"])
    cli.out.line(f"{days} day{'s' * (days != 1)}, {total['calls']} calls: {price}")
    if cost:
        cli.out.note(f"Costs are estimates by the prices of {taken} and those in config.yaml (hermes model --update).")


def _figures(row: dict[str, Any]) -> list[object]:
    read, share = _read(row), row["cache_share"]
    unknown = " + unknown" if row["uncounted"] else ""
    return [
        row["calls"],
        row["failed"],
        f"{read:,}{unknown}",
        f"{row['cache_read_tokens']:,}" + (f" ({share:.0%})" if share else ""),
        f"{row['output_tokens']:,}{unknown}",
        _price(row["cost_usd"], row["unpriced"], row["calls"] - row["failed"]),
    ]


def _read(row: dict[str, Any]) -> int:
    return int(row["input_tokens"] + row["cache_read_tokens"] + row["cache_write_tokens"])


def _price(cost: float | None, unpriced: int, answered: int) -> str:
    if answered and unpriced == answered:
        return "unknown"
    known = f"${cost or 0:.4f}"
    return f"{known} + {unpriced} unpriced calls" if unpriced else known


COMMAND = usage
