"""`hermes model` and `hermes setup` in a real terminal: a list to pick from, where Enter keeps what is set."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.model_questions import with_scheme
from hermes.testing.server import ServerThread
from tests.surfaces.cli.test_picking import Terminal

Open = Callable[[str], AbstractContextManager[Terminal]]


@pytest.fixture
def opened(environ: dict[str, str], home: Path, tmp_path: Path) -> Open:
    @contextmanager
    def open_it(command: str) -> Iterator[Terminal]:
        with ServerThread([]) as server:
            (home / "config.yaml").write_text(f"model: {{default: scripted, base_url: '{server.base_url}'}}\n")
            words = [sys.executable, "-m", "hermes.surfaces.cli.main", command]
            made = Terminal(words, {**environ, "TERM": "xterm-256color"}, tmp_path)
            try:
                yield made
            finally:
                made.close()

    return open_it


@pytest.mark.parametrize("command", ["model", "setup"])
def test_typing_narrows_the_providers_and_leaving_changes_nothing(opened: Open, home: Path, command: str) -> None:
    with opened(command) as terminal:
        terminal.wait_for("type to filter")
        before = (home / "config.yaml").read_text()
        terminal.type("anthr")
        terminal.wait_for("Anthropic")
        terminal.type("\x03")
        assert terminal.end() == Exit.CANCELLED
        assert "Traceback" not in terminal.shown
    assert (home / "config.yaml").read_text() == before


def test_enter_keeps_what_is_set(opened: Open, home: Path) -> None:
    with opened("model") as terminal:
        terminal.wait_for("type to filter")
        terminal.wait_for("scripted")
        before = (home / "config.yaml").read_text()
        terminal.type("\r")
        assert terminal.end() == 0
        assert "hermes" in terminal.shown
    assert (home / "config.yaml").read_text() == before


def test_an_address_needs_no_scheme(opened: Open, home: Path) -> None:
    with opened("model") as terminal:
        terminal.wait_for("type to filter")
        address = (home / "config.yaml").read_text().split("//")[1].split("'")[0]
        terminal.type("own custom")
        terminal.wait_for("A server of your own")
        terminal.type("\r")
        terminal.wait_for("Address of the API")
        terminal.type(f"{address}\r")
        terminal.wait_for("Enter: none")
        terminal.type("\r")
        terminal.wait_for("Which model")
        terminal.type("\r")
        assert terminal.end() == 0
    written = (home / "config.yaml").read_text()
    assert f"http://{address}" in written
    assert "provider: custom" in written


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("api.example.org/v1", "https://api.example.org/v1"),
        ("http://api.example.org", "http://api.example.org"),
    ],
)
def test_a_missing_scheme_is_the_safe_one(typed: str, meant: str) -> None:
    assert with_scheme(typed) == meant
