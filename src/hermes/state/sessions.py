"""`SessionDB`: the store as plain synchronous calls with dicts, for surfaces, scripts and plugins.

The class has no SQL and no base classes: it asks the queries of its store. Many of its calls are functions of the files
that own their subject, and are named here one by one, so that this page is the list of what there is.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hermes.config.paths import hermes_home
from hermes.ops import AttemptClosed, AttemptOpened
from hermes.state import session_gateways, session_lineage, session_messages, session_upkeep, titles
from hermes.state.codec import decode_json
from hermes.state.queries import TOKENS, Row, SessionFilter, SessionStore
from hermes.state.schema import SESSION_COLUMNS
from hermes.state.session_calls import change_session, find_session, refuse_unknown, session_filter
from hermes.state.stores import open_store, place_of
from hermes.types import Usage

PREVIEW_CHARS = 60
MAX_TRIES = 16

_COUNTED = (*TOKENS, "api_call_count", "estimated_cost_usd", "actual_cost_usd")
_PRICED = ("cost_status", "cost_source", "pricing_version")
_ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode")
_LONG = ("system_prompt", "tool_definitions", "model_config")


class SessionDB:
    """Sessions in `db_path` (default `state.db` in the home). Safe from any thread; close it when done.

    Every write is one transaction of the store and is durable when the call returns.
    """

    sanitize_title = staticmethod(titles.sanitize_title)

    def __init__(self, db_path: Path | str | None = None, *, store: SessionStore | None = None) -> None:
        self._owns_store = store is None
        self.store = store or open_store(place_of(hermes_home()) if db_path is None else db_path)
        self.db_path = self.store.path or Path()
        self.queries = self.store.queries
        self.clock: Callable[[], float] = time.time

    def close(self) -> None:
        """Finish the writes and let the file go; a store that was handed in stays open."""
        if self._owns_store:
            self.store.close_sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- one session -------------------------------------------------------------------------------------------------

    def create_session(self, session_id: str, source: str, **fields: Any) -> str:
        """Insert the session unless it is there; return its id. `fields` are columns of a session."""
        refuse_unknown("create_session", fields, SESSION_COLUMNS)
        config = fields.get("model_config")
        if isinstance(config, str):
            fields["model_config"] = decode_json(config)
        given = {name: value for name, value in fields.items() if value is not None}
        started_at = fields.get("started_at") or self.clock()
        self.queries.add_session({**given, "id": session_id, "source": source, "started_at": started_at})
        return session_id

    def ensure_session(self, session_id: str, source: str = "unknown", model: str | None = None, **fields: Any) -> str:
        """`create_session` with nothing required."""
        return self.create_session(session_id, source, model=model, **fields)

    def get_session(self, session_id: str) -> Row | None:
        """All columns of the session, or None."""
        return find_session(self.queries, ids=(session_id,))

    def end_session(self, session_id: str, end_reason: str) -> None:
        """Mark it ended; the first reason stays."""
        is_open = SessionFilter(ids=(session_id,), equal={"ended_at": None})
        self.queries.change_sessions(is_open, {"ended_at": self.clock(), "end_reason": end_reason})

    def reopen_session(self, session_id: str) -> None:
        """Take the end back."""
        change_session(self.queries, session_id, ended_at=None, end_reason=None)

    def promote_to_session_reset(self, session_id: str, reason: str = "session_reset") -> bool:
        """Give an ended session the stronger reason `reason`; False when it has not ended."""
        has_ended = SessionFilter(ids=(session_id,), filled=("ended_at",))
        return bool(self.queries.change_sessions(has_ended, {"end_reason": reason}))

    def update_system_prompt(self, session_id: str, system_prompt: str) -> None:
        change_session(self.queries, session_id, system_prompt=system_prompt)

    def update_session_meta(self, session_id: str, model_config_json: str, model: str | None = None) -> None:
        """Set the model's settings, and the model when one is given."""
        change_session(
            self.queries, session_id, model_config=model_config_json, **({} if model is None else {"model": model})
        )

    def update_session_model(self, session_id: str, model: str) -> None:
        change_session(self.queries, session_id, model=model)

    def update_session_billing_route(
        self, session_id: str, *, provider: str, base_url: str, billing_mode: str | None = None
    ) -> None:
        """Who is paid for this session from now on."""
        change_session(
            self.queries, session_id, billing_provider=provider, billing_base_url=base_url, billing_mode=billing_mode
        )

    def update_session_cwd(
        self, session_id: str, cwd: str, git_branch: str | None = None, git_repo_root: str | None = None
    ) -> None:
        """Where the session works."""
        change_session(self.queries, session_id, cwd=cwd, git_branch=git_branch, git_repo_root=git_repo_root)

    def set_session_archived(self, session_id: str, archived: bool) -> bool:
        """Hide the session from lists, or show it again; False when there is none."""
        return change_session(self.queries, session_id, archived=int(archived))

    def set_expiry_finalized(self, session_id: str, finalized: bool = True) -> None:
        change_session(self.queries, session_id, expiry_finalized=int(finalized))

    def update_token_counts(
        self,
        session_id: str,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        *,
        absolute: bool = False,
        **counts: Any,
    ) -> None:
        """Add to the session's tokens and costs, or set them when `absolute`.

        Keywords: the token columns, `api_call_count`, `estimated_cost_usd`, `actual_cost_usd`, `cost_status`,
        `cost_source`, `pricing_version`; `model`, `billing_provider`, `billing_base_url` and `billing_mode` fill
        columns that are still empty.
        """
        refuse_unknown("update_token_counts", counts, (*_COUNTED, *_PRICED, *_ROUTE))
        counts |= {"input_tokens": input_tokens, "output_tokens": output_tokens}
        given = {name: value for name, value in counts.items() if value is not None}
        fill = {name: given.pop(name) for name in _ROUTE if name in given}
        add = {} if absolute else {name: given.pop(name) for name in _COUNTED if name in given}
        if given or fill or add:
            self.queries.count_up(session_id, add, given, fill)

    def get_meta(self, key: str) -> str | None:
        """A value of the store as a whole."""
        return self.queries.meta(key)

    def set_meta(self, key: str, value: str) -> None:
        self.queries.set_meta(key, value)

    # -- titles ------------------------------------------------------------------------------------------------------

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Set the title (nothing visible clears it); False when there is no session.

        `ValueError` when it is too long or another session has it.
        """
        return change_session(self.queries, session_id, title=titles.sanitize_title(title))

    def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Set a generated title where none is; a taken one gets the next number. Whether it was set."""
        clean = titles.sanitize_title(title)
        if clean is None:
            return False
        is_nameless = SessionFilter(ids=(session_id,), equal={"title": None})
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                return bool(self.queries.change_sessions(is_nameless, {"title": self.get_next_title_in_lineage(clean)}))
            except ValueError:  # another process has taken it in this very moment
                if not tries_left:
                    raise
        return False

    def get_session_title(self, session_id: str) -> str | None:
        row = find_session(self.queries, ("title",), ids=(session_id,))
        return row["title"] if row else None

    def get_session_by_title(self, title: str) -> Row | None:
        """The session with exactly this title, or None."""
        clean = titles.sanitize_title(title)
        return None if clean is None else find_session(self.queries, equal={"title": clean})

    def resolve_session_by_title(self, title: str) -> str | None:
        """The id of the newest "title #N" if there is any, else of the exact title."""
        clean = titles.sanitize_title(title)
        if clean is None:
            return None
        rows = self.queries.sessions(SessionFilter(title_like=clean), ("id", "title"))
        numbered = [(number, row["id"]) for row in rows if (number := titles.number_of(row["title"], clean)) > 0]
        exact = next((row["id"] for row in rows if row["title"] == clean), None)
        return max(numbered)[1] if numbered else exact

    def get_next_title_in_lineage(self, base_title: str) -> str:
        """`base_title` when it is unused, else with the number after the highest in use."""

        def like(title: str) -> list[str]:
            if not title:
                return []  # no session has it, and a filter that is empty leaves none out
            return [row["title"] for row in self.queries.sessions(SessionFilter(title_like=title), ("title",))]

        return titles.next_free(base_title, like)

    # -- messages ------------------------------------------------------------------------------------------------------

    append_message = session_messages.append_message
    get_messages = session_messages.get_messages
    replace_messages = session_messages.replace_messages
    clear_messages = session_messages.clear_messages
    rewind_to_message = session_messages.rewind_to_message
    restore_rewound = session_messages.restore_rewound
    get_messages_around = session_messages.get_messages_around
    get_anchored_view = session_messages.get_anchored_view
    list_recent_user_messages = session_messages.list_recent_user_messages
    message_count = session_messages.message_count
    has_archived_messages = session_messages.has_archived_messages
    set_latest_user_api_content = session_messages.set_latest_user_api_content
    has_platform_message_id = session_messages.has_platform_message_id
    get_messages_as_conversation = session_messages.get_messages_as_conversation
    get_ancestor_display_prefix = session_messages.get_ancestor_display_prefix
    get_resume_conversations = session_messages.get_resume_conversations

    # -- search --------------------------------------------------------------------------------------------------------

    search_messages = session_messages.search_messages
    rebuild_fts = session_messages.rebuild_fts
    optimize_fts = session_messages.optimize_fts

    # -- lists -------------------------------------------------------------------------------------------------------

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Sequence[str] | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        **options: Any,
    ) -> list[Row]:
        """Sessions, newest first, each with `preview` and `last_active`.

        Children are hidden, branches are not; a compressed session is shown as its tip. With children each session
        is shown once, as itself. Options:
        project_compression_tips, order_by_last_active, compact_rows, cwd_prefix, min_message_count,
        include_archived, archived_only, id_query, search_query, user_id.
        """
        tips = options.pop("project_compression_tips", True) and not include_children
        order = "active" if options.pop("order_by_last_active", False) else "newest"
        compact = options.pop("compact_rows", False)
        options |= {"source": source, "exclude_sources": exclude_sources, "exclude_children": not include_children}
        roots = self.queries.sessions(session_filter(options, order=order, limit=limit, offset=offset))
        rows = [self._tip(root) if tips and root["end_reason"] == "compression" else root for root in roots]
        glances = self.queries.glances([*{row["id"]: None for row in (*roots, *rows)}])
        for root, row in zip(roots, rows, strict=True):
            text, active = glances[root["id"]].first_words, glances[row["id"]].last_active
            row["preview"] = text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."
            row["last_active"] = row["started_at"] if active is None else active
            for name in _LONG if compact else ():
                del row[name]
        return rows

    def search_sessions(self, source: str | None = None, limit: int = 20, offset: int = 0) -> list[Row]:
        """Plain session rows, newest first."""
        return self.queries.sessions(
            session_filter({"source": source, "include_archived": True}, limit=limit, offset=offset)
        )

    def search_sessions_by_id(self, query: str, limit: int = 20, include_archived: bool = True) -> list[Row]:
        """Sessions whose id contains `query`."""
        return self.queries.sessions(
            session_filter({"id_query": query, "include_archived": include_archived}, limit=limit)
        )

    def session_count(self, source: str | None = None, **options: Any) -> int:
        """How many sessions there are; options as in `list_sessions_rich`. Archived ones count when asked for."""
        return self.queries.count_sessions(session_filter({"source": source, **options}))

    def resolve_session_id(self, session_id_or_prefix: str) -> str | None:
        """The id itself, or the one session whose id begins so; None when none or several do."""
        if not session_id_or_prefix or find_session(self.queries, ("id",), ids=(session_id_or_prefix,)):
            return session_id_or_prefix or None
        found = self.queries.sessions(SessionFilter(id_prefix=session_id_or_prefix, limit=2), ("id",))
        return str(found[0]["id"]) if len(found) == 1 else None

    def distinct_session_cwds(self, include_archived: bool = False) -> list[Row]:
        """The folders that sessions worked in, most recent first."""
        where = SessionFilter(filled=("cwd",), equal={} if include_archived else {"archived": 0})
        folders: dict[str, Row] = {}
        for row in self.queries.sessions(where, ("cwd", "git_repo_root", "started_at")):
            new = {"cwd": row["cwd"], "git_repo_root": None, "sessions": 0, "last_active": row["started_at"]}
            folder = folders.setdefault(row["cwd"], new)
            folder["sessions"] += 1
            folder["git_repo_root"] = max(folder["git_repo_root"] or "", row["git_repo_root"] or "") or None
        return list(folders.values())

    def backfill_repo_roots(self, cwd_to_root: dict[str, str]) -> None:
        """Fill in repository roots that were not known when the sessions began."""
        for cwd, root in cwd_to_root.items():
            where = SessionFilter(equal={"cwd": cwd, "git_repo_root": None})
            self.queries.change_sessions(where, {"git_repo_root": root})

    # -- lineage and compression ---------------------------------------------------------------------------------------

    resolve_resume_session_id = session_lineage.resolve_resume_session_id
    get_compression_tip = session_lineage.get_compression_tip
    get_compression_lineage = session_lineage.get_compression_lineage
    get_conversation_root = session_lineage.get_conversation_root
    finalize_orphaned_compression_sessions = session_lineage.finalize_orphaned_compression_sessions
    try_acquire_compression_lock = session_lineage.try_acquire_compression_lock
    refresh_compression_lock = session_lineage.refresh_compression_lock
    release_compression_lock = session_lineage.release_compression_lock
    get_compression_lock_holder = session_lineage.get_compression_lock_holder
    record_compression_failure_cooldown = session_lineage.record_compression_failure_cooldown
    clear_compression_failure_cooldown = session_lineage.clear_compression_failure_cooldown
    get_compression_failure_cooldown = session_lineage.get_compression_failure_cooldown
    get_compression_fallback_streak = session_lineage.get_compression_fallback_streak
    set_compression_fallback_streak = session_lineage.set_compression_fallback_streak

    # -- export and import ---------------------------------------------------------------------------------------------

    export_session = session_upkeep.export_session
    export_all = session_upkeep.export_all
    export_session_lineage = session_upkeep.export_session_lineage
    import_sessions = session_upkeep.import_sessions

    # -- deleting, and giving the space back ---------------------------------------------------------------------------

    delete_session = session_upkeep.delete_session
    delete_sessions = session_upkeep.delete_sessions
    delete_session_if_empty = session_upkeep.delete_session_if_empty
    count_empty_sessions = session_upkeep.count_empty_sessions
    delete_empty_sessions = session_upkeep.delete_empty_sessions
    prune_empty_ghost_sessions = session_upkeep.prune_empty_ghost_sessions
    list_prune_candidates = session_upkeep.list_prune_candidates
    prune_sessions = session_upkeep.prune_sessions
    archive_sessions = session_upkeep.archive_sessions
    maybe_auto_prune_and_vacuum = session_upkeep.maybe_auto_prune_and_vacuum
    vacuum = session_upkeep.vacuum
    storage_stats = session_upkeep.storage_stats

    # -- gateways ------------------------------------------------------------------------------------------------------

    record_gateway_session_peer = session_gateways.record_gateway_session_peer
    find_latest_gateway_session_for_peer = session_gateways.find_latest_gateway_session_for_peer
    find_session_by_origin = session_gateways.find_session_by_origin
    list_gateway_sessions = session_gateways.list_gateway_sessions
    save_gateway_routing_entry = session_gateways.save_gateway_routing_entry
    replace_gateway_routing_entries = session_gateways.replace_gateway_routing_entries
    load_gateway_routing_entries = session_gateways.load_gateway_routing_entries
    delete_gateway_routing_entries = session_gateways.delete_gateway_routing_entries
    request_handoff = session_gateways.request_handoff
    claim_handoff = session_gateways.claim_handoff
    complete_handoff = session_gateways.complete_handoff
    fail_handoff = session_gateways.fail_handoff
    get_handoff_state = session_gateways.get_handoff_state
    list_pending_handoffs = session_gateways.list_pending_handoffs

    # -- the ledger and the journals ---------------------------------------------------------------------------------

    def list_attempts(self, session_id: str | None = None, since: float = 0.0, limit: int = -1) -> list[Row]:
        """Model calls since a time, newest first; tokens and price are None where the provider did not say."""
        return self.queries.records("attempts", session_id, since, limit)

    def list_tool_runs(self, session_id: str | None = None, limit: int = -1) -> list[Row]:
        """Journalled calls, newest first; one that never ended has no status."""
        return self.queries.records("tool_runs", session_id, 0.0, limit)

    def list_approvals(self, session_id: str | None = None, limit: int = -1) -> list[Row]:
        """Decisions of the gate, newest first."""
        return self.queries.records("approvals", session_id, 0.0, limit)

    def usage(self, by: str = "all", since: float = 0.0) -> list[Row]:
        """Calls, tokens, seconds and dollars since a time, one row per group of `USAGE_GROUPS[by]`.

        `failed` counts attempts without an answer, `uncounted` answers whose tokens nobody told, `unpriced` answers
        without a price.
        """
        return self.queries.usage(by, since)

    def usage_by_model(self, since: float = 0.0) -> list[Row]:
        """`usage` by provider, model and purpose."""
        return self.usage("all", since)

    def record_auxiliary_usage(self, session_id: str, task: str, **used: Any) -> None:
        """One helper call in the ledger: model, billing_provider, billing_base_url, tokens, estimated_cost_usd."""
        attempt = f"aux_{uuid.uuid4().hex}"
        tokens = {name: used.pop(name) for name in Usage.__struct_fields__ if name in used}
        cost = used.pop("estimated_cost_usd", None)
        opened = AttemptOpened(
            attempt_id=attempt,
            session_id=session_id,
            purpose=task,
            provider=used.pop("billing_provider", None) or "",
            model=used.pop("model", None) or "",
            base_url=used.pop("billing_base_url", None) or "",
            started_at=self.clock(),
        )
        refuse_unknown("record_auxiliary_usage", used, ())
        closed = AttemptClosed(
            attempt_id=attempt, session_id=session_id, outcome="ok", usage=Usage(**tokens), cost_usd=cost
        )
        self.queries.commit(opened, closed)

    def _tip(self, root: Row) -> Row:
        """What compressions made of a session, in its place in a list."""
        tip = self.queries.lineage(root["id"]).after[-1]
        row = self.get_session(tip) if tip != root["id"] else None
        return root if row is None else row | {"lineage_root_id": root["id"], "started_at": root["started_at"]}
