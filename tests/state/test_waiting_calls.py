"""A call that was asked for and never started is told as not run, by `repair`, too."""

from pathlib import Path

from hermes.ops import CallJournalled, MessageAppended, SessionCreated
from hermes.state import SessionDB, SqliteStore
from hermes.state.sqlite.repair import repair
from hermes.types import Message, ToolCall


def test_repair_tells_a_started_call_from_one_that_waited(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first, second = ToolCall("c1", "deploy", "{}"), ToolCall("c2", "announce", "{}")
    store = SqliteStore(path)
    store.commit_sync(
        SessionCreated(session_id="s"),
        MessageAppended("s", Message(role="assistant", tool_calls=(first, second))),
        CallJournalled("s", first),
        CallJournalled("s", second, is_started=False),
    )
    gone = f"{store._owner.split(':')[0]}:999999999:1"
    store.write(lambda conn: conn.execute("UPDATE tool_runs SET owner = ?", (gone,)))
    store.close_sync()

    report = repair(path)

    assert [line.split(":")[0] for line in report.done][:3] == [
        "1 tool calls had started and never ended",
        "1 tool calls had never started",
        "2 of them were answered in the transcript, so that the model is told",
    ]
    with SessionDB(path) as db:
        told = [(row["tool_call_id"], row["status"]) for row in db.get_messages("s")[1:]]
    assert told == [("c1", "unknown"), ("c2", "cancelled")]
