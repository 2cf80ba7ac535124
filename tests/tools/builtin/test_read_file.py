"""`read_file` as a model calls it, on real files."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.tools.files.file_memory import FileMemo
from tests.tools.files.workbench import Task, task_in


@pytest.fixture
async def task(tmp_path: Path) -> AsyncIterator[Task]:
    async with task_in(tmp_path) as task:
        yield task


async def test_lines_are_numbered_and_counted(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    assert await task.call("read_file", path="a.txt") == {
        "content": "1|one\n2|two\n3|",
        "total_lines": 2,
        "file_size": 8,
        "truncated": False,
        "is_binary": False,
        "is_image": False,
    }


async def test_page_says_where_to_go_on(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))

    page = await task.call("read_file", path="a.txt", offset=11, limit=2)

    assert page["content"] == "11|line 11\n12|line 12"
    assert page["truncated"] is True
    assert page["hint"] == "lines 11-12 of 100; go on with offset=13"


async def test_empty_file_has_no_content(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()

    page = await task.call("read_file", path="a.txt")

    assert (page["content"], page["total_lines"], page["truncated"]) == ("", 0, False)


async def test_long_line_is_cut_with_a_mark(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 5000 + "\n")

    page = await task.call("read_file", path="a.txt")

    assert page["content"] == "1|" + "x" * 2000 + " … [line cut, 5000 characters in all]\n2|"


async def test_missing_file_names_similar_ones(task: Task, tmp_path: Path) -> None:
    (tmp_path / "settings.py").touch()
    (tmp_path / "other.md").touch()

    page = await task.call("read_file", path="setings.py")

    assert page["error"] == "no file 'setings.py'"
    assert page["similar_files"] == ["settings.py"]
    assert (page["content"], page["total_lines"], page["file_size"]) == ("", 0, 0)


@pytest.mark.parametrize(
    ("data", "content", "encoding"),
    [
        ("a\nü\n".encode("utf-16"), "1|a\n2|ü\n3|", "utf-16-le with BOM"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "1|a\n2|b\n3|", "utf-8 with BOM"),
        (b"caf\xe9\n", "1|café\n2|", "latin-1"),
    ],
)
async def test_encodings_are_shown_as_text(
    task: Task, tmp_path: Path, data: bytes, content: str, encoding: str
) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    page = await task.call("read_file", path="a.txt")

    assert page["content"] == content
    assert encoding in page["hint"]


async def test_picture_and_binary_are_not_shown(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "b.so").write_bytes(b"\x7fELF")
    (tmp_path / "c").write_bytes(b"\x00\x01\x02" * 100)

    picture = await task.call("read_file", path="a.png")
    library = await task.call("read_file", path="b.so")
    unnamed = await task.call("read_file", path="c")

    assert (picture["is_image"], "vision_analyze" in picture["hint"]) == (True, True)
    assert (library["is_binary"], "binary file (.so)" in library["error"]) == (True, True)
    assert (unnamed["is_binary"], unnamed["content"]) == (True, "")


async def test_devices_pipes_and_folders_are_refused(task: Task, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")

    assert "named pipe" in (await task.call("read_file", path="pipe"))["error"]
    assert "device" in (await task.call("read_file", path="zero"))["error"]
    assert "device" in (await task.call("read_file", path="/dev/stdin"))["error"]
    assert "is a folder" in (await task.call("read_file", path="."))["error"]


async def test_unchanged_page_is_not_shown_twice(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    await task.call("read_file", path="a.txt")

    second = await task.call("read_file", path="a.txt")
    third = await task.call("read_file", path="a.txt")
    (tmp_path / "a.txt").write_text("other\n")
    changed = await task.call("read_file", path="a.txt")

    assert (second["status"], second["dedup"], second["content_returned"]) == ("unchanged", True, False)
    assert third["error"].startswith("BLOCKED")
    assert changed["content"] == "1|other\n2|"


async def test_third_equal_read_warns_and_the_fourth_is_blocked(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    answers = []
    for _ in range(4):
        answers.append(await task.call("read_file", path="a.txt"))
        FileMemo.of(task.memo).shown.clear()

    assert "_warning" not in answers[1]
    assert "_warning" in answers[2]
    assert answers[3]["error"].startswith("BLOCKED")


async def test_growing_file_may_be_read_again_and_again(task: Task, tmp_path: Path) -> None:
    for number in range(1, 7):
        (tmp_path / "log.txt").write_text("x" * number)

        assert (await task.call("read_file", path="log.txt"))["content"] == "1|" + "x" * number


async def test_page_over_the_character_limit_is_an_error_with_a_fitting_limit(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 100 + "\n" + ("y" * 100 + "\n") * 50)
    task.settings["file_read_max_chars"] = 1000

    page = await task.call("read_file", path="a.txt")

    assert "try limit=" in page["error"]
    assert page["content"] == ""


async def test_all_of_one_huge_line_is_reached_behind_a_handle(task: Task) -> None:
    line = "".join(chr(0x61 + n % 26) for n in range(1_000_000))
    handle = await task.shelf.put("big", line.encode())

    found, offset = [], 1
    while True:
        page = await task.call("read_file", path=handle, offset=offset, limit=45)
        lines = page["content"].split("\n")
        found += [shown.partition("|")[2] for shown in lines]
        if not page["truncated"]:
            break
        offset += len(lines)

    assert "".join(found) == line


async def test_page_of_a_huge_file_reads_only_its_beginning(task: Task, tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.write(b"some line of a log\n" * 100_000)
        file.truncate(3 << 30)  # sparse: no disk is used

    page = await task.call("read_file", path="huge.log", limit=500)

    assert page["truncated"] is True
    assert page["file_size"] == 3 << 30
    assert page["content"].endswith("500|some line of a log")
    assert page["hint"] == "lines 1-500 of more than 100000; go on with offset=501"


KEY = [
    "-----BEGIN RSA PRIVATE KEY-----",
    *(f"MIIEpAIBAAKCAQEA{n:04}x9Zb+/kQ" for n in range(25)),
    "-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize(
    ("offset", "limit", "numbers"),
    [(1, 20, [*range(1, 12)]), (20, 100, [38, 39, 40, 41]), (15, 10, []), (12, 1, []), (1, 11, [*range(1, 12)])],
)
async def test_private_key_is_hidden_on_every_page_that_cuts_it(
    task: Task, tmp_path: Path, offset: int, limit: int, numbers: list[int]
) -> None:
    lines = [*(f"line {number}" for number in range(1, 11)), *KEY, "after", "more", "last"]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")

    page = await task.call("read_file", path="a.txt", offset=offset, limit=limit)

    assert "MIIE" not in page["content"]
    assert [int(line.partition("|")[0]) for line in page["content"].split("\n") if line] == numbers
    assert ("belong to the secret that is shown at line 11" in page.get("hint", "")) == (offset > 11)
    assert page["truncated"] == (offset + limit < 41)


async def test_private_key_without_its_end_is_hidden(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(["x", *KEY[:-1]]) + "\n")
    (tmp_path / "b.py").write_text(f"BEGIN = {KEY[0]!r}\nprint(BEGIN)\n")

    cut = await task.call("read_file", path="a.txt")
    source = await task.call("read_file", path="b.py")

    assert "MIIE" not in cut["content"]
    assert source["content"] == f"1|BEGIN = {KEY[0]!r}\n2|print(BEGIN)\n3|"
