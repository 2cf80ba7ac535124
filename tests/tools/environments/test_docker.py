"""The container backend against a real dockerd and a real podman.

The image is a root file system that `scripts/parts/containers` makes; HERMES_TEST_ROOTFS names its tar file.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.errors import ConfigError, MissingPart, ToolError
from hermes.tools.environments.background import Order, background_of
from hermes.tools.environments.docker import DockerEnvironment, DockerOptions
from hermes.tools.environments.remote import Common
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import ALLOWED, Conformance, run

ROOTFS = os.environ.get("HERMES_TEST_ROOTFS", "")
SEARCH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
IMAGE = "hermes-test-rootfs"


def _why_not(program: str) -> str:
    if os.geteuid() != 0:
        return "a container engine of our own needs root"
    if shutil.which(program, path=SEARCH) is None:
        return f"{program} is not installed (scripts/parts/containers)"
    return "" if ROOTFS and Path(ROOTFS).is_file() else "HERMES_TEST_ROOTFS names no image (scripts/parts/containers)"


needs_docker = pytest.mark.skipif(bool(_why_not("dockerd")), reason=_why_not("dockerd") or "there")
needs_podman = pytest.mark.skipif(bool(_why_not("podman")), reason=_why_not("podman") or "there")
pytestmark = pytest.mark.real


class Engine(NamedTuple):
    """A container engine that answers, with the image in it."""

    program: str
    env: dict[str, str]
    daemon: "subprocess.Popen[bytes] | None"


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    # The socket's path must be short, and the data must not be on an overlay of the test's own.
    folder = Path(f"/var/lib/hermes-dockerd-{os.getpid()}")
    folder.mkdir()
    socket = f"unix:///run/hermes-dockerd-{os.getpid()}.sock"
    log = (folder / "log").open("wb")
    daemon = subprocess.Popen(
        [
            *("dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=overlay2"),
            *(
                "--data-root",
                folder / "data",
                "--exec-root",
                folder / "exec",
                "-H",
                socket,
                "--pidfile",
                folder / "pid",
            ),
        ],
        stdout=log,
        stderr=log,
        env={**os.environ, "PATH": SEARCH},
    )
    env = {"PATH": SEARCH, "DOCKER_HOST": socket, "HOME": "/root"}
    for _ in range(300):
        if subprocess.run(["docker", "version"], env=env, capture_output=True, check=False).returncode == 0:
            break
        assert daemon.poll() is None, (folder / "log").read_text()[-2000:]
        signal.sigtimedwait([], 0.1)
    subprocess.run(["docker", "import", ROOTFS, IMAGE], env=env, check=True, capture_output=True)
    yield Engine("docker", env, daemon)
    names = subprocess.run(["docker", "ps", "-aq"], env=env, check=True, capture_output=True, text=True).stdout.split()
    if names:
        subprocess.run(["docker", "rm", "-f", *names], env=env, check=False, capture_output=True)
    daemon.terminate()
    daemon.wait(60)
    log.close()
    shutil.rmtree(folder, ignore_errors=True)
    assert names == [], "containers were left behind"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = Path(f"/var/lib/hermes-podman-{os.getpid()}")
    folder.mkdir()
    (folder / "containers.conf").write_text(
        '[containers]\nnetns="none"\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n'
        '[engine]\ncgroup_manager="cgroupfs"\nruntime="runc"\nevents_logger="file"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver="overlay"\ngraphroot="{folder}/graph"\nrunroot="{folder}/run"\n'
    )
    env = {
        "PATH": SEARCH,
        "HOME": "/root",
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    subprocess.run(["podman", "import", ROOTFS, IMAGE], env={**os.environ, **env}, check=True, capture_output=True)
    yield Engine("podman", env, None)
    subprocess.run(["podman", "rm", "-af", "-t", "0"], env={**os.environ, **env}, check=False, capture_output=True)
    subprocess.run(["umount", folder / "graph/overlay"], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def make(supervisor: ProcessSupervisor, engine: Engine, **changes: object) -> DockerEnvironment:
    given = {"image": IMAGE, "program": engine.program, "persistent": False, "network": False, "memory_mb": 512}
    options = DockerOptions(**{**given, "cpu": 0.0, **changes})  # type: ignore[arg-type]  # a test's choice of fields
    return DockerEnvironment(Common(supervisor=supervisor, client_env=engine.env), options)


@pytest.fixture
def kind() -> str:
    return "docker"


@needs_docker
class TestDocker(Conformance):
    """The common suite, with dockerd."""

    @pytest.fixture
    async def environment(self, supervisor: ProcessSupervisor, docker: Engine) -> AsyncIterator[DockerEnvironment]:
        one = make(supervisor, docker)
        yield one
        await one.close()


@needs_podman
class TestPodman(Conformance):
    """The common suite, with podman."""

    @pytest.fixture
    async def environment(self, supervisor: ProcessSupervisor, podman: Engine) -> AsyncIterator[DockerEnvironment]:
        one = make(supervisor, podman)
        yield one
        await one.close()


@needs_docker
async def test_the_container_is_hardened(supervisor: ProcessSupervisor, docker: Engine) -> None:
    environment = make(supervisor, docker)
    result = await run(
        environment,
        "grep -E 'CapEff|NoNewPrivs' /proc/self/status; cat /sys/fs/cgroup/pids/pids.max; mount | grep ' /tmp '; "
        "ls /sys/class/net",
    )
    assert "CapEff:\t00000000000000cb" in result.output  # CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID
    assert "NoNewPrivs:\t1" in result.output
    assert "256\n" in result.output
    assert "nosuid" in result.output
    assert result.output.endswith("\nlo\n")
    await environment.close()


@needs_docker
async def test_a_throw_away_container_leaves_nothing(supervisor: ProcessSupervisor, docker: Engine) -> None:
    environment = make(supervisor, docker)
    await environment.write("kept?", b"no")
    await environment.close()
    again = make(supervisor, docker)
    assert await again.stat("kept?") is None
    await again.close()


@needs_docker
async def test_a_persistent_container_is_resumed_with_its_files(
    supervisor: ProcessSupervisor, docker: Engine, tmp_path: Path
) -> None:
    first = make(supervisor, docker, persistent=True, folder=tmp_path, task="t1")
    await run(first, "echo kept > /workspace/file; apt-get --version >/dev/null; touch /opt/made-by-hand; pwd")
    name = first._name
    await first.close()
    second = make(supervisor, docker, persistent=True, folder=tmp_path, task="t1")
    assert (await run(second, "cat /workspace/file; ls /opt")).output == "kept\nmade-by-hand\n"
    assert second._name == name
    await second.close()
    # Other settings are another container; the files in the folders stay.
    third = make(supervisor, docker, persistent=True, folder=tmp_path, task="t1", env={"MODE": "other"})
    assert (await run(third, "cat /workspace/file; ls /opt; echo $MODE")).output == "kept\nother\n"
    assert third._name != name
    await third.client((third._program, "rm", "-f", third._name), limit_s=30)


@needs_docker
async def test_variables_are_forwarded_by_name_and_never_shown_in_ps(
    supervisor: ProcessSupervisor, docker: Engine
) -> None:
    environment = make(supervisor, docker, env={"PLAIN": "one"}, forward_env={"FORWARDED": "two words"})
    assert (
        await run(environment, "echo $PLAIN; echo $FORWARDED; echo [$DOCKER_HOST]")
    ).output == "one\ntwo words\n[]\n"
    line = " ".join([*environment._run_line(), *environment._reach(("true",))])
    assert "two words" not in line
    assert "PLAIN=one" not in line
    await environment.close()


@needs_docker
async def test_killing_the_container_at_each_step_never_runs_a_command_on_the_host(
    supervisor: ProcessSupervisor, docker: Engine, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    command = f"mkdir -p {tmp_path} && touch {canary}"
    # At creation: an image that is not there, an engine that does not answer.
    missing = make(supervisor, docker, image="no-such-image:never", extra_args=("--pull", "never"))
    with pytest.raises(ToolError, match="could not be started"):
        await run(missing, command)
    silent = make(supervisor, docker._replace(env={**docker.env, "DOCKER_HOST": "unix:///nowhere.sock"}))
    with pytest.raises(ToolError, match="does not answer"):
        await run(silent, command)
    # While idle: killed between two commands; then made again.
    environment = make(supervisor, docker)
    await run(environment, "export GONE=1")
    await environment.client((environment._program, "kill", environment._name), limit_s=30)
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, command)
    assert (await run(environment, "echo [$GONE]")).output == "[]\n"
    # While a command runs.
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_outcome(environment, "touch /tmp/begun; sleep 1000"))
        async with asyncio.timeout(30):
            while await environment.stat("/tmp/begun") is None:  # noqa: ASYNC110 - the command makes it
                await asyncio.sleep(0.05)
        await environment.client((environment._program, "kill", environment._name), limit_s=30)
    assert "went away while the command ran" in running.result()
    await environment.close()
    assert not canary.exists()


async def _outcome(environment: DockerEnvironment, command: str) -> str:
    try:
        await run(environment, command)
    except ToolError as error:
        return str(error)
    return "ended"


@needs_docker
async def test_the_lease_ends_a_container_that_nobody_uses(supervisor: ProcessSupervisor, docker: Engine) -> None:
    environment = make(supervisor, docker, lease_s=1)
    await run(environment, "true")
    waited = await environment.client((environment._program, "wait", environment._name), limit_s=60)
    assert waited.output.strip() == b"0"
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, "true")
    await environment.close()


@needs_docker
async def test_background_processes_live_in_the_container(supervisor: ProcessSupervisor, docker: Engine) -> None:
    environment = make(supervisor, docker)
    await run(environment, "true")
    background = background_of(environment)
    record = await background.start(Order(command="echo up; sleep 7501", cwd="/root"), ALLOWED)
    async with asyncio.timeout(20):
        while b"up" not in await background.log(record):  # noqa: ASYNC110 - a process there writes it
            await asyncio.sleep(0.05)
    assert (await background.state(record)).status == "running"
    assert await background.kill(record)
    assert (await background.state(record)).status == "exited"
    await environment.close()


async def test_bad_settings_are_told_before_anything_starts(supervisor: ProcessSupervisor) -> None:
    with pytest.raises(ConfigError, match="docker_volumes"):
        DockerEnvironment(Common(supervisor=supervisor), DockerOptions(persistent=False, volumes=("x",)))
    nowhere = Common(supervisor=supervisor, client_env={"PATH": "/nonexistent"})
    environment = DockerEnvironment(nowhere, DockerOptions(persistent=False))
    with pytest.raises(MissingPart, match="docker or podman"):
        await run(environment, "true")
    await environment.close()
