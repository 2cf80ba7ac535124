"""`search_files` as a model calls it, with real ripgrep, and with grep and find where that is missing."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.tools.environments.local import LocalEnvironment
from tests.tools.files.workbench import Task, task_in


class FarEnvironment(LocalEnvironment):
    """The local shell, taken for a remote one: nothing of ours is installed there."""

    kind = "ssh"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".hidden").mkdir()
    (root / "src/a.py").write_text("import os\n\ndef needle():\n    return os\n")
    (root / "src/b.py").write_text("x = 'needle: one'\ny = 2\n")
    (root / "notes.md").write_text("no such thing\nneedle here\nand needle here\n")
    (root / "ignored.log").write_text("needle\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / ".hidden/c.py").write_text("needle\n")
    (root / "bin.dat").write_bytes(b"needle\0\1\2")
    for age, name in enumerate(["src/a.py", "src/b.py", "notes.md"]):
        os.utime(root / name, (1_000_000 + age, 1_000_000 + age))
    return root


@pytest.fixture(params=["rg", "grep"])
async def task(request: pytest.FixtureRequest, tree: Path, tmp_path: Path) -> AsyncIterator[Task]:
    if request.param == "rg":
        async with task_in(tree) as task:
            yield task
        return
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in (
        "bash",
        "grep",
        "find",
        "awk",
        "sort",
        "sed",
        "cut",
        "pwd",
        "cat",
        "mv",
        "rm",
        "mkdir",
        "dirname",
        "env",
    ):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    (tree / "ignored.log").unlink()  # grep knows nothing of .gitignore
    async with task_in(tree, {"PATH": str(tools)}) as task:
        task.environment.__class__ = FarEnvironment  # the same shell, without our own ripgrep
        yield task


def places(answer: dict[str, Any]) -> list[tuple[str, int]]:
    return [(match["path"], match["line"]) for match in answer["matches"]]


async def test_matches_come_with_path_line_and_text(task: Task) -> None:
    answer = await task.call("search_files", pattern="needle")

    assert places(answer) == [("notes.md", 2), ("notes.md", 3), ("src/a.py", 3), ("src/b.py", 1)]
    assert answer["matches"][3] == {"path": "src/b.py", "line": 1, "content": "x = 'needle: one'"}
    assert answer["total_count"] == 4
    assert "truncated" not in answer


async def test_pages_fit_together(task: Task) -> None:
    whole = await task.call("search_files", pattern="needle")
    first = await task.call("search_files", pattern="needle", limit=3)
    second = await task.call("search_files", pattern="needle", limit=3, offset=3)

    assert places(first) + places(second) == places(whole)
    assert (first["truncated"], first["total_count"]) == (True, 4)
    assert first["hint"] == "1 more; go on with offset=3"
    assert "truncated" not in second


async def test_glob_and_folder_narrow_the_search(task: Task) -> None:
    by_glob = await task.call("search_files", pattern="needle", file_glob="*.py")
    in_folder = await task.call("search_files", pattern="needle", path="src")
    in_file = await task.call("search_files", pattern="needle", path="notes.md")

    assert places(by_glob) == [("src/a.py", 3), ("src/b.py", 1)]
    assert places(in_folder) == [("src/a.py", 3), ("src/b.py", 1)]
    assert places(in_file) == [("notes.md", 2), ("notes.md", 3)]


async def test_names_of_files_and_counts(task: Task) -> None:
    names = await task.call("search_files", pattern="needle", output_mode="files_only")
    counts = await task.call("search_files", pattern="needle", output_mode="count", file_glob="*.{md,py}")

    assert (names["files"], names["total_count"]) == (["notes.md", "src/a.py", "src/b.py"], 3)
    if task.environment.kind == "local":
        assert counts["counts"] == {"notes.md": 2, "src/a.py": 1, "src/b.py": 1}
        assert counts["total_count"] == 4


async def test_counts_list_files_without_a_match(task: Task) -> None:
    counts = await task.call("search_files", pattern="import", output_mode="count", file_glob="*.py")

    assert counts["counts"] == {"src/a.py": 1, "src/b.py": 0}


async def test_context_is_given_around_each_match(task: Task) -> None:
    answer = await task.call("search_files", pattern="def needle", context=1)

    assert answer["matches"] == [
        {
            "path": "src/a.py",
            "line": 3,
            "content": "def needle():",
            "before": ["2|"],
            "after": ["4|    return os"],
        }
    ]
    assert answer["total_count"] == 1


async def test_files_by_name_newest_first(task: Task) -> None:
    answer = await task.call("search_files", pattern="*.py", target="files")
    part = await task.call("search_files", pattern="note", target="find")
    deep = await task.call("search_files", pattern="src/*.py", target="files")

    assert answer["files"] == ["src/b.py", "src/a.py"]
    assert part["files"] == ["notes.md"]
    assert deep["files"] == ["src/b.py", "src/a.py"]


async def test_pattern_is_never_read_by_the_shell(task: Task, tree: Path) -> None:
    answer = await task.call("search_files", pattern="$(touch pwned)'; touch pwned #", file_glob="$(touch pwned)")

    assert answer["total_count"] == 0
    assert not (tree / "pwned").exists()


async def test_leading_dash_is_a_pattern(task: Task, tree: Path) -> None:
    (tree / "d.txt").write_text("--files\n")

    assert places(await task.call("search_files", pattern="--files")) == [("d.txt", 1)]


async def test_bad_expression_is_explained(task: Task) -> None:
    with pytest.raises(ToolError, match="the search failed"):
        await task.call("search_files", pattern="needle(")


async def test_nothing_found_is_no_error(task: Task) -> None:
    assert await task.call("search_files", pattern="nowhere to be found") == {"total_count": 0, "matches": []}


async def test_missing_folder_names_similar_ones(task: Task) -> None:
    answer = await task.call("search_files", pattern="x", path="scr")

    assert answer["error"] == "no file or folder 'scr'"
    assert answer["similar_paths"] == ["src"]


async def test_same_search_is_warned_of_and_then_blocked(task: Task) -> None:
    answers = [await task.call("search_files", pattern="needle") for _ in range(3)]

    assert "_warning" not in answers[1]
    assert "_warning" in answers[2]
    with pytest.raises(ToolError, match="BLOCKED"):
        await task.call("search_files", pattern="needle")


async def test_same_search_with_another_result_is_no_repeat(task: Task, tree: Path) -> None:
    for number in range(6):
        (tree / "notes.md").write_text("needle\n" * number)

        assert (await task.call("search_files", pattern="needle", path="notes.md"))["total_count"] == number


async def test_working_directory_stays(task: Task, tree: Path) -> None:
    await task.call("search_files", pattern="needle", path="src")

    assert task.environment.cwd == str(tree)


async def test_stored_result_is_searched_by_its_handle(task: Task) -> None:
    handle = await task.shelf.put("log", b"one\ntwo needle\nthree\n" * 10)

    answer = await task.call("search_files", pattern="needle", path=handle, limit=2)

    assert answer["matches"][1] == {"path": handle, "line": 5, "content": "two needle"}
    assert answer["total_count"] == 10


async def test_long_line_is_cut(task: Task, tree: Path) -> None:
    (tree / "min.js").write_text("needle" + "x" * 5000 + "\n")

    answer = await task.call("search_files", pattern="needle", path="min.js")

    assert len(answer["matches"][0]["content"]) <= 500


async def test_a_glob_that_would_not_act_is_refused(task: Task) -> None:
    with pytest.raises(ToolError, match="give the glob as the pattern"):
        await task.call("search_files", pattern="*", target="files", file_glob="*.py")
