"""The stored sessions, a page at a time."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes.host.session_text import title_of
from hermes.state.recall import NEVER_LISTED
from hermes.surfaces.acp.protocol import ListReply, SessionListed

if TYPE_CHECKING:
    from hermes.state import SessionDB

PAGE = 50


def page_of(db: "SessionDB", cwd: str | None, cursor: str | None) -> ListReply:
    """Sessions of every way in, newest first, of one folder when it is named; a cursor of nobody's is an empty page."""
    if cursor is not None and not cursor.isdecimal():
        return ListReply(())
    offset, found = int(cursor or 0), list[SessionListed]()
    while len(found) < PAGE:
        rows = db.list_sessions_rich(
            exclude_sources=NEVER_LISTED, limit=PAGE, offset=offset, order_by_last_active=True, compact_rows=True
        )
        for place, row in enumerate(rows):
            folder = str(row.get("cwd") or "")
            if cwd is None or folder == cwd:
                when = datetime.fromtimestamp(float(row["last_active"]), UTC).isoformat()
                found.append(SessionListed(str(row["id"]), folder, when, title_of(row).strip('"') or None))
            if len(found) == PAGE:
                return ListReply(tuple(found), str(offset + place + 1))
        if len(rows) < PAGE:
            break
        offset += PAGE
    return ListReply(tuple(found))
