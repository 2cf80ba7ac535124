"""Scripts that mean harm or do it by accident: contained, told with a clear status, and nothing of them is left."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.confinement.plan import PlanRequest
from hermes.tools.code_execution.call_server import MAX_REQUEST_BYTES
from hermes.tools.code_execution.script_limits import ScriptLimits
from hermes.tools.code_execution.script_request import limits_of
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.bubblewrap import why_no_bubblewrap
from tests.tools.code_execution.rooms import Room, builtin, is_there, room

SOURCE = str(Path(__file__).resolve().parents[3] / "src")
SECRET = "sk-hidden-in-the-parent"
MARK = "hermes_hostile_canary"


@pytest.fixture(params=["bare", "sandboxed"])
async def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    """A room whose scripts run as children of the keeper, or in bubblewrap as well; short on time."""
    sandboxed = request.param == "sandboxed"
    if sandboxed and (why := why_no_bubblewrap()):
        pytest.skip(why)
    supervisor = ProcessSupervisor()
    work = tmp_path / "work"
    work.mkdir()
    hidden = tmp_path / "hermes-home"
    hidden.mkdir(exist_ok=True)
    (hidden / ".env").write_text(f"OPENAI_API_KEY={SECRET}\n")
    request_ = PlanRequest(workspace=str(work), hermes_home=str(hidden))
    options = Border(mode="on", request=request_) if sandboxed else None
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment = LocalEnvironment(
        supervisor, str(work), LocalOptions(env=env, source_bashrc=False, border=options, creation_limit_s=60)
    )
    async with room(
        tmp_path,
        *builtin("read_file", "terminal"),
        settings={"code_execution": {"timeout": 30}},
        environment=environment,
        supervisor=supervisor,
    ) as it:
        yield it
    await environment.close()
    await supervisor.close()


def left_running() -> list[psutil.Process]:
    """Processes that carry the tests' mark in a command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(MARK in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return psutil.wait_procs(found, timeout=5)[1]  # one that was killed may take a moment to go


async def still_serves(it: Room) -> None:
    """The runtime answers the next script as if nothing had been."""
    answer = await it.run("from hermes_tools import terminal\nprint(terminal('echo alive')['output'])")
    assert (answer["status"], answer["output"]) == ("success", "alive\n")


async def test_a_flood_of_output_is_cut(hostile: Room) -> None:
    answer = await hostile.run("import os\nfor n in range(640): os.write(1, b'flood ' * 17_000)\nprint('end')")
    assert (answer["status"], answer["stdout_truncated"]) == ("success", True)
    assert answer["output"].endswith("end\n")
    assert len(answer["output"]) < 50_200
    assert answer["stdout_bytes_total"] == 640 * 6 * 17_000 + 4
    await still_serves(hostile)


async def test_children_that_go_away_on_their_own_end_with_the_script(hostile: Room) -> None:
    code = f"""
import os, subprocess, sys
for n in range(5):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # {MARK}"], start_new_session=n % 2 == 0)
if os.fork() == 0:
    os.setsid()
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)  # {MARK}"
    os.execvp(sys.executable, [sys.executable, "-c", deaf])
print("started")
"""
    answer = await hostile.run(code)
    assert answer["output"] == "started\n"
    assert left_running() == []
    await still_serves(hostile)


async def test_too_many_processes_end_the_script(hostile: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    # Bounded by itself: 150 sleepers at most, whatever the limit does.
    def few(settings: Any) -> tuple[ScriptLimits, Any]:
        limits, mode = limits_of(settings)
        return ScriptLimits(timeout_s=limits.timeout_s, max_processes=20), mode

    monkeypatch.setattr("hermes.tools.builtin.execute_code.limits_of", few)
    code = f"""
import subprocess, time
for n in range(150):
    subprocess.Popen(["sleep", "60"])
print("all", flush=True)
time.sleep(25)  # {MARK}
"""
    answer = await hostile.run(code)
    assert answer["status"] == "error"
    assert answer["error"] == "Script was killed: it had more than 20 processes."
    assert left_running() == []


async def test_ignoring_term_ends_in_a_kill(hostile: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.ctx.services.settings["code_execution"]["timeout"] = 2
    code = f"""import signal, time
for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)
print('deaf')
time.sleep(600)  # {MARK}
"""
    answer = await hostile.run(code)
    assert answer["status"] == "timeout"
    assert answer["output"].startswith("deaf\n")
    assert "It was running line 4" in answer["error"]
    assert left_running() == []


async def test_closing_every_descriptor_hurts_the_script_alone(hostile: Room) -> None:
    answer = await hostile.run(
        "import os\nfrom hermes_tools import terminal\nterminal('true')\n"
        "os.closerange(3, 256)\nprint(terminal('echo x'))"
    )
    assert answer["status"] == "error"
    assert "ConnectionError" in answer["error"]
    await still_serves(hostile)


async def test_garbage_and_half_sentences_on_the_socket(hostile: Room) -> None:
    code = """
import os, socket, time
def say(data):
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["HERMES_RPC_SOCKET"])
    line.sendall(data)
    line.shutdown(socket.SHUT_WR)
    answer = line.makefile("rb").read()
    line.close()
    return answer.decode()
for data in (b"\\x00\\xff\\n", b"[]\\n", b"{}\\n", b"{\\"tool\\":", b"[" * 100_000 + b"\\n", b"null\\n1\\n"):
    print(say(data).count("error"))
lines = [socket.socket(socket.AF_UNIX) for _ in range(300)]
for line in lines: line.connect(os.environ["HERMES_RPC_SOCKET"])
def is_closed(line):
    try:
        return line.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
while sum(map(is_closed, lines)) < 300 - 256: time.sleep(0.01)
print("closed")
"""
    answer = await hostile.run(code)
    assert (answer["status"], answer["output"].split()) == ("success", ["1", "1", "1", "0", "1", "2", "closed"])
    assert answer["tool_calls_made"] == 0
    await still_serves(hostile)


async def test_a_hundred_megabytes_on_the_socket_are_not_kept(hostile: Room) -> None:
    code = """
import os, socket
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["HERMES_RPC_SOCKET"])
sent = 0
try:
    for _ in range(1600):
        line.sendall(b"x" * 65536)
        sent += 65536
    print("all taken")
except OSError as error:
    print("refused after", sent)
"""
    before = psutil.Process().memory_info().rss
    answer = await hostile.run(code)
    grown = psutil.Process().memory_info().rss - before
    assert answer["output"].startswith("refused after")
    assert int(answer["output"].split()[-1]) < MAX_REQUEST_BYTES * 2
    assert grown < 64 << 20
    await still_serves(hostile)


async def test_a_forged_token_calls_nothing(hostile: Room) -> None:
    code = """
import os
import hermes_tools
for token in ("", "x", "é" * 50, os.environ["HERMES_RPC_TOKEN"][:-1]):
    os.environ["HERMES_RPC_TOKEN"] = token
    print(hermes_tools.terminal("touch made"))
"""
    answer = await hostile.run(code)
    assert answer["output"].count("does not carry this run's token") == 4
    assert answer["tool_calls_made"] == 0
    assert not (hostile.folder / "made").exists()


async def test_importing_the_runtime_gives_no_hold_on_it(hostile: Room) -> None:
    code = f"""
import sys
sys.path.insert(0, {SOURCE!r})
from hermes.tools.registry import registry
import os
os.environ["OPENAI_API_KEY"] = "mine"
registry.register(name="evil", toolset="x", schema={{}}, handler=print)
print("imported", os.getpid() != {os.getpid()})
"""
    answer = await hostile.run(code)
    assert answer["output"] == "imported True\n"
    assert "evil" not in hostile.ctx.tools.names()
    assert os.environ.get("OPENAI_API_KEY") != "mine"


async def test_a_script_may_spoil_its_own_module_and_folder(hostile: Room) -> None:
    code = """
import os, shutil, hermes_tools
folder = os.path.dirname(hermes_tools.__file__)
open(hermes_tools.__file__, "w").write("def terminal(*a): return 'fooled'")
print(hermes_tools.terminal("echo one")["output"])
shutil.rmtree(folder)
os.symlink("/etc", folder)
print(os.path.exists(folder + "/passwd"))
print(folder)
"""
    answer = await hostile.run(code)
    assert answer["output"].splitlines()[:2] == ["one", "True"]
    assert is_there("/etc/passwd")
    assert not is_there(answer["output"].splitlines()[2])
    await still_serves(hostile)


@pytest.fixture
def outsider() -> Iterator[int]:
    """A process of the user's with a secret among its variables, as the runtime itself is one."""
    with subprocess.Popen(["sleep", "600"], env={"OPENAI_API_KEY": SECRET, "PATH": os.environ["PATH"]}) as process:
        yield process.pid
        process.kill()


async def test_a_locked_folder_is_removed_all_the_same(hostile: Room) -> None:
    code = """
import os, hermes_tools
folder = os.path.dirname(hermes_tools.__file__)
os.makedirs(folder + "/a/b")
os.symlink("/etc", folder + "/a/link")
os.chmod(folder + "/a/b", 0)
os.chmod(folder, 0)
print(folder)
"""
    answer = await hostile.run(code)
    assert not is_there(answer["output"].strip())


async def test_secrets_of_other_processes_and_of_the_home_are_out_of_reach_in_the_sandbox(
    hostile: Room, outsider: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    home_file = str(hostile.folder.parent / "hermes-home" / ".env")
    code = f"""
import glob, os
print("OPENAI_API_KEY" in os.environ)
for place in ["/proc/{outsider}/environ", {home_file!r}]:
    try:
        print(b"{SECRET}" in open(place, "rb").read())
    except OSError as error:
        print(type(error).__name__)
def holds(place):
    try:
        return b"{SECRET}" in open(place, "rb").read()
    except OSError:
        return False
print(any(holds(place) for place in glob.glob("/proc/[0-9]*/environ")))
"""
    answer = await hostile.run(code)
    # Without a sandbox a script has the rights of the user; docs/code-execution.md says so.
    hidden = ["FileNotFoundError"] * 2 + ["False"] if is_sandboxed(request) else ["True"] * 3
    assert answer["output"].splitlines() == ["False", *hidden]


def is_sandboxed(request: pytest.FixtureRequest) -> bool:
    return "[sandboxed]" in request.node.name


@pytest.mark.parametrize("hostile", ["sandboxed"], indirect=True)
async def test_the_script_cannot_touch_the_runtime_from_the_sandbox(hostile: Room) -> None:
    answer = await hostile.run(
        f"import os\ntry:\n    os.kill({os.getpid()}, 0)\nexcept OSError as e: print(type(e).__name__)\n"
        "try:\n    open('/etc/made-by-a-script', 'w')\nexcept OSError as e: print(e.errno)"
    )
    assert answer["output"].splitlines() == ["ProcessLookupError", "30"]


async def test_a_script_that_ends_while_a_thread_still_calls_leaves_no_call_open(hostile: Room) -> None:
    code = """
import os, threading, time
from hermes_tools import terminal
threading.Thread(target=terminal, args=("sleep 60",), daemon=True).start()
time.sleep(0.5)
print("bye", flush=True)
os._exit(0)
"""
    answer = await hostile.run(code)
    assert answer["output"] == "bye\n"
    opened = [row for row in hostile.journal() if row[1] == "terminal"]
    closed = [row for row in hostile.journal() if row[1] in ("ok", "unknown", "failed")]
    assert len(opened) == len(closed)


async def test_a_fork_calls_over_a_connection_of_its_own(hostile: Room) -> None:
    code = """
import os
from hermes_tools import terminal
terminal("true")
child = os.fork()
who = "child" if child == 0 else "parent"
for n in range(5):
    assert terminal("echo %s%d" % (who, n))["output"] == "%s%d" % (who, n)
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    answer = await hostile.run(code)
    assert (answer["output"], answer["tool_calls_made"]) == ("0\n", 11)
