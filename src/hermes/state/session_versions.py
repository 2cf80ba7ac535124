"""Whether a session is as it was, told without reading it."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

MAX_WATCHED = 1024


class Version(Struct, frozen=True, gc=False):
    """One state of a session in the store; another one differs in at least one of these."""

    opened: int  # how often the file was opened: another connection counts anew
    file: int  # changes when another connection writes to the file
    others: int  # writes over our own connection that name no session
    commits: int  # that concern the session, over our own connection

    def after(self, commits: int) -> "Version":
        """The state that so many more commits about the session, and nothing else, lead to."""
        return Version(self.opened, self.file, self.others, self.commits + commits)


class Concerning(Protocol):
    """Something that is written about a session, or about none."""

    @property
    def session_id(self) -> str | None: ...


class Versions:
    """Counts the writes over one connection, for sessions that were asked about. Used by whoever holds it."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._start = 0
        self._others = 0

    def of(self, session_id: str, opened: int, file: int) -> Version:
        """The state of a session, over the connection that was the `opened`th; its commits are counted from now on."""
        count = self._counts.get(session_id)
        if count is None:
            if len(self._counts) >= MAX_WATCHED:
                self._counts.clear()
            self._start += 1 << 32  # no count that was given out before is reached again
            count = self._counts[session_id] = self._start
        return Version(opened, file, self._others, count)

    def committed(self, ops: Iterable[Concerning]) -> None:
        """These were written, or tried, in one commit; it counts once for a session whose ops stand together."""
        counts, before = self._counts, None
        for op in ops:
            session_id = op.session_id
            if session_id != before and session_id in counts:
                counts[session_id] += 1
            before = session_id

    def wrote(self) -> None:
        """Something was written that may concern any session."""
        self._others += 1
