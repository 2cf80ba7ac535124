"""The tables of the state file, and how an older file becomes a current one."""

import sqlite3

SCHEMA_VERSION = 3  # a new one is also an entry in schema_history.py

SESSION_COLUMNS: dict[str, str] = {
    "id": "TEXT PRIMARY KEY",
    "source": "TEXT NOT NULL DEFAULT 'unknown'",
    "user_id": "TEXT",
    "model": "TEXT",
    "model_config": "TEXT",
    "system_prompt": "TEXT",
    "tool_definitions": "TEXT",
    "parent_session_id": "TEXT REFERENCES sessions(id)",
    "started_at": "REAL NOT NULL",
    "ended_at": "REAL",
    "end_reason": "TEXT",
    "message_count": "INTEGER NOT NULL DEFAULT 0",
    "tool_call_count": "INTEGER NOT NULL DEFAULT 0",
    "input_tokens": "INTEGER NOT NULL DEFAULT 0",
    "output_tokens": "INTEGER NOT NULL DEFAULT 0",
    "cache_read_tokens": "INTEGER NOT NULL DEFAULT 0",
    "cache_write_tokens": "INTEGER NOT NULL DEFAULT 0",
    "reasoning_tokens": "INTEGER NOT NULL DEFAULT 0",
    "billing_provider": "TEXT",
    "billing_base_url": "TEXT",
    "billing_mode": "TEXT",
    "estimated_cost_usd": "REAL",
    "actual_cost_usd": "REAL",
    "cost_status": "TEXT",
    "cost_source": "TEXT",
    "pricing_version": "TEXT",
    "title": "TEXT",
    "api_call_count": "INTEGER NOT NULL DEFAULT 0",
    "handoff_state": "TEXT",
    "handoff_platform": "TEXT",
    "handoff_error": "TEXT",
    "session_key": "TEXT",
    "chat_id": "TEXT",
    "chat_type": "TEXT",
    "thread_id": "TEXT",
    "display_name": "TEXT",
    "origin_json": "TEXT",
    "cwd": "TEXT",
    "git_branch": "TEXT",
    "git_repo_root": "TEXT",
    "profile_name": "TEXT",
    "archived": "INTEGER NOT NULL DEFAULT 0",
    "rewind_count": "INTEGER NOT NULL DEFAULT 0",
    "expiry_finalized": "INTEGER NOT NULL DEFAULT 0",
    "compression_failure_cooldown_until": "REAL",
    "compression_failure_error": "TEXT",
    "compression_fallback_streak": "INTEGER NOT NULL DEFAULT 0",
}

MESSAGE_COLUMNS: dict[str, str] = {
    "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "session_id": "TEXT NOT NULL REFERENCES sessions(id)",
    "role": "TEXT NOT NULL",
    "content": "TEXT",
    "tool_call_id": "TEXT",
    "tool_calls": "TEXT",
    "tool_name": "TEXT",
    "timestamp": "REAL NOT NULL",
    "token_count": "INTEGER",
    "finish_reason": "TEXT",
    "reasoning": "TEXT",
    "reasoning_content": "TEXT",
    "reasoning_details": "TEXT",
    "codex_reasoning_items": "TEXT",
    "codex_message_items": "TEXT",
    "platform_message_id": "TEXT",
    "status": "TEXT",
    "active": "INTEGER NOT NULL DEFAULT 1",
    "compacted": "INTEGER NOT NULL DEFAULT 0",
    "observed": "INTEGER NOT NULL DEFAULT 0",
    "api_content": "TEXT",
    "effect_disposition": "TEXT",
}

TABLES: dict[str, dict[str, str]] = {
    "schema_version": {"version": "INTEGER NOT NULL"},
    "sessions": SESSION_COLUMNS,
    "messages": MESSAGE_COLUMNS,
    # Prompts and tool lists, once each: a session row is rewritten by every commit and must stay small.
    "texts": {"digest": "TEXT PRIMARY KEY", "text": "TEXT NOT NULL"},
    "state_meta": {"key": "TEXT PRIMARY KEY", "value": "TEXT"},
    "request_context": {"message_id": "INTEGER PRIMARY KEY", "text": "TEXT NOT NULL"},
    "tool_runs": {
        "id": "INTEGER PRIMARY KEY",
        "session_id": "TEXT NOT NULL",
        "call_id": "TEXT NOT NULL",
        "name": "TEXT NOT NULL",
        "message_id": "INTEGER",  # the assistant message that holds the call; without one, `call` does
        "call": "TEXT",
        "owner": "TEXT NOT NULL",
        "started_at": "REAL NOT NULL",  # 0 while it waits for other calls
        "status": "TEXT",
        "duration_ms": "REAL",
    },
    "attempts": {
        "id": "INTEGER PRIMARY KEY",
        "attempt_id": "TEXT NOT NULL UNIQUE",
        "session_id": "TEXT",
        "purpose": "TEXT NOT NULL",
        "provider": "TEXT NOT NULL",
        "model": "TEXT NOT NULL",
        "base_url": "TEXT NOT NULL DEFAULT ''",
        "owner": "TEXT NOT NULL",
        "started_at": "REAL NOT NULL",
        "outcome": "TEXT",
        "input_tokens": "INTEGER",
        "output_tokens": "INTEGER",
        "cache_read_tokens": "INTEGER",
        "cache_write_tokens": "INTEGER",
        "reasoning_tokens": "INTEGER",
        "cost_usd": "REAL",
        "cost_source": "TEXT",
        "latency_ms": "REAL",
        "first_byte_ms": "REAL",
        "error": "TEXT",
        "held_usd": "REAL NOT NULL DEFAULT 0",  # what caps count while the attempt's own figures are not known
        "held_tokens": "INTEGER NOT NULL DEFAULT 0",
    },
    "approvals": {
        "id": "INTEGER PRIMARY KEY",
        "session_id": "TEXT",
        "route": "TEXT NOT NULL",
        "tool": "TEXT NOT NULL",
        "action": "TEXT NOT NULL",
        "verdict": "TEXT NOT NULL",
        "scope": "TEXT NOT NULL",
        "rule": "TEXT NOT NULL",
        "reason": "TEXT NOT NULL",
        "decided_by": "TEXT NOT NULL",
        "at": "REAL NOT NULL",
    },
    "blob_refs": {"digest": "TEXT NOT NULL", "message_id": "INTEGER NOT NULL"},
    # Who works on a session just now; the row goes when its turn ends.
    "leases": {
        "fence": "INTEGER PRIMARY KEY",
        "session_id": "TEXT NOT NULL UNIQUE",
        "owner": "TEXT NOT NULL",
        "since": "REAL NOT NULL",
        "renewed_at": "REAL NOT NULL",
    },
    "gateway_routing": {"scope": "TEXT NOT NULL", "session_key": "TEXT NOT NULL", "entry_json": "TEXT NOT NULL"},
    "compression_locks": {
        "session_id": "TEXT PRIMARY KEY",
        "holder": "TEXT NOT NULL",
        "expires_at": "REAL NOT NULL",
    },
}

INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title ON sessions(title) WHERE title IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX IF NOT EXISTS idx_tool_runs_session ON tool_runs(session_id, status)",
    "CREATE INDEX IF NOT EXISTS idx_attempts_open ON attempts(id) WHERE outcome IS NULL",
    "CREATE INDEX IF NOT EXISTS idx_attempts_started ON attempts(started_at)",
    "CREATE INDEX IF NOT EXISTS idx_attempts_session ON attempts(session_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_blob_refs ON blob_refs(digest, message_id)",
    "CREATE INDEX IF NOT EXISTS idx_blob_refs_message ON blob_refs(message_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_gateway_routing ON gateway_routing(scope, session_key)",
)

# Contentless: the words are stored once, in messages. `tags` holds role and source, so that filters
# cost no join. Lengths are not kept: ranking has its own, bounded measure.
SEARCH_INDEX = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5("
    "content, tags, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2')"
)


def create(conn: sqlite3.Connection) -> None:
    """Make whatever is missing: tables, columns, indexes. Runs inside the caller's transaction."""
    for table, columns in TABLES.items():
        spec = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        conn.execute(f"CREATE TABLE IF NOT EXISTS {table} ({spec})")
        present = {row[1] for row in conn.execute(f"PRAGMA table_info({table})")}
        for name, kind in columns.items():
            if name not in present:
                conn.execute(f"ALTER TABLE {table} ADD COLUMN {name} {_addable(kind)}")
    for statement in INDEXES:
        conn.execute(statement)
    conn.execute(SEARCH_INDEX)
    conn.execute("DELETE FROM schema_version")
    conn.execute("INSERT INTO schema_version(version) VALUES (?)", (SCHEMA_VERSION,))
    conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _addable(kind: str) -> str:
    """SQLite cannot add a NOT NULL column without a default to a table that has rows."""
    if "NOT NULL" in kind and "DEFAULT" not in kind:
        return kind.replace("NOT NULL", "").strip()
    return kind
