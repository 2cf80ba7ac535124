"""Every shape that the rows of the state file ever had: salvage tells by it what a row is, when nothing else does.

SQLite writes a row with the columns that its table had then, and adding a column rewrites none. So the rows of one
table have as many shapes as there are entries here that name it. **A new table or column is one new entry at the end**,
never a change of an older one; tests/state/sqlite/test_schema_history.py fails as long as this page and
`schema` disagree.
"""

HISTORY: tuple[dict[str, str], ...] = (
    {  # schema 1
        "schema_version": "version",
        "sessions": (
            "id source user_id model model_config system_prompt tool_definitions parent_session_id "
            "started_at ended_at end_reason message_count tool_call_count input_tokens output_tokens "
            "cache_read_tokens cache_write_tokens reasoning_tokens billing_provider billing_base_url "
            "billing_mode estimated_cost_usd actual_cost_usd cost_status cost_source pricing_version title "
            "api_call_count handoff_state handoff_platform handoff_error session_key chat_id chat_type "
            "thread_id display_name origin_json cwd git_branch git_repo_root profile_name archived "
            "rewind_count expiry_finalized compression_failure_cooldown_until compression_failure_error "
            "compression_fallback_streak"
        ),
        "messages": (
            "id session_id role content tool_call_id tool_calls tool_name timestamp token_count "
            "finish_reason reasoning reasoning_content reasoning_details codex_reasoning_items "
            "codex_message_items platform_message_id status active compacted observed api_content "
            "effect_disposition"
        ),
        "texts": "digest text",
        "state_meta": "key value",
        "request_context": "message_id text",
        "tool_runs": "id session_id call_id name message_id call owner started_at status duration_ms",
        "attempts": (
            "id attempt_id session_id purpose provider model base_url owner started_at outcome input_tokens "
            "output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cost_usd cost_source "
            "latency_ms first_byte_ms error"
        ),
        "approvals": "id session_id route tool action verdict scope rule reason decided_by at",
        "blob_refs": "digest message_id",
        "gateway_routing": "scope session_key entry_json",
        "compression_locks": "session_id holder expires_at",
    },
    {  # schema 2: what caps count while an attempt's own figures are not known
        "attempts": "held_usd held_tokens",
    },
    {  # schema 3: who works on a session just now
        "leases": "fence session_id owner since renewed_at",
    },
    {  # schema 4: messages that wait for their turn
        "queued_messages": "session_id number key mode content state who at taken_by taken_after",
    },
    {  # schema 5: what listeners of a session were told
        "session_events": "id session_id at kind about body",
    },
    {  # schema 6: the schedule; what requests were made of; batch runs and their samples
        "scheduled_jobs": "id created_at body",
        "due_moments": "id job_id kind state due_at last_at start_at cost_usd body",
        "outbox": "id job_id state at next_try_at body",
        "model_calls": "id attempt_id session_id record",
        "batch_runs": "run_id name folder spec started_at ended_at",
        "batch_samples": "run_id idx digest state attempt session_id owner reason facts body",
    },
)


def columns_of(table: str, version: int = len(HISTORY)) -> tuple[str, ...]:
    """The columns of `table` as schema `version` has them, in the order in which rows hold them."""
    return tuple(name for added in HISTORY[:version] for name in added.get(table, "").split())


def shapes_of(table: str) -> frozenset[int]:
    """How many columns rows of `table` can have."""
    versions = (number for number, added in enumerate(HISTORY, 1) if table in added)
    return frozenset(len(columns_of(table, version)) for version in versions)
