"""Jobs and their due moments as rows for people and as plain data for programs."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from hermes.schedule.grammar import shown
from hermes.schedule.job_book import JobBook
from hermes.schedule.ledger import ZoneOf
from hermes.state import owner
from hermes.state.schedule_rows import DueMoment, Job

LATE_S = 120.0  # a moment that should have started this long ago was noticed by nobody


def job_rows(views: Sequence[Mapping[str, Any]]) -> list[list[object]]:
    """A row for each job."""
    return [
        [
            view["job_id"],
            view["name"],
            view["schedule"],
            _next(view),
            _last(view),
            money(view["last_cost_usd"]),
            view["deliver"] + (" (failed)" if view["last_delivery_error"] else ""),
        ]
        for view in views
    ]


def moment_facts(
    moments: Sequence[DueMoment], jobs: Mapping[str, Job], zone_of: ZoneOf, zone: tzinfo
) -> list[dict[str, Any]]:
    """What came of due moments, as plain data."""
    found = []
    for moment in moments:
        job = jobs.get(moment.job_id)
        there = zone_of(job) if job is not None else zone
        facts: dict[str, Any] = {
            "job_id": moment.job_id,
            "name": job.name if job is not None else None,
            "kind": moment.kind,
            "due_at": shown(moment.due_at, there),
            "last_at": shown(moment.last_at, there),
            "count": moment.count,
            "state": moment.state,
            "outcome": moment.outcome or None,
            "reason": moment.reason or None,
            "error": moment.error or None,
            "cost_usd": moment.cost_usd,
            "session_id": moment.session_id or None,
            "output": moment.output or None,
            "tries": moment.tries,
        }
        found.append(facts)
    return found


def moment_rows(found: Sequence[Mapping[str, Any]]) -> list[list[object]]:
    """A row for each."""
    return [
        [_due(one), one["name"] or one["job_id"], _outcome(one), money(one["cost_usd"]), _what(one)] for one in found
    ]


def status_facts(book: JobBook, now: float) -> dict[str, Any]:
    """Whether somebody keeps the time, and what is to come."""
    jobs, ticker = book.jobs(), book.ledger.ticker(now)
    next_start = book.ledger.next_start()
    waiting = book.ledger.rows.read(lambda tx: len(tx.deliveries("waiting", float("inf"), 1_000)))
    is_late = next_start is not None and now - next_start > LATE_S
    return {
        "healthy": not (is_late or (ticker is None and next_start is not None)),
        "ticker": owner.described(ticker.owner) if ticker is not None else None,
        "since": shown(ticker.since, book.checks.zone) if ticker is not None else None,
        "heartbeat_age_s": round(max(0.0, now - ticker.renewed_at), 1) if ticker is not None else None,
        "jobs": len([job for job in jobs if job.state == "scheduled"]),
        "paused": len([job for job in jobs if job.state == "paused"]),
        "running": len(book.ledger.rows.read(lambda tx: tx.in_state("claimed"))),
        "next_at": shown(next_start, book.checks.zone),
        "is_late": is_late,
        "deliveries_waiting": waiting,
    }


def status_lines(facts: Mapping[str, Any]) -> list[str]:
    """The same for a person."""
    if facts["ticker"]:
        since = moment_words(facts["since"])
        lines = [f"The time is kept by {facts['ticker']} since {since} ({facts['heartbeat_age_s']} s ago)"]
    else:
        lines = ["No scheduler is alive; start one: hermes cron daemon"]
    if facts["is_late"]:
        lines.append(f"A moment has been due since {moment_words(facts['next_at'])}, and nobody has looked at it")
    jobs = "1 job is" if facts["jobs"] == 1 else f"{facts['jobs']} jobs are"
    lines.append(f"{jobs} scheduled, {facts['paused']} paused, {facts['running']} run now")
    lines.append(f"Next: {moment_words(facts['next_at']) or 'nothing'}")
    if facts["deliveries_waiting"]:
        lines.append(f"{facts['deliveries_waiting']} deliveries wait")
    return lines


def money(usd: float | None) -> str:
    return "" if usd is None else f"${usd:.4f}"


def _next(view: Mapping[str, Any]) -> str:
    if view["state"] == "paused":
        return f"paused: {view['paused_reason']}" if view["paused_reason"] else "paused"
    if view["running"]:
        return "runs now"
    return moment_words(view["next_run_at"]) or str(view["state"])


def _last(view: Mapping[str, Any]) -> str:
    return f"{moment_words(view['last_run_at'])} {view['last_status']}" if view["last_run_at"] else "never"


def _due(one: Mapping[str, Any]) -> str:
    first = moment_words(one["due_at"])
    return first if one["count"] == 1 else f"{first} … {moment_words(one['last_at'])}"


def _outcome(one: Mapping[str, Any]) -> str:
    many = f", {one['count']} times" if one["count"] > 1 else ""
    if one["state"] == "claimed":
        return "runs now"
    if one["state"] == "folded":
        return f"{one['outcome'] or 'skipped'}{many}"
    return f"skipped{many}" if one["state"] == "skipped" else str(one["outcome"])


def _what(one: Mapping[str, Any]) -> str:
    return str(one["error"] or one["reason"] or one["output"] or one["session_id"] or "")


def moment_words(text: str | None) -> str:
    """A moment for a person: the one form in which all commands print it. JSON has it whole, with its zone."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M") if text else ""
