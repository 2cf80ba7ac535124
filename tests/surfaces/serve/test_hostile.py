"""Whatever a client sends: one clear error or a closed connection, and the server lives."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.host.wire.frames import MOST_LINE_BYTES
from hermes.surfaces.serve.peer import refusal
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.tools.supervisor.keeper_descent import descends_from_keeper
from tests.surfaces.cli.interactive.terminal import answering
from tests.surfaces.serve.conftest import Serve

UsesModel = Callable[..., None]
CHUNK = b"x" * (1 << 20)


def test_garbage_gets_an_error_and_the_connection_goes_on(serve: Serve, uses_model: UsesModel) -> None:
    uses_model("http://127.0.0.1:9/v1")
    with serve() as served:
        client = served.client()
        for line, code in (
            (b"garbage\n", -32700),
            (b"\xff\xfe\x00\n", -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n', -32700),
            (b"[" * 100_000 + b"\n", -32700),
            (b"[1, 2]\n", -32600),
            (b'"text"\n', -32600),
            (b'{"jsonrpc":"2.0"}\n', -32600),
            (b'{"method":7}\n', -32600),
            (b'{"id":{"a":1},"method":"server.stop"}\n', -32600),
            (b'{"id":[1],"method":"server.stop"}\n', -32600),
            (b'{"id":true,"method":"server.stop"}\n', -32600),
        ):
            client.raw(line)
            assert client.reply(None)["error"]["code"] == code
        client.raw(b'{"id":"a","method":"session.list","params":[1]}\n')
        assert client.reply("a")["error"]["code"] == -32602  # type: ignore[arg-type]  # an id may be a text
        assert client.refused("no.such.method") == -32601
        assert client.refused("session.list", limit="many") == -32602
        assert client.refused("session.history", session_id="ffffffff") == 4001
        client.raw(b"\n\n  \n")
        assert client.ask("server.status")["clients"] == 1


def test_half_lines_and_endless_lines_cost_a_connection_and_nothing_else(serve: Serve, uses_model: UsesModel) -> None:
    uses_model("http://127.0.0.1:9/v1")
    with serve() as served:
        half = served.socket()
        half.sendall(b'{"id":1,"method":"server.st')
        half.close()
        endless = served.client()
        sent = 0
        with contextlib.suppress(OSError):  # nobody reads any more
            while sent < 100:
                endless.raw(CHUNK)
                sent += 1
        assert sent < 100
        assert endless.is_closed()
        assert len(CHUNK) * 100 > MOST_LINE_BYTES
        mute = served.socket()  # asks much and reads nothing
        mute.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(20_000):
                mute.send(b'{"id":1,"method":"config.show"}\n')
        assert served.client().ask("server.status")["pid"] == served.process.pid
        with (Path("/proc") / str(served.process.pid) / "statm").open() as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        assert resident < 400 << 20


def test_another_user_is_not_served(serve: Serve, uses_model: UsesModel, home: Path) -> None:
    uses_model("http://127.0.0.1:9/v1")
    with serve() as served:
        assert oct(served.folder.folder.stat().st_mode & 0o777) == "0o700"
        if os.getuid() != 0:
            pytest.skip("only root can become another user")
        script = (
            "import os, socket, sys\n"
            "fd = os.open(sys.argv[1], os.O_PATH)\n"  # as somebody who was let in by mistake
            "os.setgid(65534); os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "try:\n"
            "    s.connect(f'/proc/self/fd/{fd}')\n"
            "    print(s.makefile().readline())\n"
            "except OSError as error:\n"
            "    print('OSError', error)\n"
        )
        os.chmod(served.folder.socket_file, 0o666)
        for folder in (served.folder.folder, home):
            os.chmod(folder, 0o777)
        ran = subprocess.run(
            [sys.executable, "-I", "-c", script, str(served.folder.socket_file)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "belongs to another user" in ran.stdout or "OSError" in ran.stdout, ran
        assert served.client().ask("server.status")["clients"] == 1


def test_commands_of_the_agent_are_not_served(serve: Serve, uses_model: UsesModel, tmp_path: Path) -> None:
    """Where nothing confines them, a program that the agent was allowed to run is still refused at the socket."""
    here = Path(__file__).parent / "knock.py"
    command = f"{sys.executable} -I {here} {tmp_path}/home/serve/socket"
    script = answering({"Knock": [calls("terminal", command=command), says("Done.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url, more="terminal:\n  sandbox: 'off'\napprovals:\n  mode: 'off'")
        with serve() as served:
            one = served.client()
            live = one.ask("session.create", cwd=str(tmp_path))["session_id"]
            one.ask("prompt.submit", session_id=live, text="Knock")
            said = one.event("tool.complete")["payload"]["result"]["content"]
            assert "commands of the agent are not served here" in said


def test_a_border_keeps_the_socket_out_of_sight(serve: Serve, uses_model: UsesModel, tmp_path: Path) -> None:
    command = f"ls {tmp_path}/home/serve/ 2>&1; echo end"
    script = answering({"Look": [calls("terminal", command=command), says("Done.")]})
    with ServerThread(script) as model:
        uses_model(model.base_url, more="approvals:\n  mode: 'off'")
        with serve() as served:
            one = served.client()
            work = tmp_path / "work"
            work.mkdir()
            live = one.ask("session.create", cwd=str(work))["session_id"]
            one.ask("prompt.submit", session_id=live, text="Look")
            said = one.event("tool.complete")["payload"]["result"]["content"]
            assert "end" in said or "error" in said
            assert "server.json" not in said


def test_this_process_is_no_command_of_the_agent() -> None:
    assert not descends_from_keeper(os.getpid())
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert refusal(one) == ""
