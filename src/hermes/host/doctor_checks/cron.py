"""Scheduled jobs: whether somebody keeps the time for them, and which of them are in trouble."""

import time
from collections.abc import Iterable

from hermes.host.doctor import Check, Finding, ok, warning
from hermes.host.installation import Installation
from hermes.state.stores import has_sessions, place_of


def run(installation: Installation) -> Iterable[Finding]:
    place = place_of(installation.home)
    if not has_sessions(place):
        yield ok("no jobs are scheduled")
        return
    from hermes.runtime.setup.schedule_setup import job_book  # for homes with a store
    from hermes.state import SessionDB

    with SessionDB(place) as db:
        book = job_book(installation.settings(), db.store.schedule, time.time)
        jobs, is_kept = book.jobs(), book.ledger.ticker(time.time()) is not None
        planned = book.ledger.next_start()
    if not jobs:
        yield ok("no jobs are scheduled")
        return
    if is_kept or planned is None:
        yield ok(
            f"{len(jobs)} jobs, and the time is kept" if is_kept else f"{len(jobs)} jobs, and none of them is planned"
        )
    else:
        many = "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
        yield warning(f"{many} scheduled, and no scheduler is alive", "hermes cron daemon")
    for job in jobs:
        if job.state == "paused" and job.failures:
            yield warning(f"job {job.name!r} has paused itself: {job.paused_reason}", f"hermes cron resume {job.id}")
        elif job.last_delivery_error:
            yield warning(
                f"job {job.name!r} could not deliver: {job.last_delivery_error}",
                f"hermes cron edit {job.id} --deliver …",
            )


CHECK = Check(title="Schedule", run=run)
