"""`patch` as a model calls it, on real files."""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.errors import ToolError
from tests.tools.files.workbench import Task, task_in

KILLS = 200 if os.environ.get("HERMES_TEST_FULL") else 5


@pytest.fixture
async def task(tmp_path: Path) -> AsyncIterator[Task]:
    async with task_in(tmp_path) as task:
        yield task


async def test_replacement_returns_diff_level_and_lines(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\nz = 3\n")

    answer = await task.call("patch", mode="replace", path="a.py", old_string="y = 2", new_string="y = 20")

    assert answer == {
        "success": True,
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 20\n z = 3\n",
        "files_modified": ["a.py"],
        "replacements": 1,
        "level": "exact",
        "lines": [[2, 2]],
        "lint": {"status": "ok", "output": ""},
        "resolved_path": str(tmp_path / "a.py"),
    }
    assert task.notes["diff"] == answer["diff"]


async def test_ambiguous_text_changes_nothing(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\na\n")

    answer = await task.call("patch", mode="replace", path="a.txt", old_string="a", new_string="b")

    assert answer["success"] is False
    assert "2 places (lines 1, 2" in answer["error"]
    assert (tmp_path / "a.txt").read_text() == "a\na\n"


async def test_second_failure_on_a_file_offers_another_way(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def total(items):\n    return sum(items)\n")
    asked = {"mode": "replace", "path": "a.py", "old_string": "def total(item):", "new_string": "def all(item):"}

    first = await task.call("patch", **asked)
    second = await task.call("patch", **asked)

    assert first["nearest"][0]["lines"] == [1, 1]
    assert "_hint" not in first
    assert "write_file" in second["_hint"]


async def test_file_changed_since_it_was_read_is_refused_with_its_text(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    await task.call("read_file", path="a.txt")
    file.write_text("one\ntwo\nthree\n")
    asked = {"mode": "replace", "path": "a.txt", "old_string": "two", "new_string": "2"}

    refused = await task.call("patch", **asked)
    done = await task.call("patch", **asked)

    assert refused["success"] is False
    assert refused["current_text"] == {"a.txt": "one\ntwo\nthree\n"}
    assert done["success"] is True
    assert file.read_text() == "one\n2\nthree\n"


async def test_own_edits_are_no_foreign_change(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    await task.call("read_file", path="a.txt")
    await task.call("patch", mode="replace", path="a.txt", old_string="one", new_string="1")

    assert (await task.call("patch", mode="replace", path="a.txt", old_string="two", new_string="2"))["success"]


@pytest.mark.parametrize(("old", "new"), [("two", "2"), ("two\n", ""), ("one", "one\none and a half")])
async def test_same_edit_again_is_said_to_change_nothing(task: Task, tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    await task.call("patch", mode="replace", path="a.txt", old_string=old, new_string=new)
    text = (tmp_path / "a.txt").read_text()

    answer = await task.call("patch", mode="replace", path="a.txt", old_string=old, new_string=new)

    assert (answer["success"], answer["diff"]) == (True, "")
    assert "nothing was changed" in answer["note"]
    assert (tmp_path / "a.txt").read_text() == text


async def test_mode_and_encoding_stay(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_bytes("echo ü\r\necho b\r\n".encode("utf-16"))
    file.chmod(0o750)

    await task.call("patch", mode="replace", path="a.sh", old_string="echo b", new_string="echo ö\necho c")

    assert file.read_bytes() == "echo ü\r\necho ö\r\necho c\r\n".encode("utf-16")
    assert file.stat().st_mode & 0o777 == 0o750


async def test_character_that_the_file_cannot_hold_is_refused(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 a\n")

    answer = await task.call("patch", mode="replace", path="a.txt", old_string=" a", new_string=" →")

    assert "cannot hold '→'" in answer["error"]
    assert (tmp_path / "a.txt").read_bytes() == b"caf\xe9 a\n"


async def test_missing_file_names_similar_ones(task: Task, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()

    answer = await task.call("patch", mode="replace", path="config.yml", old_string="a", new_string="b")

    assert answer["success"] is False
    assert answer["similar_files"] == ["config.yaml"]


async def test_arguments_that_are_missing_are_named(task: Task) -> None:
    with pytest.raises(ToolError, match="needs 'path'"):
        await task.call("patch", mode="replace", old_string="a", new_string="b")
    with pytest.raises(ToolError, match="V4A text"):
        await task.call("patch", mode="patch")


async def test_new_syntax_error_is_reported(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")

    answer = await task.call("patch", mode="replace", path="a.py", old_string="f():", new_string="f(:")

    assert answer["lint"]["status"] == "error"
    assert "line 1" in answer["lint"]["output"]


PATCH = """*** Begin Patch
*** Update File: a.py
@@ def f @@
 def f():
-    return 1
+    return 2
*** Add File: new/b.py
+x = 1
+
+y = 2
*** Delete File: old.txt
*** Move File: c.txt -> moved/c.txt
*** End Patch
"""


async def test_patch_over_several_files(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    (tmp_path / "old.txt").write_text("bye\n")
    (tmp_path / "c.txt").write_text("c\n")
    (tmp_path / "c.txt").chmod(0o755)

    answer = await task.call("patch", mode="patch", patch=PATCH)

    assert answer["files_modified"] == ["a.py"]
    assert answer["files_created"] == ["new/b.py", "moved/c.txt"]
    assert answer["files_deleted"] == ["old.txt", "c.txt"]
    assert answer["lint"]["a.py"] == {"status": "ok", "output": ""}
    assert (tmp_path / "a.py").read_text() == "def f():\n    return 2\n"
    assert (tmp_path / "new/b.py").read_text() == "x = 1\n\ny = 2\n"
    assert not (tmp_path / "old.txt").exists()
    assert (tmp_path / "moved/c.txt").stat().st_mode & 0o777 == 0o755
    assert "-bye" in answer["diff"]


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def test_patch_with_one_bad_hunk_changes_no_file(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 0\n")
    (tmp_path / "old.txt").write_text("bye\n")
    (tmp_path / "c.txt").write_text("c\n")
    before = files_in(tmp_path)

    answer = await task.call("patch", mode="patch", patch=PATCH)

    assert "a.py: the hunk at patch line 3 was not found" in answer["error"]
    assert files_in(tmp_path) == before


async def test_patch_that_cannot_be_written_half_way_is_undone(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "b.txt").write_text("b\n")
    text = (
        "*** Begin Patch\n*** Update File: a.txt\n-a\n+A\n*** Add File: n.txt\n+n\n"
        "*** Delete File: blocked/b.txt\n*** End Patch\n"
    )

    class Failing(type(task.environment)):  # type: ignore[misc]  # the class of the real environment, known at run time
        async def remove_exact(self, path: str) -> None:
            if path.endswith("b.txt"):
                raise ToolError(f"{path}: Permission denied")
            await super().remove_exact(path)

    task.environment.__class__ = Failing  # a disk that refuses, which root cannot get from permissions
    with pytest.raises(ToolError, match=r"could not be changed .* was undone"):
        await task.call("patch", mode="patch", patch=text)

    assert (tmp_path / "a.txt").read_text() == "a\n"
    assert not (tmp_path / "n.txt").exists()
    assert (tmp_path / "blocked" / "b.txt").read_text() == "b\n"


async def test_patch_again_changes_nothing(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    text = "*** Begin Patch\n*** Update File: a.py\n-    return 1\n+    return 2\n*** End Patch"
    await task.call("patch", mode="patch", patch=text)

    answer = await task.call("patch", mode="patch", patch=text)

    assert (answer["success"], answer["diff"]) == (True, "")
    assert "already in place" in answer["note"]


async def test_every_file_of_a_patch_passes_the_rules(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    text = "*** Begin Patch\n*** Update File: a.txt\n-a\n+b\n*** Add File: ~/.ssh/rc\n+x\n*** End Patch"

    with pytest.raises(ToolError, match="is protected"):
        await task.call("patch", mode="patch", patch=text)

    assert (tmp_path / "a.txt").read_text() == "a\n"


async def test_large_file_is_patched_in_one_place(task: Task, tmp_path: Path) -> None:
    line = b"some words on a line of a large file\n"
    data = line * 100_000 + b"needle\n" + line * 100_000
    (tmp_path / "big.txt").write_bytes(data)

    answer = await task.call("patch", mode="replace", path="big.txt", old_string="needle", new_string="thread")

    assert answer["lines"] == [[100_001, 100_001]]
    assert len(answer["diff"]) < 1000
    assert (tmp_path / "big.txt").read_bytes() == data.replace(b"needle", b"thread")


async def test_killed_at_any_point_the_file_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    whole = {letter * 300_000 + "\n" for letter in "ab"}
    file.write_text(min(whole))
    draw = random.Random(8)
    for _ in range(KILLS):
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.tools.files.rewriter", str(tmp_path)),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert child.stdout is not None
        for _ in range(draw.randint(1, 6)):  # a line comes before each edit, so the kill falls into one
            assert await asyncio.wait_for(child.stdout.readline(), 60)
        for _ in range(draw.randint(0, 400)):
            await asyncio.sleep(0)
        child.kill()
        await child.wait()

        assert file.read_text() in whole
