"""Commands that would never end: each returns within its time, with what it printed, and leaves no process."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from hermes.confinement.plan import PlanRequest
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.bubblewrap import why_no_bubblewrap
from tests.tools.environments.conformance import run

MARK = "7601"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, tmp_path: Path) -> AsyncIterator[LocalEnvironment]:
    options = LocalOptions(env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}, max_processes=300)
    one = LocalEnvironment(supervisor, str(tmp_path), options)
    await run(one, "true")
    yield one
    await one.close()


@pytest.fixture(params=[False, True], ids=["plain", "sandboxed"])
async def either(
    request: pytest.FixtureRequest, supervisor: ProcessSupervisor, tmp_path: Path
) -> AsyncIterator[LocalEnvironment]:
    if request.param and (why := why_no_bubblewrap()):
        pytest.skip(why)
    border = Border(mode="on", request=PlanRequest(workspace=str(tmp_path))) if request.param else None
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    one = LocalEnvironment(supervisor, str(tmp_path), LocalOptions(env=env, max_processes=300, border=border))
    await run(one, "true")
    yield one
    await one.close()


@pytest.mark.parametrize(
    "command",
    [
        f"echo begun; sleep {MARK} &",
        f"echo begun; setsid sleep {MARK} & disown",
        "echo begun; mkfifo pipe; cat pipe",
        f"echo begun; yes {MARK}",
        "echo begun; cat",
        "echo begun; read -r line </dev/tty; cat",
        f"echo begun; trap '' TERM INT HUP; while :; do sleep {MARK}; done",
        f"echo begun; for i in $(seq 2000); do sleep {MARK} & done; wait",
        f"echo begun; exec setsid bash -c 'trap \"\" TERM; (env -i setsid sleep {MARK} &) ; sleep {MARK}'",
    ],
)
async def test_it_returns_and_leaves_nothing(
    either: LocalEnvironment, supervisor: ProcessSupervisor, command: str
) -> None:
    own = f"{MARK}{os.getpid()}"  # another worker may run the neighbouring case at this moment
    result = await asyncio.wait_for(run(either, command.replace(MARK, own), timeout_s=2.0), 30)
    assert result.output.startswith("begun\n")
    keeper = psutil.Process(supervisor.keeper_pid)
    beside = [each for each in keeper.children(recursive=True) if each.cmdline() == keeper.cmdline()]
    assert keeper.children(recursive=True) == beside  # the keeper's own watcher, which is no child of the call
    assert len(beside) == 1
    assert own not in [word for process in psutil.process_iter(["cmdline"]) for word in process.info["cmdline"] or ()]


async def test_a_storm_of_processes_is_told(environment: LocalEnvironment) -> None:
    result = await run(environment, "echo begun; for i in $(seq 2000); do sleep 7602 & done; wait")
    assert result.exit_code == 137
    assert result.output.endswith("[Command ended: it had more than 300 processes]\n")


async def test_a_flood_stays_within_16_mb(environment: LocalEnvironment, full_figures: bool) -> None:
    size = 5_000_000_000 if full_figures else 500_000_000
    await run(environment, "head -c 30000000 /dev/zero")  # the first flood pays for buffers that stay
    before = psutil.Process().memory_info().rss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await run(environment, f"head -c {size} /dev/zero; echo THE END", timeout_s=400.0)
    assert result.total_bytes == size + 8
    assert result.output.endswith("THE END\n")
    assert psutil.Process().memory_info().rss - before < 16 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 16 << 10


async def test_a_hundred_commands_leave_no_trace_of_themselves(
    environment: LocalEnvironment, supervisor: ProcessSupervisor
) -> None:
    process = psutil.Process()
    keeper = psutil.Process(supervisor.keeper_pid)
    await run(environment, "true")
    before = (process.num_fds(), process.num_threads(), keeper.num_fds(), len(await _state_files(environment)))
    for _ in range(100):
        await run(environment, "true")
    async with asyncio.timeout(10):
        # A thread or a connection that has given its answer is about to end.
        while process.num_threads() > before[1] or keeper.num_fds() > before[2]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    after = (process.num_fds(), process.num_threads(), keeper.num_fds(), len(await _state_files(environment)))
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


async def _state_files(environment: LocalEnvironment) -> list[str]:
    assert environment._state is not None
    return await environment.list_dir(str(environment._state.shared))


@pytest.fixture
def full_figures() -> bool:
    return os.environ.get("HERMES_TEST_FULL") == "1"
