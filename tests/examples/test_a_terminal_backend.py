"""A new terminal backend: one file that says how it is reached, its name and settings, and one line that makes it.

The jar is a made-up one: an environment of this machine, reached through the program `env`. What every backend owes
comes from the base class, and the suite for all of them holds it here, too.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from hermes.config.sections import terminal
from hermes.seams import Environment
from hermes.tools.environments import factory
from hermes.tools.environments.factory import EnvironmentRequest, create_environment
from hermes.tools.environments.remote import Common, RemoteEnvironment
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import Conformance, run

_ENV_FAILED = 125


class JarEnvironment(RemoteEnvironment):
    """What stands in the backend's own file."""

    kind = "jar"

    def __init__(self, common: Common, folder: Path) -> None:
        super().__init__(common, str(folder))
        self._folder = folder

    async def _create(self) -> None:
        self._folder.mkdir(exist_ok=True)

    def _reach(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return ("/usr/bin/env", "-i", f"HOME={self._folder}", "PATH=/usr/bin:/bin", *argv)

    def _client_failed(self, code: int, errors: str) -> bool:
        return code == _ENV_FAILED and errors.startswith("/usr/bin/env:")


def make_jar(making: EnvironmentRequest) -> Environment:
    """What stands in the factory."""
    common = Common(supervisor=making.supervisor, client_env={"PATH": "/usr/bin:/bin"})
    return JarEnvironment(common, Path(making.launch_folder, "jar"))


@pytest.fixture
def kind() -> str:
    return "jar"


@pytest.fixture
async def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Environment]:
    jar = cast("Any", "jar")  # the settings' list would name it
    monkeypatch.setitem(factory.MAKERS, jar, make_jar)
    supervisor = ProcessSupervisor()
    made = create_environment(
        EnvironmentRequest(
            settings=terminal.Section(backend=jar),
            supervisor=supervisor,
            home=tmp_path / "home",
            environ={},
            launch_folder=str(tmp_path),
        )
    )
    yield made
    await made.close()
    await supervisor.close()


class TestJar(Conformance):
    async def test_it_runs_commands_where_it_is(self, environment: Environment, tmp_path: Path) -> None:
        assert (await run(environment, "pwd; echo $HOME")).output == f"{tmp_path}/jar\n{tmp_path}/jar\n"
