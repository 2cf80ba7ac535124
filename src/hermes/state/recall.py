"""What was said in earlier conversations: found by words, listed, and read around a message.

A conversation is what compressions and delegation made of one session: its lineage. Everything here answers with dicts
that fit a model's window, and never with the conversation that asks.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from hermes.dicts import storable
from hermes.state.queries import (
    SPOKEN,
    AroundMessage,
    MessageFilter,
    MessagePlace,
    Row,
    Search,
    SearchFilter,
    SessionFilter,
    SessionQueries,
    Sort,
)

HIDDEN_SOURCES: Final = ("tool",)
NEVER_LISTED: Final = ("subagent", "tool")
LAST_SOURCE: Final = "cron"
SPARE = 2  # conversations beyond those asked for, since scheduled jobs give way to others
BOOKEND = 3
READ_HEAD, READ_TAIL = 20, 10
HIT_CHARS, NEAR_CHARS, END_CHARS = 700, 120, 90  # of the message that was found, of those around it, of the others
READ_CHARS, ARGUMENT_CHARS, SNIPPET_CHARS, PREVIEW_CHARS = 500, 60, 400, 120
_SHOWN = ("id", "role", "content", "timestamp", "tool_name", "tool_calls")
_SESSION = ("id", "title", "source", "model", "started_at", "message_count", "end_reason")
_ESCAPED = ('"', "\\", "\n")  # two characters each in JSON
_MARKED = re.compile(r">>>(.*?)<<<", re.DOTALL)


@runtime_checkable
class RemembersSessions(Protocol):
    """A `ToolContext` whose handler may look into earlier conversations."""

    def recall(self) -> "Recall | None":
        """None where the sessions are kept nowhere."""
        ...


class RecallRequest(Struct, frozen=True, kw_only=True):
    """What is looked for in earlier conversations."""

    query: str
    roles: Sequence[str] = SPOKEN
    sources: Sequence[str] = ()
    sort: Sort = "best"
    limit: int = 3
    window: int = 5


class RecallError(Exception):
    """What was asked for is not there; the text says what is wrong."""


class Recall:
    """Looks into the conversations of a store: all but that of `current`; only those of `user_id` if it is set."""

    def __init__(self, queries: SessionQueries, current: str = "", user_id: str | None = None) -> None:
        self._queries = queries
        self._current = current
        self._user_id = user_id

    # -- by words -----------------------------------------------------------------------------------------------------

    def hits(self, request: RecallRequest, each: int) -> list[list[Row]]:
        """The best messages that match, `each` of them per conversation; of the best, scheduled jobs come last."""
        only = SearchFilter(
            sources=tuple(request.sources),
            not_sources=() if request.sources else HIDDEN_SOURCES,
            roles=tuple(request.roles),
            user_id=self._user_id,
        )
        rows = self._queries.search(
            Search(
                text=storable(request.query),
                only=only,
                sort=request.sort,
                limit=request.limit,
                per_lineage=each,
                not_with=self._current,
                last_source=LAST_SOURCE if request.sort == "best" else "",
                spare=SPARE,
            )
        )
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row["lineage_root"], []).append(row)
        return list(groups.values())

    def conversations(self, request: RecallRequest, each: int) -> list[Row]:
        """The same for a person: conversations by title, each with its best lines and how to go on with it."""
        titled = self._titled(request)
        groups = [group for group in self.hits(request, each) if group[0]["lineage_root"] not in titled]
        roots = {row["id"]: row for row in self._rows([group[0]["lineage_root"] for group in groups])}
        keys = ("session_id", "title", "when", "source", "model", "resume")
        found = [{name: one[name] for name in keys} | {"hits": []} for one in titled.values()]
        for group in groups:
            root = roots.get(group[0]["lineage_root"]) or {"id": group[0]["lineage_root"]}
            lines = [
                {name: hit[name] for name in ("id", "session_id", "role", "timestamp", "snippet")} for hit in group
            ]
            found.append(self._about(root, group[0]) | {"hits": lines})
        return found[: request.limit]

    def discover(self, request: RecallRequest) -> Row:
        """The conversations in which the words were said, each with what was said around them."""
        titled = self._titled(request)
        groups = [group for group in self.hits(request, 1) if group[0]["lineage_root"] not in titled]
        roots = {row["id"]: row for row in self._rows([group[0]["lineage_root"] for group in groups])}
        hits = [group[0] for group in groups if _source(roots, group[0]) not in NEVER_LISTED]
        hits = hits[: max(0, request.limit - len(titled))]
        around = self._around([(hit["session_id"], hit["id"]) for hit in hits], request.window, BOOKEND)
        found = (self._found(hit, near, roots, request) for hit, near in zip(hits, around, strict=True))
        results = [*titled.values(), *found][: request.limit]
        return {
            "success": True,
            "mode": "discover",
            "query": request.query,
            "results": results,
            "count": len(results),
            "sessions_searched": self._queries.count_sessions(self._mine()),
        }

    def _titled(self, request: RecallRequest) -> dict[str, Row]:
        """The conversation that is called exactly so, if there is one."""
        title = storable(request.query).strip()
        rows = self._queries.sessions(self._mine(equal={"title": title}, limit=1), _SESSION) if title else []
        if not rows or rows[0]["source"] in NEVER_LISTED:
            return {}
        root = self._queries.lineage(rows[0]["id"]).ancestors[0]
        if root == self._own_root():
            return {}
        start, end = self._bookends(rows[0]["id"])
        told = self._about(rows[0], rows[0]) | {
            "matched_role": "session_title",
            "match_message_id": None,
            "snippet": f">>>{title}<<<",
            "bookend_start": start,
            "messages": [],
            "bookend_end": [one for one in end if one["id"] not in {shown["id"] for shown in start}],
            "messages_before": 0,
            "messages_after": 0,
        }
        return {root: told}

    def _found(self, hit: Row, around: AroundMessage, roots: Mapping[str, Row], request: RecallRequest) -> Row:
        session_id, words = hit["session_id"], _MARKED.findall(hit["snippet"])
        shrink = min(1.0, 15 / (request.limit * request.window))
        near = max(60, int(NEAR_CHARS * shrink))
        window = [_told(row, near) for row in around.before]
        window += [{**_told(row, HIT_CHARS, words), "anchor": True} for row in around.here]
        window += [_told(row, near) for row in around.after]
        root = roots.get(hit["lineage_root"]) or {"id": hit["lineage_root"], "started_at": hit["session_started"]}
        return self._about(root, hit) | {
            "session_id": session_id,
            "matched_role": hit["role"],
            "match_message_id": hit["id"],
            "snippet": cut(hit["snippet"], SNIPPET_CHARS)[0],
            "bookend_start": [_told(row, END_CHARS) for row in around.start],
            "messages": window,
            "bookend_end": [_told(row, END_CHARS) for row in around.end],
            "messages_before": len(around.before),
            "messages_after": len(around.after),
            **({"parent_session_id": root["id"]} if root["id"] != session_id else {}),
        }

    def _about(self, root: Row, session: Row) -> Row:
        return {
            "session_id": root["id"],
            "when": moment(root.get("started_at")),
            "source": root.get("source") or session.get("source"),
            "model": session.get("model"),
            "title": root.get("title"),
            "resume": self._resume(root),
        }

    # -- by age -------------------------------------------------------------------------------------------------------

    def browse(self, limit: int) -> Row:
        """The conversations that were talked to last, each as its newest session."""
        own, found = self._own_root(), list[Row]()
        where = self._mine(
            other_than={"source": NEVER_LISTED}, is_no_child=True, order="active", limit=limit + 1, least_messages=1
        )
        for root in self._queries.sessions(where, _SESSION):
            if root["id"] == own or self._queries.lineage(root["id"]).ancestors[0] == own:
                continue
            tip = self._tip(root["id"]) if root["end_reason"] == "compression" else root["id"]
            row = root if tip == root["id"] else (self._rows([tip]) or [root])[0]
            glances = self._queries.glances([root["id"], tip])
            preview = glances[root["id"]].first_words
            found.append(
                {
                    "session_id": tip,
                    "title": row["title"],
                    "source": row["source"],
                    "started_at": moment(root["started_at"]),
                    "last_active": moment(glances[tip].last_active or row["started_at"]),
                    "message_count": row["message_count"],
                    "preview": cut(preview, PREVIEW_CHARS)[0],
                    "resume": f"hermes --resume {tip}",
                }
            )
        return {"success": True, "mode": "browse", "results": found[:limit], "count": len(found[:limit])}

    # -- by place -----------------------------------------------------------------------------------------------------

    def scroll(self, session_id: str, message_id: int, window: int) -> Row:
        """What was said around one message."""
        self._session(session_id)
        holder = self._holder(session_id, message_id)
        (around,) = self._around([(holder, message_id)], window)
        share = max(READ_CHARS // 2, READ_CHARS * 10 // max(1, 2 * window))
        told = [_told(row, share) for row in around.before]
        told += [{**_told(row, 4 * READ_CHARS), "anchor": True} for row in around.here]
        told += [_told(row, share) for row in around.after]
        answer = {
            "success": True,
            "mode": "scroll",
            "session_id": holder,
            "around_message_id": message_id,
            "session_meta": self._meta(holder),
            "window": window,
            "messages": told,
            "messages_before": len(around.before),
            "messages_after": len(around.after),
        }
        if holder != session_id:
            answer["warning"] = f"message {message_id} is in {holder}, which {session_id} was continued by"
        return answer

    def read(self, session_id: str) -> Row:
        """How a session began and how it ended."""
        row = self._session(session_id)
        head = self._messages(session_id, limit=READ_HEAD)
        tail = (
            self._messages(session_id, above=head[-1]["id"], newest_first=True, limit=READ_TAIL)[::-1] if head else []
        )
        count = self._queries.count_messages(MessageFilter(session_id=session_id))
        return {
            "success": True,
            "mode": "read",
            "session_id": session_id,
            "session_meta": self._meta(session_id, row),
            "message_count": count,
            "truncated": count > len(head) + len(tail),
            "messages": [_told(one, READ_CHARS) for one in (*head, *tail)],
        }

    # -- what they stand on -------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> Row:
        rows = self._rows([session_id])
        if not rows:
            raise RecallError(f"session_id not found: {session_id}")
        if self._queries.lineage(session_id).ancestors[0] == self._own_root():
            raise RecallError(f"{session_id} is part of this conversation, which you have before you")
        return rows[0]

    def _holder(self, session_id: str, message_id: int) -> str:
        """The session that has the message: this one, or one that grew out of it."""
        rows = self._queries.messages(MessageFilter(ids=(message_id,), is_active=None), ("session_id",))
        holder = str(rows[0]["session_id"]) if rows else ""
        if not rows or (holder != session_id and session_id not in self._queries.lineage(holder).ancestors):
            raise RecallError(f"around_message_id {message_id} not in session_id {session_id}")
        return holder

    def _around(self, places: Sequence[tuple[str, int]], window: int, ends: int = 0) -> list[AroundMessage]:
        return self._queries.surroundings(
            [
                MessagePlace(session_id=session, message_id=message, window=window, ends=ends)
                for session, message in places
            ],
            _SHOWN,
        )

    def _bookends(self, session_id: str) -> tuple[list[Row], list[Row]]:
        """How the session began, and how it ended."""
        start = self._messages(session_id, roles=SPOKEN, limit=BOOKEND)
        end = self._messages(session_id, roles=SPOKEN, newest_first=True, limit=BOOKEND)[::-1]
        return [_told(row, END_CHARS) for row in start], [_told(row, END_CHARS) for row in end]

    def _messages(self, session_id: str, **where: Any) -> list[Row]:
        return self._queries.messages(MessageFilter(session_id=session_id, **where), _SHOWN)

    def _rows(self, ids: Sequence[str]) -> list[Row]:
        return self._queries.sessions(self._mine(ids=list(ids)), _SESSION)

    def _mine(self, **where: Any) -> SessionFilter:
        if self._user_id is not None:
            where["equal"] = {**where.get("equal", {}), "user_id": self._user_id}
        return SessionFilter(**where)

    def _own_root(self) -> str | None:
        return self._queries.lineage(self._current).ancestors[0] if self._current else None

    def _tip(self, session_id: str) -> str:
        return self._queries.lineage(session_id).after[-1]

    def _resume(self, root: Row) -> str:
        is_continued = root.get("end_reason", "compression") == "compression"
        return f"hermes --resume {self._tip(root['id']) if is_continued else root['id']}"

    def _meta(self, session_id: str, row: Row | None = None) -> Row:
        row = row or (self._rows([session_id]) or [{}])[0]
        told = {"when": moment(row.get("started_at")), **{name: row.get(name) for name in ("source", "model", "title")}}
        return told | {"resume": self._resume({**row, "id": session_id})}


def _source(roots: Mapping[str, Row], hit: Row) -> str:
    root = roots.get(hit["lineage_root"])
    return str(root["source"] if root else hit["source"])


def moment(at: float | None) -> str | None:
    """The local time, to the minute."""
    if at is None:
        return None
    return datetime.fromtimestamp(at).isoformat(" ", "minutes")  # noqa: DTZ006 - the time of the person


def cut(text: str, limit: int, words: Sequence[str] = ()) -> tuple[str, bool]:
    """At most so many characters, around the first of `words` where it has one; and whether any were left out."""
    if len(text) <= limit:
        return text, False
    if not text.isascii() or sum(map(text.count, _ESCAPED)) > len(text) // 10:
        limit = limit * 2 // 3  # such characters take more of a window
    if not words:
        return f"{text[:limit]}…", True
    lowered = text.lower()
    places = [place for word in words if (place := lowered.find(word.lower())) >= 0]
    start = max(0, min(min(places, default=0) - limit // 3, len(text) - limit))
    end = start + limit
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}", True


def _told(row: Row, limit: int, words: Sequence[str] = ()) -> Row:
    """A message as it is shown; one that is cut says so."""
    text, is_cut = cut(_text(row["content"]), limit, words)
    told: Row = {"id": row["id"], "role": row["role"], "content": text, "timestamp": moment(row["timestamp"])}
    if is_cut:
        told["truncated"] = True
    if row["tool_name"]:
        told["tool_name"] = row["tool_name"]
    if row["tool_calls"]:
        told["tool_calls"] = [_call(call) for call in row["tool_calls"][:4]]
    return told


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    named = function if isinstance(function, Mapping) else call if isinstance(call, Mapping) else {}
    return f"{named.get('name', '')}({cut(str(named.get('arguments', '')), ARGUMENT_CHARS)[0]})"


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    parts = content if isinstance(content, list) else [content]
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping)).strip()
