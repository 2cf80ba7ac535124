"""Whatever is asked in whatever order, every store gives the same answers."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError
from hermes.state import SessionDB
from tests.state.test_session_db import CALLS, SESSION_STORES

IDS = [*(f"s{number}" for number in range(7)), "S_x%", "日本"]
TITLES = ["T", "T #2", "T #0", "T #x", "Tx", "a_b", "a%b", "long " * 30, " \u200b ", "T #7"]
WORDS = ["alpha", "beta", "gamma", "delta"]
CONTENTS: list[Any] = ["", None, "alpha beta", "gamma", [{"type": "text", "text": "beta"}], {"a": [1, "x"]}]
BESIDE: list[dict[str, Any]] = [
    {},
    {"tool_calls": CALLS},
    {"reasoning": "hm", "status": "weird"},
    {"platform_message_id": "p1", "token_count": 4},
    {"reasoning_details": [{"a": 1}], "finish_reason": "stop"},
    {"tool_name": "read_file", "tool_call_id": "c1", "status": "ok"},
]
COLUMNS: list[dict[str, Any]] = [
    {},
    {"cwd": "/a/b", "session_key": "k", "chat_id": "1"},
    {"user_id": "u", "model_config": {"x": 1}},
    {"model_config": '{"y": 2}', "system_prompt": "P" * 900, "cwd": "/ab"},
]
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def calls(rng: random.Random, clock: list[float], count: int) -> Iterator[Call]:
    """Random calls: some write, some read, some are mistakes."""
    for _ in range(count):
        clock[0] += rng.choice([1.0, 5.0, 100.0])
        one, other, row = rng.choice(IDS), rng.choice(IDS), rng.randrange(1, 40)
        flag, title = rng.random() < 0.5, rng.choice(TITLES)
        source = rng.choice(["cli", "tui", "subagent"])
        fields = {"started_at": clock[0], **rng.choice([*COLUMNS, {"title": title}, {"parent_session_id": other}])}
        said = {"timestamp": clock[0], **rng.choice(BESIDE)}
        options = {"include_children": flag, "order_by_last_active": rng.random() < 0.5, "limit": rng.choice([3, -1])}
        writes: list[Call] = [
            ("create_session", (one, source), fields),
            ("end_session", (one, rng.choice(["compression", "branched", "user_exit"])), {}),
            ("reopen_session", (one,), {}),
            ("promote_to_session_reset", (one,), {}),
            ("set_session_title", (one, title), {}),
            ("set_auto_title_if_empty", (one, title), {}),
            ("rewind_to_message", (one, row), {}),
            ("restore_rewound", (one, row), {}),
            ("replace_messages", (one, [{"role": "user", "content": rng.choice(CONTENTS), **said}], flag), {}),
            ("update_token_counts", (one, 3, 4), {"absolute": flag, "model": source, "estimated_cost_usd": 0.5}),
            ("try_acquire_compression_lock", (one, source, 50.0), {}),
            ("refresh_compression_lock", (one, source, 50.0), {}),
            ("request_handoff", (one, "p"), {}),
            ("claim_handoff", (one,), {}),
            ("delete_session_if_empty" if flag else "delete_session", (one,), {}),
            ("archive_sessions", (0.01,), {}),
            ("record_auxiliary_usage", (one, "title"), {"model": "m", "input_tokens": 3, "estimated_cost_usd": 0.5}),
            ("finalize_orphaned_compression_sessions", (), {}),
        ]
        reads: list[Call] = [
            ("get_next_title_in_lineage", (title,), {}),
            ("resolve_session_by_title", (title,), {}),
            ("get_messages", (one, flag, rng.choice([None, 2, 0]), rng.choice([0, 1])), {}),
            ("get_messages_as_conversation", (one, flag, rng.random() < 0.5, rng.random() < 0.5), {}),
            ("get_anchored_view", (one, row, 1, 2, rng.choice([None, ("user",)])), {}),
            ("list_sessions_rich", (None, rng.choice([None, ["tui"]])), {**options, "cwd_prefix": "/a/"}),
            ("list_sessions_rich", (), options),
            ("resolve_session_id", (rng.choice(["s", "s1", "S", "", "日"]),), {}),
            ("resolve_resume_session_id", (one,), {}),
            ("get_compression_lineage", (one,), {}),
            ("export_session_lineage", (one,), {}),
            ("list_prune_candidates", (rng.choice([None, 0.001]),), {}),
            ("count_empty_sessions", (), {}),
            ("get_compression_lock_holder", (one,), {}),
            ("usage", (rng.choice(["all", "session"]),), {}),
            (
                "search_messages",
                (rng.choice(["alpha", "gam*", "alpha OR beta", "alpha NOT beta"]),),
                {"sort": "newest"},
            ),
        ]
        appended: Call = ("append_message", (one, rng.choice(["user", "tool", "odd"]), rng.choice(CONTENTS)), said)
        yield rng.choice([appended, ("create_session", (one, source), fields), rng.choice(writes), rng.choice(reads)])


def answer(db: SessionDB, call: Call) -> Any:
    name, args, keywords = call
    try:
        return getattr(db, name)(*args, **keywords)
    except (HermesError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_get_the_same_answers_of_every_store(tmp_path: Path, seed: int) -> None:
    clock = [1e9]
    dbs = {name: SessionDB(store=make(tmp_path)) for name, make in SESSION_STORES.items()}
    for db in dbs.values():
        db.clock = lambda: clock[0]
    for call in calls(random.Random(seed), clock, 300):
        answers = {name: answer(db, call) for name, db in dbs.items()}
        assert all(one == answers["sqlite"] for one in answers.values()), (call, answers)
    everything = [db.export_all() for db in dbs.values()]
    assert everything[0]
    assert all(one == everything[0] for one in everything)
    for db in dbs.values():
        db.store.close_sync()
