"""`SessionDB` as its users call it: the contract suite of the named queries, over every store that has them."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.config.load import load_settings
from hermes.errors import SessionInUse, StoreError
from hermes.models.providers.metadata import price_list, snapshot
from hermes.ops import (
    ApprovalRecorded,
    AttemptClosed,
    AttemptOpened,
    CallClosed,
    CallJournalled,
    EventStored,
    LeaseReleased,
    LeaseTaken,
    MessageAppended,
    SessionContinued,
    SessionCreated,
)
from hermes.state import SessionDB, SqliteStore, format_session_db_unavailable
from hermes.state.queries import TOKENS, USAGE_GROUPS, SessionFilter, SessionStore
from hermes.state.schema import MESSAGE_COLUMNS, TABLES
from hermes.types import ImagePart, Message, TextPart, ToolCall, Usage
from tests.state.memory_queries import MemorySessionStore

# Another implementation (PostgreSQL) joins the suite by adding one line here.
SESSION_STORES: dict[str, Callable[[Path], SessionStore]] = {
    "sqlite": lambda folder: SqliteStore(folder / "state.db"),
    "memory": lambda _: MemorySessionStore(),
}
PIXELS = "data:image/png;base64," + "iVBORw0KGgoA" * 400
PARTS = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": PIXELS}}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}]


@pytest.fixture(params=sorted(SESSION_STORES))
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionDB]:
    store = SESSION_STORES[request.param](tmp_path)
    with SessionDB(store=store) as opened:
        yield opened
    store.close_sync()


def talk(db: SessionDB, session_id: str, *texts: str, source: str = "cli", **fields: Any) -> list[int]:
    """A session in which the person and the model take turns."""
    db.create_session(session_id, source, **fields)
    roles = ("user", "assistant")
    return [db.append_message(session_id, roles[n % 2], text) for n, text in enumerate(texts)]


def test_a_session_keeps_its_columns_and_the_first_creation_wins(db: SessionDB) -> None:
    assert db.create_session("s", "cli", model="m", model_config={"t": 1}, system_prompt="P" * 9000, user_id="u") == "s"
    db.create_session("s", "tui", model="other")
    db.ensure_session("s")
    found = db.get_session("s")
    assert found is not None
    wanted = {"id": "s", "source": "cli", "model": "m", "model_config": '{"t":1}', "system_prompt": "P" * 9000}
    assert {name: found[name] for name in wanted} == wanted
    assert found["message_count"] == 0
    assert db.get_session("none") is None
    with pytest.raises(TypeError, match="'colour'"):
        db.create_session("t", "cli", colour="red")


def test_append_counts_messages_and_calls(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", "go")
    db.append_message("s", "assistant", None, tool_calls=CALLS, finish_reason="tool_calls")
    last = db.append_message("s", "tool", "ok", tool_call_id="c1", tool_name="read_file")
    session = db.get_session("s")
    assert session is not None
    assert (session["message_count"], session["tool_call_count"]) == (3, 1)
    rows = db.get_messages("s")
    assert [row["role"] for row in rows] == ["user", "assistant", "tool"]
    assert rows[1]["tool_calls"] == CALLS
    assert rows[2]["id"] == last
    assert [row["role"] for row in db.get_messages("s", limit=1, offset=1)] == ["assistant"]
    with pytest.raises(StoreError, match="no session 'gone'"):
        db.append_message("gone", "user", "x")


@pytest.mark.parametrize(
    "content",
    ["text", "", None, "\0json:[1]", PARTS, {"a": ["\ud800"]}, "long " * 20_000, "\ud800"],
    ids=["text", "empty", "none", "marked", "parts", "dict", "long", "surrogate"],
)
def test_content_comes_back_as_it_went_in(db: SessionDB, content: Any) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", content)
    assert db.get_messages("s")[0]["content"] == content
    assert db.get_messages_as_conversation("s")[0]["content"] == content


def test_the_first_end_reason_stays_and_a_session_can_be_reopened(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.end_session("s", "user_exit")
    db.end_session("s", "cli_close")
    session = db.get_session("s")
    assert session is not None
    assert session["end_reason"] == "user_exit"
    assert db.promote_to_session_reset("s")
    db.reopen_session("s")
    session = db.get_session("s")
    assert session is not None
    assert (session["ended_at"], session["end_reason"]) == (None, None)
    assert not db.promote_to_session_reset("s")


def test_titles_are_cleaned_unique_and_numbered(db: SessionDB) -> None:
    for name in "abc":
        db.create_session(name, "cli")
    assert db.set_session_title("a", "  Fix\u200b the\n\nbug\x07 ")
    assert db.get_session_title("a") == "Fix the bug"
    assert not db.set_session_title("none", "x")
    with pytest.raises(ValueError, match="taken"):
        db.set_session_title("b", "Fix the bug")
    with pytest.raises(ValueError, match="at most 100"):
        db.set_session_title("b", "x" * 101)
    assert db.get_next_title_in_lineage("Fix the bug") == "Fix the bug #2"
    assert db.get_next_title_in_lineage("Other") == "Other"
    assert db.get_next_title_in_lineage("") == ""
    db.set_session_title("b", "Fix the bug #2")
    assert db.get_next_title_in_lineage("Fix the bug #2") == "Fix the bug #3"
    assert db.resolve_session_by_title("Fix the bug") == "b"
    found = db.get_session_by_title("Fix the bug")
    assert found is not None
    assert found["id"] == "a"
    assert db.set_auto_title_if_empty("c", "Fix the bug")
    assert db.get_session_title("c") == "Fix the bug #3"
    assert not db.set_auto_title_if_empty("c", "Again")
    db.set_session_title("a", " \u200b ")
    assert db.get_session_title("a") is None


def test_the_next_number_of_a_title_without_room_is_free(db: SessionDB) -> None:
    title = "t" * 100
    for number in range(12):
        db.create_session(f"s{number}", "cli")
        assert db.set_session_title(f"s{number}", db.get_next_title_in_lineage(title))
    assert db.get_session_title("s11") == "t" * 96 + " #12"


def test_wildcards_in_a_title_are_plain_characters(db: SessionDB) -> None:
    for number, title in enumerate(("100%", "100% #2", "1000 #7", "a_b", "axb #4")):
        db.create_session(str(number), "cli")
        db.set_session_title(str(number), title)
    assert db.get_next_title_in_lineage("100%") == "100% #3"
    assert db.get_next_title_in_lineage("a_b") == "a_b #2"


def compressed(db: SessionDB, old: str, new: str) -> None:
    """What the kernel does when it compresses `old` into `new`."""
    db.end_session(old, "compression")
    db.create_session(new, "cli", parent_session_id=old)


def test_resume_goes_to_the_tip_of_a_compressed_session(db: SessionDB) -> None:
    talk(db, "a", "one")
    compressed(db, "a", "b")
    db.append_message("b", "user", "two")
    compressed(db, "b", "c")
    db.append_message("c", "user", "three")
    assert db.resolve_resume_session_id("a") == "c"
    assert db.get_compression_tip("a") == "c"
    assert db.get_compression_tip("c") == "c"
    assert db.get_compression_lineage("b") == ["a", "b", "c"]
    assert db.get_conversation_root("c") == "a"


def test_resume_of_an_empty_session_goes_to_its_newest_child_with_messages(db: SessionDB) -> None:
    db.create_session("a", "cli", started_at=1.0)
    db.create_session("b", "cli", parent_session_id="a", started_at=2.0)
    talk(db, "c", "hi", parent_session_id="b", started_at=3.0)
    talk(db, "old", "hi", parent_session_id="a", started_at=1.5)
    assert db.resolve_resume_session_id("a") == "c"
    talk(db, "full", "hi", started_at=1.0)
    talk(db, "sub", "hi", parent_session_id="full", source="subagent")
    assert db.resolve_resume_session_id("full") == "full"
    assert db.resolve_resume_session_id("unknown") == "unknown"


def test_resume_follows_as_many_links_as_it_promises_and_no_more(db: SessionDB) -> None:
    db.create_session("link0", "cli")
    for number in range(1, 34):
        db.create_session(f"link{number}", "cli", parent_session_id=f"link{number - 1}")
    db.append_message("link33", "user", "too far from the first")
    assert db.resolve_resume_session_id("link0") == "link0"
    assert db.resolve_resume_session_id("link1") == "link33"
    db.append_message("link32", "user", "just near enough")
    assert db.resolve_resume_session_id("link0") == "link32"


def test_a_circle_of_parents_resolves_to_the_input(db: SessionDB) -> None:
    db.create_session("a", "cli", parent_session_id="b")
    db.create_session("b", "cli", parent_session_id="a")
    assert db.resolve_resume_session_id("a") == "a"
    assert db.get_messages_as_conversation("a", include_ancestors=True) == []


def test_a_conversation_with_ancestors_leaves_replayed_words_out(db: SessionDB) -> None:
    talk(db, "a", "task", "working", "yes")
    compressed(db, "a", "b")
    for role, text in (("user", "task"), ("assistant", "summary"), ("user", "next"), ("user", "yes")):
        db.append_message("b", role, text)
    whole = db.get_messages_as_conversation("b", include_ancestors=True)
    assert [message["content"] for message in whole] == ["task", "working", "yes", "summary", "next", "yes"]
    own, shown = db.get_resume_conversations("b")
    assert (len(own), shown) == (4, whole)
    assert [m["content"] for m in db.get_ancestor_display_prefix("b")] == ["task", "working", "yes"]


def test_memory_context_never_shows_in_a_conversation(db: SessionDB) -> None:
    talk(db, "s", "<memory-context>\nsecret\n</memory-context>\n\nhello")
    assert db.get_messages_as_conversation("s")[0]["content"] == "hello"


def test_memory_context_never_shows_in_the_parts_of_a_message(db: SessionDB) -> None:
    db.create_session("s", "cli")
    parts = [{"type": "text", "text": "hi <memory-context>secret</memory-context>there"}, PARTS[1]]
    db.append_message("s", "user", parts)
    shown = db.get_messages_as_conversation("s")[0]["content"]
    assert shown == [{"type": "text", "text": "hi there"}, PARTS[1]]


def test_what_belongs_to_a_message_can_be_given_in_order(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "assistant", "text", "a tool", CALLS, "c1", 7, "stop")
    row = db.get_messages("s")[0]
    names = ("tool_name", "tool_calls", "tool_call_id", "token_count", "finish_reason")
    assert [row[name] for name in names] == ["a tool", CALLS, "c1", 7, "stop"]
    with pytest.raises(TypeError, match="multiple values for argument 'tool_name'"):
        db.append_message("s", "tool", "x", "one", tool_name="two")
    with pytest.raises(TypeError, match="takes 19 values, not 20"):
        db.append_message("s", "tool", "x", *[None] * 17)


def test_replace_and_clear_count_anew(db: SessionDB) -> None:
    talk(db, "s", "old", "older")
    db.replace_messages("s", [{"role": "user", "content": "new"}, {"role": "assistant", "tool_calls": CALLS}])
    session = db.get_session("s")
    assert session is not None
    assert (session["message_count"], session["tool_call_count"]) == (2, 1)
    assert db.search_messages("old") == []
    assert len(db.search_messages("new")) == 1
    db.clear_messages("s")
    assert db.get_messages("s") == []


def test_rewound_messages_are_hidden_and_can_be_restored(db: SessionDB) -> None:
    ids = talk(db, "s", "one", "two", "three", "four")
    assert db.rewind_to_message("s", ids[2]) == {"session_id": "s", "target_message_id": ids[2], "rewound": 2}
    assert [row["content"] for row in db.get_messages("s")] == ["one", "two"]
    assert len(db.get_messages("s", include_inactive=True)) == 4
    assert db.search_messages("three") == []
    assert len(db.search_messages("three", include_inactive=True)) == 1
    assert db.restore_rewound("s", ids[2]) == 2
    assert db.message_count("s") == 4


def test_a_window_says_what_it_leaves_out(db: SessionDB) -> None:
    ids = talk(db, "s", *[f"m{n}" for n in range(20)])
    view = db.get_messages_around("s", ids[10], window=2)
    assert [row["content"] for row in view["window"]] == ["m8", "m9", "m10", "m11", "m12"]
    assert (view["messages_before"], view["messages_after"]) == (8, 7)
    anchored = db.get_anchored_view("s", ids[10], window=2, bookend=2)
    assert [row["content"] for row in anchored["bookend_start"]] == ["m0", "m1"]
    assert [row["content"] for row in anchored["bookend_end"]] == ["m18", "m19"]
    for nowhere in (10_000, 2**63 - 1, ids[10] + 0.5, None):
        assert db.get_messages_around("s", nowhere)["window"] == []  # type: ignore[arg-type]


def test_lists_hide_children_show_branches_and_tips(db: SessionDB) -> None:
    talk(db, "root", "  the first\nquestion " + "x" * 80, started_at=1.0)
    compressed(db, "root", "tip")
    talk(db, "parent", "p", started_at=2.0)
    db.create_session("sub", "subagent", parent_session_id="parent", started_at=3.0)
    talk(db, "origin", "o", started_at=4.0)
    db.end_session("origin", "branched")
    db.create_session("branch", "cli", parent_session_id="origin", started_at=5.0)
    rows = db.list_sessions_rich()
    assert [row["id"] for row in rows] == ["branch", "origin", "parent", "tip"]
    assert rows[-1]["lineage_root_id"] == "root"
    assert rows[-1]["preview"].startswith("the first question xxx")
    assert len(rows[-1]["preview"]) == 63
    assert db.session_count(exclude_children=True) == 4
    for tips in (False, True):
        rows = db.list_sessions_rich(include_children=True, project_compression_tips=tips)
        assert sorted(row["id"] for row in rows) == ["branch", "origin", "parent", "root", "sub", "tip"]
    assert "system_prompt" not in db.list_sessions_rich(compact_rows=True)[0]
    with pytest.raises(TypeError, match="'colour'"):
        db.list_sessions_rich(colour="red")


def test_lists_filter_by_source_folder_and_archive(db: SessionDB) -> None:
    talk(db, "a", "x", cwd="/work/app")
    talk(db, "b", "x", source="telegram", cwd="/work/application")
    assert [row["id"] for row in db.list_sessions_rich(source="telegram")] == ["b"]
    assert [row["id"] for row in db.list_sessions_rich(exclude_sources=["telegram"])] == ["a"]
    assert [row["id"] for row in db.list_sessions_rich(cwd_prefix="/work/app")] == ["a"]
    assert db.set_session_archived("a", True)
    assert [row["id"] for row in db.list_sessions_rich()] == ["b"]
    assert [row["id"] for row in db.list_sessions_rich(archived_only=True)] == ["a"]


def test_an_id_is_found_by_a_prefix_that_fits_one(db: SessionDB) -> None:
    for name in ("20260101_a", "20260101_b", "20260202_c"):
        db.create_session(name, "cli")
    assert db.resolve_session_id("20260202") == "20260202_c"
    assert db.resolve_session_id("20260101") is None
    assert db.resolve_session_id("20260101_a") == "20260101_a"
    assert db.resolve_session_id("") is None


def test_token_counts_add_up_or_are_set(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.update_token_counts("s", 10, 5, model="m", estimated_cost_usd=0.5, api_call_count=1)
    db.update_token_counts("s", 10, 5, model="other", estimated_cost_usd=0.25)
    session = db.get_session("s")
    assert session is not None
    assert (session["input_tokens"], session["estimated_cost_usd"], session["model"]) == (20, 0.75, "m")
    db.update_token_counts("s", 1, absolute=True)
    session = db.get_session("s")
    assert session is not None
    assert (session["input_tokens"], session["output_tokens"]) == (1, 10)
    db.record_auxiliary_usage("s", "title", model="m", input_tokens=3, estimated_cost_usd=0.25)
    assert db.usage_by_model()[0]["cost_usd"] == 0.25


@pytest.mark.parametrize(
    ("purpose", "cost", "billed"),
    [
        ("turn", 0.5, ("p", "http://p/v1", "per_token", "2026-01-01")),
        ("turn", 0.0, ("p", "http://p/v1", "included", "2026-01-01")),
        ("title", 0.5, (None, None, None, "2026-01-01")),
        ("turn", None, (None, None, None, None)),
    ],
)
def test_a_turn_with_a_price_says_who_is_paid(db: SessionDB, purpose: str, cost: float | None, billed: object) -> None:
    db.create_session("s", "cli")
    for number, provider in enumerate(("p", "another")):
        attempt = f"a{number}"
        db.queries.commit(
            AttemptOpened(
                attempt_id=attempt,
                session_id="s",
                purpose=purpose,
                provider=provider,
                model="m",
                base_url=f"http://{provider}/v1",
            ),
            AttemptClosed(
                attempt_id=attempt, session_id="s", outcome="ok", cost_usd=cost, pricing_version="2026-01-01"
            ),
        )
    row = db.get_session("s")
    assert row is not None
    assert (row["billing_provider"], row["billing_base_url"], row["billing_mode"], row["pricing_version"]) == billed


def test_prices_of_the_snapshot_are_named_by_its_date(tmp_path: Path) -> None:
    assert price_list(load_settings(tmp_path, environ={})).version == snapshot(tmp_path) != ""


def test_a_handoff_is_claimed_once(db: SessionDB) -> None:
    db.create_session("s", "cli")
    assert db.get_handoff_state("s") is None
    assert db.request_handoff("s", "telegram")
    assert not db.request_handoff("s", "telegram")
    assert [row["id"] for row in db.list_pending_handoffs()] == ["s"]
    assert [db.claim_handoff("s"), db.claim_handoff("s")] == [True, False]
    db.fail_handoff("s", "offline")
    assert db.get_handoff_state("s") == {"state": "failed", "platform": "telegram", "error": "offline"}
    assert db.request_handoff("s", "discord")
    db.complete_handoff("s")
    assert db.get_handoff_state("s") == {"state": "completed", "platform": "discord", "error": None}


def test_an_export_can_be_imported_elsewhere(db: SessionDB, tmp_path: Path) -> None:
    talk(db, "a", "one", "two", title="T")
    db.append_message("a", "user", [{"type": "image_url", "image_url": {"url": PIXELS}}])
    talk(db, "b", "three", parent_session_id="a")
    everything = db.export_all()
    with SessionDB(tmp_path / "other.db") as other:
        assert other.import_sessions(everything) == {"imported": 2, "skipped": 0, "errors": []}
        assert other.import_sessions(everything)["skipped"] == 2
        assert other.import_sessions([{"id": ""}])["errors"][0]["error"] == "an exported session needs an 'id'"
        copies = other.export_all()
        for copy, original in zip(copies, everything, strict=True):
            for message in (*copy["messages"], *original["messages"]):
                del message["id"]
        assert copies == everything
        assert len(other.search_messages("three")) == 1
    lineage = db.export_session_lineage("b")
    assert lineage is not None
    assert [one["id"] for one in lineage["sessions"]] == ["a", "b"]
    db.create_session("c", "cli", parent_session_id="gone")
    assert db.export_session_lineage("gone") is None
    lineage = db.export_session_lineage("c")
    assert lineage is not None
    assert [one["id"] for one in lineage["sessions"]] == ["c"]


def test_auto_prune_runs_once_in_its_interval(db: SessionDB) -> None:
    talk(db, "s", "x")
    db.end_session("s", "user_exit")
    db.clock = lambda: 4e9
    assert db.maybe_auto_prune_and_vacuum() == {"skipped": False, "pruned": 1, "vacuumed": True}
    assert db.maybe_auto_prune_and_vacuum()["skipped"]


def test_empty_sessions_are_counted_and_deleted(db: SessionDB) -> None:
    db.create_session("ghost", "cli", started_at=1.0)
    db.create_session("young", "cli")
    talk(db, "full", "x", started_at=1.0)
    assert db.count_empty_sessions() == 1
    assert db.prune_empty_ghost_sessions() == 1
    assert db.delete_session_if_empty("young")
    assert not db.delete_session_if_empty("full")


def test_gateway_peers_and_routes_are_kept(db: SessionDB) -> None:
    db.create_session("s", "telegram")
    db.record_gateway_session_peer("s", source="telegram", chat_id="1", user_id="u", session_key="k")
    assert db.find_session_by_origin(platform="telegram", chat_id="1") == "s"
    assert db.find_session_by_origin(platform="telegram", chat_id="2") is None
    assert [row["id"] for row in db.list_gateway_sessions(platform="telegram")] == ["s"]
    db.save_gateway_routing_entry("k", "{}")
    db.replace_gateway_routing_entries({"x": "1", "y": "2"})
    db.delete_gateway_routing_entries(["x"])
    assert db.load_gateway_routing_entries() == {"y": "2"}


def test_one_holder_compresses_at_a_time(db: SessionDB) -> None:
    assert db.try_acquire_compression_lock("s", "a")
    assert not db.try_acquire_compression_lock("s", "b")
    assert db.get_compression_lock_holder("s") == "a"
    db.clock = lambda: 4e9
    assert db.get_compression_lock_holder("s") is None
    assert db.try_acquire_compression_lock("s", "b")
    assert not db.refresh_compression_lock("s", "a")
    db.release_compression_lock("s", "b")
    assert db.get_compression_lock_holder("s") is None


def test_what_was_really_sent_is_noted_beside_the_message(db: SessionDB) -> None:
    (row,) = talk(db, "s", "hello")
    assert db.set_latest_user_api_content("s", "hello", "hello with context") == row
    assert db.set_latest_user_api_content("s", "other", "x") == 0
    assert db.get_messages("s")[0]["api_content"] == "hello with context"
    assert not db.has_archived_messages("s")


def test_an_unusable_store_is_told_in_one_sentence() -> None:
    text = format_session_db_unavailable(StoreError("the disk is full."))
    assert text.startswith("The session store cannot be used: the disk is full. Nothing runs without it")


def test_meta_values_are_kept(db: SessionDB) -> None:
    assert db.get_meta("k") is None
    db.set_meta("k", "1")
    db.set_meta("k", "2")
    assert db.get_meta("k") == "2"


def test_threads_share_one_database_object(db: SessionDB) -> None:
    db.create_session("s", "cli")

    def write(name: int) -> None:
        for n in range(25):
            db.append_message("s", "user", f"{name}-{n}")
            db.get_messages("s", limit=1)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.message_count("s") == 200
    session = db.get_session("s")
    assert session is not None
    assert session["message_count"] == 200


def test_deleting_a_session_orphans_its_children_and_removes_its_files(db: SessionDB, tmp_path: Path) -> None:
    talk(db, "a", "findme " * 10_000, "and findmetoo")
    talk(db, "b", "child", parent_session_id="a")
    (tmp_path / "session_a.json").write_text("{}")
    assert db.delete_session("a", tmp_path)
    assert not db.delete_session("a", tmp_path)
    child = db.get_session("b")
    assert child is not None
    assert child["parent_session_id"] is None
    assert db.search_messages("findmetoo") == []
    assert not (tmp_path / "session_a.json").exists()


def test_prune_spares_open_and_young_sessions(db: SessionDB) -> None:
    for number in range(4):
        talk(db, f"s{number}", f"word{number}", started_at=float(number + 1))
        if number:
            db.end_session(f"s{number}", "user_exit")
    assert db.prune_sessions(90) == 0
    db.clock = lambda: 4e9
    assert [row["id"] for row in db.list_prune_candidates(90)] == ["s1", "s2", "s3"]
    assert db.archive_sessions(90, source="cli") == 3
    assert (db.session_count(), db.session_count(include_archived=True)) == (1, 4)
    assert db.prune_sessions(90) == 3
    assert db.search_messages("word1") == []
    assert len(db.search_messages("word0")) == 1


def test_a_search_can_be_kept_to_a_user_a_role_or_a_source(db: SessionDB) -> None:
    talk(db, "a", "a needle", "another needle", user_id="ann")
    talk(db, "b", "needles", "no needle", source="telegram", user_id="bob")

    def found(query: str, **only: Any) -> list[str]:
        return sorted(f"{row['session_id']}-{row['role']}" for row in db.search_messages(query, **only))

    assert found("needle") == ["a-assistant", "a-user", "b-assistant"]
    assert found("needle*") == ["a-assistant", "a-user", "b-assistant", "b-user"]
    assert found("needle", user_id="ann") == ["a-assistant", "a-user"]
    assert found("needle", role_filter=["user"]) == ["a-user"]
    assert found("needle", source_filter=["telegram"]) == ["b-assistant"]
    assert found("needle", exclude_sources=["telegram"]) == ["a-assistant", "a-user"]
    assert found("needle NOT another") == ["a-user", "b-assistant"]
    assert found('"another needle" OR needles') == ["a-assistant", "b-user"]
    (hit,) = db.search_messages("another")
    assert hit["snippet"] == ">>>another<<< needle"
    assert [one["content"] for one in hit["context"]] == ["a needle", "another needle"]


def test_the_newest_or_the_oldest_hit_comes_first(db: SessionDB) -> None:
    ids = talk(db, "s", "word one", "word two", "word three")
    assert [row["id"] for row in db.search_messages("word", sort="newest")] == ids[::-1]
    assert [row["id"] for row in db.search_messages("word", sort="oldest", limit=1, offset=1)] == [ids[1]]
    with pytest.raises(ValueError, match="not 'odd'"):
        db.search_messages("word", sort="odd")


def test_stats_count_sessions_by_their_source(db: SessionDB) -> None:
    for name, source in (("a", "cli"), ("b", "tui"), ("c", "cli")):
        talk(db, name, "x", source=source)
    stats = db.storage_stats()
    assert (stats["sessions"], stats["messages"], stats["by_source"]) == (3, 3, {"cli": 2, "tui": 1})


def test_sessions_are_listed_by_their_last_word(db: SessionDB) -> None:
    for number, name in enumerate("abc"):
        db.create_session(name, "cli", started_at=float(number + 1))
    db.append_message("a", "user", "late", timestamp=9.0)
    rows = db.list_sessions_rich(order_by_last_active=True)
    assert [(row["id"], row["last_active"]) for row in rows] == [("a", 9.0), ("c", 3.0), ("b", 2.0)]
    assert [row["id"] for row in db.search_sessions(limit=2, offset=1)] == ["b", "a"]


def test_sessions_are_found_by_what_their_id_or_title_holds(db: SessionDB) -> None:
    db.create_session("First", "cli", title="About bees")
    db.create_session("second", "cli")
    assert [row["id"] for row in db.search_sessions_by_id("fir")] == ["First"]
    assert [row["id"] for row in db.list_sessions_rich(search_query="BEES")] == ["First"]
    assert [row["id"] for row in db.list_sessions_rich(search_query="second")] == ["second"]


def test_the_folders_of_sessions_are_listed_once_and_get_their_repository(db: SessionDB) -> None:
    for number, cwd in enumerate(("/a", "/b", "/a")):
        db.create_session(str(number), "cli", cwd=cwd, started_at=float(number + 1))
    db.create_session("nowhere", "cli")
    db.backfill_repo_roots({"/a": "/root"})
    assert db.distinct_session_cwds() == [
        {"cwd": "/a", "git_repo_root": "/root", "sessions": 2, "last_active": 3.0},
        {"cwd": "/b", "git_repo_root": None, "sessions": 1, "last_active": 2.0},
    ]


def test_a_parent_that_its_child_continued_is_ended_once(db: SessionDB) -> None:
    talk(db, "a", "x", title="T")
    talk(db, "b", "x", title="T #2", parent_session_id="a")
    talk(db, "c", "x", title="Other")
    talk(db, "d", "x", title="T else", parent_session_id="c")
    assert [db.finalize_orphaned_compression_sessions() for _ in range(2)] == [1, 0]
    ended = db.get_session("a")
    assert ended is not None
    assert ended["end_reason"] == "orphaned_compression"


def test_a_failed_compression_is_not_tried_again_before_its_time(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.record_compression_failure_cooldown("s", 3e9, "too slow")
    assert db.get_compression_failure_cooldown("s") == {"cooldown_until": 3e9, "error": "too slow"}
    db.set_compression_fallback_streak("s", 2)
    assert (db.get_compression_fallback_streak("s"), db.get_compression_fallback_streak("none")) == (2, 0)
    db.clock = lambda: 4e9
    assert db.get_compression_failure_cooldown("s") is None


def test_the_ledger_and_the_journals_are_listed_newest_first(db: SessionDB) -> None:
    db.create_session("s", "cli")
    call = ToolCall(id="c1", name="read_file")
    for number in (1, 2):
        opened = AttemptOpened(attempt_id=f"a{number}", session_id="s", purpose="turn", provider="p", model="m")
        db.queries.commit(msgspec.structs.replace(opened, started_at=100.0 * number))
    used = Usage(input_tokens=3, output_tokens=4)
    db.queries.commit(
        AttemptClosed(attempt_id="a1", session_id="s", outcome="ok", usage=used, latency_ms=500.0),
        CallJournalled("s", call),
        CallClosed("s", "c1", "ok", 7.0),
        ApprovalRecorded(session_id="s", route="foreground", tool="terminal", action="ls", verdict="allow"),
    )
    assert [(row["attempt_id"], row["outcome"]) for row in db.list_attempts()] == [("a2", None), ("a1", "ok")]
    assert [row["attempt_id"] for row in db.list_attempts("s", since=150.0)] == ["a2"]
    assert db.list_attempts("other") == []
    assert [(row["name"], row["status"], row["duration_ms"]) for row in db.list_tool_runs("s")] == [
        ("read_file", "ok", 7.0)
    ]
    assert [(row["tool"], row["verdict"]) for row in db.list_approvals(limit=1)] == [("terminal", "allow")]
    assert list(db.list_attempts()[0]) == list(TABLES["attempts"])
    (row,) = db.usage("model")
    assert row == {
        "provider": "p",
        "model": "m",
        "calls": 2,
        **dict.fromkeys(TOKENS, 0),
        "input_tokens": 3,
        "output_tokens": 4,
        "cost_usd": None,
        "seconds": 0.5,
        "failed": 1,
        "uncounted": 0,
        "unpriced": 1,
    }
    assert [len(db.usage(by)) for by in USAGE_GROUPS] == [1] * len(USAGE_GROUPS)


def test_a_session_in_use_is_not_deleted(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.queries.commit(LeaseTaken(session_id="s", fence=7))
    with pytest.raises(SessionInUse):
        db.delete_session("s")
    assert db.delete_sessions(["s"]) == 0
    db.queries.commit(LeaseReleased("s", 7))
    assert db.delete_sessions(["s", "none"]) == 1


def test_what_the_kernel_wrote_is_read_as_rows_and_what_rows_were_added_the_kernel_reads(db: SessionDB) -> None:
    db.create_session("s", "cli", model_config={"t": 1})
    asked = Message(role="assistant", content="hm", tool_calls=(ToolCall(id="c1", name="read_file", arguments="{}"),))
    db.queries.commit(MessageAppended("s", asked))
    db.append_message("s", "tool", PARTS, tool_call_id="c1", tool_name="read_file")
    rows = db.get_messages("s")
    assert list(rows[0]) == list(rows[1]) == list(MESSAGE_COLUMNS)
    assert rows[0]["tool_calls"][0]["function"] == {"name": "read_file", "arguments": "{}"}
    record = db.queries.load("s")
    assert record is not None
    assert [message.id for message in record.messages] == [row["id"] for row in rows]
    assert record.messages[1].content == (TextPart("x"), ImagePart(PIXELS))
    assert (record.model_config, record.message_count) == ({"t": 1}, 2)


def test_a_write_that_fails_leaves_everything_as_it_was(db: SessionDB) -> None:
    talk(db, "a", "x", title="T")
    before = db.export_all()
    with pytest.raises(ValueError, match="taken"):
        db.create_session("b", "cli", title="T")
    with pytest.raises(StoreError, match="no session 'gone'"):
        db.replace_messages("gone", [{"role": "user", "content": "x"}])
    with pytest.raises(StoreError, match="no active message 999"):
        db.rewind_to_message("a", 999)
    with pytest.raises(StoreError, match="'colour'"):
        db.queries.change_sessions(SessionFilter(), {"archived": 1, "colour": "red"})
    assert db.export_all() == before
    report = db.import_sessions([{**before[0], "id": "b"}, {"id": "c", "messages": [{"content": "x"}]}])
    assert (report["imported"], report["errors"]) == (1, [{"id": "c", "error": "an exported message needs a 'role'"}])
    assert db.get_session_title("b") is None
    assert db.get_session("c") is None


def test_events_of_a_session_go_on_in_what_a_compression_makes_of_it(db: SessionDB) -> None:
    talk(db, "old", "question", "answer")
    talk(db, "other", "question")
    assert db.queries.newest_event() == 0
    rows = db.queries.commit(
        EventStored("old", "turn_started", "t1", {"model": "m"}),
        EventStored("other", "turn_started", "t2", {}),
        EventStored("old", "turn_finished", "t1", {"completed": True}),
    )
    last = max(message["id"] for message in db.get_messages("old"))
    child = SessionCreated(session_id="new", source="cli", parent_session_id="old")
    db.queries.commit(SessionContinued(session_id="old", child=child, last_row=last, at=1.0))
    db.queries.commit(EventStored("new", "session_moved", "new", {"previous": "old"}))

    found = db.queries.events("new", 0, 10)
    assert [(row["session_id"], row["kind"], row["about"], row["body"]) for row in found] == [
        ("old", "turn_started", "t1", {"model": "m"}),
        ("old", "turn_finished", "t1", {"completed": True}),
        ("new", "session_moved", "new", {"previous": "old"}),
    ]
    numbers = [row["number"] for row in found]
    assert numbers == sorted(set(numbers))
    assert numbers[:2] == [rows[0], rows[2]]
    assert db.queries.newest_event() == numbers[-1]
    assert [row["number"] for row in db.queries.events("old", numbers[0], 10)] == numbers[1:]
    assert [row["number"] for row in db.queries.events("new", numbers[0], 1)] == numbers[1:2]


def test_events_go_with_their_session_and_their_numbers_never_come_again(db: SessionDB) -> None:
    talk(db, "s", "question")
    (first,) = db.queries.commit(EventStored("s", "turn_started", "t", {}))
    assert db.delete_session("s")
    assert db.queries.events("s", 0, 10) == []
    (second,) = db.queries.commit(EventStored("s", "turn_started", "t", {}))
    assert second > first
