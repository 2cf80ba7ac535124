"""`hermes model`, `fallback`, `setup` and `usage`, run as a user runs them."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.testing.replies import calls, fault, says
from hermes.testing.server import RecordedRequest, ScriptedServer, ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ServerThread(lambda _: says("ok"), models=("small", "large")) as running:
        yield running


def said_at_a_terminal(environ: dict[str, str], words: list[str], answers: list[tuple[str, str]]) -> str:
    """Run `hermes words` in a terminal; when a prompt appears, type its answer. What was shown."""
    main, child = pty.openpty()
    command = [sys.executable, "-m", "hermes.surfaces.cli.main", *words]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environ, close_fds=True)
    os.close(child)
    shown, left, deadline = "", list(answers), time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    piece = os.read(main, 65536)
                except OSError:  # the child closed its end
                    break
                if not piece:
                    break
                shown += piece.decode(errors="replace")
            if left and left[0][0] in shown:
                prompt, answer = left.pop(0)
                shown = shown.replace(prompt, f"[{prompt[:-1]}]", 1)
                os.write(main, f"{answer}\n".encode())
        process.wait(timeout=20)
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert not left, f"no prompt {left[0][0]!r} in {shown}"
    return shown


# -- model -------------------------------------------------------------------------------------------------------


def test_a_model_is_checked_and_written_down(run: Run, home: Path, server: ScriptedServer) -> None:
    done = run("model", "small", "--provider", "custom", "--base-url", server.base_url, "--api-key", "secret-key")
    assert done.returncode == 0, done.stderr
    assert "secret-key" not in (home / "config.yaml").read_text()
    assert "secret-key" in (home / ".env").read_text()
    shown = json.loads(run("model", "--json").stdout)
    assert (shown["model"], shown["provider"], shown["base_url"]) == ("small", "custom", server.base_url)
    assert shown["has_key"] is True
    assert server.looked_up[0].headers["authorization"] == "Bearer secret-key"
    answer = run("chat", "-q", "Hi", "-Q")
    assert "ok" in answer.stdout


def test_a_name_alone_is_another_model_of_the_same_server(run: Run, home: Path, server: ScriptedServer) -> None:
    run("model", "small", "--provider", "custom", "--base-url", server.base_url, "--api-key", "secret-key")
    done = run("model", "large")
    assert (done.returncode, done.stdout) == (0, "model.default = large\n")
    shown = json.loads(run("model", "--json").stdout)
    assert (shown["model"], shown["base_url"], shown["has_key"]) == ("large", server.base_url, True)
    assert "ok" in run("chat", "-q", "Hi", "-Q").stdout


def test_a_wrong_name_changes_nothing_and_tells_the_nearest(run: Run, home: Path, server: ScriptedServer) -> None:
    done = run("model", "smal", "--provider", "custom", "--base-url", server.base_url)
    assert (done.returncode, "near it: small" in done.stderr) == (1, True)
    assert not (home / "config.yaml").exists()
    untried = run("model", "smal", "--provider", "custom", "--base-url", server.base_url, "--no-check")
    assert untried.returncode == 0


def test_a_server_that_is_not_there_is_told_at_once(run: Run) -> None:
    done = run("model", "m", "--provider", "custom", "--base-url", "http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "cannot reach the server" in done.stderr
    assert "Traceback" not in done.stderr


def test_providers_and_models_are_listed(run: Run, server: ScriptedServer) -> None:
    listed = json.loads(run("model", "--list", "--json", DEEPSEEK_API_KEY="x").stdout)
    assert {row["id"]: row["has_key"] for row in listed}["deepseek"] is True
    assert "openrouter" in run("model", "--list").stdout
    models = run("model", "--models", "--provider", "custom", "--base-url", server.base_url)
    assert models.stdout.split() == ["small", "large"]


def test_a_provider_that_tells_no_models_has_those_of_the_config(run: Run, home: Path) -> None:
    home.mkdir(exist_ok=True)
    with ServerThread(lambda _: says("ok"), models=()) as silent:
        lab = f"{{base_url: '{silent.base_url}', models: {{first: {{max_tokens: 5}}, second: null}}}}"
        (home / "config.yaml").write_text(f"providers: {{lab: {lab}}}\n")
        assert run("model", "--models", "--provider", "lab").stdout.split() == ["first", "second"]


def test_windows_and_prices_come_from_a_file_or_an_address(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text('{"acme": {"models": {"m-1": {"limit": {"context": 9000}, "cost": {"input": 1, "output": 2}}}}}')
    assert "1 models" in run("model", "--update", str(file)).stdout
    assert "m-1" in (home / "cache" / "models.json").read_text()
    file.write_text("[]")
    broken = run("model", "--update", str(file))
    assert (broken.returncode, "nothing was changed" in broken.stderr) == (1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal device")
def test_a_person_chooses_step_by_step(environ: dict[str, str], home: Path, server: ScriptedServer) -> None:
    shown = said_at_a_terminal(
        environ,
        ["model"],
        [
            ("by number or name:", "custom"),
            ("(base URL):", server.base_url),
            ("Key of A server of your own (Enter: none):", "k3y"),
            ("Model, by number or name:", "large"),
        ],
    )
    assert "model.default = large" in shown
    assert "k3y" not in shown
    assert "large" in (home / "config.yaml").read_text()


# -- fallback ----------------------------------------------------------------------------------------------------


def test_the_chain_is_edited_and_used(run: Run, home: Path, server: ScriptedServer) -> None:
    url = ("--provider", "custom", "--base-url", server.base_url)
    assert run("fallback", "add", "large", *url).returncode == 0
    assert run("fallback", "add", "small", *url, "--first").returncode == 0
    assert run("fallback", "add", "small", *url).returncode == 1
    assert run("fallback", "add", "absent", *url).returncode == 1
    assert [entry["model"] for entry in json.loads(run("fallback", "list", "--json").stdout)] == ["small", "large"]
    assert "no longer" in run("fallback", "remove", "1").stdout
    with ServerThread(lambda _: fault("unauthorized")) as broken:
        answer = run("chat", "-q", "Hi", "--model", "first", "--base-url", broken.base_url)
    assert "ok" in answer.stdout
    assert run("fallback", "clear").returncode == 0
    assert json.loads(run("fallback", "list", "--json").stdout) == []


# -- setup -------------------------------------------------------------------------------------------------------


def test_setup_without_questions(run: Run, home: Path, server: ScriptedServer) -> None:
    done = run(
        "setup", "--non-interactive", "--provider", "custom", "--model", "small", "--base-url", server.base_url,
        "--terminal", "docker", "--env", "EXA_API_KEY=abc",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "EXA_API_KEY=abc" in (home / ".env").read_text()
    assert run("config", "get", "terminal.backend").stdout.strip() == "docker"
    assert run("config", "get", "model.default").stdout.strip() == "small"


def test_setup_without_a_terminal_says_how(run: Run) -> None:
    done = run("setup")
    assert (done.returncode, "--non-interactive" in done.stderr) == (1, True)
    assert run("setup", "--non-interactive").returncode == 1
    assert run("setup", "--env", "nonsense").returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal device")
def test_setup_asks_for_one_section_again(environ: dict[str, str], run: Run) -> None:
    shown = said_at_a_terminal(environ, ["setup", "terminal"], [("[local]:", "ssh")])
    assert "terminal.backend = ssh" in shown
    assert run("config", "get", "terminal.backend").stdout.strip() == "ssh"


# -- usage -------------------------------------------------------------------------------------------------------


def test_usage_by_day_model_purpose_and_session_adds_up(run: Run) -> None:
    def reply(got: RecordedRequest) -> object:
        made = calls("todo") if len(got.json["messages"]) == 2 else says("done")
        return made.with_usage(input_tokens=100, output_tokens=10, cache_read_tokens=3)

    with ServerThread(reply) as server:  # type: ignore[arg-type]  # replies are made by the function
        for _ in range(2):
            run("chat", "-q", "Hi", "--model", "scripted", "--base-url", server.base_url)
        told = server.reported_usage
    for by, key, rows in (
        ("day", "by_day", 1),
        ("model", "models", 1),
        ("purpose", "by_purpose", 1),
        ("session", "by_session", 2),
    ):
        found = json.loads(run("usage", "--by", by, "--json").stdout)
        assert len(found[key]) == rows
        for name in ("input_tokens", "output_tokens", "cache_read_tokens"):
            assert sum(row[name] for row in found[key]) == sum(getattr(one, name) for one in told)
        assert (found["calls"], found["unpriced"]) == (4, 4)
    assert "unknown" in run("usage", "--by", "session").stdout
    row = json.loads(run("usage", "--by", "model", "--json").stdout)["models"][0]
    read = row["input_tokens"] + row["cache_read_tokens"] + row["cache_write_tokens"]
    assert row["cache_share"] == row["cache_read_tokens"] / read > 0
    assert f"({row['cache_share']:.0%})" in run("usage").stdout


def test_without_a_model_or_a_terminal_it_does_not_send_people_in_a_circle(run: Run) -> None:
    done = run("model")
    assert done.returncode == 1
    assert "hermes model NAME --provider PROVIDER" in done.stderr
    assert "run hermes model," not in done.stderr
