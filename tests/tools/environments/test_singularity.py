"""The singularity backend's own code against a scripted peer: Apptainer itself cannot be had where tests run.

The peer (`scripted_apptainer`) takes the real command line and runs commands in a namespace of its own, over a root
file system, so the common suite means something. docs/environments.md says what that leaves open.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes.errors import MissingPart, ToolError
from hermes.tools.environments.remote import Common
from hermes.tools.environments.singularity import SingularityEnvironment, SingularityOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import Conformance, run

PEER = Path(__file__).with_name("scripted_apptainer")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of our own needs root"),
]


@pytest.fixture(scope="module")
def rootfs(container_image: Path) -> Iterator[Path]:
    folder = Path(f"/var/lib/hermes-rootfs-{os.getpid()}")
    folder.mkdir()
    subprocess.run(["tar", "-xf", container_image, "-C", folder], check=True)
    yield folder
    shutil.rmtree(folder)


class Peer:
    """A folder with the scripted program on its PATH."""

    def __init__(self, folder: Path, rootfs: Path) -> None:
        self.state = folder / "state"
        self.state.mkdir(parents=True)
        (folder / "bin").mkdir()
        shutil.copy(PEER, folder / "bin" / "apptainer")
        self.env = {
            "PATH": f"{folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin",
            "SCRIPTED_APPTAINER_STATE": str(self.state),
            "SCRIPTED_ROOTFS": str(rootfs),
        }

    @property
    def calls(self) -> list[str]:
        return (self.state / "calls").read_text().splitlines()


@pytest.fixture
def peer(rootfs: Path) -> Iterator[Peer]:
    # Not below the temporary folder: an overlay cannot lie on one.
    folder = Path(f"/var/lib/hermes-peer-{os.getpid()}")
    yield Peer(folder, rootfs)
    for mount in (folder / "state").glob("*/scratch"):
        subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    shutil.rmtree(folder)


def make(supervisor: ProcessSupervisor, peer: Peer, **changes: object) -> SingularityEnvironment:
    given = {"image": "docker://example/image", "persistent": False, "folder": peer.state.parent / "sandboxes"}
    options = SingularityOptions(**{**given, **changes})  # type: ignore[arg-type]  # a test's choice of fields
    return SingularityEnvironment(Common(supervisor=supervisor, client_env=peer.env), options)


@pytest.fixture
def kind() -> str:
    return "singularity"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, peer: Peer) -> AsyncIterator[SingularityEnvironment]:
    one = make(supervisor, peer)
    yield one
    await one.close()


class TestSingularity(Conformance):
    """The common suite."""


async def test_an_image_is_built_once_and_started_isolated(supervisor: ProcessSupervisor, peer: Peer) -> None:
    for _ in range(2):
        environment = make(supervisor, peer)
        await run(environment, "true")
        await environment.close()
    assert sum(call.startswith("build ") for call in peer.calls) == 1
    starts = [call for call in peer.calls if call.startswith("instance start")]
    assert len(starts) == 2
    assert all("--containall --no-home --writable-tmpfs" in call for call in starts)
    assert sum(call.startswith("instance stop") for call in peer.calls) == 2


async def test_an_overlay_keeps_files_and_is_recorded(supervisor: ProcessSupervisor, peer: Peer) -> None:
    first = make(supervisor, peer, persistent=True, task="t1")
    await run(first, "echo kept > /root/file")
    await first.close()
    second = make(supervisor, peer, persistent=True, task="t1")
    assert (await run(second, "cat /root/file")).output == "kept\n"
    await second.close()
    other = make(supervisor, peer, persistent=True, task="t2")
    assert await other.stat("/root/file") is None
    await other.close()
    assert set((peer.state.parent / "sandboxes" / "singularity_snapshots.json").read_text().split('"')) >= {"t1", "t2"}


async def test_an_instance_that_is_gone_never_runs_a_command_here(supervisor: ProcessSupervisor, peer: Peer) -> None:
    canary = peer.state / "canary"
    missing = make(supervisor, peer, image="/no/such/image.sif")
    with pytest.raises(ToolError, match="could not be started"):
        await run(missing, f"touch {canary}")
    environment = make(supervisor, peer)
    await run(environment, "true")
    await environment.client((environment._program, "instance", "stop", environment._name), limit_s=10)
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, f"touch {canary}")
    assert (await run(environment, "echo again")).output == "again\n"
    await environment.close()
    assert not canary.exists()


async def test_without_the_program_it_says_what_to_install(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    common = Common(supervisor=supervisor, client_env={"PATH": "/nonexistent"})
    with pytest.raises(MissingPart, match="apptainer or singularity"):
        await run(SingularityEnvironment(common, SingularityOptions(folder=tmp_path)), "true")
