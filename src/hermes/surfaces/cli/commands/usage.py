"""Tell what model calls used and cost."""

import time
from typing import Any

import click

from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.store import open_sessions

DAY_S = 86_400


@click.command("usage")
@click.option("--days", type=click.IntRange(min=1), default=30, show_default=True, help="How far back.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def usage(cli: Cli, days: int, as_json: bool) -> None:
    """Tell what model calls used and cost, by model and purpose. An unknown price is told, not counted as nothing."""
    with open_sessions(cli) as db:
        rows = db.usage_by_model(since=time.time() - days * DAY_S) if db else []
    if as_json:
        cli.out.json({"days": days, "models": rows, "cost_usd": _sum(rows), "unpriced": _unpriced(rows)})
        return
    if not rows:
        cli.out.note(f"No model was called in the last {days} days.")
        return
    cells = [
        [
            row["model"],
            row["provider"],
            row["purpose"],
            row["calls"],
            f"{row['input_tokens'] + row['cache_read_tokens'] + row['cache_write_tokens']:,}",
            f"{row['cache_read_tokens']:,}",
            f"{row['output_tokens']:,}",
            _price(row["cost_usd"], row["unpriced"], row["calls"]),
        ]
        for row in rows
    ]
    cli.out.table(["MODEL", "PROVIDER", "FOR", "CALLS", "READ", "CACHED", "WRITTEN", "COST"], cells, flexible=0)
    total = _price(_sum(rows), _unpriced(rows), sum(row["calls"] for row in rows))
    cli.out.line(f"{days} days: {total}")


def _sum(rows: list[dict[str, Any]]) -> float:
    return float(sum(row["cost_usd"] or 0 for row in rows))


def _unpriced(rows: list[dict[str, Any]]) -> int:
    return int(sum(row["unpriced"] for row in rows))


def _price(cost: float | None, unpriced: int, calls: int) -> str:
    if unpriced == calls:
        return "unknown"
    known = f"${cost or 0:.4f}"
    return f"{known} + {unpriced} unpriced calls" if unpriced else known


COMMAND = usage
