"""Fixtures for users' own tests. pytest finds them by itself where Hermes is installed; else `-p` names this module.

`hermes_workspace`  an empty folder to work in, with an empty Hermes home beside it for the length of the test
`scripted_model`    `scripted_model(*script)` makes a model that plays a script, and must have played it to its end
`scripted_server`   `scripted_server(*script)` starts a provider on loopback that does the same over HTTP
`hermes_agent`      `hermes_agent(model, **keywords)` makes an agent in the workspace, closed when the test is over
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # pytest loads this module in every run, also where no test uses it
    from hermes import AIAgent
    from hermes.testing.model import Line, ScriptedModel
    from hermes.testing.replies import Reply
    from hermes.testing.server import ScriptedServer


@pytest.fixture
def hermes_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder; HERMES_HOME and HOME point to empty ones beside it."""
    folders = {name: tmp_path / f"hermes-test-{name}" for name in ("workspace", "home", "user")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    monkeypatch.setenv("HERMES_HOME", str(folders["home"]))
    monkeypatch.setenv("HOME", str(folders["user"]))
    return folders["workspace"]


@pytest.fixture
def scripted_model() -> "Iterator[Callable[..., ScriptedModel]]":
    """Make models that play a script; one that was not played to its end fails the test."""
    from hermes.testing.model import ScriptedModel

    made: list[ScriptedModel] = []

    def make(*script: "Line") -> ScriptedModel:
        made.append(ScriptedModel(*script))
        return made[-1]

    yield make
    for model in made:
        model.assert_finished()


@pytest.fixture
def scripted_server() -> "Iterator[Callable[..., ScriptedServer]]":
    """Start providers that play a script; one that saw a mistake, or has replies left, fails the test."""
    from hermes.testing.server import ServerThread

    started: list[ScriptedServer] = []
    with ExitStack() as running:

        def start(*script: "Reply") -> "ScriptedServer":
            started.append(running.enter_context(ServerThread(script)))
            return started[-1]

        yield start
    for server in started:
        server.assert_finished()


@pytest.fixture
def hermes_agent(hermes_workspace: Path) -> "Iterator[Callable[..., AIAgent]]":
    """Make agents that work in the workspace; the model is the first argument, the rest is `AIAgent`'s own."""
    from hermes import AIAgent

    made: list[AIAgent] = []

    def make(model: Any, /, **keywords: Any) -> AIAgent:
        made.append(AIAgent(**{"model": model, "cwd": str(hermes_workspace), **keywords}))
        return made[-1]

    yield make
    for agent in made:
        agent.close()
