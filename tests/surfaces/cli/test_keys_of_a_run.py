"""Keys of the environment and of config.yaml, and what options of one run do to where they go: real requests."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer, ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def custom(home: Path) -> Iterator[ScriptedServer]:
    """A server of one's own that config.yaml names, without a key."""
    with ServerThread(lambda _: says("from the custom one")) as server:
        filed = f"{{provider: custom, default: m, base_url: '{server.base_url}', api_mode: chat_completions}}"
        (home / "config.yaml").write_text(f"model: {filed}\n")
        yield server


@pytest.fixture
def other() -> Iterator[ScriptedServer]:
    with ServerThread(lambda _: says("from the other one")) as server:
        yield server


def keys_sent(server: ScriptedServer) -> set[str]:
    names = ("authorization", "x-api-key", "api-key")
    return {value for got in server.requests for name in names if (value := got.headers.get(name))}


def test_an_exported_key_is_not_sent_to_the_custom_server_and_that_is_told(run: Run, custom: ScriptedServer) -> None:
    done = run("chat", "-q", "hi", "-v", OPENAI_API_KEY="sk-openai-REAL")  # in a terminal it is told without -v
    assert (done.stdout, done.returncode) == ("from the custom one\n", 0)
    assert keys_sent(custom) == set()
    host = custom.base_url.removeprefix("http://").removesuffix("/v1")
    assert done.stderr.count(f"OPENAI_API_KEY belongs to OpenAI and is not sent to {host}") == 1
    assert "hermes config set model.api_key KEY" in done.stderr
    run("config", "set", "model.api_key", "my-own-key")
    done = run("chat", "-q", "hi", "-v", OPENAI_API_KEY="sk-openai-REAL")
    assert keys_sent(custom) == {"Bearer my-own-key"}
    assert "belongs to" not in done.stderr


@pytest.mark.parametrize("is_flag", [True, False])
def test_a_provider_named_for_one_run_takes_neither_address_nor_key_of_the_configured_one(
    run: Run, custom: ScriptedServer, other: ScriptedServer, is_flag: bool
) -> None:
    run("config", "set", "model.api_key", "custom-key")
    words, environ = (["--provider", "anthropic"], {}) if is_flag else ([], {"HERMES_INFERENCE_PROVIDER": "anthropic"})
    environ |= {"ANTHROPIC_API_KEY": "sk-ant-REAL", "ANTHROPIC_BASE_URL": other.url}
    done = run("chat", "-q", "hi", "-m", "claude-x", *words, **environ)
    assert (done.stdout, done.returncode) == ("from the other one\n", 0), done.stderr
    assert (custom.requests, keys_sent(other)) == ([], {"sk-ant-REAL"})
    assert other.requests[0].path.endswith("/messages")


def test_an_address_for_one_run_does_not_get_the_configured_key(
    run: Run, custom: ScriptedServer, other: ScriptedServer
) -> None:
    run("config", "set", "model.api_key", "custom-key")
    done = run("chat", "-q", "hi", "-v", "--base-url", other.base_url, OPENAI_API_KEY="sk-openai-REAL")
    assert (done.stdout, keys_sent(other), custom.requests) == ("from the other one\n", set(), [])
    assert "model.api_key belongs to" in done.stderr
    both = run("chat", "-q", "hi", OPENAI_BASE_URL=other.base_url, OPENAI_API_KEY="sk")
    assert (both.stdout, keys_sent(custom)) == ("from the custom one\n", {"Bearer custom-key"})


def test_key_and_address_of_one_command_line_go_together(
    environ: dict[str, str], run: Run, custom: ScriptedServer, other: ScriptedServer
) -> None:
    words = ["--query", "hi", "--base_url", other.base_url, "--api_key", "given-key"]
    subprocess.run([sys.executable, "-m", "hermes.surfaces.cli.runner", *words], env=environ, timeout=60, check=True)
    assert (keys_sent(other), custom.requests) == ({"Bearer given-key"}, [])


def test_the_key_of_a_proxy_is_not_written_under_the_name_of_the_provider(
    run: Run, home: Path, other: ScriptedServer
) -> None:
    words = ("--provider", "anthropic", "--base-url", other.url, "--api-key", "proxy-key", "--no-check")
    assert run("model", "claude-x", *words).returncode == 0
    assert "ANTHROPIC_API_KEY" not in (home / ".env").read_text()
    assert run("chat", "-q", "hi", ANTHROPIC_API_KEY="sk-ant-REAL").stdout == "from the other one\n"
    assert keys_sent(other) == {"proxy-key"}
