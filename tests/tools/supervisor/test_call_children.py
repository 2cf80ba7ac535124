"""Call children: what they print, how they end, and that nothing of them stays."""

import asyncio
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from hermes.confinement.policy import Outside
from hermes.errors import ToolError
from hermes.seams import Decision, SpawnSpec
from hermes.tools.supervisor.child import StartFailed
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.supervisor.conftest import Runner, processes_with

OUTSIDE = Outside("terminal program")


def own(number: int) -> str:
    """A number of seconds that is in no other command line of the machine: what is left of a test is found by it."""
    return f"{number}{os.getpid()}"


async def test_output_and_exit_code_come_back(runner: Runner) -> None:
    assert await runner.run("echo out; echo err >&2; exit 3") == (3, b"out\nerr\n")


async def test_a_signal_is_a_negative_exit_code(runner: Runner) -> None:
    assert await runner.run("kill -9 $$") == (-9, b"")


async def test_stdin_is_read_to_its_end_and_is_empty_by_default(runner: Runner) -> None:
    assert await runner.run("cat", stdin=b"\x00\xffabc") == (0, b"\x00\xffabc")
    assert await runner.run("cat; echo end") == (0, b"end\n")


async def test_stderr_is_kept_apart_when_asked(runner: Runner) -> None:
    child = await runner.start("echo out; echo err >&2", merge_stderr=False)
    output = b"".join([chunk async for chunk in child.output()])
    await child.wait()
    assert (output, child.stderr_tail()) == (b"out\n", b"err\n")
    child.release()


async def test_an_open_stdin_takes_a_dialogue(runner: Runner) -> None:
    child = await runner.start('while read -r line; do echo "got $line"; done; echo bye', keep_stdin=True)
    chunks = child.output()
    await child.write(b"one\n")
    assert await anext(chunks) == b"got one\n"
    child.close_stdin()
    assert await anext(chunks) == b"bye\n"
    assert await child.wait() == 0
    child.release()


async def test_descriptors_are_passed_under_their_numbers_and_no_others(runner: Runner) -> None:
    read, write = os.pipe()
    code, output = await runner.run(f"echo hello >&{write}; ls /proc/self/fd", pass_fds=(write,))
    os.close(write)
    assert os.read(read, 100) == b"hello\n"
    os.close(read)
    # `ls` holds one more for the folder it lists.
    assert len(output.split()) == 5
    assert code == 0


async def test_nothing_is_started_without_an_allowed_decision(supervisor: ProcessSupervisor) -> None:
    spec = SpawnSpec(argv=("true",), cwd="/", env={}, confinement=OUTSIDE)
    with pytest.raises(ToolError, match="choose another way"):
        await supervisor.spawn(Decision(allowed=False, reason="choose another way"), spec)
    assert supervisor.keeper_pid is None


async def test_a_missing_program_or_folder_is_told(supervisor: ProcessSupervisor) -> None:
    with pytest.raises(StartFailed, match="no-such-program"):
        await supervisor.spawn(
            Decision.own("t"),
            SpawnSpec(argv=("no-such-program",), cwd="/", env={}, confinement=OUTSIDE),
        )
    with pytest.raises(StartFailed, match="/no/such/folder"):
        await supervisor.spawn(
            Decision.own("t"),
            SpawnSpec(argv=("/bin/true",), cwd="/no/such/folder", env={}, confinement=OUTSIDE),
        )
    assert supervisor.children == ()


@pytest.mark.parametrize(
    "escape",
    [
        "sleep 7101 &",
        "setsid sleep 7101 & disown",
        "env -i setsid sleep 7101 &",
        "nohup sleep 7101 >/dev/null 2>&1 &",
        "(setsid bash -c 'sleep 7101 & sleep 7101' &)",
        "(trap '' TERM HUP; sleep 7101) &",
    ],
)
async def test_what_the_program_leaves_behind_ends_with_it(runner: Runner, escape: str) -> None:
    code, output = await asyncio.wait_for(runner.run(f"{escape.replace('7101', own(7101))}\necho said"), 10)
    assert (code, output) == (0, b"said\n")
    assert processes_with(own(7101)) == []


@pytest.mark.parametrize("script", ["sleep 7102", "trap '' TERM; echo up; while :; do sleep 7102; done", "yes 7102"])
async def test_stop_ends_the_child_and_all_below_it(runner: Runner, script: str) -> None:
    script = script.replace("7102", own(7102))
    child = await runner.start(f"(setsid {script}) & {script}" if "trap" not in script else script)
    await asyncio.wait_for(child.stop(0.2), 10)
    assert child.is_gone
    assert processes_with(own(7102)) == []
    child.release()


async def test_a_storm_of_forks_is_ended_at_its_limit(runner: Runner) -> None:
    storm = f"for i in {{1..400}}; do (sleep {own(7103)}) & done; echo started; sleep {own(7103)}"
    child = await runner.start(storm, max_processes=100)
    await asyncio.wait_for(child.wait(), 30)
    assert child.excess == "more than 100 processes"
    assert processes_with(own(7103)) == []
    child.release()


async def test_two_calls_do_not_end_each_others_processes(runner: Runner) -> None:
    other = await runner.start(f"setsid sleep {own(7104)} & echo up; wait")
    assert await anext(other.output()) == b"up\n"
    await runner.run(f"setsid sleep {own(7105)} & echo up")
    assert (processes_with(own(7105)), len(processes_with(own(7104)))) == ([], 2)
    await other.stop(0.2)
    assert processes_with(own(7104)) == []
    other.release()


async def test_releasing_a_running_child_stops_it(runner: Runner, supervisor: ProcessSupervisor) -> None:
    child = await runner.start("sleep 7106")
    process = psutil.Process(child.pid)
    child.release()
    await asyncio.to_thread(process.wait, 10)
    assert supervisor.children == ()


async def test_close_ends_every_call_child_and_the_keeper(runner: Runner, supervisor: ProcessSupervisor) -> None:
    child = await runner.start(f"setsid sleep {own(7107)} & sleep {own(7107)}")
    keeper = psutil.Process(supervisor.keeper_pid)
    await supervisor.close()
    assert not keeper.is_running()
    assert processes_with(own(7107)) == []
    assert await asyncio.wait_for(child.wait(), 5) != 0
    child.release()
    with pytest.raises(ToolError, match="shutting down"):
        await runner.start("true")


async def test_a_killed_keeper_is_replaced_and_what_it_left_is_ended(
    runner: Runner, supervisor: ProcessSupervisor
) -> None:
    child = await runner.start(f"sleep {own(7108)}")
    assert supervisor.keeper_pid is not None
    os.kill(supervisor.keeper_pid, signal.SIGKILL)
    assert await asyncio.wait_for(child.wait(), 5) == -9
    child.release()
    assert await runner.run("echo again") == (0, b"again\n")
    assert processes_with(own(7108)) == []


async def test_it_works_on_a_loop_in_another_thread(supervisor: ProcessSupervisor) -> None:
    results: list[tuple[int, bytes]] = []

    def other_thread() -> None:
        results.append(asyncio.run(Runner(supervisor).run("echo there")))

    thread = threading.Thread(target=other_thread)
    thread.start()
    await asyncio.to_thread(thread.join, 10)
    assert results == [(0, b"there\n")]


SOURCE = str(Path(__file__).resolve().parents[3] / "src")
RUNTIME = """
import asyncio, os, sys
from hermes.confinement.policy import Outside
from hermes.seams import Decision, SpawnSpec
from hermes.tools.supervisor.supervisor import ProcessSupervisor

async def main():
    supervisor = ProcessSupervisor()
    argv = ("bash", "-c", "setsid sleep 7109 & sleep 7109")
    env = {"PATH": os.environ["PATH"]}
    spec = SpawnSpec(argv=argv, cwd="/", env=env, confinement=Outside("terminal program"))
    child = await supervisor.spawn(Decision.own("test"), spec)
    print(child.pid, supervisor.keeper_pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_call_children_die_with_a_runtime_that_is_killed(runner: Runner) -> None:
    runtime = await runner.start(
        f"exec {sys.executable} -c '{RUNTIME.replace('7109', own(7109))}'",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
    )
    line = await anext(runtime.output())
    child, keeper = (psutil.Process(int(pid)) for pid in line.split())
    os.kill(runtime.pid, signal.SIGKILL)
    await asyncio.to_thread(psutil.wait_procs, [child, keeper], 10)
    assert not child.is_running()
    assert not keeper.is_running()
    await runtime.wait()
    runtime.release()
    assert processes_with(own(7109)) == []


async def test_a_flood_is_read_in_bounded_memory(runner: Runner) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = await runner.start("head -c 500000000 /dev/zero")
    total = 0
    async for chunk in child.output():
        total += len(chunk)
    await child.wait()
    child.release()
    assert total == 500_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
