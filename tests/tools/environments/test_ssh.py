"""The ssh backend against a real OpenSSH server on loopback."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from hermes.errors import ConfigError, ToolError
from hermes.tools.environments.background import Order, background_of
from hermes.tools.environments.remote import Common
from hermes.tools.environments.ssh import SshEnvironment, SshOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import ALLOWED, Conformance, run

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
PATH = "/usr/local/bin:/usr/bin:/bin"


def _why_not() -> str:
    if SSHD is None or shutil.which("ssh") is None:
        return "openssh-server and openssh-client are not installed"
    return "" if os.geteuid() == 0 else "sshd serves logins only when root starts it"


pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there")]

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PidFile {folder}/pid
PasswordAuthentication no
MaxSessions 64
"""


class Server(NamedTuple):
    """A running sshd."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"


def start_server(folder: Path, port: int) -> Server:
    (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
    assert SSHD is not None
    process = subprocess.Popen([SSHD, "-D", "-f", folder / "sshd_config", "-E", folder / "log"])
    for _ in range(500):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
            break
        assert process.poll() is None, (folder / "log").read_text()
        signal.sigtimedwait([], 0.02)
    return Server(folder, port, process)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    one = start_server(folder, port)
    yield one
    one.process.terminate()
    one.process.wait(10)


def options(server: Server, **changes: object) -> SshOptions:
    given = {"host": "127.0.0.1", "user": "root", "port": server.port, "key": str(server.folder / "key")}
    return SshOptions(**{**given, "known_hosts": str(server.folder / "known_hosts"), **changes})  # type: ignore[arg-type]  # a test's choice


@pytest.fixture
def kind() -> str:
    return "ssh"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, server: Server, tmp_path: Path) -> AsyncIterator[SshEnvironment]:
    work = tmp_path / "work"
    work.mkdir()
    one = SshEnvironment(Common(supervisor=supervisor, client_env={"PATH": PATH}), options(server), str(work))
    yield one
    await one.close()


class TestSsh(Conformance):
    """The common suite."""


async def test_it_stands_in_the_remote_home_and_sees_none_of_our_variables(
    supervisor: ProcessSupervisor, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_VARIABLE", "ours")
    environment = SshEnvironment(Common(supervisor=supervisor, client_env={"PATH": PATH}), options(server))
    assert (await run(environment, "pwd; echo [$CANARY_VARIABLE]")).output == "/root\n[]\n"
    assert environment.cwd == "/root"
    assert await environment.stat("~") == await environment.stat("/root")
    await environment.close()


async def test_an_unreachable_host_is_an_error_and_runs_nothing_here(
    supervisor: ProcessSupervisor, server: Server, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    for change in ({"port": 1}, {"user": "nobody-of-that-name"}, {"key": "/no/such/key"}):
        environment = SshEnvironment(
            Common(supervisor=supervisor, client_env={"PATH": PATH}), options(server, **change), str(tmp_path)
        )
        with pytest.raises(ToolError, match="cannot reach"):
            await run(environment, f"touch {canary}")
        with pytest.raises(ToolError, match="cannot reach"):
            await environment.write(str(canary), b"x")
        await environment.close()
    assert not canary.exists()
    with pytest.raises(ConfigError, match="ssh_host"):
        SshEnvironment(Common(supervisor=supervisor), options(server, host=""))


async def test_a_connection_that_is_cut_is_told_and_made_again(environment: SshEnvironment, server: Server) -> None:
    await run(environment, "export KEPT=1; mkdir sub; cd sub")
    master = environment._master
    assert master is not None
    os.kill(master.pid, signal.SIGKILL)
    await asyncio.wait_for(master.wait(), 10)
    # A fresh connection to the same machine finds the state there.
    result = await run(environment, "echo $KEPT; pwd")
    assert result.output == f"1\n{environment.cwd}\n"


async def test_a_server_that_goes_down_and_comes_back_never_moves_a_command_here(
    supervisor: ProcessSupervisor, server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "second"
    shutil.copytree(server.folder, folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = start_server(folder, port)
    common = Common(supervisor=supervisor, client_env={"PATH": PATH})
    environment = SshEnvironment(common, options(own), str(tmp_path))
    assert (await run(environment, "echo $SSH_CONNECTION | wc -w")).output == "4\n"
    _kill_all(own.process.pid)
    own.process.wait(10)
    for _ in range(2):
        with pytest.raises(ToolError, match=r"cannot (be reached|reach)"):
            await run(environment, f"touch {tmp_path}/canary")
    assert not (tmp_path / "canary").exists()
    again = start_server(folder, port)
    assert (await run(environment, "echo $SSH_CONNECTION | wc -w")).output == "4\n"
    await environment.close()
    again.process.terminate()
    again.process.wait(10)


def _kill_all(pid: int) -> None:
    process = psutil.Process(pid)
    for each in [*process.children(recursive=True), process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()


async def test_background_processes_live_on_the_other_side(environment: SshEnvironment) -> None:
    background = background_of(environment)
    order = Order(command="echo $WORD; sleep 7401", cwd=environment.cwd, session_id="s", task_id="t", notify=True)
    await run(environment, "export WORD=up")
    record = await background.start(order, ALLOWED)
    async with asyncio.timeout(20):
        while b"up" not in await background.log(record):  # noqa: ASYNC110 - a process there writes it
            await asyncio.sleep(0.05)
    assert (await background.state(record)).status == "running"
    assert [each.id for each in await background.records("t")] == [record.id]
    with pytest.raises(ToolError, match="no stdin"):
        await background.write(record, b"x")
    assert await background.kill(record)
    assert (await background.state(record)).status == "exited"
    assert not await background.kill(record)
    assert len(await background.notices("s")) == 1
    assert await background.notices("s") == []
    quick = await background.start(Order(command="exit 6", cwd="/", session_id="s", task_id="t"), ALLOWED)
    async with asyncio.timeout(20):
        while (state := await background.state(quick)).status == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert state.exit_code == 6
    await run(environment, "rm -f /tmp/hermes_bg_*")
