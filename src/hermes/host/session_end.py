"""When a run of the command line is over: its session is closed, and old ones go where that is asked for."""

import logging
import time

from hermes.config.sections import sessions as sessions_section
from hermes.config.settings import Settings
from hermes.errors import StoreError
from hermes.ops import SessionChanged
from hermes.runtime.setup.process import shared
from hermes.state.stores import has_sessions, place_of

CLOSED = "cli_close"
log = logging.getLogger(__name__)


async def close_session(settings: Settings, session_id: str) -> None:
    """Note that nobody works on the session any more, so that it can be pruned one day. Resuming opens it again."""
    if has_sessions(place_of(settings.home)):
        changes = {"ended_at": time.time(), "end_reason": CLOSED}
        try:
            await shared.store(settings).commit(SessionChanged(session_id, changes))
        except StoreError as error:  # what the turn itself has to say counts for more, a full disk first of all
            log.warning("session %s could not be closed: %s", session_id, error)


def prune_if_due(settings: Settings) -> str:
    """Delete what `sessions.auto_prune` calls old, when the last time was long enough ago; says so, or nothing."""
    wanted, place = settings.of(sessions_section.Section), place_of(settings.home)
    if not wanted.auto_prune or not has_sessions(place):
        return ""
    from hermes.state import SessionDB  # for homes that prune

    try:
        with SessionDB(place) as db:
            done = db.maybe_auto_prune_and_vacuum(
                retention_days=wanted.retention_days,
                min_interval_hours=wanted.min_interval_hours,  # type: ignore[arg-type]  # the contract says int, a part of an hour works
                vacuum=wanted.vacuum_after_prune,
            )
    except StoreError as error:
        return f"Old sessions were not deleted: {error}"
    if not done["pruned"]:
        return ""
    return f"{done['pruned']} sessions older than {wanted.retention_days} days were deleted (sessions.auto_prune)."
