"""`hermes doctor` says what to do; `hermes logs` finds the right records."""

import json
import logging
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.host.doctor import CHECKS
from hermes.host.logs import session_tag, start_logging, stop_logging
from hermes.state import SessionDB
from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import calls, fault, says
from hermes.testing.server import ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_broken_skills_and_idle_hooks_are_found(run: Run, home: Path) -> None:
    for name, text in (("good", "Do it."), ("bad", "---\nx: [\n---\n")):
        (home / "skills" / name).mkdir(parents=True)
        (home / "skills" / name / "SKILL.md").write_text(text)
    (home / "config.yaml").write_text("hooks: {pre_tool_call: [{command: guard}]}\n")
    told = run("doctor", "extensions").stdout
    assert "✓ 1 skill\n" in told
    assert "no valid YAML" in told
    assert "0 of 1 hooks may run" in told
    assert "the hook 'guard' (pre_tool_call) does not run" in told
    (home / "config.yaml").write_text("hooks: {pre_tool_call: [{command: ''}]}\n")
    assert "a hook has no command" in run("doctor", "extensions").stdout


def test_doctor_ends_with_the_commands_to_run(run: Run, home: Path) -> None:
    home.chmod(0o755)
    done = run("doctor", "home", "model")
    assert done.returncode == Exit.FAILED
    assert "no model is configured" in done.stdout
    assert done.stdout.endswith("To do:\n  hermes doctor --fix\n  hermes model\n")


def test_doctor_mends_what_is_safe(run: Run, home: Path) -> None:
    home.chmod(0o755)
    (home / ".env").write_text("A=1\n")
    done = run("doctor", "--fix", "home", "--json")
    assert len(json.loads(done.stdout)["fixed"]) == 2
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600


def findings(run: Run, *words: str) -> dict[str, list[tuple[str, str]]]:
    checks = json.loads(run("doctor", "--json", *words).stdout)["checks"]
    return {name: [(each["status"], each["text"]) for each in found] for name, found in checks.items()}


def test_doctor_asks_the_server_on_this_machine(run: Run, home: Path) -> None:
    with ServerThread([]) as server:
        where = server.base_url
        (home / "config.yaml").write_text(f"model: {{default: scripted, base_url: '{where}'}}\n")
        done = run("doctor", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (0, True)
    assert told["checks"]["model"][0]["text"] == f"scripted at {where} answers"
    assert set(told["checks"]) == set(CHECKS.names())
    gone = run("doctor", "model")
    assert gone.returncode == Exit.FAILED
    assert gone.stdout.endswith("To do:\n  hermes model\n")


def test_doctor_asks_nobody_elsewhere_unless_told_to(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: {default: m, provider: openrouter}\n")
    (home / ".env").write_text("OPENROUTER_API_KEY=sk-0123456789abcdef\n")
    [(status, text), (_, keys)] = findings(run, "model")["model"]
    assert (status, "not asked; hermes doctor --online asks it" in text) == ("ok", True)
    assert keys == "keys are set for OpenRouter"


def test_doctor_names_a_missing_key_and_a_bad_fallback(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text(
        "model: {default: m, provider: openrouter}\nfallback_providers: [{provider: nobody, model: x}]\n"
    )
    found = findings(run, "model")["model"]
    assert [status for status, _ in found] == ["problem", "problem"]
    assert "OpenRouter needs a key" in found[0][1]
    assert found[1][1].startswith("fallback: ")
    assert run("doctor", "model").stdout.endswith("  hermes config set OPENROUTER_API_KEY VALUE\n  hermes fallback\n")


def test_doctor_knows_what_commands_run_in(
    run: Run, home: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (home / "config.yaml").write_text("terminal: {backend: singularity}\n")
    folder, planted = tmp_path_factory.mktemp("bin"), tmp_path / "bin"
    planted.mkdir()
    for name in ("bash", "sh"):
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    (planted / "git").symlink_to("/bin/sh")
    path = f"{planted}:{folder}"  # a git that lies in the workspace is none
    checks = json.loads(run("doctor", "--json", "terminal", "programs", PATH=path).stdout)["checks"]
    told = {each["text"]: each["next_step"] for each in checks["terminal"] + checks["programs"]}
    assert told["terminal.backend is 'singularity', and apptainer or singularity is missing"] == "install apptainer"
    assert told["git is missing; worktrees and checkpoints need it"] == "install git"
    (home / "config.yaml").write_text("terminal: {backend: local, sandbox: false}\n")
    assert ("warning", "commands are not sandboxed (terminal.sandbox is off)") in findings(run, "terminal")["terminal"]


def test_doctor_tells_what_was_kept_aside_and_what_was_logged(run: Run, home: Path) -> None:
    (home / "logs").mkdir(mode=0o700)
    (home / "logs" / "errors.log").write_text(
        "2001-01-01 00:00:00,000 ERROR [-] hermes: old\n2999-01-01 00:00:00,000 ERROR [-] hermes: new\n    Traceback\n"
    )
    with SessionDB(home / "state.db") as db:
        db.create_session("s", "cli")
    (home / "state.db.damaged-20260101").write_bytes(b"")
    found = findings(run, "running", "store")
    assert ("warning", "1 record of the last day in errors.log") in found["running"]
    assert [status for status, text in found["store"] if "kept aside" in text] == ["warning"]
    assert ("ok", "every step survives the loss of power") in found["store"]


def test_doctor_names_tool_files_that_do_not_load(run: Run, home: Path) -> None:
    (home / "tools").mkdir()
    (home / "tools" / "mine.py").write_text("from tools.registry import registry\nregistry.register(\n")
    found = findings(run, "tools")["tools"]
    assert any(status == "warning" and "mine.py" in text for status, text in found)


def test_a_mistake_in_the_settings_is_told_once(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("agent: {\n")
    done = run("doctor")
    assert done.stdout.count("config.yaml, line") == 1
    assert "not looked at, because of what is told above" in done.stdout


def test_a_check_that_does_not_exist_names_the_nearest(run: Run) -> None:
    done = run("doctor", "modle")
    assert done.returncode == Exit.USAGE
    assert "Did you mean: model?" in done.stderr


def test_logs_rotate_privately_and_carry_the_session(home: Path) -> None:
    handlers = start_logging(home, max_size_mb=0.001, backup_count=1)
    token = session_tag.set("20260101_000000_abcdef")
    try:
        for number in range(40):
            logging.getLogger("hermes.test").info("record %d", number)
    finally:
        session_tag.reset(token)
        stop_logging(handlers)
    files = sorted((home / "logs").iterdir())
    assert [file.name for file in files] == ["agent.log", "agent.log.1"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert "INFO [20260101_000000_abcdef] hermes.test: record 39" in files[0].read_text()


def test_logs_are_filtered_by_level_session_age_and_component(run: Run, home: Path) -> None:
    (home / "logs").mkdir()
    (home / "logs" / "agent.log").write_text(
        "2001-01-01 00:00:00,000 INFO [s1] hermes.models: old\n"
        "2999-01-01 00:00:00,000 INFO [s1] hermes.models: one\n"
        "2999-01-01 00:00:01,000 ERROR [s2] hermes.tools: two\n    Traceback\n"
        "2999-01-01 00:00:02,000 WARNING [s1] hermes.tools: three\n"
    )

    def shown(*words: str) -> list[str]:
        return [line.rpartition(": ")[2].strip() for line in run("logs", *words).stdout.splitlines()]

    assert shown() == ["old", "one", "two", "Traceback", "three"]
    assert shown("-n", "1") == ["three"]
    assert shown("--level", "warning") == ["two", "Traceback", "three"]
    assert shown("--session", "s1", "--since", "2h") == ["one", "three"]
    assert shown("--component", "models") == ["old", "one"]
    assert run("logs", "--since", "soon").returncode == Exit.FAILED
    assert "agent.log" in run("logs", "list").stdout


def test_logs_go_back_into_what_was_set_aside_and_come_as_json(run: Run, home: Path) -> None:
    (home / "logs").mkdir()
    for number, (name, word) in enumerate(
        [("agent.log.2", "first"), ("agent.log.1", "second"), ("agent.log", "third")]
    ):
        (home / "logs" / name).write_text(f"2999-01-01 00:00:0{number},000 ERROR [s] hermes: {word}\n    at {word}\n")
    assert run("logs", "-n", "3").stdout.split()[-1] == "third"
    records = [json.loads(line) for line in run("logs", "--json", "-n", "2").stdout.splitlines()]
    assert records == [
        {
            "time": "2999-01-01 00:00:01",
            "level": "ERROR",
            "session": "s",
            "logger": "hermes",
            "message": "second\nat second",
        },
        {
            "time": "2999-01-01 00:00:02",
            "level": "ERROR",
            "session": "s",
            "logger": "hermes",
            "message": "third\nat third",
        },
    ]
    assert [each["name"] for each in json.loads(run("logs", "list", "--json").stdout)] == [
        "agent.log",
        "agent.log.1",
        "agent.log.2",
    ]


def test_no_log_yet_is_no_error(run: Run) -> None:
    done = run("logs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing has been logged yet" in done.stderr


def test_logs_are_followed_without_losing_a_record(home: Path, environ: dict[str, str]) -> None:
    file = home / "logs" / "agent.log"
    file.parent.mkdir()
    file.write_text("2999-01-01 00:00:00,000 INFO [-] hermes: first\n")
    words = [sys.executable, "-m", "hermes.surfaces.cli.main", "logs", "-f", "--level", "info"]
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert process.stdout.readline().endswith("first\n")
        with file.open("a") as log:
            log.write(
                "2999-01-01 00:00:00,000 DEBUG [-] hermes: hidden\n2999-01-01 00:00:01,000 INFO [-] hermes: next\n"
            )
        assert process.stdout.readline().endswith("next\n")
        file.rename(file.with_name("agent.log.1"))
        file.write_text("2999-01-01 00:00:02,000 INFO [-] hermes: rotated\n")
        assert process.stdout.readline().endswith("rotated\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == Exit.CANCELLED
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_damaged_store_is_found_with_the_command_that_mends_it(run: Run, home: Path) -> None:
    (home / "state.db").write_bytes(b"this is no database" * 500)
    done = run("doctor", "store")
    assert done.returncode == Exit.FAILED
    assert done.stdout.endswith("To do:\n  hermes sessions repair\n")
    assert (home / "state.db").read_bytes().startswith(b"this is no database")
    assert "Traceback" not in done.stdout + done.stderr


def test_a_person_is_told_that_the_session_file_was_damaged(run: Run, home: Path) -> None:
    with ServerThread([says("One."), says("Two.")]) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        run("chat", "-q", "Remember this", *model)
        with SessionDB(home / "state.db"):
            pass  # its log is in the file now
        with (home / "state.db").open("r+b") as file:
            file.write(b"\0" * 100)
        done = run("chat", "-q", "Again", *model)
    assert (done.returncode, done.stdout) == (Exit.ANSWERED, "Two.\n")
    (aside,) = home.glob("state.db.damaged-*[0-9]")
    assert f"the session file was damaged; it is kept at {str(aside)!r}" in done.stderr
    assert "Remember this" in run("sessions", "list").stdout


def test_a_turn_leaves_its_calls_its_end_and_its_failure_in_the_log(run: Run) -> None:
    with ServerThread([calls("terminal", command="true"), says("Done."), fault("unauthorized")]) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        run("chat", "-q", "Go", *model)
        assert run("chat", "-q", "Again", *model).returncode == Exit.PROVIDER
    records = [json.loads(line) for line in run("logs", "--json").stdout.splitlines()]
    first, second = dict.fromkeys(record["session"] for record in records)  # ids of one second are in no order
    told = [record["message"] for record in records if record["session"] == first]
    told = [text for text in told if not text.startswith("sandbox: ")]  # told where bubblewrap does not work
    assert told[0].startswith("terminal: ok, ")
    assert told[1] == "the turn ended: text_response(finish_reason=stop), 2 model calls"
    assert "HTTP 401" in run("logs", "errors", "--session", second).stdout


def test_logs_refuse_a_bad_age_and_say_that_there_are_none(run: Run) -> None:
    assert run("logs", "--since", "1x").returncode == Exit.FAILED
    assert "Nothing has been logged yet." in run("logs", "list").stderr


def test_more_is_told_where_the_configuration_asks_for_it_and_logged_once(run: Run, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("agent:\n  verbose: true\n", encoding="utf-8")
    with ServerThread([calls("terminal", command="true"), says("Done.")]) as server:
        done = run("chat", "-q", "Go", "--model", "m", "--base-url", server.base_url)
    assert "terminal" in done.stderr
    records = [json.loads(line)["message"] for line in run("logs", "--json").stdout.splitlines()]
    assert len([text for text in records if text.startswith("terminal")]) == 1
