"""What a store of sessions keeps: its tables and their columns, in the words of SQL that all databases share."""

SCHEMA_VERSION = 6  # a new one is also an entry in sqlite/schema_history.py

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
    # What waits for its turn in a session, which need not be there yet; `message_line` says what the words mean.
    "queued_messages": {
        "session_id": "TEXT NOT NULL",
        "number": "INTEGER NOT NULL",
        "key": "TEXT NOT NULL",
        "mode": "TEXT NOT NULL DEFAULT 'queue' CHECK (mode IN ('queue', 'steer', 'interrupt'))",
        "content": "TEXT",  # JSON: a text or a list of parts; none once it has ended
        "state": "TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'taken', 'done', 'dropped'))",
        "who": "TEXT NOT NULL DEFAULT ''",
        "at": "REAL NOT NULL",
        "taken_by": "TEXT",  # the process, as in `leases`
        "taken_after": "INTEGER",  # the newest user message of the session when it was taken
    },
    # What listeners of a session were told, by a number that grows; calls and results themselves are in `messages`.
    "session_events": {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "session_id": "TEXT NOT NULL",
        "at": "REAL NOT NULL",
        "kind": "TEXT NOT NULL",
        "about": "TEXT NOT NULL",
        "body": "TEXT NOT NULL",  # JSON
    },
    # What requests were made of, for records that can be verified; one row for each answered call that is recorded.
    "model_calls": {
        "id": "INTEGER PRIMARY KEY",
        "attempt_id": "TEXT NOT NULL",
        "session_id": "TEXT",
        "record": "TEXT NOT NULL",  # JSON
    },
    "batch_runs": {
        "run_id": "TEXT PRIMARY KEY",
        "name": "TEXT NOT NULL",
        "folder": "TEXT NOT NULL",
        "spec": "TEXT NOT NULL",  # JSON
        "started_at": "REAL NOT NULL",
        "ended_at": "REAL",
    },
    "batch_samples": {
        "run_id": "TEXT NOT NULL",
        "idx": "INTEGER NOT NULL",  # the place in the dataset
        "digest": "TEXT NOT NULL",  # of what is asked
        "state": "TEXT NOT NULL",
        "attempt": "INTEGER NOT NULL",
        "session_id": "TEXT",
        "owner": "TEXT",  # the process, as in `leases`
        "reason": "TEXT",
        "facts": "TEXT",  # JSON
        "body": "TEXT",  # base64
    },
    "gateway_routing": {"scope": "TEXT NOT NULL", "session_key": "TEXT NOT NULL", "entry_json": "TEXT NOT NULL"},
    "compression_locks": {
        "session_id": "TEXT PRIMARY KEY",
        "holder": "TEXT NOT NULL",
        "expires_at": "REAL NOT NULL",
    },
}
