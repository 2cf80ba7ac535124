"""Which session a run goes on with."""

from typing import TYPE_CHECKING

from hermes.errors import SessionNotFound
from hermes.state.stores import has_sessions, place_of
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.state import SessionDB


def resumed_session(cli: Cli, wish: Wish) -> str | None:
    """The id of the session to go on with; None for a new one; `SessionNotFound` when the named one is not there.

    With `wish.fork` it is that of a copy, which is made now.
    """
    if wish.resume is None and wish.continue_ is None:
        return None
    place = place_of(cli.home)
    if not has_sessions(place):
        raise SessionNotFound("there are no sessions yet; start one with: hermes chat -q …")
    from hermes.state import SessionDB  # a new session does without it

    with SessionDB(place) as db:
        found = db.resolve_resume_session_id(_wanted(db, wish))
        if not wish.fork:
            return found
        from hermes.host.session_copy import copied  # rare

        copy = copied(db, found)
        if not wish.quiet and not wish.as_json:
            cli.out.note(f"This is a copy now, {copy}; the original is {found}.")
        return copy


def _wanted(db: "SessionDB", wish: Wish) -> str:
    from hermes.host.session_select import find_session  # for who names one

    if wish.resume is not None:
        return find_session(db, wish.resume)
    if wish.continue_:
        return find_session(db, wish.continue_)
    newest = db.list_sessions_rich(source=wish.source, limit=1, order_by_last_active=True)
    if not newest:
        raise SessionNotFound(f"there is no earlier session from {wish.source!r}; see: hermes sessions list")
    return str(newest[0]["id"])
