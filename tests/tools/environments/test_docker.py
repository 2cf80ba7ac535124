"""The container backend against a real dockerd and a real podman."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.errors import ConfigError, MissingPart, ToolError
from hermes.tools.environments.background import BackgroundRequest, background_of
from hermes.tools.environments.docker import DockerEnvironment, DockerOptions
from hermes.tools.environments.remote import Common
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import ALLOWED, Conformance, run
from tests.tools.real_backends import Engine, container


@pytest.fixture
def kind() -> str:
    return "docker"


class TestDocker(Conformance):
    """The common suite, with dockerd."""

    @pytest.fixture
    async def environment(
        self, supervisor: ProcessSupervisor, docker_engine: Engine
    ) -> AsyncIterator[DockerEnvironment]:
        one = container(supervisor, docker_engine)
        yield one
        await one.close()


class TestPodman(Conformance):
    """The common suite, with podman."""

    @pytest.fixture
    async def environment(
        self, supervisor: ProcessSupervisor, podman_engine: Engine
    ) -> AsyncIterator[DockerEnvironment]:
        one = container(supervisor, podman_engine)
        yield one
        await one.close()


async def test_the_container_is_hardened(supervisor: ProcessSupervisor, docker_engine: Engine) -> None:
    environment = container(supervisor, docker_engine)
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


async def test_a_throw_away_container_leaves_nothing(supervisor: ProcessSupervisor, docker_engine: Engine) -> None:
    environment = container(supervisor, docker_engine)
    await environment.write("kept?", b"no")
    await environment.close()
    again = container(supervisor, docker_engine)
    assert await again.stat("kept?") is None
    await again.close()


async def test_a_persistent_container_is_resumed_with_its_files(
    supervisor: ProcessSupervisor, docker_engine: Engine, tmp_path: Path
) -> None:
    first = container(supervisor, docker_engine, persistent=True, folder=tmp_path, task="t1")
    await run(first, "echo kept > /workspace/file; touch /opt/made-by-hand; pwd")
    name = first._name
    await first.close()
    second = container(supervisor, docker_engine, persistent=True, folder=tmp_path, task="t1")
    assert (await run(second, "cat /workspace/file; ls /opt")).output == "kept\nmade-by-hand\n"
    assert second._name == name
    await second.close()
    # Other settings are another container; the files in the folders stay.
    third = container(supervisor, docker_engine, persistent=True, folder=tmp_path, task="t1", env={"MODE": "other"})
    assert (await run(third, "cat /workspace/file; ls /opt; echo $MODE")).output == "kept\nother\n"
    assert third._name != name
    await third.client((third._program, "rm", "-f", third._name), limit_s=30)


async def test_variables_are_forwarded_by_name_and_never_shown_in_ps(
    supervisor: ProcessSupervisor, docker_engine: Engine
) -> None:
    environment = container(supervisor, docker_engine, env={"PLAIN": "one"}, forward_env={"FORWARDED": "two words"})
    assert (
        await run(environment, "echo $PLAIN; echo $FORWARDED; echo [$DOCKER_HOST]")
    ).output == "one\ntwo words\n[]\n"
    line = " ".join([*environment._run_line(), *environment._reach(("true",))])
    assert "two words" not in line
    assert "PLAIN=one" not in line
    await environment.close()


async def test_killing_the_container_at_each_step_never_runs_a_command_on_the_host(
    supervisor: ProcessSupervisor, docker_engine: Engine, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    command = f"mkdir -p {tmp_path} && touch {canary}"
    # At creation: an image that is not there, an engine that does not answer.
    missing = container(supervisor, docker_engine, image="no-such-image:never", extra_args=("--pull", "never"))
    with pytest.raises(ToolError, match="could not be started"):
        await run(missing, command)
    silent = container(
        supervisor, docker_engine._replace(env={**docker_engine.env, "DOCKER_HOST": "unix:///nowhere.sock"})
    )
    with pytest.raises(ToolError, match="does not answer"):
        await run(silent, command)
    # While idle: killed between two commands; then made again.
    environment = container(supervisor, docker_engine)
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


async def test_the_lease_ends_a_container_that_nobody_uses(
    supervisor: ProcessSupervisor, docker_engine: Engine
) -> None:
    environment = container(supervisor, docker_engine, lease_s=1)
    await run(environment, "true")
    waited = await environment.client((environment._program, "wait", environment._name), limit_s=60)
    assert waited.output.strip() == b"0"
    with pytest.raises(ToolError, match="nothing was run"):
        await run(environment, "true")
    await environment.close()


async def test_background_processes_live_in_the_container(supervisor: ProcessSupervisor, docker_engine: Engine) -> None:
    environment = container(supervisor, docker_engine)
    await run(environment, "true")
    background = background_of(environment)
    record = await background.start(BackgroundRequest(command="echo up; sleep 7501", cwd="/root"), ALLOWED)
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


ENGINES = [
    pytest.param(name, marks=[pytest.mark.real, pytest.mark.xdist_group(name)])
    for name in ("docker_engine", "podman_engine")
]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_disk_limit_is_held_to_or_said_not_to_be(
    supervisor: ProcessSupervisor, request: pytest.FixtureRequest, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    environment = container(supervisor, request.getfixturevalue(engine), disk_mb=64)
    written = await run(environment, "head -c 100M /dev/zero >/opt/big; stat -c %s /opt/big")
    told = "container_disk is not held to" in caplog.text
    assert ("104857600" in written.output) is told
    await environment.close()
