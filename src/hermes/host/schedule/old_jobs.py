"""Jobs of Hermes Agent: its `cron/jobs.json`, job by job. One that cannot be taken costs itself."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.errors import UserError
from hermes.schedule.job_book import JobBook
from hermes.schedule.job_order import JobOrder
from hermes.state.schedule_rows import Job, ScheduleTx
from hermes.typed import from_json


class ImportedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a file: the jobs that were taken, those that were there, and the others with the reason."""

    taken: tuple[Job, ...]
    known: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


def jobs_file(home: Path) -> Path:
    """Where Hermes Agent keeps its jobs."""
    return home / "cron" / "jobs.json"


def import_jobs(book: JobBook, file: Path) -> ImportedJobs:
    """Take the jobs of a file under the ids they have; one that is here already stays as it is."""
    try:
        found = from_json(file.read_bytes(), dict[str, Any])
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UserError(f"{str(file)!r} is no jobs.json ({error})") from error
    taken: list[Job] = []
    known: list[str] = []
    refused: list[tuple[str, str]] = []
    there = {job.id for job in book.jobs()}
    for record in found.get("jobs") or ():
        name = str(record.get("name") or record.get("id") or "?") if isinstance(record, dict) else "?"
        try:
            if not isinstance(record, dict):
                raise UserError("it is no job")
            if str(record.get("id")) in there:
                known.append(name)
                continue
            taken.append(_add(book, record))
        except (UserError, msgspec.MsgspecError, TypeError, ValueError) as error:
            refused.append((name, str(error)))
    return ImportedJobs(taken=tuple(taken), known=tuple(known), refused=tuple(refused))


def _add(book: JobBook, record: dict[str, Any]) -> Job:
    repeat = record.get("repeat") or {}
    texts = ("prompt", "name", "deliver", "model", "provider", "base_url", "script", "workdir")
    given: dict[str, Any] = {name: str(record[name]) for name in texts if record.get(name)}
    lists = ("skills", "context_from", "enabled_toolsets")
    given |= {name: tuple(map(str, record[name])) for name in lists if isinstance(record.get(name), list)}
    if not given.get("skills") and record.get("skill"):
        given["skills"] = (str(record["skill"]),)
    given.pop("context_from", None)  # those jobs may not be here yet
    if given.get("deliver") == "origin":
        given.pop("deliver")  # a chat that is not here
    if isinstance(repeat, dict) and repeat.get("times"):
        given["repeat"] = int(repeat["times"])
    order = JobOrder(schedule=_schedule(record), no_agent=bool(record.get("no_agent")), **given)
    job = book.draft(order)
    done = int(repeat.get("completed") or 0) if isinstance(repeat, dict) else 0
    is_on = record.get("enabled", True) and record.get("state") not in ("paused", "completed")
    made = msgspec.structs.replace(
        job,
        id=_id(record) or job.id,
        completed=done if job.schedule.kind != "once" else 0,
        state="scheduled" if is_on else "paused",
        paused_reason="" if is_on else str(record.get("paused_reason") or "it was paused where it came from"),
    )
    if is_on:
        return book.add(made)

    def work(tx: ScheduleTx) -> Job:
        tx.put_job(made)
        return made

    return book.ledger.rows.write(work)


def _id(record: dict[str, Any]) -> str:
    job_id = str(record.get("id") or "")
    is_id = len(job_id) == 12 and all(digit in "0123456789abcdef" for digit in job_id)
    return job_id if is_id else ""


def _schedule(record: dict[str, Any]) -> str:
    schedule = record.get("schedule")
    if isinstance(schedule, dict):
        if schedule.get("kind") == "interval" and schedule.get("minutes"):
            return f"every {int(schedule['minutes'])}m"
        if schedule.get("kind") == "cron" and schedule.get("expr"):
            return str(schedule["expr"])
        if schedule.get("kind") == "once" and schedule.get("run_at"):
            return str(schedule["run_at"])
    shown = str(record.get("schedule_display") or (schedule if isinstance(schedule, str) else ""))
    if not shown:
        raise UserError("it has no schedule")
    return shown
