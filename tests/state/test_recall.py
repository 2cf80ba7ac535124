"""What was said in earlier conversations, as a model and a person find it: in the real store and in memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.state import SessionDB
from hermes.state.recall import Recall, RecallError, RecallRequest, cut
from tests.state.memory_queries import MemorySessionStore

START = 1_700_000_000.0


@pytest.fixture(params=["sqlite", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db", store=MemorySessionStore() if request.param == "memory" else None) as made:
        made.clock = lambda: START
        yield made


def session(db: SessionDB, name: str, *said: str, age: int = 0, **columns: Any) -> list[int]:
    """A session in which these words were said in turn; the ids of the messages."""
    at = START - age * 3_600
    db.create_session(name, columns.pop("source", "cli"), started_at=at, **columns)
    return [
        db.append_message(name, "user" if place % 2 == 0 else "assistant", words, timestamp=at + place)
        for place, words in enumerate(said)
    ]


def ids(answer: dict[str, Any]) -> list[str]:
    return [one["session_id"] for one in answer["results"]]


def find(db: SessionDB, query: str, current: str = "", **more: Any) -> dict[str, Any]:
    return Recall(db.queries, current).discover(RecallRequest(query=query, **more))


def test_a_hit_comes_with_its_window_its_ends_and_how_to_resume(db: SessionDB) -> None:
    said = [f"line {number}" for number in range(30)]
    said[15] = "the walrus sings"
    rows = session(db, "a", *said, title="Animals")
    answer = find(db, "walrus")
    assert (answer["mode"], answer["count"], answer["sessions_searched"]) == ("discover", 1, 1)
    hit = answer["results"][0]
    assert [one["id"] for one in hit["messages"]] == rows[10:21]
    assert [one["content"] for one in hit["messages"] if one.get("anchor")] == ["the walrus sings"]
    assert [one["content"] for one in hit["bookend_start"]] == said[:3]
    assert [one["content"] for one in hit["bookend_end"]] == said[-3:]
    assert (hit["messages_before"], hit["messages_after"], hit["match_message_id"]) == (5, 5, rows[15])
    assert (hit["title"], hit["matched_role"], hit["snippet"]) == ("Animals", "assistant", "the >>>walrus<<< sings")
    assert hit["resume"] == "hermes --resume a"
    short = find(db, "walrus", window=20)["results"][0]
    assert (short["bookend_start"], short["bookend_end"]) == ([], [])


def test_a_conversation_is_found_once_with_what_compression_and_delegation_made_of_it(db: SessionDB) -> None:
    session(db, "root", "walrus one", "ok", age=9, title="Walruses")
    db.end_session("root", "compression")
    session(db, "tip", "walrus two", "ok", parent_session_id="root", age=-1)
    session(db, "child", "walrus three", "ok", parent_session_id="tip", source="subagent")
    session(db, "other", "walrus four", "ok", age=20)
    session(db, "orphan", "walrus five", "ok", source="subagent")
    answer = find(db, "walrus")
    assert len(answer["results"]) == 2
    found = {one.get("parent_session_id") or one["session_id"]: one for one in answer["results"]}
    assert found.keys() == {"root", "other"}
    assert (found["root"]["title"], found["root"]["resume"]) == ("Walruses", "hermes --resume tip")
    assert ids(find(db, "walrus", "child")) == ids(find(db, "walrus", "tip")) == ["other"]


def test_earlier_searches_do_not_turn_up(db: SessionDB) -> None:
    rows = session(db, "a", "where was the walrus?")
    call = {"id": "c", "type": "function", "function": {"name": "session_search", "arguments": '{"query": "walrus"}'}}
    db.append_message("a", "assistant", "I look for the walrus.", tool_calls=[call])
    db.append_message("a", "tool", '{"results": ["walrus"]}', tool_name="session_search", tool_call_id="c")
    for roles in (("user", "assistant"), ("user", "assistant", "tool")):
        groups = Recall(db.queries).hits(RecallRequest(query="walrus", roles=roles), 9)
        assert [[hit["id"] for hit in group] for group in groups] == [rows]


def test_scheduled_jobs_come_last_and_a_title_first(db: SessionDB) -> None:
    session(db, "job", "walrus walrus walrus", source="cron")
    session(db, "talk", "a walrus among many other words that were said then", age=5)
    session(db, "named", "nothing of the kind", title="walrus", age=9)
    assert ids(find(db, "walrus")) == ["named", "talk", "job"]
    assert find(db, "walrus")["results"][0]["matched_role"] == "session_title"
    assert ids(find(db, "walrus", limit=1)) == ["named"]


def test_long_messages_are_cut_around_the_hit_and_say_so(db: SessionDB) -> None:
    session(db, "a", "x " * 4_000 + "the walrus sings" + " y" * 4_000, "ok")
    anchor = find(db, "walrus")["results"][0]["messages"][0]
    assert anchor["truncated"] is True
    assert "the walrus sings" in anchor["content"]
    assert len(anchor["content"]) < 1_000
    assert cut("short", 10) == ("short", False)


@pytest.mark.parametrize("filler", ["word ", "数据库", '"quoted" \\ '])
def test_a_result_with_the_usual_limits_fits_four_thousand_tokens(db: SessionDB, filler: str) -> None:
    for number in range(4):
        said = [f"walrus {filler * 500}" if place == 20 else filler * 500 for place in range(40)]
        session(db, f"s{number}", *said, title=f"A title of a usual length for session {number}", age=number)
    answer = find(db, "walrus")
    assert answer["count"] == 3
    assert len(json.dumps(answer, ensure_ascii=False)) / 4 < 4_000


def test_the_newest_conversations_each_as_its_tip_without_the_one_that_asks(db: SessionDB) -> None:
    session(db, "old", "first words of old", "ok", age=3)
    db.end_session("old", "compression")
    session(db, "new", "summary", "ok", parent_session_id="old", age=-1)
    session(db, "other", "hello there", "ok", age=2)
    session(db, "child", "task", parent_session_id="other", source="subagent")
    session(db, "mine", "now", age=-5)
    answer = Recall(db.queries, "mine").browse(3)
    assert sorted(ids(answer)) == ["new", "other"]
    told = {one["session_id"]: one for one in answer["results"]}
    assert told["new"]["preview"] == "first words of old"
    assert told["other"]["resume"] == "hermes --resume other"


def test_reading_around_a_message_also_in_what_the_session_became(db: SessionDB) -> None:
    rows = session(db, "old", *[f"line {number}" for number in range(9)], age=3)
    db.end_session("old", "compression")
    later = session(db, "new", "summary", "more", parent_session_id="old", age=-1)
    session(db, "mine", "now")
    recall = Recall(db.queries, "mine")
    answer = recall.scroll("old", rows[4], 2)
    assert [one["id"] for one in answer["messages"]] == rows[2:7]
    assert (answer["messages_before"], answer["messages_after"], "warning" in answer) == (2, 2, False)
    moved = recall.scroll("old", later[1], 1)
    assert (moved["session_id"], "warning" in moved) == ("new", True)
    whole = recall.read("old")
    assert (whole["message_count"], whole["truncated"], len(whole["messages"])) == (9, False, 9)
    for session_id, message, why in [
        ("gone", 1, "session_id not found: gone"),
        ("old", 999, "around_message_id 999 not in session_id old"),
        ("mine", 1, "part of this conversation"),
    ]:
        with pytest.raises(RecallError, match=why):
            recall.scroll(session_id, message, 1)


def test_only_the_sessions_of_a_user_where_there_are_several(db: SessionDB) -> None:
    session(db, "ada", "walrus", "ok", user_id="ada")
    session(db, "bob", "walrus", "ok", user_id="bob")
    recall = Recall(db.queries, user_id="ada")
    assert ids(recall.discover(RecallRequest(query="walrus"))) == ["ada"]
    assert ids(recall.browse(3)) == ["ada"]
    with pytest.raises(RecallError):
        recall.read("bob")


@pytest.mark.parametrize("query", ['"', "AND", "NOT x", "(", "*", "\0", "\ud800", "a:b", "OR OR", "x" * 10_000, "日"])
def test_a_query_that_is_no_expression_finds_something_or_nothing(db: SessionDB, query: str) -> None:
    session(db, "a", "walrus", "ok")
    assert find(db, query)["success"]


def test_one_long_conversation_hides_no_other(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        session(db, "few", "walrus", "ok", age=9)
        session(db, "long", *["walrus again"] * 500)
        assert sorted(ids(find(db, "walrus"))) == ["few", "long"]
        assert ids(find(db, "walrus", "long")) == ["few"]


@pytest.mark.parametrize(
    ("text", "query"), [("データベースの移行", "移行"), ("데이터베이스 이전", "이전"), ("数据库迁移", "迁移")]
)
def test_chinese_japanese_and_korean_are_found_by_two_characters(tmp_path: Path, text: str, query: str) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        session(db, "a", text, "ok")
        session(db, "b", query[::-1], "ok")
        answer = find(db, query)
        assert ids(answer) == ["a"]
        assert f">>>{query}<<<" in answer["results"][0]["snippet"]
