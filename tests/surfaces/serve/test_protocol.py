"""Sessions over the wire: a turn with its events, questions, commands, settings, errors."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import answering
from tests.surfaces.serve.conftest import WAIT_S, Lines, Serve

UsesModel = Callable[..., None]
SECONDS = "300.25"  # of a sleep that is no other's


def test_a_turn_is_told_event_by_event_and_a_second_client_sees_the_same(
    serve: Serve, uses_model: UsesModel, tmp_path: Path
) -> None:
    script = answering({"Count": [calls("terminal", command="echo 1 2 3"), says("Three.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with serve() as served:
            one, other = served.client(), served.client()
            assert one.event("gateway.ready")["payload"]["skin"]["name"] == "default"
            made = one.ask("session.create", cols=80, cwd=str(tmp_path))
            live, stored = made["session_id"], made["stored_session_id"]
            assert (len(live), made["messages"], made["info"]["cwd"]) == (8, [], str(tmp_path))
            resumed = other.ask("session.attach", session_id=stored)
            assert resumed["session_id"] == live
            assert one.ask("prompt.submit", session_id=live, text="Count")["status"] == "streaming"
            one.event("message.start", live)
            started = one.event("tool.start")["payload"]
            assert started["context"] == "terminal echo 1 2 3"
            done = one.event("tool.complete")["payload"]
            assert (done["tool_id"], done["result"]["status"]) == (started["tool_id"], "ok")
            assert "1 2 3" in done["result"]["content"]
            ended = one.event("message.complete")["payload"]
            assert (ended["text"], ended["status"]) == ("Three.", "complete")
            assert ended["usage"]["calls"] >= 2  # a title may be asked for beside it
            info = one.event("session.info")["payload"]
            assert "terminal" in {name for names in info["tools"].values() for name in names}
            kinds = []
            while "turn_ended" not in kinds:
                kinds.append(other.event("host.event")["payload"]["event"]["type"])
            assert [kind for kind in kinds if kind.startswith(("turn", "call_s", "call_f", "message"))] == [
                "message_taken",
                "turn_started",
                "call_started",
                "call_finished",
                "turn_ended",
            ]
            again = served.client().ask("session.resume", session_id=stored)
            assert again["resumed"] == stored
            assert again["messages"] == [
                {"role": "user", "text": "Count"},
                {"role": "tool", "name": "terminal", "context": "terminal echo 1 2 3"},
                {"role": "assistant", "text": "Three."},
            ]
            assert again["message_count"] == 3


def test_questions_are_answered_by_whoever_is_first_and_wait_for_whoever_comes(
    serve: Serve, uses_model: UsesModel, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "file").write_text("words")
    script = answering(
        {
            "Clean": [calls("terminal", command="rm -rf gone"), says("Not done.")],
            "Ask": [calls("clarify", question="Which?", choices=["a", "b"]), says("So be it.")],
        }
    )
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with serve() as served:
            one = served.client()
            made = one.ask("session.create", cwd=str(tmp_path))
            live, stored = made["session_id"], made["stored_session_id"]
            assert one.ask("approval.respond", session_id=live, choice="once") == {"resolved": 0}
            one.ask("prompt.submit", session_id=live, text="Clean up")
            asked = one.event("approval.request")["payload"]
            assert asked["command"] == "rm -rf gone"
            assert asked["id"]
            assert asked["allow_permanent"] == ("always" in asked["choices"])
            late = served.client()
            late.ask("session.resume", session_id=stored)
            assert late.event("approval.request")["payload"]["id"] == asked["id"]
            assert late.refused("approval.respond", session_id=live, choice="perhaps") == 4002
            assert late.ask("approval.respond", session_id=live, choice="deny") == {"resolved": 1}
            assert one.event("question.answered")["payload"]["request_id"] == asked["id"]
            assert one.event("message.complete")["payload"]["text"] == "Not done."
            assert (tmp_path / "gone" / "file").exists()
            one.ask("prompt.submit", session_id=live, text="Ask me")
            question = one.event("clarify.request")["payload"]
            assert question["choices"] == ["a", "b"]
            assert one.refused("clarify.respond", request_id="00000000", answer="a") == 4009
            assert one.ask("clarify.respond", request_id=question["request_id"], answer="b") == {"status": "ok"}
            assert '"b"' in one.event("tool.complete")["payload"]["result"]["content"]
            assert one.ask("sudo.respond", request_id="00000000", password="x") == {"status": "expired"}


def test_busy_modes_steer_interrupt_and_keys(serve: Serve, uses_model: UsesModel, tmp_path: Path) -> None:
    script = answering({"Wait": [calls("terminal", command="sleep 30"), says("Waited.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with serve() as served:
            one = served.client()
            live = one.ask("session.create", cwd=str(tmp_path))["session_id"]
            assert one.refused("session.steer", session_id=live, text="left") == 4009
            one.ask("prompt.submit", session_id=live, text="Wait")
            one.event("tool.start")
            assert one.ask("session.steer", session_id=live, text="left") == {"status": "queued", "text": "left"}
            assert one.refused("session.compress", session_id=live) == 4009
            for _ in range(2):
                found = one.ask("prompt.submit", session_id=live, text="Next", key="k1")
                assert found == {"status": "queued", "key": "k1"}
            assert one.ask("session.interrupt", session_id=live) == {"status": "interrupted"}
            assert one.event("tool.complete")["payload"]["result"]["status"] != "ok"
            assert one.event("message.complete")["payload"]["status"] == "interrupted"
            assert one.ask("prompt.release", session_id=live)["status"] == "streaming"
            answers = [one.event("message.complete")["payload"]["text"] for _ in range(2)]
            assert "I was asked: Next" in answers  # the words to steer with are asked as well, once each
            assert sum("Next" in text for text in answers) == 1


def test_methods_between_turns(serve: Serve, uses_model: UsesModel, tmp_path: Path) -> None:
    with ServerThread(answering({})) as model:
        uses_model(model.base_url)
        with serve() as served:
            one = served.client()
            made = one.ask("session.create", cwd=str(tmp_path), title="My work")
            live, stored = made["session_id"], made["stored_session_id"]
            assert one.ask("session.title", session_id=live) == {"title": "My work", "session_key": stored}
            assert one.refused("session.title", session_id=live, title="  ") == 4021
            for text in ("one", "two"):
                one.ask("prompt.submit", session_id=live, text=text)
                one.event("message.complete")
            assert one.ask("session.history", session_id=live)["count"] == 4
            assert one.ask("session.undo", session_id=live)["removed"] == 2
            branched = one.ask("session.branch", session_id=live, name="Other")
            assert (branched["parent"], branched["title"]) == (stored, "Other")
            rows = one.ask("session.list", limit=5)["sessions"]
            assert {row["title"] for row in rows} == {"My work", "Other"}
            assert one.ask("session.most_recent")["title"] in ("My work", "Other")
            assert Path(one.ask("session.save", session_id=live)["file"]).is_file()
            assert "idle" in one.ask("session.status", session_id=live)["output"]
            assert one.ask("session.usage", session_id=live)["calls"] == 2
            assert one.ask("slash.exec", session_id=live, command="/title")["output"] == "My work"
            assert one.refused("slash.exec", session_id=live, command="") == 4004
            assert one.refused("slash.exec", session_id=live, command="/nonsense") == 4002
            assert one.ask("command.resolve", name="/fork")["canonical"] == "/branch"
            assert one.refused("command.resolve", name="nonsense") == 4011
            pairs = one.ask("commands.catalog")["pairs"]
            assert "/help" in {name for name, _ in pairs}
            items = one.ask("complete.slash", text="/busy q", session_id=live)
            assert (items["items"][0]["text"], items["replace_from"]) == ("queue", 6)
            (tmp_path / "some folder").mkdir()
            found = one.ask("complete.path", word="some", session_id=live)["items"]
            assert [each["text"] for each in found] == ["some folder/"]
            assert one.ask("config.set", session_id=live, key="busy", value="steer")["value"] == "steer"
            assert one.ask("config.get", session_id=live, key="busy") == {"value": "steer"}
            assert one.ask("config.set", key="agent.max_turns", value=7)["value"] == 7
            assert one.ask("config.get", key="agent.max_turns")["value"] == 7
            assert one.refused("config.get", key="agent.nonsense") == 4002
            assert one.ask("setup.status") == {"provider_configured": True}
            assert one.refused("session.delete", session_id=stored) == 4023
            assert one.ask("session.close", session_id=live) == {"closed": True}
            assert one.refused("session.history", session_id=live) == 4001
            assert one.ask("session.delete", session_id=stored) == {"deleted": stored}
            assert one.refused("session.resume", session_id=stored) == 4007
            assert one.refused("session.resume") == 4006
            assert one.refused("session.delete", session_id="") == 4006


def test_compression_answers_with_its_figures(serve: Serve, uses_model: UsesModel, tmp_path: Path) -> None:
    with ServerThread(answering({})) as model:
        uses_model(model.base_url)
        with serve() as served:
            one = served.client()
            live = one.ask("session.create", cwd=str(tmp_path))["session_id"]
            for number in range(12):
                one.ask("prompt.submit", session_id=live, text=f"number {number} " + "words " * 300)
                one.event("message.complete")
            stored = one.ask("session.title", session_id=live)["session_key"]
            done = one.ask("session.compress", session_id=live, focus_topic="words")
            assert done["status"] == "compressed", done
            assert done["removed"] == done["before_messages"] - done["after_messages"] > 0
            assert done["usage"]["compressions"] == 1
            kinds = [one.event("status.update")["payload"]["kind"]]
            while kinds[-1] != "ready":
                kinds.append(one.event("status.update")["payload"]["kind"])
            assert "compressing" in kinds
            assert one.ask("session.title", session_id=live)["session_key"] != stored
            one.ask("prompt.submit", session_id=live, text="And now?")
            assert one.event("message.complete")["payload"]["text"].startswith("I was asked: And now?")
            assert served.client().ask("session.resume", session_id=stored)["session_id"] == live


def test_stdio_ends_with_stdin_and_says_nothing_but_lines(
    environ: dict[str, str], uses_model: UsesModel, tmp_path: Path
) -> None:
    script = answering({"Wait": [calls("terminal", command=f"sleep {SECONDS}"), says("Waited.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        process = subprocess.Popen(
            [sys.executable, "-m", "hermes", "serve", "--stdio"],
            env=environ,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        given = process.stdin

        def send(data: bytes) -> None:
            given.write(data)
            given.flush()

        client = Lines(send, iter(process.stdout))
        live = client.ask("session.create")["session_id"]
        client.ask("prompt.submit", session_id=live, text="Wait")
        client.event("tool.start")
        running = _sleepers()
        given.close()
        closed = client.is_closed()
        assert process.wait(WAIT_S) == 0
        process.stdout.close()
        assert closed
        assert not _alive(running)


def _sleepers() -> set[int]:
    """The processes of the command, as soon as they are there."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        found = {int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit() and _sleeps(folder)}
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("the command did not start")


def _sleeps(folder: Path) -> bool:
    try:
        return (folder / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", SECONDS.encode()]
    except OSError:
        return False


def _alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if _sleeps(Path(f"/proc/{pid}"))}


def test_status_stop_one_per_home_and_idle_end(
    serve: Serve, environ: dict[str, str], uses_model: UsesModel, tmp_path: Path
) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "hermes", "serve", *words],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )

    uses_model("http://127.0.0.1:9/v1")
    assert run("--status").returncode == 1
    with serve() as served:
        told = run("--status")
        assert (told.returncode, f"pid {served.process.pid}" in told.stdout) == (0, True)
        second = run()
        assert (second.returncode, "runs for this home already" in second.stderr) == (1, True)
        assert "has ended" in run("--stop").stdout
        assert served.process.wait(WAIT_S) == 0
        assert not served.folder.is_held
    with serve("--idle", "0.3") as served:
        assert served.process.wait(WAIT_S) == 0
    with serve("--stay", "--idle", "0.1") as served:
        assert served.client().ask("server.status")["stays"] is True
        os.kill(served.process.pid, signal.SIGTERM)
        assert served.process.wait(WAIT_S) == 0


def test_words_to_a_session_that_has_no_rows_yet_outlive_the_server(
    serve: Serve, uses_model: UsesModel, tmp_path: Path
) -> None:
    with ServerThread(answering({})) as model:
        uses_model(model.base_url)
        with serve() as served:
            made = served.client().ask("session.attach")
            served.process.kill()
            served.process.wait(WAIT_S)
        with serve() as served:
            one = served.client()
            back = one.ask("session.attach", session_id=made["stored_session_id"], after=made["after"])
            assert back["stored_session_id"] == made["stored_session_id"]
            one.ask("prompt.submit", session_id=back["session_id"], text="Hello")
            while one.event("host.event")["payload"]["event"]["type"] != "turn_ended":
                pass
            assert one.refused("session.attach", session_id="20000101_000000_abcdef") == 4007
