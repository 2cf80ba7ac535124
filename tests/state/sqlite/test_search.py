"""Search: what is found, in every script, never stale, and in agreement with a scan."""

# ruff: noqa: RUF001 - full-width letters and commas are what is looked for

import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from hermes.state import SessionDB
from hermes.state.sqlite import search_index
from hermes.state.sqlite.search_query import parse
from tests.state.opened import sqlite_of

BILINGUAL = [
    ("en", "The database migration failed after the schema change", ["database", "migration", "schema"]),
    ("en", "Please review the invoice for the hotel in Paris", ["invoice", "hotel", "review"]),
    ("en", "Restart the server and check its memory", ["server", "memory", "restart"]),
    ("zh", "数据库迁移在修改表结构之后失败了", ["数据", "迁移", "结构", "失败", "数据库"]),
    ("zh", "请帮我查看巴黎酒店的发票", ["酒店", "发票", "巴黎"]),
    ("zh", "重启服务器并检查内存", ["重启", "内存", "检查", "服务器"]),
    ("ja", "スキーマ変更の後でデータベースの移行が失敗した", ["移行", "変更", "失敗", "データベース"]),
    ("ja", "パリのホテルの請求書を確認してください", ["パリ", "請求", "確認", "ホテル"]),
    ("ja", "サーバーを再起動してメモリを調べる", ["再起", "メモリ", "起動"]),
    ("ko", "스키마 변경 후 데이터베이스 이전이 실패했습니다", ["변경", "이전", "실패", "데이터베이스"]),
    ("ko", "파리 호텔의 청구서를 확인해 주세요", ["파리", "호텔", "확인"]),
    ("ko", "서버를 다시 시작하고 메모리를 확인하세요", ["서버", "시작", "메모리"]),
    ("mixed", "用Python3写了一个parser，处理CSV文件", ["python3", "parser", "文件", "csv", "处理"]),
]


@pytest.fixture(params=["indexed", "tail"])
def spoken(request: pytest.FixtureRequest, db: SessionDB) -> SessionDB:
    """The bilingual set, behind the watermark or in front of it."""
    db.create_session("s", "cli")
    for _, text, _ in BILINGUAL:
        db.append_message("s", "user", text)
    if request.param == "indexed":
        assert sqlite_of(db).index_all() >= 0
    return db


def found(db: SessionDB, query: str, **options: Any) -> list[int]:
    return sorted(row["id"] for row in db.search_messages(query, limit=10_000, **options))


def test_recall_is_the_same_in_every_language(spoken: SessionDB) -> None:
    recall: dict[str, list[bool]] = {}
    precision: list[bool] = []
    for number, (language, _, words) in enumerate(BILINGUAL, 1):
        for word in words:
            hits = found(spoken, word)
            recall.setdefault(language, []).append(number in hits)
            texts = [BILINGUAL[hit - 1][1] for hit in hits]
            precision.append(all(word.lower() in text.lower() for text in texts))
    assert {language: sum(hits) / len(hits) for language, hits in recall.items()} == dict.fromkeys(recall, 1.0)
    assert all(precision)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("the AND server", [3]),
        ("the server", [3]),
        ("hotel OR server", [2, 3]),
        ("the NOT server", [1, 2]),
        ("the AND NOT server", [1, 2]),
        ('"schema change"', [1]),
        ('"change schema"', []),
        ("migr*", [1]),
        ("数", [4]),
        ("库", [4]),
        ("数据库迁移", [4]),
        ('"数据库 迁移"', []),
        ("ＤＡＴＡＢＡＳＥ", [1]),
        ("ﾒﾓﾘ", [9]),
        ("hôtel", [2]),
        ("python3写", [13]),
        ("SERVER", [3]),
        ("NOT", []),
        ("AND OR", []),
        ("", []),
        ('"', []),
        ("(((", []),
        ("*", []),
        ("NOT server", [3]),
        ("server AND", [3]),
        ("{content}: server", []),
    ],
)
def test_the_query_language(spoken: SessionDB, query: str, wanted: list[int]) -> None:
    for sort in ("best", "newest", "oldest"):
        assert found(spoken, query, sort=sort) == wanted


def test_snippets_mark_what_was_found(db: SessionDB) -> None:
    db.create_session("s", "cli", model="m")
    db.append_message("s", "user", "before")
    db.append_message("s", "assistant", "word " * 100 + "The Café is open. " + "word " * 100)
    db.append_message("s", "user", "after" * 100)
    (row,) = db.search_messages("cafe")
    assert ">>>Café<<<" in row["snippet"]
    assert len(row["snippet"].split()) <= 42
    assert [(one["role"], len(one["content"])) for one in row["context"]] == [
        ("user", 6),
        ("assistant", 200),
        ("user", 200),
    ]
    assert (row["session_id"], row["role"], row["source"], row["model"]) == ("s", "assistant", "cli", "m")
    assert "content" not in row


def test_filters_by_role_and_source(db: SessionDB) -> None:
    for source in ("cli", "telegram", "cron"):
        db.create_session(source, source)
        for role in ("user", "assistant", "tool", "observer"):
            db.append_message(source, role, f"needle {source} {role}")
    for wait in (True, False):
        if wait:
            sqlite_of(db).index_all()
        sources = {row["source"] for row in db.search_messages("needle", source_filter=["cli", "cron"])}
        assert sources == {"cli", "cron"}
        rows = db.search_messages("needle", exclude_sources=["cli"], role_filter=["user", "tool"])
        assert {(row["source"], row["role"]) for row in rows} == {
            ("telegram", "user"), ("telegram", "tool"), ("cron", "user"), ("cron", "tool"),
        }  # fmt: skip
        assert len(db.search_messages("needle", role_filter=["observer"])) == 3
        db.rebuild_fts()


def test_order_and_pages(db: SessionDB) -> None:
    db.create_session("s", "cli")
    ids = [db.append_message("s", "user", "apple " * (n % 5 + 1) + "filler " * 30) for n in range(30)]
    sqlite_of(db).write(lambda conn: conn.execute("SELECT 1").fetchone())
    assert [row["id"] for row in db.search_messages("apple", sort="newest", limit=5)] == ids[::-1][:5]
    assert [row["id"] for row in db.search_messages("apple", sort="oldest", limit=5, offset=3)] == ids[3:8]
    best = [row["id"] for row in db.search_messages("apple", limit=6)]
    assert all((one - 1) % 5 == 4 for one in best)
    pages = [row["id"] for offset in range(0, 30, 7) for row in db.search_messages("apple", limit=7, offset=offset)]
    assert sorted(pages) == ids
    with pytest.raises(ValueError, match="'sideways'"):
        db.search_messages("apple", sort="sideways")


def test_a_rare_alternative_is_ranked_before_a_common_one(db: SessionDB) -> None:
    db.create_session("s", "cli")
    rare = db.append_message("s", "user", "the zebra")
    for _ in range(600):
        db.append_message("s", "user", "the horse")
    assert db.search_messages("horse OR zebra", limit=3)[0]["id"] == rare


def test_tool_output_is_indexed_at_its_ends(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.append_message(
        "s", "tool", "headword " + "x " * 3000 + "middleword " + "x " * 3000 + " tailword", tool_name="grep"
    )
    assert [bool(db.search_messages(word)) for word in ("headword", "tailword", "middleword", "grep")] == [
        True, True, False, True,
    ]  # fmt: skip


def test_calls_are_found_by_tool_and_arguments(db: SessionDB) -> None:
    db.create_session("s", "cli")
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "src/secret_plan.py"}'},
    }
    db.append_message("s", "assistant", None, tool_calls=[call])
    assert len(db.search_messages("secret_plan.py")) == 1
    assert len(db.search_messages("read_file")) == 1


def words_of(text: str) -> set[str]:
    """An independent idea of the words of a text; CJK characters one by one."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    spaced = "".join(f" {c} " if ord(c) > 0x2E7F else c if c.isalnum() else " " for c in plain)
    return set(spaced.split())


@pytest.mark.parametrize("seed", range(3))
def test_search_agrees_with_a_scan(db: SessionDB, seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = ["alpha", "beta", "Gamma", "delta", "épée", "数据", "库存", "データ", "한국", "x1", "don't", "a_b"]
    for name in ("a", "b"):
        db.create_session(name, name)
    live: dict[int, str] = {}
    for _ in range(400):
        move = rng.random()
        if move < 0.8 or not live:
            text = " ".join(rng.choices(vocabulary, k=rng.randint(1, 6)))
            live[db.append_message(rng.choice("ab"), "user", text)] = text
        elif move < 0.9:
            sqlite_of(db).write(lambda conn: index_some(conn, db, rng.randint(1, 40)))
        else:
            name = rng.choice("ab")
            gone = [row["id"] for row in db.get_messages(name)]
            kept = [{"role": "user", "content": live.pop(one)} for one in gone][:50]
            db.replace_messages(name, kept)
            live |= {row["id"]: row["content"] for row in db.get_messages(name)}
    for word in ("alpha", "gamma", "epee", "x1", "nothing"):
        assert found(db, word) == sorted(one for one, text in live.items() if word in words_of(text))
    for pair in ("数据", "库存", "한국", "データ"):
        assert found(db, pair) == sorted(one for one, text in live.items() if pair in text)
    both = found(db, "alpha beta NOT delta")
    assert both == sorted(o for o, t in live.items() if {"alpha", "beta"} <= words_of(t) and "delta" not in words_of(t))


def index_some(conn: Any, db: SessionDB, limit: int) -> None:
    search_index.index_batch(conn, sqlite_of(db).blobs.get, limit)


def test_an_index_of_another_format_is_made_anew(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "needle")
        sqlite_of(db).index_all()
        db.set_meta("fts_format", "0")
    with SessionDB(tmp_path / "state.db") as db:
        assert len(db.search_messages("needle")) == 1
        assert sqlite_of(db).index_all() == 1
        assert len(db.search_messages("needle")) == 1
        assert db.optimize_fts() == 0


def test_indexing_ends_when_the_newest_messages_are_gone(db: SessionDB) -> None:
    db.create_session("s", "cli")
    for number in range(5):
        db.append_message("s", "user", f"word{number}")
    db.clear_messages("s")
    assert sqlite_of(db).index_all() == 0
    assert sqlite_of(db)._file.idle() is False
    kept = db.append_message("s", "user", "kept")
    sqlite_of(db).index_all()
    assert found(db, "kept") == [kept]


def test_no_query_is_an_error() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        text = "".join(rng.choices('ab"*()+-^:{} ANDORNOT 数据\0\ud800', k=rng.randint(0, 12)))
        parse(text)


def test_strange_queries_reach_the_index_without_an_error(spoken: SessionDB) -> None:
    rng = random.Random(2)
    for _ in range(300):
        spoken.search_messages("".join(rng.choices('ab"*()+-^:{}, ANDORNOT 数据\0\ud800', k=rng.randint(0, 14))))
