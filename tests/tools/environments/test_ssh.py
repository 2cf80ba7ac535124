"""The ssh backend against a real OpenSSH server on loopback."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from hermes.errors import ConfigError, ToolError
from hermes.tools.builtin.process import process
from hermes.tools.builtin.terminal import terminal
from hermes.tools.environments.background import BackgroundRequest, background_of
from hermes.tools.environments.ssh import SshEnvironment
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import ALLOWED, Conformance, run
from tests.tools.real_backends import SshServer, over_ssh, start_sshd
from tests.tools.terminal_room import Room, told

pytestmark = pytest.mark.real


@pytest.fixture
def kind() -> str:
    return "ssh"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, sshd: SshServer, tmp_path: Path) -> AsyncIterator[SshEnvironment]:
    work = tmp_path / "work"
    work.mkdir()
    one = over_ssh(supervisor, sshd, str(work))
    yield one
    await one.close()


class TestSsh(Conformance):
    """The common suite."""


async def test_it_stands_in_the_remote_home_and_sees_none_of_our_variables(
    supervisor: ProcessSupervisor, sshd: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_VARIABLE", "ours")
    environment = over_ssh(supervisor, sshd)
    assert (await run(environment, "pwd; echo [$CANARY_VARIABLE]")).output == "/root\n[]\n"
    assert environment.cwd == "/root"
    assert await environment.stat("~") == await environment.stat("/root")
    await environment.close()


async def test_an_unreachable_host_is_an_error_and_runs_nothing_here(
    supervisor: ProcessSupervisor, sshd: SshServer, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    for change in ({"port": 1}, {"user": "nobody-of-that-name"}, {"key": "/no/such/key"}):
        environment = over_ssh(supervisor, sshd, str(tmp_path), **change)
        with pytest.raises(ToolError, match="cannot reach"):
            await run(environment, f"touch {canary}")
        with pytest.raises(ToolError, match="cannot reach"):
            await environment.write(str(canary), b"x")
        await environment.close()
    assert not canary.exists()
    with pytest.raises(ConfigError, match="ssh_host"):
        over_ssh(supervisor, sshd, host="")


async def test_a_connection_that_is_cut_is_told_and_made_again(environment: SshEnvironment, sshd: SshServer) -> None:
    await run(environment, "export KEPT=1; mkdir sub; cd sub")
    master = environment._master
    assert master is not None
    os.kill(master.pid, signal.SIGKILL)
    await asyncio.wait_for(master.wait(), 10)
    # A fresh connection to the same machine finds the state there.
    result = await run(environment, "echo $KEPT; pwd")
    assert result.output == f"1\n{environment.cwd}\n"


async def test_a_server_that_goes_down_and_comes_back_never_moves_a_command_here(
    supervisor: ProcessSupervisor, sshd: SshServer, tmp_path: Path
) -> None:
    folder = tmp_path / "second"
    shutil.copytree(sshd.folder, folder)
    own = start_sshd(folder)
    environment = over_ssh(supervisor, own, str(tmp_path))
    assert (await run(environment, "echo $SSH_CONNECTION | wc -w")).output == "4\n"
    _kill_all(own.process.pid)
    own.process.wait(10)
    for _ in range(2):
        with pytest.raises(ToolError, match=r"cannot (be reached|reach)"):
            await run(environment, f"touch {tmp_path}/canary")
    assert not (tmp_path / "canary").exists()
    again = start_sshd(folder, own.port)
    assert (await run(environment, "echo $SSH_CONNECTION | wc -w")).output == "4\n"
    await environment.close()
    again.process.terminate()
    again.process.wait(10)


def _kill_all(pid: int) -> None:
    process = psutil.Process(pid)
    for each in [*process.children(recursive=True), process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()


async def test_a_background_process_begins_where_the_call_says(
    supervisor: ProcessSupervisor, sshd: SshServer, tmp_path: Path
) -> None:
    environment = over_ssh(supervisor, sshd)
    room = Room(environment, supervisor, tmp_path)
    (tmp_path / "sub").mkdir()

    async def folder(**options: str) -> str:
        started = told(await terminal({"command": "pwd", "background": True, **options}, ctx=room))
        ended = told(await process({"action": "wait", "session_id": started["session_id"], "timeout": 20}, ctx=room))
        return str(ended["output"]).strip()

    assert await folder() == "/root"  # the first thing that runs there
    assert await folder(workdir="~/..") == "/"
    await run(environment, f"cd {tmp_path}")
    assert await folder(workdir="sub") == str(tmp_path / "sub")
    await environment.close()


async def test_watched_text_is_found_behind_a_long_log_that_only_its_user_may_read(environment: SshEnvironment) -> None:
    background, task = background_of(environment), secrets.token_hex(4)  # others may have run on this machine
    flood = "umask; head -c 3000000 /dev/zero | tr '\\0' '\\n'"
    command = f"{flood}; while [ ! -e go ]; do sleep 0.1; done; echo half; sleep 7602"
    order = BackgroundRequest(command=command, cwd=environment.cwd, session_id=task, task_id=task, watch=("half",))
    record = await background.start(order, ALLOWED)
    stem = f"/tmp/hermes_bg_{record.id}"
    async with asyncio.timeout(20):
        while (await run(environment, f"stat -c %s {stem}.log")).output < "3000005":  # noqa: ASYNC110 - it is written there
            await asyncio.sleep(0.1)
    ids = (task, secrets.token_hex(4))  # the session goes on under another one
    assert await background.notices(*ids) == []
    assert (await run(environment, f"stat -c %a {stem}.json {stem}.log; umask; head -c 4 {stem}.log")).output == (
        "600\n600\n0022\n0022"
    )
    await run(environment, "touch go")
    async with asyncio.timeout(20):
        while not (told := await background.notices(*ids)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert "printed 'half'" in told[0]
    await background.kill(record)
    await run(environment, f"touch -d '-1 hour' {stem}.exit")
    quick = await background.start(BackgroundRequest(command="true", cwd="/", session_id=task, task_id=task), ALLOWED)
    assert [each.id for each in await background.records(task)] == [quick.id]
    await run(environment, f"rm -f /tmp/hermes_bg_{quick.id}*")


async def test_background_processes_live_on_the_other_side(environment: SshEnvironment) -> None:
    background, task = background_of(environment), secrets.token_hex(4)  # others may have run on this machine
    order = BackgroundRequest(
        command="echo $WORD; sleep 7401", cwd=environment.cwd, session_id=task, task_id=task, notify=True
    )
    await run(environment, "export WORD=up")
    record = await background.start(order, ALLOWED)
    async with asyncio.timeout(20):
        while b"up" not in await background.log(record):  # noqa: ASYNC110 - a process there writes it
            await asyncio.sleep(0.05)
    assert (await background.state(record)).status == "running"
    assert [(each.id, each.pid) for each in await background.records(task)] == [(record.id, record.pid)]
    with pytest.raises(ToolError, match="no stdin"):
        await background.write(record, b"x")
    assert await background.kill(record)
    assert (await background.state(record)).status == "exited"
    assert not await background.kill(record)
    assert len(await background.notices(task)) == 1
    assert await background.notices(task) == []
    quick = await background.start(BackgroundRequest(command="exit 6", cwd="/", session_id=task, task_id=task), ALLOWED)
    async with asyncio.timeout(20):
        while (state := await background.state(quick)).status == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert state.exit_code == 6
    await run(environment, f"rm -f /tmp/hermes_bg_{record.id}* /tmp/hermes_bg_{quick.id}*")
