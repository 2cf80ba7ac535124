"""The calls of `SessionDB` on messages: append, read, replace, rewind, windows, search."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.state.message_rows import SPOKEN_COLUMNS, alternating, conversation, message_row
from hermes.state.queries import MessageFilter, Row, Search, SearchFilter, Sort
from hermes.state.session_calls import messages_of, refuse_unknown

if TYPE_CHECKING:
    from hermes.state.sessions import SessionDB

_MESSAGE_ORDER = (  # of values that are given without their names
    "tool_name",
    "tool_calls",
    "tool_call_id",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "effect_disposition",
    "timestamp",
    "api_content",
    "status",
)
_SORTS: dict[str | None, Sort] = {None: "best", "rank": "best", "best": "best", "newest": "newest", "oldest": "oldest"}


def append_message(db: "SessionDB", session_id: str, role: str, content: Any = None, *more: Any, **fields: Any) -> int:
    """Add a message and count it, durably; return its row id.

    `more` and `fields`, in this order: tool_name, tool_calls, tool_call_id, token_count, finish_reason, reasoning,
    reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, observed,
    effect_disposition, timestamp, api_content, status. Lists and dicts come back as they went in.
    """
    if len(more) > len(_MESSAGE_ORDER):
        raise TypeError(f"append_message() takes {len(_MESSAGE_ORDER) + 3} values, not {len(more) + 3}")
    given = dict(zip(_MESSAGE_ORDER, more, strict=False))
    twice = sorted(given.keys() & fields.keys())
    if twice:
        raise TypeError(f"append_message() got multiple values for argument {twice[0]!r}")
    fields |= given
    refuse_unknown("append_message", fields, _MESSAGE_ORDER)
    message = message_row({**fields, "role": role, "content": content}, db.clock())
    return db.queries.add_message(session_id, message)


def get_messages(
    db: "SessionDB", session_id: str, include_inactive: bool = False, limit: int | None = None, offset: int = 0
) -> list[Row]:
    """The rows in order, JSON columns parsed."""
    return messages_of(db.queries, session_id, include_inactive, limit=-1 if limit is None else limit, offset=offset)


def replace_messages(
    db: "SessionDB", session_id: str, messages: Sequence[Mapping[str, Any]], active_only: bool = False
) -> None:
    """Put `messages` in the place of all rows (or of the active ones), and count anew."""
    new = [message_row(message, db.clock()) for message in messages]
    db.queries.replace_messages(session_id, new, active_only=active_only)


def clear_messages(db: "SessionDB", session_id: str) -> None:
    """Empty the session, counters too."""
    db.replace_messages(session_id, [])


def rewind_to_message(db: "SessionDB", session_id: str, target_message_id: int) -> Row:
    """Set the target and all after it aside, so that the session goes on before it; they can be restored."""
    gone = db.queries.rewind(session_id, target_message_id)
    return {"session_id": session_id, "target_message_id": target_message_id, "rewound": gone}


def restore_rewound(db: "SessionDB", session_id: str, since_message_id: int) -> int:
    """Bring rewound messages back, from `since_message_id` on; how many."""
    return db.queries.restore(session_id, since_message_id)


def get_messages_around(db: "SessionDB", session_id: str, around_message_id: int, window: int = 5) -> Row:
    """Up to `window` messages on each side of one, and how many more there are."""
    here = messages_of(db.queries, session_id, True, ids=(around_message_id,))
    if not here:
        return {"window": [], "messages_before": 0, "messages_after": 0}
    before = messages_of(db.queries, session_id, below=around_message_id, newest_first=True, limit=window)
    after = messages_of(db.queries, session_id, above=around_message_id, limit=window)
    count = db.queries.count_messages
    return {
        "window": [*reversed(before), *here, *after],
        "messages_before": count(MessageFilter(session_id=session_id, below=around_message_id)) - len(before),
        "messages_after": count(MessageFilter(session_id=session_id, above=around_message_id)) - len(after),
    }


def get_anchored_view(
    db: "SessionDB",
    session_id: str,
    around_message_id: int,
    window: int = 5,
    bookend: int = 3,
    keep_roles: tuple[str, ...] | None = ("user", "assistant"),
) -> Row:
    """A window around a message, with the beginning and the end of the session where the window leaves them out.

    Bookends hold only `keep_roles`; the window holds those and the anchor itself.
    """
    view = db.get_messages_around(session_id, around_message_id, window)
    rows: list[Row] = view["window"]
    if not rows:
        return {**view, "bookend_start": [], "bookend_end": []}
    start = messages_of(db.queries, session_id, below=rows[0]["id"], roles=keep_roles, limit=bookend)
    end = messages_of(db.queries, session_id, above=rows[-1]["id"], roles=keep_roles, limit=bookend, newest_first=True)
    kept = [row for row in rows if keep_roles is None or row["role"] in keep_roles or row["id"] == around_message_id]
    return {**view, "window": kept, "bookend_start": start, "bookend_end": end[::-1]}


def list_recent_user_messages(
    db: "SessionDB", session_id: str, limit: int = 20, include_inactive: bool = False
) -> list[Row]:
    """What the person said last, newest first."""
    return messages_of(db.queries, session_id, include_inactive, roles=("user",), newest_first=True, limit=limit)


def message_count(db: "SessionDB", session_id: str | None = None) -> int:
    """Active messages of a session, or of all."""
    return db.queries.count_messages(MessageFilter(session_id=session_id))


def has_archived_messages(db: "SessionDB", session_id: str) -> bool:
    """Whether messages of the session were set aside by a rewind or a compaction."""
    return bool(db.queries.count_messages(MessageFilter(session_id=session_id, is_active=False, limit=1)))


def set_latest_user_api_content(db: "SessionDB", session_id: str, content: Any, api_content: str) -> int:
    """Note what was really sent for the newest user message, if that message is `content`; its row id, or 0."""
    rows = db.list_recent_user_messages(session_id, limit=1)
    if not rows or rows[0]["content"] != content:
        return 0
    row_id = int(rows[0]["id"])
    db.queries.set_api_content(row_id, api_content)
    return row_id


def has_platform_message_id(db: "SessionDB", session_id: str, platform_message_id: str) -> bool:
    """Whether a message of the platform was stored already."""
    where = MessageFilter(session_id=session_id, is_active=None, platform_message_id=platform_message_id, limit=1)
    return bool(db.queries.count_messages(where))


def get_messages_as_conversation(
    db: "SessionDB",
    session_id: str,
    include_ancestors: bool = False,
    include_inactive: bool = False,
    repair_alternation: bool = False,
) -> list[Row]:
    """The transcript as OpenAI-style dicts.

    With ancestors, root first; a user message that a child repeats is left out. Memory context never shows.
    """
    ids = db.queries.lineage(session_id).ancestors if include_ancestors else [session_id]
    is_active = None if include_inactive else True
    filters = [MessageFilter(session_id=one, is_active=is_active) for one in ids]
    whole = conversation([db.queries.messages(one, SPOKEN_COLUMNS) for one in filters])
    return alternating(whole) if repair_alternation else whole


def get_ancestor_display_prefix(db: "SessionDB", session_id: str) -> list[Row]:
    """What was said before this session began, in its ancestors."""
    *before, _ = db.queries.lineage(session_id).ancestors
    return db.get_messages_as_conversation(before[-1], include_ancestors=True) if before else []


def get_resume_conversations(db: "SessionDB", session_id: str) -> tuple[list[Row], list[Row]]:
    """The session's own conversation, and the one to show, with its ancestors."""
    own = db.get_messages_as_conversation(session_id)
    return own, db.get_messages_as_conversation(session_id, include_ancestors=True)


def search_messages(  # noqa: PLR0913 - the keywords of the contract
    db: "SessionDB",
    query: str,
    source_filter: Sequence[str] | None = None,
    exclude_sources: Sequence[str] | None = None,
    role_filter: Sequence[str] | None = None,
    *,
    limit: int = 20,
    offset: int = 0,
    sort: str | None = None,
    include_inactive: bool = False,
    user_id: str | None = None,
) -> list[Row]:
    """Matching messages, best first or by age (`newest`, `oldest`); see docs/sessions.md for what can be asked.

    Rows have id, session_id, role, snippet, timestamp, tool_name, source, model, session_started and context.
    """
    if sort not in _SORTS:
        raise ValueError(f"sort is 'best', 'newest' or 'oldest', not {sort!r}")
    only = SearchFilter(
        sources=tuple(source_filter or ()),
        not_sources=tuple(exclude_sources or ()),
        roles=tuple(role_filter or ()),
        user_id=user_id,
        inactive=include_inactive,
    )
    return db.queries.search(Search(text=query, only=only, sort=_SORTS[sort], limit=limit, offset=offset))


def rebuild_fts(db: "SessionDB") -> int:
    """Make the index anew; how many messages it holds."""
    return db.queries.rebuild_index()


def optimize_fts(db: "SessionDB") -> int:
    """Index what is waiting and merge the index into one piece; how many messages were waiting."""
    return db.queries.optimize_index()
