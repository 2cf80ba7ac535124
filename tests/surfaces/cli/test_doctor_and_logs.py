"""`hermes doctor` says what to do; `hermes logs` finds the right records."""

import json
import logging
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.logs import session_tag, start_logging, stop_logging

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_doctor_ends_with_the_commands_to_run(run: Run, home: Path) -> None:
    home.chmod(0o755)
    done = run("doctor", "home", "model")
    assert done.returncode == Exit.FAILED
    assert "no model is configured" in done.stdout
    assert done.stdout.endswith("To do:\n  hermes doctor --fix\n  hermes config set model.default NAME\n")


def test_doctor_mends_what_is_safe(run: Run, home: Path) -> None:
    home.chmod(0o755)
    (home / ".env").write_text("A=1\n")
    done = run("doctor", "--fix", "home", "--json")
    assert len(json.loads(done.stdout)["fixed"]) == 2
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600


def test_doctor_is_content_with_a_configured_home(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    done = run("doctor", "--json")
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)


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
