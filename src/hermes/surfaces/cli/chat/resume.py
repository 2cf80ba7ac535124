"""Which session a run goes on with."""

from typing import TYPE_CHECKING

from hermes.errors import SessionNotFound
from hermes.state.stores import has_sessions, place_of
from hermes.surfaces.cli.chat.wish import Wish
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.state import SessionDB

SHOWN = 5  # candidates told of a beginning that fits several
MAX_TITLE_CHARS = 100


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
        from hermes.surfaces.cli.session_copy import copied  # rare

        copy = copied(db, found)
        if not wish.quiet and not wish.as_json:
            cli.out.note(f"This is a copy now, {copy}; the original is {found}.")
        return copy


def _wanted(db: "SessionDB", wish: Wish) -> str:
    if wish.resume is not None:
        return find_session(db, wish.resume)
    if wish.continue_:
        return find_session(db, wish.continue_)
    newest = db.list_sessions_rich(source=wish.source, limit=1, order_by_last_active=True)
    if not newest:
        raise SessionNotFound(f"there is no earlier session from {wish.source!r}; see: hermes sessions list")
    return str(newest[0]["id"])


def find_session(db: "SessionDB", name: str) -> str:
    """The id of the session called `name`: an id, the beginning of one, or a title."""
    found = db.resolve_session_id(name) or db.resolve_session_by_title(_title(name))
    if found is not None:
        return found
    several = [str(row["id"]) for row in db.search_sessions_by_id(name, limit=SHOWN) if str(row["id"]).startswith(name)]
    if name and len(several) > 1:
        raise SessionNotFound(f"{name!r} is the beginning of several sessions: {', '.join(several)}; give more of it")
    near = db.list_sessions_rich(search_query=name, limit=1) if name.strip() else []
    hint = f"; did you mean {near[0]['title']!r} ({near[0]['id']})?" if near and near[0].get("title") else ""
    raise SessionNotFound(f"there is no session {name!r}{hint or '; see: hermes sessions list'}")


def _title(name: str) -> str:
    """A name longer than any title is none, and no reason for another error."""
    return name if len(name) <= MAX_TITLE_CHARS else ""
