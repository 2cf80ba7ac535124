"""The modal backend with Modal's real SDK against a scripted peer: the service itself is not reachable in tests."""

import asyncio
import importlib
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.tools.environments.modal_ import ModalEnvironment, ModalOptions
from hermes.tools.environments.remote import Common
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import Conformance, run

HAS_SDK = find_spec("modal") is not None
if HAS_SDK:
    from tests.tools.environments.scripted_modal import ScriptedModal

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not HAS_SDK, reason="the SDK is not installed (pip install modal)"),
    # The SDK's own: it keeps a loop in a thread, and tells of things to come.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
async def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator["ScriptedModal"]:
    one = ScriptedModal(tmp_path / "sandboxes")
    await one.start()
    monkeypatch.setenv("MODAL_SERVER_URL", f"http://127.0.0.1:{one.port}")
    monkeypatch.setenv("MODAL_TOKEN_ID", "ak-test")
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "as-test")
    modal: Any = importlib.import_module("modal")
    modal.client.Client.set_env_client(None)
    yield one
    client = await modal.Client.from_env.aio()
    await client._close.aio()
    modal.client.Client.set_env_client(None)
    await one.close()


def make(supervisor: ProcessSupervisor, folder: Path, **changes: object) -> ModalEnvironment:
    given = {"image": "example/image", "persistent": False, "folder": folder, "task": "t1"}
    options = ModalOptions(**{**given, **changes})  # type: ignore[arg-type]  # a test's choice of fields
    return ModalEnvironment(Common(supervisor=supervisor), options, "~")


@pytest.fixture
def kind() -> str:
    return "modal"


@pytest.fixture
async def environment(
    supervisor: ProcessSupervisor, peer: "ScriptedModal", tmp_path: Path
) -> AsyncIterator[ModalEnvironment]:
    one = make(supervisor, tmp_path)
    yield one
    await one.close()


class TestModal(Conformance):
    """The common suite."""


async def test_files_are_kept_as_a_snapshot_that_is_found_again(
    supervisor: ProcessSupervisor, peer: "ScriptedModal", tmp_path: Path
) -> None:
    first = make(supervisor, tmp_path, persistent=True)
    await run(first, "echo kept > file")
    await first.close()
    assert list(peer.sandboxes.values()) == [False]
    second = make(supervisor, tmp_path, persistent=True)
    assert (await run(second, "cat file")).output == "kept\n"
    await second.close()
    assert peer.images == ["im-snapshot-1", "im-snapshot-2"]
    other = make(supervisor, tmp_path, persistent=True, task="t2")
    assert await other.stat("file") is None
    await other.close()


async def test_a_sandbox_that_is_gone_never_runs_a_command_here(
    supervisor: ProcessSupervisor, peer: "ScriptedModal", tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    environment = make(supervisor, tmp_path)
    await run(environment, "true")
    peer.kill("sb-1")
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, f"touch {canary}")
    assert (await run(environment, "echo again")).output == "again\n"
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_outcome(environment, "touch begun; sleep 7701"))
        async with asyncio.timeout(30):
            while await environment.stat("begun") is None:  # noqa: ASYNC110 - the command makes it
                await asyncio.sleep(0.05)
        peer.kill("sb-2")
    assert "went away while the command ran" in running.result()
    await environment.close()
    assert not canary.exists()


async def _outcome(environment: ModalEnvironment, command: str) -> str:
    try:
        await run(environment, command)
    except ToolError as error:
        return str(error)
    return "ended"
