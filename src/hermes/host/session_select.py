"""Which session a name means."""

from typing import TYPE_CHECKING

from hermes.errors import SessionNotFound

if TYPE_CHECKING:
    from hermes.state import SessionDB

SHOWN = 5  # candidates told of a beginning that fits several
MAX_TITLE_CHARS = 100


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
