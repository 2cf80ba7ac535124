"""`/rollback` and `hermes checkpoints`, as they are typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.context.checkpoints import CheckpointError
from hermes.context.checkpoints.rollback import RollbackRequest, parse, rollback
from tests.context.bench_room import Bench, bench


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", RollbackRequest(mode="list")),
        ("2", RollbackRequest(mode="restore", which="2")),
        ("diff 2", RollbackRequest(mode="diff", which="2")),
        ("2 'a b.txt'", RollbackRequest(mode="restore", which="2", file="a b.txt")),
        ("--force 2", RollbackRequest(mode="restore", which="2", force=True)),
    ],
)
def test_words_are_read(words: str, wanted: RollbackRequest) -> None:
    assert parse(words) == wanted


@pytest.mark.parametrize("words", ["diff", "1 2 3", "'open", "diff 1 file"])
def test_words_without_sense_are_answered_with_the_usage(words: str) -> None:
    with pytest.raises(CheckpointError, match="/rollback"):
        parse(words)


async def test_what_was_done_and_what_was_kept_is_told(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        folder = str(here.root)
        assert (await rollback(here.checkpoints, folder)).text == "There are no checkpoints of this project."
        (here.root / "a").write_text("1\n")
        await here.command("echo 2 > a; echo 2 > b")
        (here.root / "b").write_text("mine")
        assert "terminal: echo 2 > a" in (await rollback(here.checkpoints, folder)).text
        assert "-1\n+2\n" in (await rollback(here.checkpoints, folder, "diff 1")).text
        told = await rollback(here.checkpoints, folder, "1")
    assert told.restored is not None
    assert "1 path restored" in told.text
    assert "Kept, because they were changed by someone else since (1 path):\n  b" in told.text
    assert f"/rollback {told.restored.undo[:8]}" in told.text


async def test_the_list_tells_what_going_back_to_each_would_change_now(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        (here.root / "a").write_text("1\n")
        await here.command("echo 2 > a; echo 2 > b")
        here.new_turn()
        await here.command("echo 3 >> a")
        second, first = await here.checkpoints.list(str(here.root))
        assert (first.files_changed, first.insertions, first.deletions) == (2, 1, 3)
        assert (second.files_changed, second.insertions, second.deletions) == (1, 0, 1)
        rows = (await rollback(here.checkpoints, str(here.root))).text.splitlines()
        assert "going back changes" in rows[0]
        assert "1 file +0 -1" in rows[1]
        assert "2 files +1 -3" in rows[2]
        (here.root / "a").write_text("2\n")
        assert "nothing" in (await rollback(here.checkpoints, str(here.root))).text


async def test_the_command_line_lists_goes_back_prunes_and_clears(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        (here.root / "a").write_text("1\n")
        await here.command("echo 2 > a")
        here.new_turn()
        await here.command("echo 3 > a")
        assert hermes(here, "checkpoints", "status").startswith("2 snapshots of 1 projects")
        assert "terminal: echo 3 > a" in hermes(here, "checkpoints", "list")
        assert '"kind":"turn"' in hermes(here, "checkpoints", "list", "--json", "--limit", "1").replace(" ", "")
        assert "-2\n+3\n" in hermes(here, "checkpoints", "rollback", "diff", "1")
        assert "1 path restored" in hermes(here, "checkpoints", "rollback", "2")
        assert (here.root / "a").read_text() == "1\n"
        # These snapshots are of 2023, so a week is long over.
        assert "2 snapshots deleted" in hermes(here, "checkpoints", "prune")
        assert "before going back" in hermes(here, "checkpoints", "list")
        assert hermes(here, "checkpoints", "clear", "--force") == "All checkpoints are deleted.\n"


def hermes(here: Bench, *words: str) -> str:
    """What the real command prints in the project."""
    home = here.checkpoints.folder.parent
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
        cwd=here.root,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
