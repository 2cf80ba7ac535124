"""The same script, the same result: here over a socket, here over files, over ssh, and in docker and podman."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from hermes.seams import Environment
from hermes.tools.code_execution.result_json import INTERRUPTED, frame
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.types import CallFinished
from tests.tools.code_execution.rooms import Room, body, is_there, room
from tests.tools.real_backends import container, over_ssh

Enter: TypeAlias = Callable[..., AbstractAsyncContextManager[Room]]


# What runs over a slow backend in every run: docker and podman differ in a program's name, which their own suites try.
BRIEFLY = {
    "ssh": ("test_calls_output_and_working_directory", "test_a_timeout_tells_the_line_and_leaves_nothing"),
    "docker": ("test_calls_output_and_working_directory",),
    "podman": (),
}


class Elsewhere(LocalEnvironment):
    """This machine, told from afar: everything goes through commands and files, as on any remote backend."""

    kind = "elsewhere"


FIXTURES = {"ssh": "sshd", "docker": "docker_engine", "podman": "podman_engine"}


REAL = [pytest.param(kind, marks=[pytest.mark.real, pytest.mark.xdist_group(name)]) for kind, name in FIXTURES.items()]


@pytest.fixture(scope="module", params=["local", "elsewhere", *REAL])
def backend(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """The kind of a backend, and the server that is reached."""
    kind = request.param
    return kind, request.getfixturevalue(FIXTURES[kind]) if kind in FIXTURES else None


@pytest.fixture
def enter(request: pytest.FixtureRequest, backend: tuple[str, Any], tmp_path: Path) -> Enter:
    """Opens a room on one backend; the keywords are the settings of `code_execution`."""
    kind, reached = backend
    if (
        kind in FIXTURES
        and request.node.originalname not in BRIEFLY[kind]
        and os.environ.get("HERMES_TEST_FULL") != "1"
    ):
        pytest.skip(f"the rest of the suite over {kind} is long: it runs under ./check --full")
    work = tmp_path / "work"
    work.mkdir()

    def make(supervisor: ProcessSupervisor) -> Environment:
        if kind == "ssh":
            return over_ssh(supervisor, reached, str(work))
        if kind in FIXTURES:
            return container(supervisor, reached, mount_cwd=str(work))
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
        options = LocalOptions(env=env, source_bashrc=False)
        return (Elsewhere if kind == "elsewhere" else LocalEnvironment)(supervisor, str(work), options)

    @asynccontextmanager
    async def entered(**settings: Any) -> AsyncIterator[Room]:
        supervisor = ProcessSupervisor()
        environment = make(supervisor)
        given = {"code_execution": settings}
        try:
            async with room(tmp_path, environment=environment, supervisor=supervisor, settings=given) as it:
                yield it
        finally:
            await environment.close()
            await supervisor.close()

    return entered


async def test_calls_output_and_working_directory(enter: Enter) -> None:
    code = """
import os
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import read_file, write_file, terminal, search_files
print(os.getcwd())
write_file("notes/ü.txt", "grüße\\n")
print(read_file("notes/ü.txt")["content"].splitlines()[0], open("notes/ü.txt", encoding="utf-8").read().strip())
print(terminal("cat notes/*.txt; exit 4"))
with ThreadPoolExecutor(4) as pool:
    print(sorted(pool.map(lambda n: read_file("notes/ü.txt")["total_lines"] + n, range(4))))
print(search_files("gr")["total_count"])
"""
    async with enter() as it:
        answer = await it.run(code)
        assert answer["status"] == "success", answer
    lines = answer["output"].splitlines()
    assert lines[:2] == [it.ctx.services.environment.cwd, "1|grüße grüße"]
    assert "'output': 'grüße', 'exit_code': 4" in lines[2]
    assert lines[3:] == ["[1, 2, 3, 4]", "1"]
    assert answer["tool_calls_made"] == 8
    assert len(it.journal()) == 16


async def test_errors_exit_codes_and_refusals(enter: Enter) -> None:
    async with enter(max_tool_calls=1) as it:
        failed = await it.run("print('before')\n1 / 0")
        left = await it.run("import sys\nsys.exit(7)")
        refused = await it.run(
            "import os\nfrom hermes_tools import terminal\n"
            "terminal('true')\nprint(terminal('touch made')['error'])\n"
            "os.environ['HERMES_RPC_TOKEN'] = 'forged'\nprint(terminal('touch made')['error'])"
        )
        wrong = await it.run("def f(:")
    assert (failed["status"], failed["exit_code"]) == ("error", 1)
    assert failed["error"].startswith('Traceback (most recent call last):\n  File "script.py", line 2, in <module>')
    assert failed["output"] == f"before\n--- stderr ---\n{failed['error']}"
    assert (left["status"], left["error"]) == ("error", "Script exited with code 7")
    limit, token = refused["output"].splitlines()
    assert "limit of 1 tool calls" in limit
    assert token == "the request does not carry this run's token"
    assert "line 1" in wrong["error"]
    assert not is_there(f"{it.folder}/made")


async def test_requests_and_answers_of_any_size_arrive(enter: Enter) -> None:
    code = """
from hermes_tools import write_file, terminal
for size in (10, 5_000, 300_000):
    print(write_file("x", "ä" * size)["bytes_written"])
print(len(terminal("cat x")["output"]) > 40_000)
print(write_file("x", "y" * (9 << 20))["error"][:30])
print(write_file("x", "again")["bytes_written"])
"""
    async with enter() as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == ["20", "10000", "600000", "True", "the request is larger than 838", "5"]


async def test_a_timeout_tells_the_line_and_leaves_nothing(enter: Enter) -> None:
    code = "import os, time, hermes_tools\nprint(os.path.dirname(hermes_tools.__file__))\ntime.sleep(600)"
    async with enter(timeout=3) as it:
        answer = await it.run(code)
        assert await it.ctx.services.environment.stat(answer["output"].splitlines()[0]) is None
    assert answer["status"] == "timeout"
    assert "timed out after 3s and was killed. It was running line 3: time.sleep(600)" in answer["error"]


async def test_an_interrupt_stops_the_script_and_removes_its_folder(enter: Enter, tmp_path: Path) -> None:
    mark = tmp_path / "work" / "began"
    code = """
import os, time, hermes_tools
print(os.path.dirname(hermes_tools.__file__))
open("began", "w")
time.sleep(600)
"""
    async with enter() as it, asyncio.TaskGroup() as group:
        running = group.create_task(it.run(code))
        async with asyncio.timeout(60):
            while not is_there(str(mark)):  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        (finished,) = [event for event in it.sink.events if isinstance(event, CallFinished)]
        answer = body(finished.result.content)
        folder, text = answer["output"].splitlines()
        assert await it.ctx.services.environment.stat(folder) is None
    assert (answer["status"], text) == ("interrupted", INTERRUPTED)


async def test_the_shell_stays_where_the_scripts_calls_left_it(enter: Enter) -> None:
    async with enter() as it:
        (it.folder / "sub").mkdir()
        await it.run("from hermes_tools import terminal\nterminal('cd sub; export WORD=kept')")
        answer = await it.run(
            "from hermes_tools import terminal\nprint(terminal('echo $WORD; basename $PWD')['output'])"
        )
    assert answer["output"].split() == ["kept", "sub"]


async def test_strict_mode_and_the_variables(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "canary")
    code = "import json, os\nprint(json.dumps([os.getcwd(), dict(os.environ)]))"
    async with enter(mode="strict") as it:
        await it.run("from hermes_tools import terminal\nterminal('export OTHER_TOKEN=canary PLAIN=canary')")
        where, variables = json.loads((await it.run(code))["output"])
    assert os.path.basename(where).startswith(("hermes-code-", "hermes_exec_"))
    assert "canary" not in variables.values()
    assert (variables["PYTHONUTF8"], variables["PYTHONPATH"].split(":")[0]) == ("1", where)


async def test_long_output_keeps_its_ends(enter: Enter) -> None:
    async with enter() as it:
        answer = await it.run("print('first')\nprint('x' * 300_000)\nprint('last')")
    assert answer["stdout_bytes_total"] == 300_012
    assert answer["output"].startswith("first\n")
    assert answer["output"].endswith("last\n")
    assert len(answer["output"]) < 50_200


async def test_a_backend_without_python_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "mktemp", "mkdir", "rm", "cat", "env"):
        (folder / name).symlink_to(shutil.which(name) or name)
    supervisor = ProcessSupervisor()
    (tmp_path / "work").mkdir()
    (tmp_path / "login.sh").write_text(f"PATH={folder}\n")
    options = LocalOptions(env={"PATH": str(folder)}, init_files=(str(tmp_path / "login.sh"),), source_bashrc=False)
    bare = Elsewhere(supervisor, str(tmp_path / "work"), options)
    async with room(tmp_path, environment=bare, supervisor=supervisor) as it:
        answer = await it.run("print(1)")
    await bare.close()
    await supervisor.close()
    assert answer == {
        **frame("error", seconds=answer["duration_seconds"]),
        "error": "execute_code needs python3 in the elsewhere environment, and there is none",
    }
