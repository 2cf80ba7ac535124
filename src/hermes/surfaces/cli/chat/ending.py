"""When a run of the command line is over: its session is closed, and old ones go where that is asked for."""

import time

from hermes.config import paths
from hermes.config.sections import sessions as sessions_section
from hermes.config.sections import state as state_section
from hermes.config.settings import Settings
from hermes.ops import SessionChanged
from hermes.runtime.shared import shared
from hermes.seams import EventStore

CLOSED = "cli_close"


async def close_session(settings: Settings, session_id: str) -> None:
    """Note that nobody works on the session any more, so that it can be pruned one day. Resuming opens it again."""
    if paths.state_file(settings.home).exists():
        changes = {"ended_at": time.time(), "end_reason": CLOSED}
        await session_store(settings).commit(SessionChanged(session_id, changes))


def session_store(settings: Settings) -> EventStore:
    """Where the sessions of this home are, as the agents of this process write to it."""
    return shared.store(paths.state_file(settings.home), settings.of(state_section.Section).durability)


def prune_if_due(settings: Settings) -> str:
    """Delete what `sessions.auto_prune` calls old, when the last time was long enough ago; says so, or nothing."""
    wanted, file = settings.of(sessions_section.Section), paths.state_file(settings.home)
    if not wanted.auto_prune or not file.exists():
        return ""
    from hermes.state import SessionDB  # noqa: PLC0415 - for homes that prune

    with SessionDB(file) as db:
        done = db.maybe_auto_prune_and_vacuum(
            retention_days=wanted.retention_days,
            min_interval_hours=wanted.min_interval_hours,  # type: ignore[arg-type]  # the contract says int, a part of an hour works
            vacuum=wanted.vacuum_after_prune,
        )
    if not done["pruned"]:
        return ""
    return f"{done['pruned']} sessions older than {wanted.retention_days} days were deleted (sessions.auto_prune)."
