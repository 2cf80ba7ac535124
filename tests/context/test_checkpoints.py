"""Checkpoints: what is taken when, what comes back, and what is left alone."""

import asyncio
import os
import random
import stat
import subprocess
import time
from pathlib import Path

import pytest

from hermes.context import ContextEngine
from hermes.context.checkpoints import CheckpointError, CheckpointLimits, Checkpoints, Touch
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.context.bench_room import bench, tree

ROUNDS = 150 if os.environ.get("HERMES_TEST_FULL") == "1" else 6


def test_the_context_engine_is_a_public_name() -> None:
    assert ContextEngine.__name__ == "ContextEngine"


async def test_an_edit_is_taken_back(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        file = here.root / "a.txt"
        file.write_text("old")
        before = tree(here.root)
        await here.edit(lambda: file.write_text("new"), "a.txt")
        done = await here.restore()
        assert tree(here.root) == before
        assert (done.restored, done.kept) == (("a.txt",), ())


async def test_a_large_file_that_is_gone_is_told_and_a_file_nobody_knows_is_refused(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_file_bytes=100)) as here:
        here.shell("head -c 200 /dev/zero > big; echo a > a.txt")
        await here.command("rm big a.txt", destructive=True)
        with pytest.raises(CheckpointError, match="neither there nor in the snapshot"):
            await here.restore("1", "nosuch")
        done = await here.restore()
        assert (done.restored, done.not_in_snapshot) == (("a.txt",), ("big",))


async def test_every_kind_of_change_by_a_command_is_taken_back_exactly(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        here.shell(
            r"""
            mkdir -p src/deep empty 'with space'; echo one > src/a.py; echo two > src/deep/b.py
            echo x > 'with space/ü"q'; printf 'a\r\nb' > crlf.txt; printf '\x00\xff\x01' > raw; echo run > tool.sh
            chmod 750 tool.sh; chmod 600 raw
            ln -s src/a.py link; ln -s nowhere dangling; ln -s src linked; echo n > $'new\nline'; chmod 700 src/deep
            echo '*.py text eol=crlf filter=lfs' > .gitattributes; echo 'crlf.txt' > .gitignore
            """
        )
        before = tree(here.root)
        await here.command(
            r"""
            rm -r src/deep; mv src/a.py moved.py; rmdir empty; chmod 4711 tool.sh; chmod 644 raw; sed -i s/a/z/ crlf.txt
            rm link; echo file > link; ln -sfn elsewhere dangling; rm linked; mkdir linked; echo in > linked/x
            rm -r 'with space'; echo file > 'with space'; mkdir -p new/er; echo y > new/er/z; rm $'new\nline'
            """,
            destructive=True,
        )
        assert tree(here.root) != before
        done = await here.restore()
        assert tree(here.root) == before
        assert done.kept == ()


async def test_the_projects_own_git_is_not_touched(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        here.shell(
            "git init -q .; git config user.email a@b; git config user.name n; echo one > a.txt; git add -A;"
            "git commit -qm one; echo two >> a.txt; git add a.txt; echo three >> a.txt;"
            "mkdir -p .git/hooks; for h in pre-commit post-commit reference-transaction post-index-change; do"
            " printf '#!/bin/sh\\ntouch %s/hooked\\n' \"$PWD\" > .git/hooks/$h; chmod +x .git/hooks/$h; done"
        )
        own = {path: path.stat().st_mtime_ns for path in (here.root / ".git").rglob("*")}
        await here.edit(lambda: (here.root / "a.txt").write_text("agent"), "a.txt")
        await here.restore()
        assert {path: path.stat().st_mtime_ns for path in (here.root / ".git").rglob("*")} == own
        assert (here.root / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert not (here.root / "hooked").exists()


async def test_the_users_git_settings_have_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[core]\n  autocrlf = true\n  hooksPath = /nowhere\n[commit]\n  gpgsign = true\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    async with bench(tmp_path) as here:
        file = here.root / "a.txt"
        file.write_bytes(b"a\r\nb\n")
        await here.edit(lambda: file.write_bytes(b"changed"), "a.txt")
        await here.restore()
        assert file.read_bytes() == b"a\r\nb\n"
        assert not (tmp_path / "elsewhere").exists()


async def test_files_the_user_changed_since_are_kept_and_listed(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        for name in "abcd":
            (here.root / name).write_text(f"{name} old")
        await here.edit(lambda: (here.root / "a").write_text("agent"), "a")
        await here.command("echo agent > b; echo agent > new; rm c")
        (here.root / "b").write_text("the user's")
        (here.root / "d").write_text("the user's")
        (here.root / "mine").write_text("the user's")
        done = await here.restore()
        contents = {path.name: path.read_text() for path in here.root.iterdir() if path.suffix != ".toml"}
    assert contents == {"a": "a old", "b": "the user's", "c": "c old", "d": "the user's", "mine": "the user's"}
    assert done.restored == ("a", "c", "new")
    assert done.kept == ("b", "d", "mine")


async def test_an_edit_of_the_users_between_two_turns_is_not_lost_by_going_back_beyond_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        file, other = here.root / "a", here.root / "b"
        file.write_text("0\n")
        other.write_text("0\n")
        await here.command("echo agent one >> a; echo agent one >> b")
        file.write_text(file.read_text() + "user\n")
        here.new_turn()
        await here.command("echo agent two >> a; echo agent two >> b")
        second, first = await here.checkpoints.list(str(here.root))
        done = await here.restore(first.short_hash)
        assert (done.restored, done.kept) == (("b",), ("a",))
        assert file.read_text() == "0\nagent one\nuser\nagent two\n"
        done = await here.restore(done.undo)
        assert other.read_text() == "0\nagent one\nagent two\n"
        await here.restore(second.hash)  # the user's edit is in that one
        assert file.read_text() == "0\nagent one\nuser\n"


async def test_force_takes_back_the_users_changes_as_well_and_can_be_undone(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        file = here.root / "a"
        file.write_text("old")
        await here.edit(lambda: file.write_text("agent"), "a")
        file.write_text("user")
        done = await here.restore(force=True)
        assert file.read_text() == "old"
        await here.restore(done.undo)
        assert file.read_text() == "user"


async def test_one_file_or_folder_is_restored_alone(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        here.shell("mkdir -p x/y; echo 1 > x/y/a; echo 1 > x/b; echo 1 > c")
        await here.command("rm -r x; echo 2 > c")
        await here.restore(file="x/y/a")
        assert sorted(tree(here.root)) == ["c", "pyproject.toml", "x", "x/y", "x/y/a"]
        await here.restore("2", file="x")
        assert (here.root / "x" / "b").read_text() == "1\n"
        assert (here.root / "c").read_text() == "2\n"
        with pytest.raises(CheckpointError, match="not in"):
            await here.restore(file="../elsewhere")


async def test_nothing_is_written_through_a_link_that_took_a_folders_place(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with bench(tmp_path) as here:
        here.shell("mkdir sub; echo inside > sub/a")
        await here.edit(lambda: (here.root / "sub" / "a").write_text("agent"), "sub/a")
        here.shell(f"rm -r sub; ln -s {outside} sub")
        done = await here.restore()
        assert list(outside.iterdir()) == []
        assert "sub" in " ".join(done.kept)


async def test_a_turn_has_one_snapshot_and_each_destructive_command_its_own(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        for number in range(3):
            await here.command(f"echo {number} > a")
        await here.command("rm a", destructive=True)
        here.new_turn()
        await here.command("echo 5 > a")
        listed = await here.checkpoints.list(str(here.root))
    assert [(one.number, one.kind) for one in listed] == [(1, "turn"), (2, "command"), (3, "turn")]
    # Counted from what is there now, a file of one line: what going back would change.
    assert [(one.files_changed, one.insertions, one.deletions) for one in listed] == [(1, 0, 1), (1, 1, 1), (1, 0, 1)]
    assert listed[0].reason == "terminal: echo 5 > a"
    assert listed[0].session_id == "s1"


async def test_an_unchanged_project_gets_no_further_snapshot_and_starts_no_process(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        (here.root / "a").write_text("1")
        os.utime(here.root / "a")
        await here.command("true")
        for _ in range(2):
            here.new_turn()
            await asyncio.to_thread(_wait_for_next_tick)
            await here.command("true")
        started: list[tuple[str, ...]] = []
        supervisor = here.checkpoints.store._supervisor
        spawn = supervisor.spawn

        async def counted(decision: object, spec: object) -> object:
            started.append(spec.argv)  # type: ignore[attr-defined]  # what the store hands over
            return await spawn(decision, spec)  # type: ignore[arg-type]

        here.checkpoints.store._supervisor = type("Counted", (), {"spawn": staticmethod(counted)})()
        here.new_turn()
        await here.checkpoints.before(
            Touch(call_id="x", turn_id="new", session_id="s", tool="t", paths=(), cwd=str(here.root))
        )
        here.checkpoints.store._supervisor = supervisor
        assert started == []
        assert len(await here.numbers()) == 1


def _wait_for_next_tick() -> None:
    """Until files written before now are old enough to be sure of."""
    end = time.time_ns() + 60_000_000
    while time.time_ns() < end:
        os.sched_yield()


async def test_what_is_left_out_stays_as_it_is(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_file_bytes=100)) as here:
        here.shell(
            "mkdir node_modules .venv; echo 1 > node_modules/a; echo 1 > .env; head -c 200 /dev/zero > big; echo 1 > a"
        )
        await here.command("echo 2 > node_modules/a; echo 2 > .env; echo 2 > a; echo more >> big")
        done = await here.restore()
        assert (here.root / "a").read_text() == "1\n"
        assert (here.root / ".env").read_text() == "2\n"
        assert (here.root / "node_modules" / "a").read_text() == "2\n"
        assert (here.root / "big").stat().st_size == 205
        assert done.not_in_snapshot == ("big",)


async def test_the_diff_shows_what_has_changed_since(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        (here.root / "a.py").write_text("one\ntwo\n")
        await here.command("printf 'one\\nthree\\n' > a.py; echo n > new.py")
        shown = await here.checkpoints.diff(str(here.root), "1")
        assert "--- a/a.py\n+++ b/a.py\n" in shown
        assert "-two\n+three\n" in shown
        assert "+++ b/new.py" in shown
        assert len(await here.numbers()) == 1


async def test_nested_repositories_are_covered_like_any_folder(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        here.shell("mkdir inner; git init -q inner; echo 1 > inner/a")
        await here.command("rm inner/a", destructive=True)
        await here.restore()
        assert (here.root / "inner" / "a").read_text() == "1\n"


async def test_the_oldest_turns_go_when_there_are_too_many_with_all_that_is_theirs(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_snapshots=2)) as here:
        for number in range(4):
            here.new_turn()
            await here.command(f"echo {number} > a")
            for step in range(3):
                await here.command(f"echo {number}.{step} > a", destructive=True)
        listed = await here.checkpoints.list(str(here.root))
    assert [one.kind for one in listed] == ["command"] * 3 + ["turn"] + ["command"] * 3 + ["turn"]
    assert len({one.turn_id for one in listed}) == 2


async def test_pruning_removes_the_old_the_orphaned_and_what_they_took(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        noise = random.Random(1).randbytes(400_000)
        (here.root / "noise").write_bytes(noise)
        await here.command("echo 1 > a")
        assert (await here.checkpoints.status())["size_bytes"] > 300_000
        here.now[0] += 8 * 86_400
        freed = await here.checkpoints.prune()
        assert freed["snapshots"] == 1
        assert freed["bytes"] > 300_000
        assert await here.numbers() == []
        here.new_turn()
        await here.command("echo 2 > a")  # the index was forgotten with what it stood on
        here.new_turn()
        await here.command("echo 3 > a")
        await here.restore("2")
        here.root.rename(tmp_path / "gone")
        assert (await here.checkpoints.status())["projects"][0]["is_orphan"]
        assert (await here.checkpoints.prune(CheckpointLimits(delete_orphans=False)))["snapshots"] == 0
        assert (await here.checkpoints.prune())["projects"] == 1


async def test_the_store_stays_below_its_size(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_total_bytes=1_000_000)) as here:
        source = random.Random(2)
        for number in range(6):
            here.new_turn()
            (here.root / "noise").write_bytes(source.randbytes(300_000))
            await here.command(f"echo {number} > a")
        assert (await here.checkpoints.status())["size_bytes"] < 1_100_000
        assert 0 < len(await here.numbers()) < 6


async def test_clearing_leaves_nothing_and_the_next_snapshot_begins_anew(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        await here.command("echo 1 > a")
        await here.checkpoints.clear()
        assert (await here.checkpoints.status())["projects"] == []
        here.new_turn()
        await here.command("echo 2 > a")
        await here.restore()
        assert (here.root / "a").read_text() == "1\n"


async def test_another_process_goes_on_where_this_one_was(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        (here.root / "a").write_text("old")
        await here.command("echo agent > a; chmod 600 a")
        supervisor, pool = ProcessSupervisor(), DaemonPool()
        other = Checkpoints(
            here.checkpoints.folder.parent, supervisor, pool.run, CheckpointLimits(), lambda: here.now[0]
        )
        done = await other.restore(str(here.root / "."), "1")
        await supervisor.close()
        pool.close()
        assert done.restored == ("a",)
        assert (here.root / "a").read_text() == "old"


async def test_two_at_once_in_one_project_do_not_disturb_each_other(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        for number in range(20):
            (here.root / f"f{number}").write_text("old")

        async def edit(number: int) -> None:
            file = here.root / f"f{number}"
            await here.edit(lambda: file.write_text("new"), file.name)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(edit(number))
        done = await here.restore(str(len(await here.numbers())))
        assert len(done.restored) == 20
        assert {(here.root / f"f{number}").read_text() for number in range(20)} == {"old"}


@pytest.mark.parametrize("where", ["/", "~", "~/..", "/tmp", "/etc"])
async def test_no_snapshot_is_taken_of_a_home_or_a_folder_of_the_system(where: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        home = Path.home()
        home.mkdir(exist_ok=True)
        folder = str(home / "..") if where == "~/.." else str(home) if where == "~" else where
        touch = Touch(call_id="c", turn_id="t", session_id="s", tool="terminal", paths=(), cwd=folder, is_command=True)
        assert await here.checkpoints.before(touch) == ()
        with pytest.raises(CheckpointError, match="no snapshots are taken"):
            here.checkpoints.root(folder)


async def test_a_folder_that_became_a_link_to_itself_or_to_another_folder_comes_back(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        here.shell("mkdir a b c; echo 1 > a/x; echo 1 > b/x")
        before = tree(here.root)
        await here.command("rm -r a b; ln -s a a; ln -s c b")
        done = await here.restore()
        assert done.kept == ()
        assert tree(here.root) == before


async def test_a_command_that_reaches_into_another_project_is_covered_there_too(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        other, loose = tmp_path / "other", tmp_path / "loose"
        for folder in (other, loose):
            folder.mkdir()
            (folder / "a").write_text("old")
        (other / "Makefile").write_text("all:\n")
        paths = (str(here.root), str(other / "a"), str(loose / "a"), "/etc/hosts")
        touch = Touch(
            call_id="c", turn_id="t", session_id="s", tool="t", paths=paths, cwd=str(here.root), is_command=True
        )
        taken = await here.checkpoints.before(touch)
        assert [one.directory for one in taken] == [str(here.root), str(other)]
        (other / "a").unlink()
        await here.checkpoints.after(touch)
        assert (await here.checkpoints.restore(str(other), "1")).restored == ("a",)


async def test_too_many_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    async with bench(tmp_path, CheckpointLimits(max_files=10)) as here:
        here.shell("for n in $(seq 20); do echo > f$n; done")
        with pytest.raises(CheckpointError, match="more than 10 files"):
            await here.command("true")


async def test_unknown_snapshots_are_refused(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        await here.command("echo 1 > a")
        for which in ("0", "2", "zzzz", "dead", "", "-1", "1; rm"):
            with pytest.raises(CheckpointError, match="no snapshot"):
                await here.restore(which)


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_random_commands_are_taken_back_exactly(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    async with bench(tmp_path) as here:
        _shuffle(here.root, source, 25)
        before = tree(here.root)
        touch = Touch(
            call_id="c", turn_id="t", session_id="s", tool="terminal", paths=(), cwd=str(here.root), is_command=True
        )
        await here.checkpoints.before(touch)
        _shuffle(here.root, source, 25)
        await here.checkpoints.after(touch)
        after = tree(here.root)
        done = await here.restore()
        assert done.kept == ()
        assert tree(here.root) == before
        assert (await here.restore(done.undo)).kept == ()
        assert tree(here.root) == after


def _shuffle(root: Path, source: random.Random, steps: int) -> None:
    """Make, change, move, link, chmod and delete things, a step at a time."""
    for _ in range(steps):
        there = [path for path in root.rglob("*") if not path.name.startswith("pyproject")]
        folders = [root, *(path for path in there if path.is_dir() and not path.is_symlink())]
        place = source.choice(folders) / source.choice(["a", "b", "c", "é", "x y", "q'"])
        kind = source.randrange(6)
        if kind == 0 and not os.path.lexists(place):
            place.mkdir(mode=source.choice([0o755, 0o700]))
        elif kind == 1 and not place.is_dir() and not place.is_symlink():
            place.write_bytes(source.randbytes(source.randrange(50)))
            place.chmod(source.choice([0o644, 0o600, 0o755, 0o711]))
        elif kind == 2 and not os.path.lexists(place):
            place.symlink_to(source.choice(["a", "../b", "nowhere"]))
        elif kind == 3 and there:
            subprocess.run(["rm", "-rf", str(source.choice(there))], check=True)
        elif kind == 4 and there and not os.path.lexists(place):
            chosen = source.choice(there)
            if chosen not in place.parents:
                chosen.rename(place)
        elif kind == 5 and there:
            chosen = source.choice(there)
            if stat.S_ISREG(chosen.lstat().st_mode):
                chosen.chmod(source.choice([0o644, 0o640, 0o755]))
