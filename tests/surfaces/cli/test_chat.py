"""`hermes chat -q` against a scripted provider: the real command, the real store, the real tools."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, fault, says
from hermes.testing.server import ScriptedServer, ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001"
)


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def sent(server: ScriptedServer, number: int = 0) -> list[dict[str, object]]:
    body = server.requests[number].json
    assert isinstance(body, dict)
    messages: list[dict[str, object]] = body["messages"]
    return messages


def _plain(
    words: list[str | bytes], environ: dict[str, str], stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(words, input=stdin, env=environ, capture_output=True, timeout=60, check=False)


def test_stdout_is_the_answer_and_nothing_else(run: Run) -> None:
    with ServerThread([says("Forty-two.")]) as server:
        done = run("chat", "-q", "What is it?", *model(server))
    assert (done.stdout, done.stderr, done.returncode) == ("Forty-two.\n", "", Exit.ANSWERED)
    assert sent(server)[-1] == {"role": "user", "content": "What is it?"}


def test_the_settings_of_the_file_are_used(run: Run, home: Path) -> None:
    with ServerThread([says("Yes.")]) as server:
        (home / "config.yaml").write_text(
            f"model: {{default: scripted, base_url: '{server.base_url}', api_key: '${{MY_KEY}}'}}\n"
        )
        (home / ".env").write_text("MY_KEY=sk-from-env-file\n")
        done = run("chat", "-q", "Is it?")
    assert (done.stdout, done.returncode) == ("Yes.\n", 0)
    assert server.requests[0].headers["authorization"] == "Bearer sk-from-env-file"


def test_what_is_piped_in_is_added_to_the_question(run: Run) -> None:
    with ServerThread([says("A diff."), says("A file.")]) as server:
        run("chat", "-q", "What is this?", *model(server), stdin="+ one\n- two\n")
        run("chat", *model(server), stdin="just this")
    assert sent(server)[-1]["content"] == "What is this?\n\n+ one\n- two"
    assert sent(server, 1)[-1]["content"] == "just this"


def test_one_shot_prints_only_the_final_text(run: Run) -> None:
    with ServerThread([says("Short.")]) as server:
        done = run("-z", "Say it.", *model(server))
    assert (done.stdout, done.stderr, done.returncode) == ("Short.\n", "", 0)


def test_a_picture_goes_with_the_question(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)
    with ServerThread([says("A dot.")]) as server:
        done = run("chat", "-q", "What is it?", "--image", "dot.png", *model(server))
    assert done.stdout == "A dot.\n"
    content = sent(server)[-1]["content"]
    assert isinstance(content, list)
    assert [part["type"] for part in content] == ["text", "image_url"]
    assert content[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_events_are_json_lines_with_the_result_last(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with ServerThread([calls("read_file", path="a.txt"), says("It says hello.")]) as server:
        done = run("chat", "-q", "Read a.txt", "--json", *model(server))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "turn_started"
    assert kinds[-2:] == ["turn_finished", "result"]
    assert {"call_started", "call_finished", "text_delta"} <= set(kinds)
    assert events[-1]["final_response"] == "It says hello."
    assert (events[-1]["exit_code"], done.returncode) == (0, 0)
    assert done.stderr == ""


def test_a_session_goes_on(run: Run) -> None:
    with ServerThread([says("Hello Ann."), says("Ann."), says("Still Ann.")]) as server:
        first = json.loads(run("chat", "-q", "I am Ann.", "--json", *model(server)).stdout.splitlines()[-1])
        run("chat", "--resume", first["session_id"], "-q", "Who am I?", *model(server))
        done = run("chat", "--continue", "-q", "Sure?", *model(server))
    assert done.stdout == "Still Ann.\n"
    said = [message["content"] for message in sent(server, 2) if message["role"] == "user"]
    assert said == ["I am Ann.", "Who am I?", "Sure?"]


def test_toolsets_named_for_a_session_that_exists_hold_for_it(run: Run, tmp_path: Path) -> None:
    replies = [says("Ready."), calls("terminal", command="touch made"), says("It is off."), says("Fine.")]
    with ServerThread(replies) as server:
        begun = run("chat", "-q", "Hello", "--json", "-t", "file,terminal", *model(server))
        session = json.loads(begun.stdout.splitlines()[-1])["session_id"]
        done = run("chat", "--resume", session, "-t", "file", "-q", "Make it", *model(server))
        later = run("chat", "--resume", session, "-q", "And now?", *model(server))
    assert done.stdout == "It is off.\n"
    assert not (tmp_path / "made").exists()
    off = "note: switched off by the toolsets of this run, and not run if the model asks: process, terminal"
    assert off in done.stderr.splitlines()
    assert server.requests[1].json["tools"] == server.requests[0].json["tools"]
    assert "switched off by" not in later.stderr


def test_an_option_that_the_prompt_of_a_session_cannot_take_any_more_is_told(run: Run) -> None:
    with ServerThread([says("Ready."), says("Yes."), says("Yes.")]) as server:
        begun = run("chat", "-q", "Hello", "--json", *model(server))
        session = json.loads(begun.stdout.splitlines()[-1])["session_id"]
        done = run("chat", "--resume", session, "--pass-session-id", "-q", "Go on", *model(server))
    assert done.stdout == "Yes.\n"
    assert "so pass_session_id changes nothing in it" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--resume", "nope"], "there are no sessions yet"),
        (["--continue"], "there are no sessions yet"),
    ],
)
def test_a_session_that_is_not_there_is_exit_code_one(run: Run, words: list[str], told: str) -> None:
    done = run("chat", "-q", "x", *words, "--model", "m", "--base-url", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (Exit.FAILED, "")
    assert told in done.stderr


def test_an_unknown_session_among_others_is_exit_code_one(run: Run) -> None:
    with ServerThread([says("Hi.")]) as server:
        run("chat", "-q", "Hello.", *model(server))
        unknown = run("chat", "-q", "x", "--resume", "nope", *model(server))
        elsewhere = run("chat", "-q", "x", "--continue", "--source", "other", *model(server))
    assert (unknown.returncode, elsewhere.returncode) == (Exit.FAILED, Exit.FAILED)
    assert unknown.stderr == "error: there is no session 'nope'; see: hermes sessions list\n"
    assert "no earlier session from 'other'" in elsewhere.stderr


def test_no_answer_is_not_success(run: Run) -> None:
    with ServerThread([says("")] * 8) as server:
        done = run("chat", "-q", "Say nothing.", *model(server))
    assert (done.returncode, done.stdout) == (Exit.EMPTY, "")
    assert "without an answer" in done.stderr


def test_a_declined_answer_has_its_own_code(run: Run) -> None:
    with ServerThread([says("").finishing("content_filter")]) as server:
        done = run("chat", "-q", "Something bad.", *model(server))
    assert (done.returncode, done.stdout) == (Exit.REFUSED, "")


def test_used_up_calls_have_their_own_code_and_keep_the_summary(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with ServerThread([calls("read_file", path="a.txt"), says("I read a file.")]) as server:
        done = run("chat", "-q", "Go on and on.", "--max-turns", "1", *model(server))
    assert (done.returncode, done.stdout) == (Exit.BUDGET, "I read a file.\n")
    assert "--max-turns" in done.stderr


def test_a_wrong_key_is_one_sentence(run: Run) -> None:
    with ServerThread([fault("unauthorized")]) as server:
        done = run("chat", "-q", "x", *model(server))
    assert (done.returncode, done.stdout) == (Exit.PROVIDER, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_an_endpoint_that_is_not_there_is_one_sentence(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("agent: {api_max_retries: 1}\n")
    done = run("chat", "-q", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert (done.returncode, done.stdout) == (Exit.PROVIDER, "")
    assert "127.0.0.1:9" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_server_on_this_machine_that_is_not_there_is_not_waited_for(run: Run, tmp_path: Path) -> None:
    words = ("chat", "-v", "-q", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    done = run(*words, HERMES_HOME=str(tmp_path / "new"))
    assert done.returncode == Exit.PROVIDER
    assert "trying again" not in done.stderr
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_tool_file_that_does_not_load_is_told_once(run: Run, home: Path) -> None:
    (home / "tools").mkdir()
    (home / "tools" / "mine.py").write_text("from hermes.tools.decorator import tool\n\n@tool\ndef f(): ...\n")
    with ServerThread([says("Hi.")]) as server:
        done = run("chat", "-q", "Hello.", "--model", "scripted", "--base-url", server.base_url)
    assert done.stdout == "Hi.\n"
    assert done.stderr.count("mine.py is left out: line 3") == 1
    assert 'write @tool(toolset="NAME")' in done.stderr


def test_no_model_is_one_sentence_with_a_next_step(run: Run) -> None:
    done = run("chat", "-q", "x")
    assert done.returncode == Exit.FAILED
    assert "hermes model" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["chat"], Exit.USAGE, "Nothing was asked"),
        ([], Exit.USAGE, "Nothing was asked"),
        (["chat", "-q", "x", "--max-turns", "0"], Exit.USAGE, "--max-turns"),
        (["-z", "x", "--provider", "p"], Exit.USAGE, "--provider needs --model"),
        (["chat", "-q", "x", "-r", "a", "-c", "b"], Exit.USAGE, "use one of them"),
        (["chat", "-q", "x", "--worktree"], Exit.FAILED, "--worktree needs a git repository"),
        (["chat", "-q", "x", "--image", "gone.png"], Exit.FAILED, "cannot read the image 'gone.png'"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_sent(run: Run, words: list[str], code: Exit, told: str) -> None:
    done = run(*words, *([] if words in ([], ["chat"]) else ["--base-url", "http://127.0.0.1:9"]))
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_odd_bytes_in_the_question_are_no_trouble(environ: dict[str, str]) -> None:
    with ServerThread([says("Fine."), says("Fine.")]) as server:
        words: list[str | bytes] = [sys.executable, "-m", "hermes.surfaces.cli.main", "chat", *model(server)]
        piped = _plain(words, environ, stdin=b"a\x00b\xff\xfe")
        spoken = _plain([*words, "-q", b"caf\xe9 \xf0\x9f\x98\x80"], environ)
    assert (piped.returncode, piped.stdout) == (0, b"Fine.\n")
    assert (spoken.returncode, spoken.stdout) == (0, b"Fine.\n")


def test_with_nobody_to_ask_a_command_is_denied_and_the_turn_goes_on(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    with ServerThread([calls("terminal", command="rm -rf kept && touch made"), says("I may not.")]) as server:
        done = run("chat", "-q", "Touch it.", *model(server))
    assert (done.returncode, done.stdout) == (0, "I may not.\n")
    assert ((tmp_path / "kept").is_dir(), (tmp_path / "made").exists()) == (True, False)


def test_control_c_stops_the_turn_with_its_own_code(environ: dict[str, str], tmp_path: Path) -> None:
    with ServerThread([says("never").timed(latency_s=600)]) as server:
        words = [sys.executable, "-m", "hermes.surfaces.cli.main", "chat", "-q", "x", *model(server)]
        process = subprocess.Popen(
            words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 30
        while not server.requests and time.monotonic() < deadline:
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (Exit.CANCELLED, "")
    assert "go on with: hermes chat --resume" in stderr
    assert "Traceback" not in stderr


def test_a_reader_of_events_that_goes_away_ends_the_turn(environ: dict[str, str]) -> None:
    with ServerThread([says("a b c d e f g h").timed(chunk_size=1, chunk_delay_s=0.05)]) as server:
        words = [sys.executable, "-m", "hermes.surfaces.cli.main", "chat", "-q", "x", "--json", *model(server)]
        process = subprocess.Popen(
            words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=30)
        stderr = process.stderr.read()
        process.stderr.close()
    assert (process.returncode, stderr) == (Exit.BROKEN_PIPE, b"")


def test_records_of_the_turn_are_logged_with_its_session(run: Run, home: Path) -> None:
    with ServerThread([fault("server_error"), says("Now.")]) as server:
        done = run("chat", "-q", "x", "--json", *model(server))
    assert done.returncode == 0
    log = home / "logs" / "agent.log"
    if log.exists():
        session = json.loads(done.stdout.splitlines()[-1])["session_id"]
        assert all(f"[{session}]" in line for line in log.read_text().splitlines() if line[:1].isdigit())


def test_ignoring_the_users_settings_leaves_them_all_out(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("agent: {max_turn: 5}\n")
    with ServerThread([says("Hi.")]) as server:
        refused = run("chat", "-q", "x", *model(server))
        done = run("chat", "-q", "x", "--ignore-user-config", *model(server))
    assert "did you mean 'agent.max_turns'" in refused.stderr
    assert (done.stdout, done.stderr, done.returncode) == ("Hi.\n", "", 0)


def test_ten_megabytes_of_text_are_no_trouble(run: Run) -> None:
    with ServerThread([says("Long.")]) as server:
        done = run("chat", "-q", "How long?", *model(server), stdin="x" * 10_000_000)
    assert (done.returncode, done.stdout) == (0, "Long.\n")
    assert len(str(sent(server)[-1]["content"])) > 10_000_000


@pytest.mark.parametrize(
    ("config", "words", "offered"),
    [
        ("", ["--toolsets", "terminal"], False),
        ("toolsets: [terminal]\n", [], False),
        ("toolsets: [terminal]\nplatform_toolsets: {cli: [file]}\n", [], True),
        ("toolsets: [terminal]\n", ["--toolsets", "file"], True),
        ("agent: {disabled_toolsets: [file]}\n", [], False),
    ],
)
def test_the_model_is_offered_the_toolsets_asked_for(
    run: Run, home: Path, config: str, words: list[str], offered: bool
) -> None:
    (home / "config.yaml").write_text(config)
    with ServerThread([says("Hi.")]) as server:
        done = run("chat", "-q", "x", *words, *model(server))
    assert done.returncode == 0, done.stderr
    names = [tool["function"]["name"] for tool in server.requests[0].json.get("tools", [])]
    assert ("read_file" in names) == offered


def test_a_toolset_of_the_file_that_is_none_is_told_and_the_turn_goes_on(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("toolsets: [file, nosuch]\nagent: {disabled_toolsets: [wbe]}\n")
    with ServerThread([says("Hi."), says("Hi."), says("Hi.")]) as server:
        done = run("chat", "-q", "x", *model(server))
        chosen = run("chat", "-q", "x", "--toolsets", "file", *model(server))
        quiet = run("chat", "-q", "x", "--quiet", *model(server))
    assert (done.returncode, done.stdout) == (0, "Hi.\n")
    assert "config.yaml names a toolset 'nosuch' that does not exist; see: hermes tools\n" in done.stderr
    assert "config.yaml names a toolset 'wbe' that does not exist; see: hermes tools\n" in done.stderr
    assert "nosuch" not in chosen.stderr
    assert quiet.stderr == ""


def test_without_asking_commands_run_but_hard_rules_hold(run: Run, tmp_path: Path) -> None:
    script = [
        calls("terminal", command="rm -rf gone && touch made"),
        calls("terminal", command="rm -rf /"),
        says("Done."),
    ]
    with ServerThread(script) as server:
        done = run("chat", "-q", "Do it.", "--yolo", *model(server))
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert (tmp_path / "made").exists()
    assert "hardline" in str(sent(server, 2)[-1]["content"])


def test_tools_that_keep_failing_have_their_own_code(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("tool_loop_guardrails: {hard_stop_enabled: true}\n")
    with ServerThread([calls("read_file", path="gone.txt")] * 8) as server:
        done = run("chat", "-q", "Read it.", *model(server))
    assert done.returncode == Exit.TOOL
    assert done.stdout.startswith("I stopped because")
    assert "tools kept failing" in done.stderr


def test_an_answer_after_a_failure_is_flagged(run: Run, tmp_path: Path) -> None:
    script = [calls("terminal", command="exit 3"), says("All tests pass.")]
    mended = [calls("terminal", command="exit 3"), calls("terminal", command="true"), says("They pass now.")]
    with ServerThread([*script, *script, *script, *mended]) as server:
        plain = run("chat", "-q", "Test it.", *model(server))
        told = run("chat", "-q", "Test it.", "--json", *model(server))
        quiet = run("chat", "-q", "Test it.", "-Q", *model(server))
        fine = run("chat", "-q", "Mend it.", *model(server))
    assert (plain.stdout, plain.returncode) == ("All tests pass.\n", 0)
    assert plain.stderr == "note: the last command ended with exit code 3: exit 3\n"
    assert json.loads(told.stdout.splitlines()[-1])["unproven"] == ["the last command ended with exit code 3: exit 3"]
    assert quiet.stderr == fine.stderr == ""


def test_an_answer_after_a_file_that_could_not_be_read_is_flagged(run: Run) -> None:
    with ServerThread([calls("read_file", path="gone.txt"), says("It says hello.")]) as server:
        done = run("chat", "-q", "Read it.", *model(server))
    assert done.stdout == "It says hello.\n"
    assert done.stderr.startswith("note: the last call of read_file did not succeed: ")
    assert "gone.txt" in done.stderr
    assert "{" not in done.stderr  # the words of the error, not its JSON


def test_a_budget_of_the_command_line_ends_the_turn(run: Run, home: Path) -> None:
    again = calls("todo", todos=[]).with_usage(input_tokens=10, output_tokens=1000)
    with ServerThread([again, again, again]) as server:
        prices = "{scripted: {input: 0, output: 70}}"
        (home / "config.yaml").write_text(f"providers: {{mine: {{base_url: '{server.base_url}', prices: {prices}}}}}\n")
        words = ("--provider", "mine", "--model", "scripted")
        done = run("chat", "-q", "Go on.", "--max-budget", "0.1", *words)
        wrong = run("chat", "-q", "Go on.", "--max-budget", "0", *words)
    assert (done.returncode, len(server.requests)) == (Exit.BUDGET, 2)
    assert "the cap of this session is reached" in done.stderr
    assert wrong.returncode == Exit.USAGE
