"""A process killed in the middle of a snapshot leaves a store that the next one can use."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hermes.context.checkpoints import CheckpointLimits
from tests.context.bench_room import bench, tree

KILLS = 30 if os.environ.get("HERMES_TEST_FULL") == "1" else 4
WAIT_S = 30.0


@pytest.mark.parametrize("seed", range(KILLS))
async def test_the_store_survives_a_kill_at_any_point(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    async with bench(tmp_path) as here:
        home = here.checkpoints.folder.parent
        _run_and_kill(home, here.root, source)
        before = tree(here.root)
        here.new_turn()
        await here.command("rm -f f1 f2; echo new > g; chmod 600 f3 2>/dev/null || true", destructive=True)
        newest = (await here.checkpoints.list(str(here.root)))[0]
        done = await here.restore(newest.hash)
        assert done.kept == ()
        assert tree(here.root) == before
        _check(home / "checkpoints" / "store")


async def test_locks_that_a_killed_git_left_are_in_nobodys_way(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_snapshots=2)) as here:
        store = here.checkpoints.folder / "store"
        store.mkdir(parents=True)
        (store / "HEAD.lock").touch()
        for number in range(6):
            here.new_turn()
            await here.command(f"echo {number} > f")
            project = next((store / "refs" / "hermes").iterdir())
            newest = max(int(ref.name[:8]) for ref in project.iterdir())
            for ref in range(newest + 2):
                (project / f"{ref:08d}.lock").touch()
            (store / "packed-refs.lock").touch()
        await here.restore("1")
        assert len(await here.numbers()) == 3  # of the last two turns, and the one before going back
        await here.checkpoints.prune()
        _check(store)


@pytest.mark.parametrize("config", [None, "", "[core]\n\trepositoryformatversion = 0\n"])
async def test_a_store_whose_making_was_cut_short_is_made_to_its_end(tmp_path: Path, config: str | None) -> None:
    async with bench(tmp_path) as here:
        store = here.checkpoints.folder / "store"
        (store / "refs" / "heads").mkdir(parents=True)
        (store / "HEAD").write_text("ref: refs/heads/main\n")
        (store / "config.lock").touch()
        if config is not None:
            (store / "config").write_text(config)
        await here.command("echo 1 > f")
        assert len(await here.numbers()) == 1
        _check(store)


CLEARS = """
import asyncio, os, signal, sys, time
from pathlib import Path
from hermes.context.checkpoints import CheckpointLimits, Checkpoints
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.supervisor.supervisor import ProcessSupervisor

left = [int(sys.argv[2])]

def count(event, args):
    if event == "os.remove" and not str(args[0]).startswith("/"):  # by what deletes a whole folder
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

checkpoints = Checkpoints(Path(sys.argv[1]), ProcessSupervisor(), DaemonPool().run, CheckpointLimits(), time.time)
sys.addaudithook(count)
asyncio.run(checkpoints.clear())
"""


@pytest.mark.parametrize("removed", [2, 5, 8])
async def test_a_store_whose_deleting_was_cut_short_is_in_nobodys_way(tmp_path: Path, removed: int) -> None:
    async with bench(tmp_path) as here:
        for number in range(3):
            here.new_turn()
            await here.command(f"echo {number} > f")
        _clear_and_kill(here.checkpoints.folder.parent, removed)
        here.new_turn()
        await here.command("echo new > f")
        assert len(await here.numbers()) == 1
        _check(here.checkpoints.folder / "store")
        await here.checkpoints.clear()
        assert not list(here.checkpoints.folder.rglob("*.pack"))


def _clear_and_kill(home: Path, removed: int) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    words = [sys.executable, "-c", CLEARS, str(home), str(removed)]
    killed = subprocess.run(words, env=environ, timeout=WAIT_S, check=False)
    assert killed.returncode == -signal.SIGKILL


def _check(store: Path) -> None:
    """Let git itself say that nothing is missing."""
    environ = {"PATH": os.environ["PATH"], "GIT_DIR": str(store)}
    words = ["git", "fsck", "--no-dangling", "--connectivity-only"]
    checked = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def _run_and_kill(home: Path, root: Path, source: random.Random) -> None:
    """Let the other process take a few snapshots, then end it and its children at a random moment."""
    script = Path(__file__).with_name("killed_child.py")
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    child = subprocess.Popen(
        [sys.executable, str(script), str(home), str(root)], env=environ, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout as lines:
        for _ in range(source.randrange(1, 4)):
            lines.readline()
        for _ in range(source.randrange(20_000)):
            os.sched_yield()
        family = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=WAIT_S)
    psutil.wait_procs(family, timeout=WAIT_S)
