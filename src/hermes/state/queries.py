"""The seam below `SessionDB`: named reads and writes that every database can answer, and what they are asked with.

A store has them as `queries`. Rows are dicts by the columns of `schema`: texts whole, the JSON columns of messages
parsed, those of sessions as text. Each write is one transaction and durable when the call returns. Everything here
may be called from any thread. `hermes.state.sqlite` implements it, as does a store in memory of the tests, and
tests/state/test_session_db.py holds both to the same words.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from hermes.ops import Lease, SessionRecord, StoreOp
from hermes.seams import EventStore
from hermes.state.message_line import MessageLine
from hermes.state.schedule_rows import ScheduleRows

if TYPE_CHECKING:
    from hermes.state.batch_rows import BatchRows

Row: TypeAlias = dict[str, Any]
Answer = TypeVar("Answer")
RecordTable: TypeAlias = Literal["attempts", "tool_runs", "approvals", "model_calls"]
Sort: TypeAlias = Literal["best", "newest", "oldest"]

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
USAGE_GROUPS: dict[str, tuple[str, ...]] = {  # what a row of `usage` is about; a day is that of the local time
    "day": ("day",),
    "model": ("provider", "model"),
    "purpose": ("purpose",),
    "session": ("session_id",),
    "all": ("provider", "model", "purpose"),
}
SPOKEN = ("user", "assistant")  # the roles of those who talk
USAGE_SUMS = ("calls", *TOKENS, "cost_usd", "seconds", "failed", "uncounted", "unpriced")


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions, and in which order. What is not given does not matter."""

    ids: Sequence[str] | None = None
    equal: Mapping[str, Any] = {}  # columns and the value each has; None is no value
    other_than: Mapping[str, Sequence[str]] = {}  # columns and values that they have none of
    filled: Sequence[str] = ()  # columns that have a value
    id_prefix: str = ""
    id_has: str = ""  # whatever its case
    id_or_title_has: str = ""
    title_like: str = ""  # this title, or this and more behind " #"
    folder: str = ""  # works there or below
    least_messages: int = 0
    ended_before: float | None = None
    empty_before: float | None = None  # began before, and nothing was ever said, named or continued
    is_no_child: bool = False  # of a session that is there; branches are none
    order: Literal["newest", "oldest", "active"] = "newest"  # by their begin, or by their last message
    limit: int = -1
    offset: int = 0


class MessageFilter(Struct, frozen=True, kw_only=True):
    """Which messages, oldest first."""

    ids: Sequence[int] | None = None
    session_id: str | None = None
    is_active: bool | None = True  # not set aside by a rewind or a compaction
    roles: Sequence[str] | None = None
    above: int = 0  # row ids, both without the bound
    below: int | None = None
    platform_message_id: str | None = None
    newest_first: bool = False
    limit: int = -1
    offset: int = 0


class SearchFilter(Struct, frozen=True, kw_only=True):
    """Which messages may be found."""

    sources: tuple[str, ...] = ()
    not_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    user_id: str | None = None
    inactive: bool = False


class Search(Struct, frozen=True, kw_only=True):
    """One question to the index."""

    text: str
    only: SearchFilter = SearchFilter()
    sort: Sort = "best"
    limit: int = 20
    offset: int = 0
    per_lineage: int = 0  # with a number, `limit` counts conversations, of which each gives so many messages
    not_with: str = ""  # a session whose conversation is left out
    last_source: str = ""  # conversations found in a session of it come last, and give way to so many
    spare: int = 0  # others beyond `limit`


class Glance(Struct, frozen=True):
    """What a list shows of a session beside its row."""

    first_words: str  # of the person, on one line
    last_active: float | None  # None as long as nothing was said


class MessagePlace(Struct, frozen=True, kw_only=True):
    """A message of a session, and how much around it."""

    session_id: str
    message_id: int
    window: int  # messages before it, and as many after it
    ends: int = 0  # spoken messages, of the session's start before the window and of its end after it


class AroundMessage(Struct, frozen=True):
    """What was said around a message. All lists are oldest first, and none has a message of another."""

    before: list[Row]
    here: list[Row]  # the message, also when it was set aside; nothing when it is gone
    after: list[Row]
    start: list[Row]
    end: list[Row]


class Lineage(Struct, frozen=True):
    """What a session grew out of and became. All lists are oldest first."""

    ancestors: list[str]  # its parents, and itself at the end
    before: list[str]  # the sessions that compressions made it of
    after: list[str]  # itself, and the sessions that compressions made of it


class SessionQueries(Protocol):
    """What a database answers about sessions. `StoreError` when it cannot."""

    # -- reads -------------------------------------------------------------------------------------------------------

    def sessions(self, where: SessionFilter, columns: Sequence[str] = ()) -> list[Row]:
        """Their rows, with these columns or with all."""

    async def sessions_soon(self, where: SessionFilter, columns: Sequence[str] = ()) -> list[Row]:
        """`sessions` of a few, for a loop."""

    def count_sessions(self, where: SessionFilter) -> int: ...

    def glances(self, session_ids: Sequence[str]) -> dict[str, Glance]:
        """One for each."""

    def lineage(self, session_id: str) -> Lineage:
        """Also of a session that is not there: itself alone. A circle of parents ends where it began."""

    def messages(self, where: MessageFilter, columns: Sequence[str] = ()) -> list[Row]:
        """Their rows, with these columns or with all."""

    def surroundings(self, places: Sequence[MessagePlace], columns: Sequence[str]) -> list[AroundMessage]:
        """One for each, of active messages by time, with these columns, their id and their timestamp."""

    def count_messages(self, where: MessageFilter) -> int:
        """How many there are; with a limit, whether there are so many."""

    def search(self, search: Search) -> list[Row]:
        """Messages that match: id, session_id, role, snippet, timestamp, tool_name, source, model, session_started,
        context.

        With `per_lineage` they have lineage_root in place of context, and those of one conversation, children of
        delegation included, follow each other.
        """

    def records(self, table: RecordTable, session_id: str | None, since: float, limit: int) -> list[Row]:
        """What was written beside the transcript, newest first; `since` is for attempts."""

    def events(self, session_id: str, after: int, limit: int) -> list[Row]:
        """What listeners of the session were told above this number, oldest first: number, session_id, at, kind, about,
        body. Those of the sessions that compressions made it of, or of it, are among them.
        """
        ...

    def newest_event(self) -> int:
        """The number of the newest event of any session; 0 when there is none."""
        ...

    def usage(self, by: str, since: float) -> list[Row]:
        """One row of `USAGE_SUMS` per group of `USAGE_GROUPS[by]`: days newest first, others by the number of calls."""

    def figures(self) -> Row:
        """sessions, messages, by_source, and the bytes: file_bytes, free_bytes, blob_bytes."""

    def meta(self, key: str) -> str | None: ...
    def routes(self, scope: str) -> dict[str, str]: ...

    def compression_lock(self, session_id: str) -> tuple[str, float] | None:
        """Its holder, and until when."""

    def lease(self, session_id: str) -> Lease | None: ...
    def load(self, session_id: str) -> SessionRecord | None: ...

    # -- writes ------------------------------------------------------------------------------------------------------

    def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        """`EventStore.commit` for a plain thread."""

    def add_session(self, columns: Row, messages: Sequence[Row] = ()) -> bool:
        """Insert it with its messages, unless it is there; whether it was. `ValueError` when its title is taken."""

    def change_sessions(self, where: SessionFilter, changes: Row) -> int:
        """Set columns of all that are so at that moment; how many. `ValueError` when a title is taken."""

    def count_up(self, session_id: str, add: Row, replace: Row, fill: Row) -> None:
        """Add to columns, set columns, and set those that have no value yet."""

    def add_message(self, session_id: str, message: Row) -> int:
        """Append it and count it; its row id. `message` as `message_rows.message_row` makes it."""

    def replace_messages(self, session_id: str, messages: Sequence[Row], *, active_only: bool) -> None:
        """Put these in the place of all, or of the active ones, and count anew."""

    def rewind(self, session_id: str, message_id: int) -> int:
        """Set this active message and all after it aside; how many."""

    def restore(self, session_id: str, message_id: int) -> int:
        """Bring back what rewinds set aside, from here on; how many."""

    def set_api_content(self, message_id: int, text: str) -> None: ...
    def set_meta(self, key: str, value: str) -> None: ...

    def change_routes(self, scope: str, entries: Mapping[str, str], remove: Sequence[str] | None = ()) -> None:
        """Remove some routes, or with None all, then set these."""

    def hold_compression_lock(self, session_id: str, holder: str, now: float, until: float) -> bool:
        """Take it when it is free or our own; whether it is ours."""

    def extend_compression_lock(self, session_id: str, holder: str, until: float | None) -> bool:
        """Keep it longer, or with None let it go; False when it is no longer ours."""

    def delete_session(self, session_id: str) -> bool:
        """With all that hangs on it; its children lose their parent. Whether there was one."""

    def reclaim(self, effort: Literal["pages", "blobs", "all"]) -> int:
        """Give space back: free pages; also bytes that nobody refers to; or all that can be. How many bytes."""

    def rebuild_index(self) -> int: ...

    def optimize_index(self) -> int:
        """Index what is waiting, and make the index quick; how many messages were waiting."""


class SessionStore(EventStore, Protocol):
    """A store that `SessionDB` can stand on."""

    @property
    def path(self) -> Path | None:
        """Its file, or the one in whose place it stands; None without a home."""

    @property
    def queries(self) -> SessionQueries: ...
    @property
    def message_line(self) -> MessageLine: ...
    async def in_line(self, work: Callable[[MessageLine], Answer]) -> Answer:
        """Do `work` with the lines, for a loop: all or nothing, durable when it returns; it may be run twice."""

    @property
    def schedule(self) -> ScheduleRows: ...
    @property
    def batch_rows(self) -> "BatchRows": ...

    def close_sync(self) -> None:
        """`close` for a plain thread; a second time does nothing."""
