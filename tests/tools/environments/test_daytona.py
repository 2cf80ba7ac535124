"""The daytona backend with Daytona's real SDK against a scripted peer: the service itself is not reachable in tests."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hermes.errors import ConfigError, ToolError
from hermes.tools.environments.daytona_ import DaytonaEnvironment, DaytonaOptions
from hermes.tools.environments.remote import Common
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import Conformance, run
from tests.tools.environments.scripted_daytona import ScriptedDaytona

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("daytona") is None, reason="the SDK is not installed (pip install daytona)"),
    # The SDK's own: it leaves aiohttp sessions and deprecated calls to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[ScriptedDaytona]:
    one = ScriptedDaytona(tmp_path / "sandboxes")
    yield one
    one.close()


def make(supervisor: ProcessSupervisor, peer: ScriptedDaytona, **changes: object) -> DaytonaEnvironment:
    given = {"api_key": "right-key", "api_url": f"http://127.0.0.1:{peer.port}/api", "target": "us", "task": "t1"}
    options = DaytonaOptions(**{**given, **changes})  # type: ignore[arg-type]  # a test's choice of fields
    return DaytonaEnvironment(Common(supervisor=supervisor), options)


@pytest.fixture
def kind() -> str:
    return "daytona"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, peer: ScriptedDaytona) -> AsyncIterator[DaytonaEnvironment]:
    one = make(supervisor, peer, persistent=False)
    yield one
    await one.close()


class TestDaytona(Conformance):
    """The common suite."""


async def test_a_sandbox_is_stopped_and_found_again_by_its_name(
    supervisor: ProcessSupervisor, peer: ScriptedDaytona
) -> None:
    first = make(supervisor, peer)
    await run(first, "echo kept > file")
    await first.close()
    assert [each["state"] for each in peer.sandboxes.values()] == ["stopped"]
    second = make(supervisor, peer)
    assert (await run(second, "cat file")).output == "kept\n"
    await second.close()
    changed = make(supervisor, peer, image="another:image", persistent=False)
    assert await changed.stat("file") is None
    await changed.close()
    assert [each["state"] for each in peer.sandboxes.values()] == ["destroyed", "destroyed"]


async def test_a_sandbox_that_is_gone_never_runs_a_command_here(
    supervisor: ProcessSupervisor, peer: ScriptedDaytona, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    denied = make(supervisor, peer, api_key="wrong")
    with pytest.raises(ToolError, match="could not be made"):
        await run(denied, f"touch {canary}")
    await denied.close()
    environment = make(supervisor, peer, persistent=False)
    await run(environment, "true")
    for sandbox in peer.sandboxes.values():
        sandbox["state"] = "destroyed"
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, f"touch {canary}")
    assert (await run(environment, "echo again")).output == "again\n"
    await environment.close()
    assert not canary.exists()


def test_it_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="DAYTONA_API_KEY"):
        asyncio.run(_without_a_key())


async def _without_a_key() -> None:
    DaytonaEnvironment(Common(supervisor=ProcessSupervisor()), DaytonaOptions(api_key=""))
