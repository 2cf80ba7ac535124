"""What a runtime that was killed has left running is told at the next start, and only then looked for."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.host.start_notices import left_running
from hermes.tools.supervisor.confine.probe import enforcement
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.supervisor.confine.test_keeper_death import RUNTIME, SOURCE, sleepers, until
from tests.tools.supervisor.conftest import Runner


@pytest.mark.real
async def test_a_program_that_shed_session_and_mark_is_told_at_the_next_start(
    supervisor: ProcessSupervisor, root: Path
) -> None:
    found = await enforcement(supervisor, "files")
    if found.level != "files":
        pytest.skip(f"level files is not to be had here: {found.why}")
    home, seconds = root / "work" / "h", f"8124{os.getpid()}"
    command = f"setsid env -i sleep {seconds} & sleep {seconds}"
    words = [sys.executable, "-c", RUNTIME, "files", str(root / "work"), command]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    runtime = await asyncio.create_subprocess_exec(*words, env=environ, stdout=subprocess.PIPE)
    assert runtime.stdout is not None
    keeper = int(await runtime.stdout.readline())
    await until(lambda: len(sleepers(seconds)) >= 2)
    assert left_running(home) == [], "it lives, and its programs are its own"
    os.kill(keeper, signal.SIGKILL)
    await until(lambda: len(sleepers(seconds)) == 1)
    with contextlib.suppress(ProcessLookupError):
        runtime.kill()
    await runtime.communicate()
    (left,) = sleepers(seconds)
    try:
        (line,) = left_running(home)
        assert "may still run" in line
        assert str(left.pid) in line.rpartition("kill -9")[2].split()
    finally:
        left.kill()
    await until(lambda: str(left.pid) not in " ".join(left_running(home)))


async def test_a_runtime_that_ends_in_good_order_leaves_no_note(tmp_path: Path) -> None:
    one = ProcessSupervisor()
    one.note_in(tmp_path / "run")
    assert [each.name for each in (tmp_path / "run").iterdir()] == [f"runtime-{one.id}"]
    await one.close()
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_runtime_whose_keeper_was_killed_leaves_its_note(runner: Runner, tmp_path: Path) -> None:
    one = runner.supervisor
    one.note_in(tmp_path / "run")
    await runner.run("true")
    assert one.keeper_pid is not None
    os.kill(one.keeper_pid, signal.SIGKILL)
    await one.close()
    assert [each.name for each in (tmp_path / "run").iterdir()] == [f"runtime-{one.id}"]


def test_a_note_that_nobody_can_read_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    note = tmp_path / "run" / "runtime-x"
    note.write_text("{")
    assert left_running(tmp_path) == []
    assert not note.exists()
