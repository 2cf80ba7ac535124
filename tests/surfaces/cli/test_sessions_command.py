"""`hermes sessions` and `hermes usage` over a real store."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes.state import SessionDB
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.session_picker import pick_session
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.state.opened import sqlite_of
from tests.surfaces.cli.interactive.terminal import answering

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ONE, TWO = "20260101_000000_aaaaaa", "20260102_000000_bbbbbb"


@pytest.fixture
def db(home: Path) -> Iterator[SessionDB]:
    with SessionDB(home / "state.db") as made:
        made.create_session(ONE, "cli", model="m")
        made.append_message(ONE, "user", "How do I bake bread?")
        made.append_message(ONE, "assistant", "With flour and patience.")
        made.create_session(TWO, "cron", model="m")
        made.append_message(TWO, "user", "量子コンピュータとは何ですか")
        made.append_message(
            TWO, "assistant", None, tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
        )
        made.append_message(TWO, "tool", "a result", tool_call_id="c", tool_name="f")
        yield made


def ids(run: Run, *words: str) -> list[str]:
    return [each["id"] for each in json.loads(run("sessions", "list", "--json", *words).stdout)]


def test_sessions_are_listed_newest_first(run: Run, db: SessionDB) -> None:
    assert ids(run) == [TWO, ONE]
    assert ids(run, "--source", "cli") == [ONE]
    assert ids(run, "--limit", "1") == [TWO]
    table = run("sessions", "list").stdout.splitlines()
    assert table[0].split() == ["ID", "LAST", "SOURCE", "MESSAGES", "TITLE"]
    assert table[2].startswith(ONE)
    assert table[2].endswith('"How do I bake bread?"')  # it has no title: so it began


def test_calls_and_results_are_shown_as_in_the_conversation(run: Run, db: SessionDB) -> None:
    arguments = json.dumps({"timeout": 3, "command": 'printf "a\\nb"\nls'})
    called = [{"id": "d", "function": {"name": "terminal", "arguments": arguments}}]
    db.append_message(TWO, "assistant", None, tool_calls=called)
    db.append_message(TWO, "tool", '{"output": "a\\nb", "exit_code": 0}', tool_call_id="d", tool_name="terminal")
    shown = run("sessions", "show", TWO, "--tools").stdout
    assert '→ terminal printf "a\\nb" ls\n' in shown
    assert "terminal\na\nb\n" in shown
    assert "exit_code" not in shown


def test_a_session_is_shown_by_prefix_or_title(run: Run, db: SessionDB) -> None:
    db.set_session_title(ONE, "Baking")
    by_title = run("sessions", "show", "Baking").stdout
    assert by_title == run("sessions", "show", "20260101").stdout
    assert "You\nHow do I bake bread?" in by_title
    shown = run("sessions", "show", TWO).stdout
    assert "→ f\n" in shown
    assert "a result" not in shown
    assert "a result" in run("sessions", "show", TWO, "--tools").stdout
    assert [m["role"] for m in json.loads(run("sessions", "show", TWO, "--json").stdout)["messages"]] == [
        "user",
        "assistant",
        "tool",
    ]


def test_words_are_found_in_all_sessions(run: Run, db: SessionDB) -> None:
    found = json.loads(run("sessions", "search", "flour", "--json").stdout)
    assert [each["session_id"] for each in found] == [ONE]
    assert found[0]["resume"] == f"hermes --resume {ONE}"
    assert TWO in run("sessions", "search", "量子").stdout
    db.set_session_title(ONE, "Baking")
    lines = run("sessions", "search", "flour").stdout.splitlines()
    assert (lines[0].startswith("Baking "), lines[1]) == (True, "  assistant: With >>>flour<<< and patience.")
    none = run("sessions", "search", "zeppelin")
    assert (none.returncode, none.stdout) == (Exit.FAILED, "")


def test_an_exported_session_comes_back_whole(run: Run, db: SessionDB, home: Path, tmp_path: Path) -> None:
    before = run("sessions", "show", TWO, "--json").stdout
    assert run("sessions", "export", "all.jsonl").returncode == 0
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 2
    assert run("sessions", "export", "--session-id", ONE).stdout.count("\n") == 1
    assert run("sessions", "delete", TWO, "--yes").returncode == 0
    assert ids(run) == [ONE]
    assert run("sessions", "import", "all.jsonl").stdout == "1 added, 1 were there already\n"
    after = json.loads(run("sessions", "show", TWO, "--json").stdout)
    keep = ("role", "content", "tool_calls", "tool_call_id", "tool_name", "timestamp")
    assert [[m[k] for k in keep] for m in after["messages"]] == [
        [m[k] for k in keep] for m in json.loads(before)["messages"]
    ]


def test_a_file_that_is_no_export_names_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"id": "a", "messages": []}\nnonsense\n')
    done = run("sessions", "import", "x")
    assert done.returncode == Exit.FAILED
    assert "x, line 2: this is no exported session" in done.stderr


def test_renaming_and_its_limits(run: Run, db: SessionDB) -> None:
    assert run("sessions", "rename", ONE, "My", "bread").returncode == 0
    assert db.get_session_title(ONE) == "My bread"
    taken = run("sessions", "rename", TWO, "My bread")
    assert (taken.returncode, taken.stderr.count("\n")) == (Exit.FAILED, 1)


def test_deleting_asks_first(run: Run, db: SessionDB) -> None:
    assert run("sessions", "delete", ONE, stdin="n\n").returncode == Exit.CANCELLED
    assert len(ids(run)) == 2


def test_only_ended_sessions_are_pruned(run: Run, db: SessionDB) -> None:
    db.end_session(ONE, "user_exit")
    assert run("sessions", "prune").stdout == "No ended session matches.\n"
    told = run("sessions", "prune", "--older-than", "0", "--dry-run").stdout
    assert told == f"1 sessions would be deleted\n  {ONE}\n"
    assert run("sessions", "prune", "--older-than", "0", "--yes").stdout == "1 sessions are deleted\n"
    assert ids(run) == [TWO]


def test_what_a_crash_left_open_is_pruned_only_when_asked_and_idle(run: Run, db: SessionDB) -> None:
    sqlite_of(db).write(lambda conn: conn.execute("UPDATE messages SET timestamp = 1000 WHERE session_id = ?", (ONE,)))
    words = ["sessions", "prune", "--older-than", "0", "-y"]
    assert run(*words).stdout == "No ended session matches.\n"
    assert run(*words, "--include-open").stdout == "1 sessions are deleted\n"
    assert ids(run) == [TWO]  # somebody may be in it


def test_stats_and_repair(run: Run, db: SessionDB) -> None:
    stats = json.loads(run("sessions", "stats", "--json").stdout)
    assert (stats["sessions"], stats["messages"], stats["by_source"]) == (2, 5, {"cli": 1, "cron": 1})
    done = run("sessions", "repair", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["lost"] == []


@pytest.mark.parametrize("words", [["show", "x"], ["delete", "x"], ["rename", "x", "t"], ["export"]])
def test_a_home_without_sessions_says_so_and_stays_empty(run: Run, home: Path, words: list[str]) -> None:
    done = run("sessions", *words)
    assert done.returncode == Exit.FAILED
    assert "hermes chat -q" in done.stderr
    assert list(home.iterdir()) == []


def test_an_unknown_session_is_one_sentence(run: Run, db: SessionDB) -> None:
    done = run("sessions", "show", "nope")
    assert (done.returncode, done.stderr) == (1, "error: there is no session 'nope'; see: hermes sessions list\n")


@pytest.mark.parametrize("words", [["sessions"], ["sessions", "browse"]])
def test_without_a_terminal_picking_is_a_list(run: Run, db: SessionDB, words: list[str]) -> None:
    assert run(*words).stdout == run("sessions", "list").stdout


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [("\r", TWO), ("\x1b[B\r", ONE), ("bread\r", ONE), ("nothing like it\r", None), ("\x03", None), ("cron\r", TWO)],
)
def test_a_session_is_picked_with_keys(db: SessionDB, keys: str, chosen: str | None) -> None:
    rows = db.list_sessions_rich(limit=10, order_by_last_active=True)
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        assert pick_session(db, rows, keys_from=pipe, screen=DummyOutput()) == chosen


def test_many_are_chosen_by_what_they_are(run: Run, db: SessionDB, home: Path) -> None:
    db.set_session_title(ONE, "Baking")

    def exported(*words: str) -> list[str]:
        return [json.loads(line)["id"] for line in run("sessions", "export", *words).stdout.splitlines()]

    assert exported() == [ONE, TWO]
    assert exported("--source", "cron") == exported("--min-messages", "3") == exported("--title", "")[1:] == [TWO]
    assert exported("--title", "bak") == exported("--max-messages", "2") == exported("--max-tool-calls", "0") == [ONE]
    assert exported("--older-than", "1d") == exported("--after", "2999-01-01") == exported("--model", "zz") == []
    assert exported("--newer-than", "1h", "--before", "2999-01-01T00:00") == [ONE, TWO]
    assert exported("--max-cost", "5") == []  # nobody knows what they cost
    assert run("sessions", "export", "--older-than", "soon").returncode == Exit.USAGE
    assert "nothing can match" in run("sessions", "export", "--min-tokens", "9", "--max-tokens", "1").stderr


def test_a_session_is_exported_to_be_read(run: Run, db: SessionDB, home: Path) -> None:
    (home / ".env").write_text("SOME_API_KEY=my-very-secret-key-0123\n")
    db.append_message(ONE, "user", "my-very-secret-key-0123 ```a```")
    page = run("sessions", "export", "--format", "md", "--redact").stdout
    assert page.startswith(f"# {ONE}\n\n- id: `{ONE}`")
    assert "## You\n\nHow do I bake bread?\n\n## Assistant\n\nWith flour and patience." in page
    assert "my-very-secret" not in page
    assert "a result" not in page
    assert "a result" in run("sessions", "export", "--format", "md", "--tools").stdout
    prompts = run("sessions", "export", "--only", "user-prompts", "--source", "cron").stdout.splitlines()
    assert [json.loads(line)["content"] for line in prompts] == ["量子コンピュータとは何ですか"]


def test_a_lineage_is_exported_and_comes_back(run: Run, db: SessionDB, tmp_path: Path) -> None:
    db.create_session("20260103_000000_cccccc", "cli", parent_session_id=ONE)
    run("sessions", "export", "line.jsonl", "--session-id", ONE, "--lineage", "logical")
    for each in ("20260103", ONE):
        run("sessions", "delete", each, "--yes")
    assert run("sessions", "import", "line.jsonl").stdout == "2 added, 0 were there already\n"


def test_archived_sessions_leave_the_list_but_not_the_search(run: Run, db: SessionDB) -> None:
    assert run("sessions", "archive").returncode == Exit.FAILED
    db.end_session(ONE, "cli_close")
    assert json.loads(run("sessions", "archive", "--source", "cli", "-y", "--json").stdout) == {
        "archived": 1,
        "sessions": [ONE],
    }
    assert ids(run) == [TWO]
    assert ids(run, "--archived") == [ONE]
    assert ONE in run("sessions", "search", "flour").stdout
    assert run("sessions", "prune", "--older-than", "0", "-y").stdout == "No ended session matches.\n"
    assert (
        run("sessions", "prune", "--older-than", "0", "--include-archived", "-y").stdout == "1 sessions are deleted\n"
    )
    assert json.loads(run("sessions", "optimize", "--json").stdout)["freed_bytes"] >= 0


def test_search_by_role_and_order(run: Run, db: SessionDB) -> None:
    db.append_message(TWO, "user", "flour again")

    def found(*words: str) -> list[str]:
        return [each["session_id"] for each in json.loads(run("sessions", "search", "flour", "--json", *words).stdout)]

    assert found("--sort", "newest") == [TWO, ONE]
    assert found("--sort", "oldest") == [ONE, TWO]
    assert found("--role", "user") == [TWO]


def test_a_beginning_that_fits_several_names_them(run: Run, db: SessionDB) -> None:
    done = run("sessions", "show", "2026010")
    assert done.returncode == Exit.FAILED
    assert ONE in done.stderr
    assert f'{TWO}  now  "量子コンピュータとは何ですか"' in done.stderr
    db.set_session_title(ONE, "Baking bread")
    assert "did you mean 'Baking bread'" in run("sessions", "show", "baking").stderr
    assert run("sessions", "show", "x" * 200).stderr.count("\n") == 1


def test_looking_at_the_store_changes_nothing(run: Run, home: Path) -> None:
    (home / "state.db").write_bytes(b"this is no database" * 500)
    done = run("sessions", "repair", "--check-only", "--json")
    assert (done.returncode, json.loads(done.stdout)["sound"]) == (Exit.FAILED, False)
    assert (home / "state.db").read_bytes().startswith(b"this is no database")


def test_old_sessions_go_by_themselves_where_that_is_asked_for(run: Run, db: SessionDB, home: Path) -> None:
    db.end_session(ONE, "cli_close")
    sqlite_of(db).write(lambda conn: conn.execute("UPDATE sessions SET ended_at = 1 WHERE id = ?", (ONE,)))
    words = ["chat", "-q", "Hello.", "--model", "scripted"]
    with ServerThread([says("Hi."), says("Hi."), says("Hi.")]) as server:
        run(*words, "--base-url", server.base_url)
        assert ONE in ids(run)
        run("config", "set", "sessions.auto_prune", "true")
        done = run(*words, "--base-url", server.base_url)
    assert (done.stdout, done.returncode) == ("Hi.\n", 0)
    assert "1 sessions older than 90 days were deleted" in done.stderr
    assert ONE not in ids(run)


def test_a_finished_run_closes_its_session_and_resuming_opens_it(run: Run, home: Path) -> None:
    with ServerThread([says("Hi."), says("Hi again.")]) as server:
        words = ["--model", "scripted", "--base-url", server.base_url]
        run("chat", "-q", "Hello.", *words)
        [row] = json.loads(run("sessions", "list", "--json").stdout)
        assert row["end_reason"] == "cli_close"
        assert run("chat", "--continue", "-q", "Again.", *words).stdout == "Hi again.\n"
    [row] = json.loads(run("sessions", "list", "--json").stdout)
    assert row["message_count"] == 4


def test_usage_tells_an_unknown_price_as_unknown(run: Run) -> None:
    with ServerThread([says("Hi.").with_usage(input_tokens=120, output_tokens=7)]) as server:
        run("chat", "-q", "Hello.", "--model", "scripted", "--base-url", server.base_url)
    used = json.loads(run("usage", "--json").stdout)
    assert [(m["model"], m["calls"], m["input_tokens"], m["output_tokens"]) for m in used["models"]] == [
        ("scripted", 1, 120, 7)
    ]
    assert used["unpriced"] == 1
    assert "unknown" in run("usage").stdout


def test_no_usage_yet_is_no_error(run: Run) -> None:
    assert run("usage").returncode == 0


def test_a_priced_turn_says_who_is_paid_how_and_by_which_prices(run: Run, home: Path) -> None:
    with ServerThread([says("One."), says("Two.")]) as server:
        address = server.base_url
        provider = {"base_url": address, "prices": {"m": {"input": 2.0, "output": 8.0}}}
        (home / "config.yaml").write_text(json.dumps({"providers": {"mine": provider}}))
        run("chat", "-q", "Hello", "--provider", "mine", "--model", "m")
        run("chat", "-q", "Hello", "--model", "m", "--base-url", address)
    with SessionDB(home / "state.db") as db:
        names = ("billing_provider", "billing_base_url", "billing_mode", "cost_source", "pricing_version")
        unpriced, priced = ([row[name] for name in names] for row in db.search_sessions())
    assert priced == ["mine", address, "per_token", "user_override", "user_override"]
    assert unpriced == [None] * 5


def test_the_tree_of_a_session_has_its_children_and_what_each_came_to(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("delegation: {max_spawn_depth: 2}\n")
    tasks = [{"goal": "Lead.", "role": "orchestrator"}, {"goal": "Say nothing."}]
    script = answering(
        {
            "Begin": [calls("delegate_task", tasks=tasks), says("Both are back.")],
            "Lead.": [calls("delegate_task", goal="Dig."), says("Led.")],
            "Dig.": [calls("terminal", command="echo hi"), says("Dug.")],
            "Say nothing.": [says("")],
        }
    )
    with ServerThread(script) as server:
        words = ("--provider", "custom", "--model", "m", "--base-url", server.base_url)
        assert run("chat", "-q", "Begin", *words).stdout.strip() == "Both are back."
    (root,) = ids(run)
    tree = json.loads(run("sessions", "tree", root, "--json").stdout)
    lead, silent = sorted(tree["children"], key=lambda child: str(child["goal"]))
    (dig,) = lead["children"]
    assert (tree["id"], tree["source"], tree["goal"]) == (root, "cli", "Begin")
    assert [(one["goal"], one["source"], one["state"]) for one in (lead, silent, dig)] == [
        ("Lead.", "subagent", "completed"),
        ("Say nothing.", "subagent", "failed"),
        ("Dig.", "subagent", "completed"),
    ]
    assert (dig["tool_calls"], dig["model_calls"], dig["children"]) == (1, 2, [])
    assert dig["tokens"] > 0
    lines = run("sessions", "tree", root).stdout.splitlines()
    assert len(lines) == 4
    assert next(line for line in lines if "Dig." in line).startswith(f"    {dig['id']}  Dig.  (subagent, completed, 1 ")
    below = run("sessions", "tree", lead["id"]).stdout.splitlines()
    assert [line.split()[0] for line in below] == [lead["id"], dig["id"]]
    assert ids(run) == [root]  # children are in no list
    missing = run("sessions", "tree", "nobody")
    assert (missing.returncode, missing.stdout) == (Exit.FAILED, "")
    assert "there is no session 'nobody'" in missing.stderr
