"""The named queries of `SessionDB` over a `MemoryStore`."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hermes import dicts
from hermes.errors import StoreError
from hermes.ops import Lease, SessionContinued, StoreOp
from hermes.state.codec import decode_json, encode_json
from hermes.state.message_line import MessageLine
from hermes.state.message_rows import JSON_COLUMNS, call_count, is_earlier_search
from hermes.state.queries import (
    TOKENS,
    USAGE_GROUPS,
    USAGE_SUMS,
    Answer,
    AroundMessage,
    Glance,
    Lineage,
    MessageFilter,
    MessagePlace,
    RecordTable,
    Row,
    Search,
    SearchFilter,
    SessionFilter,
)
from hermes.state.schema import MESSAGE_COLUMNS, SESSION_COLUMNS, TABLES
from hermes.testing.memory_store import (
    KeptMessage,
    MemorySession,
    MemoryState,
    MemoryStore,
    change_session,
    create_session,
    line_after,
    line_before,
    titles_like,
)
from tests.state.memory_batch_rows import MemoryBatchRows
from tests.state.memory_line import MemoryMessageLine
from tests.state.memory_schedule import MemoryScheduleRows

_TERM = re.compile(r'"([^"]*)"?(\*?)|(\S+)')
_ANSWERED = ("ok", "partial")


class MemorySessionStore(MemoryStore):
    """A `MemoryStore` that `SessionDB` and the line of messages that wait can stand on: the fake of `SessionStore`."""

    def __init__(self) -> None:
        super().__init__()
        self.message_line = MemoryMessageLine(self._newest, self._line_of)
        self.schedule = MemoryScheduleRows()
        self.batch_rows = MemoryBatchRows()

    async def in_line(self, work: Callable[[MessageLine], Answer]) -> Answer:
        return work(self.message_line)

    @property
    def queries(self) -> "MemoryQueries":
        return MemoryQueries(self)

    def commit_sync(self, *ops: StoreOp) -> tuple[int, ...]:
        answer = super().commit_sync(*ops)
        for op in ops:
            if isinstance(op, SessionContinued):
                self.message_line.move(op.session_id, op.child.session_id)
        return answer

    def _newest(self, session_id: str) -> int:
        """The newest user message of the session."""
        session = self.state.sessions.get(session_id)
        said = [kept.row["id"] for kept in session.messages if kept.row["role"] == "user"] if session else []
        return max(said, default=0)

    def _line_of(self, session_id: str) -> tuple[str, ...]:
        """The sessions that compressions made this one of, and last the one that goes on."""
        tip = line_after(self.state, session_id)[-1]
        return (*line_before(self.state, tip), tip)


class MemoryQueries:
    """`SessionQueries` in plain Python. Its search knows words, "phrases", prefix*, AND, OR and NOT."""

    def __init__(self, store: MemorySessionStore) -> None:
        self._store = store
        self.commit = store.commit_sync
        self.load = store.load_sync

    # -- reads -------------------------------------------------------------------------------------------------------

    async def sessions_soon(self, where: SessionFilter, columns: Sequence[str] = ()) -> list[Row]:
        return self.sessions(where, columns)

    def sessions(self, where: SessionFilter, columns: Sequence[str] = ()) -> list[Row]:
        state, names = self._store.state, columns or tuple(SESSION_COLUMNS)
        rows = [_row(name, session) for name, session in state.sessions.items() if _fits(state, name, session, where)]

        def age(row: Row) -> tuple[float, str]:
            glance = _glance(state.sessions[row["id"]]) if where.order == "active" else None
            return (glance and glance.last_active) or row["started_at"], row["id"]

        rows.sort(key=age, reverse=where.order != "oldest")
        return [{name: row[name] for name in names} for row in _page(rows, where.limit, where.offset)]

    def count_sessions(self, where: SessionFilter) -> int:
        state = self._store.state
        return sum(_fits(state, name, session, where) for name, session in state.sessions.items())

    def glances(self, session_ids: Sequence[str]) -> dict[str, Glance]:
        sessions = self._store.state.sessions
        return {name: _glance(sessions.get(name) or MemorySession({})) for name in session_ids}

    def lineage(self, session_id: str) -> Lineage:
        state, line = self._store.state, [session_id]
        while line[0] in state.sessions and (parent := state.sessions[line[0]].columns["parent_session_id"]):
            if parent in line:
                break
            line.insert(0, parent)
        return Lineage(line, line_before(state, session_id), line_after(state, session_id))

    def messages(self, where: MessageFilter, columns: Sequence[str] = ()) -> list[Row]:
        rows = sorted(self._rows(where), key=lambda row: row["id"], reverse=where.newest_first)
        names = columns or tuple(MESSAGE_COLUMNS)
        return [{name: row[name] for name in names} for row in _page(rows, where.limit, where.offset)]

    def surroundings(self, places: Sequence[MessagePlace], columns: Sequence[str]) -> list[AroundMessage]:
        return [self._around(place, tuple({"id": 0, "timestamp": 0} | dict.fromkeys(columns))) for place in places]

    def _around(self, place: MessagePlace, names: tuple[str, ...]) -> AroundMessage:
        def told(rows: list[Row]) -> list[Row]:
            return [{name: row[name] for name in names} for row in rows]

        def when(row: Row) -> tuple[float, int]:
            return row["timestamp"], row["id"]

        session, window = place.session_id, place.window
        here = self._rows(MessageFilter(ids=(place.message_id,), is_active=None))
        if not here:
            return AroundMessage([], [], [], [], [])
        line = sorted(self._rows(MessageFilter(session_id=session)), key=when)
        earlier = [row for row in line if when(row) < when(here[0])]
        later = [row for row in line if when(row) > when(here[0])]
        cut = max(0, len(earlier) - window)
        start = [row for row in earlier[:cut] if row["role"] in ("user", "assistant")]
        end = [row for row in later[window:] if row["role"] in ("user", "assistant")]
        return AroundMessage(
            told(earlier[cut:]),
            told(here),
            told(later[:window]),
            told(start[: place.ends]),
            told(end[max(0, len(end) - place.ends) :]),
        )

    def count_messages(self, where: MessageFilter) -> int:
        return len(_page(self._rows(where), where.limit, where.offset))

    def search(self, search: Search) -> list[Row]:
        wanted, state = _alternatives(search.text), self._store.state
        found = [
            (row, state.sessions[row["session_id"]])
            for row in self._rows(MessageFilter(is_active=None if search.only.inactive else True))
            if _may_be_found(row, state.sessions[row["session_id"]].columns, search.only)
            and any(all(bool(term.search(_words(row))) != is_not for is_not, term in terms) for terms in wanted)
        ]
        found.sort(key=lambda hit: hit[0]["id"], reverse=search.sort != "oldest")
        terms = [term for alternative in wanted for is_not, term in alternative if not is_not]
        if not search.per_lineage:
            return [_hit(row, session, terms) for row, session in _page(found, search.limit, search.offset)]
        hidden = self.lineage(search.not_with).ancestors[0] if search.not_with else None
        groups: dict[str, list[Row]] = {}
        for row, session in found:
            root = self.lineage(row["session_id"]).ancestors[0]
            if root != hidden:
                hit = _hit(row, session, terms) | {"lineage_root": root}
                del hit["context"]
                groups.setdefault(root, []).append(hit)
        looked_at = _page(list(groups.values()), search.offset + search.limit + search.spare, 0)
        if search.last_source:
            looked_at.sort(key=lambda members: members[0]["source"] == search.last_source)
        chosen = _page(looked_at, search.limit, search.offset)
        return [hit for members in chosen for hit in members[: search.per_lineage]]

    def records(self, table: RecordTable, session_id: str | None, since: float, limit: int) -> list[Row]:
        state = self._store.state
        if table == "attempts":
            rows = [_attempt(state, name, number) for number, name in enumerate(state.attempts, 1)]
            rows = [row for row in rows if row["started_at"] >= since]
        elif table == "tool_runs":
            rows = [dict(run) for run in state.runs]
        elif table == "model_calls":
            recorded = [one for one in state.closed.values() if one.record is not None]
            rows = [
                {"id": n, "attempt_id": one.attempt_id, "session_id": one.session_id, "record": encode_json(one.record)}
                for n, one in enumerate(recorded, 1)
            ]
        else:
            rows = [{"id": number, **msgspec.structs.asdict(one)} for number, one in enumerate(state.approvals, 1)]
        rows = [row for row in reversed(rows) if session_id in (None, row["session_id"])]
        return [{name: row[name] for name in TABLES[table]} for row in _page(rows, limit, 0)]

    def events(self, session_id: str, after: int, limit: int) -> list[Row]:
        found = self.lineage(session_id)
        line = {*found.before, *found.after}
        rows: list[Row] = [
            {
                "number": number,
                "session_id": op.session_id,
                "at": at,
                "kind": op.kind,
                "about": op.about,
                "body": op.body,
            }
            for number, at, op in self._store.state.events
            if op.session_id in line and number > after
        ]
        return _page(rows, limit, 0)

    def newest_event(self) -> int:
        return max((number for number, _, _ in self._store.state.events), default=0)

    def usage(self, by: str, since: float) -> list[Row]:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.records("attempts", None, since, -1):
            row["day"] = time.strftime("%Y-%m-%d", time.localtime(row["started_at"]))
            groups.setdefault(tuple(row[name] or "" for name in USAGE_GROUPS[by]), []).append(row)
        told = [dict(zip(USAGE_GROUPS[by], group, strict=True)) | _sums(rows) for group, rows in sorted(groups.items())]
        return told[::-1] if by == "day" else sorted(told, key=lambda row: -int(row["calls"]))

    def figures(self) -> Row:
        sources = Counter(session.columns["source"] for session in self._store.state.sessions.values())
        return {
            "sessions": sources.total(),
            "messages": self.count_messages(MessageFilter(is_active=None)),
            "by_source": dict(sorted(sources.items(), key=lambda one: (-one[1], one[0]))),
            "file_bytes": 0,
            "free_bytes": 0,
            "blob_bytes": sum(map(len, self._store.blobs.values())),
        }

    def meta(self, key: str) -> str | None:
        return self._store.state.meta.get(key)

    def routes(self, scope: str) -> dict[str, str]:
        return {key: entry for (there, key), entry in self._store.state.routes.items() if there == scope}

    def compression_lock(self, session_id: str) -> tuple[str, float] | None:
        return self._store.state.locks.get(session_id)

    def lease(self, session_id: str) -> Lease | None:
        session = self._store.state.sessions.get(session_id)
        return session.held() if session else None

    # -- writes ------------------------------------------------------------------------------------------------------

    def add_session(self, columns: Row, messages: Sequence[Row] = ()) -> bool:
        def work(state: MemoryState) -> bool:
            rest = dict(columns)
            session_id = rest.pop("id")
            if not create_session(state, session_id, rest):
                return False
            state.sessions[session_id].messages += [_kept(state, session_id, message) for message in messages]
            return True

        return self._store.write(work)

    def change_sessions(self, where: SessionFilter, changes: Row) -> int:
        def work(state: MemoryState) -> int:
            found = [name for name, session in state.sessions.items() if _fits(state, name, session, where)]
            for name in found:
                change_session(state, name, changes)
            return len(found)

        return self._store.write(work)

    def count_up(self, session_id: str, add: Row, replace: Row, fill: Row) -> None:
        def work(state: MemoryState) -> None:
            if session_id in state.sessions:
                columns = state.sessions[session_id].columns
                columns |= {name: (columns[name] or 0) + value for name, value in add.items()} | replace
                columns |= {name: value for name, value in fill.items() if columns[name] is None}

        self._store.write(work)

    def add_message(self, session_id: str, message: Row) -> int:
        def work(state: MemoryState) -> int:
            kept = _kept(state, session_id, message)
            state.session(session_id).messages.append(kept)
            return int(kept.row["id"])

        return self._store.write(work)

    def replace_messages(self, session_id: str, messages: Sequence[Row], *, active_only: bool) -> None:
        def work(state: MemoryState) -> None:
            session = state.session(session_id)
            stay = [kept for kept in session.messages if active_only and not kept.row["active"]]
            session.messages = [*stay, *(_kept(state, session_id, message) for message in messages)]

        self._store.write(work)

    def rewind(self, session_id: str, message_id: int) -> int:
        def work(state: MemoryState) -> int:
            session = state.sessions.get(session_id) or MemorySession({})
            if message_id not in [kept.row["id"] for kept in session.active()]:
                raise StoreError(f"session {session_id!r} has no active message {message_id}")
            session.columns["rewind_count"] += 1
            return _set_active(session, message_id, 0)

        return self._store.write(work)

    def restore(self, session_id: str, message_id: int) -> int:
        return self._store.write(
            lambda state: _set_active(state.sessions.get(session_id) or MemorySession({}), message_id, 1)
        )

    def set_api_content(self, message_id: int, text: str) -> None:
        def work(state: MemoryState) -> None:
            for session in state.sessions.values():
                session.messages = [
                    KeptMessage(kept.message, {**kept.row, "api_content": text})
                    if kept.row["id"] == message_id
                    else kept
                    for kept in session.messages
                ]

        self._store.write(work)

    def set_meta(self, key: str, value: str) -> None:
        self._store.write(lambda state: state.meta.update({key: value}))

    def change_routes(self, scope: str, entries: Mapping[str, str], remove: Sequence[str] | None = ()) -> None:
        def work(state: MemoryState) -> None:
            stay = {
                (there, key): entry
                for (there, key), entry in state.routes.items()
                if there != scope or not (remove is None or key in remove)
            }
            state.routes = stay | {(scope, key): entry for key, entry in entries.items()}

        self._store.write(work)

    def hold_compression_lock(self, session_id: str, holder: str, now: float, until: float) -> bool:
        def work(state: MemoryState) -> bool:
            is_free = session_id not in state.locks or state.locks[session_id][1] <= now
            if is_free or state.locks[session_id][0] == holder:
                state.locks[session_id] = (holder, until)
                return True
            return False

        return self._store.write(work)

    def extend_compression_lock(self, session_id: str, holder: str, until: float | None) -> bool:
        def work(state: MemoryState) -> bool:
            if session_id not in state.locks or state.locks[session_id][0] != holder:
                return False
            del state.locks[session_id]
            if until is not None:
                state.locks[session_id] = (holder, until)
            return True

        return self._store.write(work)

    def delete_session(self, session_id: str) -> bool:
        def work(state: MemoryState) -> bool:
            for session in state.sessions.values():
                if session.columns["parent_session_id"] == session_id:
                    session.columns["parent_session_id"] = None
            state.runs = [run for run in state.runs if run["session_id"] != session_id]
            state.events = [one for one in state.events if one[2].session_id != session_id]
            state.locks.pop(session_id, None)
            return state.sessions.pop(session_id, None) is not None

        self._store.message_line.forget(session_id)
        return self._store.write(work)

    def reclaim(self, _effort: Literal["pages", "blobs", "all"], /) -> int:
        return 0

    def rebuild_index(self) -> int:
        return self.count_messages(MessageFilter(is_active=None))

    def optimize_index(self) -> int:
        return 0

    def _rows(self, where: MessageFilter) -> list[Row]:
        sessions = self._store.state.sessions
        found = list(sessions.values()) if where.session_id is None else [sessions.get(where.session_id)]
        return [
            kept.row
            for session in found
            for kept in (session.messages if session else ())
            if where.is_active in (None, bool(kept.row["active"]))
            and (where.ids is None or kept.row["id"] in where.ids)
            and (where.roles is None or kept.row["role"] in where.roles)
            and kept.row["id"] > where.above
            and (where.below is None or kept.row["id"] < where.below)
            and where.platform_message_id in (None, kept.row["platform_message_id"])
        ]


def _page(rows: list[Any], limit: int, offset: int) -> list[Any]:
    return rows[offset:] if limit < 0 else rows[offset : offset + limit]


def _fits(state: MemoryState, name: str, session: MemorySession, where: SessionFilter) -> bool:
    row = _row(name, session)
    parent = state.sessions.get(row["parent_session_id"] or "")
    folder = where.folder
    return (
        (where.ids is None or name in where.ids)
        and all(row[column] == value for column, value in where.equal.items())
        and all((row[column] or "") not in others for column, others in where.other_than.items())
        and all(row[column] is not None for column in where.filled)
        and name.startswith(where.id_prefix)
        and where.id_has.lower() in name.lower()
        and where.id_or_title_has.lower() in f"{name}\0{row['title'] or ''}".lower()
        and (not where.title_like or row["title"] in titles_like(state, where.title_like))
        and (not folder or row["cwd"] == folder or (row["cwd"] or "").startswith(f"{folder}/"))
        and row["message_count"] >= where.least_messages
        and (where.ended_before is None or (row["ended_at"] or where.ended_before) < where.ended_before)
        and (where.empty_before is None or _is_empty(state, row, session, where.empty_before))
        and not (where.is_no_child and parent is not None and parent.columns["end_reason"] != "branched")
    )


def _is_empty(state: MemoryState, row: Row, session: MemorySession, before: float) -> bool:
    has_child = any(one.columns["parent_session_id"] == row["id"] for one in state.sessions.values())
    return not session.messages and row["title"] is None and row["started_at"] < before and not has_child


def _row(name: str, session: MemorySession) -> Row:
    """A session as its row: what is no text or number, as JSON."""
    active = session.active()
    calls = sum(call_count(encode_json(kept.row["tool_calls"])) for kept in active if kept.row["tool_calls"])
    plain = {
        column: value if value is None or isinstance(value, str | float) else _number_or_json(value)
        for column, value in session.columns.items()
    }
    return {**plain, "id": name, "message_count": len(active), "tool_call_count": calls}


def _number_or_json(value: Any) -> Any:
    return int(value) if isinstance(value, int) else encode_json(value)


def _kept(state: MemoryState, session_id: str, message: Row) -> KeptMessage:
    state.newest += 1
    row = dict.fromkeys(MESSAGE_COLUMNS) | message | {"id": state.newest, "session_id": session_id}
    row |= {name: decode_json(row[name]) for name in JSON_COLUMNS}
    if not isinstance(row["content"], str):
        row["content"] = decode_json(encode_json(row["content"]))  # as others than the caller would get it
    return KeptMessage(msgspec.structs.replace(dicts.from_dict(row), id=state.newest), row)


def _set_active(session: MemorySession, since: int, active: int) -> int:
    """Give messages another state, from one on; how many changed. What was compacted does not come back."""
    changed = 0
    for place, kept in enumerate(session.messages):
        row = kept.row
        if row["id"] >= since and row["active"] != active and not (active and row["compacted"]):
            session.messages[place] = KeptMessage(kept.message, {**row, "active": active})
            changed += 1
    return changed


def _glance(session: MemorySession) -> Glance:
    rows = sorted((kept.row for kept in session.messages), key=lambda row: (row["timestamp"], row["id"]))
    first = next((_text(row["content"]) for row in rows if row["role"] == "user"), "")
    return Glance(" ".join(first.split()), rows[-1]["timestamp"] if rows else None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _words(row: Row) -> str:
    """By which a message is found: its text, the tool's name, the calls it asks for."""
    if is_earlier_search(row["tool_name"] or "", row["tool_calls"]):
        return ""
    calls = [dicts.call_from_dict(call) for call in row["tool_calls"] or ()]
    parts = [_text(row["content"]), row["tool_name"] or "", *(f"{call.name} {call.arguments}" for call in calls)]
    return "\n".join(part for part in parts if part)


def _alternatives(text: str) -> list[list[tuple[bool, re.Pattern[str]]]]:
    """What is asked for: of one list all terms must be there, or must not."""
    found: list[list[tuple[bool, re.Pattern[str]]]] = []
    pending = "OR"
    for phrase, star, word in _TERM.findall(text):
        if word in ("AND", "OR", "NOT"):
            pending = word
        elif plain := (phrase or word.rstrip("*")):
            is_prefix = bool(star) or word.endswith("*")
            term = re.compile(rf"\b{re.escape(plain)}" + (r"\w*" if is_prefix else r"\b"), re.IGNORECASE)
            if pending == "OR" or not found:
                found.append([])
            found[-1].append((pending == "NOT", term))
            pending = "AND"
    return found


def _may_be_found(row: Row, columns: Row, only: SearchFilter) -> bool:
    return (
        (not only.sources or columns["source"] in only.sources)
        and columns["source"] not in only.not_sources
        and (not only.roles or row["role"] in only.roles)
        and only.user_id in (None, columns["user_id"])
    )


def _hit(row: Row, session: MemorySession, terms: list[re.Pattern[str]]) -> Row:
    snippet = _words(row)
    for term in terms:
        snippet = term.sub(lambda match: f">>>{match[0]}<<<", snippet)
    line = [kept.row for kept in session.messages if kept.row["active"] or kept.row["id"] == row["id"]]
    place = [one["id"] for one in line].index(row["id"])
    near = line[max(0, place - 1) : place + 2]
    return {
        **{name: row[name] for name in ("id", "session_id", "role", "timestamp", "tool_name")},
        "snippet": snippet,
        "source": session.columns["source"],
        "model": session.columns["model"],
        "session_started": session.columns["started_at"],
        "context": [{"id": one["id"], "role": one["role"], "content": _text(one["content"])[:200]} for one in near],
    }


def _attempt(state: MemoryState, attempt_id: str, number: int) -> Row:
    opened, closed = state.attempts[attempt_id], state.closed.get(attempt_id)
    held = (closed or opened).held
    row = dict.fromkeys(TABLES["attempts"]) | msgspec.structs.asdict(opened) | {"id": number, "owner": ""}
    if closed is not None:
        row |= msgspec.structs.asdict(closed) | msgspec.structs.asdict(closed.usage)
    return row | {"held_usd": held.usd, "held_tokens": held.tokens}


def _sums(rows: list[Row]) -> Row:
    answered = [row for row in rows if row["outcome"] in _ANSWERED]
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    values = (
        len(rows),
        *(sum(row[name] or 0 for row in rows) for name in TOKENS),
        sum(costs) if costs else None,
        sum(row["latency_ms"] or 0 for row in rows) / 1000.0,
        len(rows) - len(answered),
        sum(row["output_tokens"] is None for row in answered),
        sum(row["cost_usd"] is None for row in answered),
    )
    return dict(zip(USAGE_SUMS, values, strict=True))
