"""`write_file` as a model calls it, on real files."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.errors import ToolError
from tests.tools.files.workbench import Task, task_in

EXAMPLES = 1000 if os.environ.get("HERMES_TEST_FULL") else 100


@pytest.fixture
async def task(tmp_path: Path) -> AsyncIterator[Task]:
    async with task_in(tmp_path) as task:
        yield task


async def test_new_file_is_written_with_its_folders(task: Task, tmp_path: Path) -> None:
    answer = await task.call("write_file", path="src/pkg/a.py", content="x = 1\n")

    assert (tmp_path / "src/pkg/a.py").read_text() == "x = 1\n"
    assert answer == {"bytes_written": 6, "dirs_created": True, "lint": {"status": "ok", "output": ""}}
    assert task.notes["diff"] == "--- /dev/null\n+++ b/src/pkg/a.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert task.notes["files_changed"] == [str(tmp_path / "src/pkg/a.py")]


async def test_mode_and_link_stay(task: Task, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo a\n")
    script.chmod(0o755)
    (tmp_path / "link").symlink_to("run.sh")

    await task.call("write_file", path="link", content="echo b\n")

    assert (tmp_path / "link").is_symlink()
    assert script.read_text() == "echo b\n"
    assert script.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nc\n", b"\xef\xbb\xbfa\r\nc\r\n"),
        ("ü\n".encode("utf-16"), "öß\n", "öß\n".encode("utf-16")),
        (b"caf\xe9\n", "caf\u00e8\n", b"caf\xe8\n"),
        (b"a\nb\r\nc\n", "a\nb\nX\nc\n", b"a\nb\r\nX\nc\n"),
        (b"a\nb\n", "a\r\nb\r\n", b"a\r\nb\r\n"),
    ],
)
async def test_encoding_and_line_endings_of_the_file_stay(
    task: Task, tmp_path: Path, before: bytes, content: str, after: bytes
) -> None:
    (tmp_path / "a.txt").write_bytes(before)

    await task.call("write_file", path="a.txt", content=content)

    assert (tmp_path / "a.txt").read_bytes() == after


async def test_text_beyond_latin_1_turns_the_file_to_utf_8_with_a_word(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")

    answer = await task.call("write_file", path="a.txt", content="café → bar\n")

    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "café → bar\n"
    assert "it is UTF-8 now" in answer["warning"]


async def test_only_new_syntax_errors_are_reported(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(:\n    pass\n")

    broken_before = await task.call("write_file", path="a.py", content="x = 1\ndef f(:\n    pass\n")
    newly_broken = await task.call("write_file", path="b.json", content='{"a": }')
    unknown = await task.call("write_file", path="c.txt", content="{")

    assert broken_before["lint"]["status"] == "ok"
    assert newly_broken["lint"] == {
        "status": "error",
        "output": f"{tmp_path}/b.json: line 1, column 7: Expecting value",
    }
    assert unknown["lint"]["status"] == "skipped"


async def test_shell_script_is_checked_by_bash(task: Task, tmp_path: Path) -> None:
    (tmp_path / "old.sh").write_text("if true; then\n")

    right = await task.call("write_file", path="a.sh", content="echo a\n")
    broken = await task.call("write_file", path="b.sh", content="echo a\nif true; then\n")
    known = await task.call("write_file", path="old.sh", content="# more\nif true; then\n")

    assert right["lint"] == {"status": "ok", "output": ""}
    assert broken["lint"]["status"] == "error"
    assert "line 3" in broken["lint"]["output"]
    assert known["lint"]["status"] == "ok"


async def test_missing_checker_is_no_error(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cat", "mv", "rm", "env"):
        (tools / name).symlink_to(shutil.which(name) or "")
    async with task_in(tmp_path, {"PATH": str(tools)}) as task:
        answer = await task.call("write_file", path="a.go", content="package main\n")

    assert answer["lint"]["status"] == "skipped"


async def test_a_change_of_someone_else_is_shown_before_it_is_overwritten(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    await task.call("read_file", path="a.txt")
    (tmp_path / "a.txt").write_text("changed by the user\n")

    refused = await task.call("write_file", path="a.txt", content="two\n")
    kept = (tmp_path / "a.txt").read_text()
    again = await task.call("write_file", path="a.txt", content="changed by the user\ntwo\n")

    assert refused["current_text"] == {"a.txt": "changed by the user\n"}
    assert (refused["bytes_written"], kept) == (0, "changed by the user\n")
    assert "call again" in refused["error"]
    assert "error" not in again
    assert (tmp_path / "a.txt").read_text() == "changed by the user\ntwo\n"


async def test_touched_file_is_not_taken_for_changed(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    await task.call("read_file", path="a.txt")
    os.utime(tmp_path / "a.txt", ns=(1, 1))

    assert "_warning" not in await task.call("write_file", path="a.txt", content="two\n")


async def test_same_content_is_said_to_change_nothing(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    os.utime(file, ns=(1, 1))

    answer = await task.call("write_file", path="a.txt", content="one\n")

    assert "nothing was changed" in answer["_hint"]
    assert file.stat().st_mtime_ns == 1


async def test_cut_line_is_not_written_back(task: Task, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 3000 + "\n")
    page = await task.call("read_file", path="a.txt")
    shown = page["content"].split("\n")[0].removeprefix("1|")

    with pytest.raises(ToolError, match="a line that read_file has cut"):
        await task.call("write_file", path="a.txt", content=shown + "\n")

    assert (tmp_path / "a.txt").read_text() == "x" * 3000 + "\n"


@pytest.mark.parametrize(
    "name", ["~/.ssh/config", "~/.bashrc", "/etc/hosts", "/etc/../etc/passwd", "~/.aws/credentials"]
)
async def test_protected_paths_are_refused(task: Task, name: str) -> None:
    with pytest.raises(ToolError, match="is protected"):
        await task.call("write_file", path=name, content="x")


async def test_links_and_dots_do_not_lead_out_of_the_safe_root(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "broken").symlink_to(outside / "new.txt")
    monkeypatch.setenv("HERMES_WRITE_SAFE_ROOT", str(root))

    for name in ("root/../outside/a.txt", "root/folder/a.txt", str(outside / "a.txt"), "root/folder/deep/er/a.txt"):
        with pytest.raises(ToolError, match="confined"):
            await task.call("write_file", path=name, content="x")
    with pytest.raises(ToolError, match="broken link"):
        await task.call("write_file", path="root/broken", content="x")
    await task.call("write_file", path="root/a.txt", content="x")

    assert list(outside.iterdir()) == []


async def test_safe_root_may_be_a_link(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    monkeypatch.setenv("HERMES_WRITE_SAFE_ROOT", str(tmp_path / "root"))

    await task.call("write_file", path="root/a.txt", content="x")

    assert (tmp_path / "real" / "a.txt").read_text() == "x"


async def test_link_to_a_protected_file_is_refused(task: Task, tmp_path: Path) -> None:
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    (ssh / "config").write_text("Host a\n")
    (tmp_path / "innocent.txt").symlink_to(ssh / "config")

    with pytest.raises(ToolError, match="through a link"):
        await task.call("write_file", path="innocent.txt", content="x")


async def test_pipe_and_folder_are_refused(task: Task, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ToolError, match="named pipe"):
        await task.call("write_file", path="pipe", content="x")
    with pytest.raises(ToolError, match="is a folder"):
        await task.call("write_file", path=".", content="x")


async def test_home_of_another_profile_needs_to_be_meant(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "hermes-home" / "profiles" / "other" / "config.yaml"

    with pytest.raises(ToolError, match="another profile"):
        await task.call("write_file", path=str(file), content="a: 1\n")
    await task.call("write_file", path=str(file), content="a: 1\n", cross_profile=True)

    assert file.read_text() == "a: 1\n"


async def test_gate_is_asked_and_its_no_holds(task: Task, tmp_path: Path) -> None:
    task.gate.closed = (str(tmp_path / "secret"),)

    with pytest.raises(ToolError, match="the user said no"):
        await task.call("write_file", path="secret/a.txt", content="x")

    assert not (tmp_path / "secret").exists()
    assert [(action.kind, action.text) for action in task.gate.asked] == [("write", str(tmp_path / "secret/a.txt"))]


SECRETS = st.sampled_from(
    [
        "ghp_" + "a1B2" * 9,
        'api_key = "zX9' + "q7W" * 8 + '"',
        "api_key=api_key",
        "https://me:pa55w0rd!x@host/",
        "-----BEGIN PRIVATE KEY-----\nMIIB\nAAAA\n-----END PRIVATE KEY-----",
        "\u27e6secret#0123456789ab\u27e7",
        "plain words",
    ]
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(SECRETS, max_size=6), ending=st.sampled_from(["\n", "\r\n"]), restart=st.booleans())
async def test_file_with_secrets_can_be_written_back_unchanged(
    tmp_path: Path, lines: list[str], ending: str, restart: bool
) -> None:
    data = "\n".join([*lines, ""]).replace("\n", ending).encode()
    (tmp_path / "a.env").write_bytes(data)
    async with task_in(tmp_path) as task:
        page = await task.call("read_file", path="a.env")
        content = "\n".join(line.partition("|")[2] for line in page["content"].split("\n"))
        if restart:
            task.memo.clear()
        await task.call("write_file", path="a.env", content=content)

    assert (tmp_path / "a.env").read_bytes() == data


async def test_secret_is_shown_as_a_marker_and_edits_around_it_keep_it(task: Task, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    file = tmp_path / "a.py"
    file.write_text(f'TOKEN = "{secret}"\nx = 1\n')

    page = await task.call("read_file", path="a.py")
    found = await task.call("search_files", pattern="TOKEN")
    line = page["content"].split("\n")[0].removeprefix("1|")
    edited = await task.call(
        "patch", mode="replace", path="a.py", old_string=f"{line}\nx = 1", new_string=f"{line}\nx = 2"
    )
    text = f"*** Update File: a.py\n-{line}\n+{line}  # kept\n"
    patched = await task.call("patch", mode="patch", patch=text)

    assert secret not in str((page, found, edited, patched, task.notes))
    assert file.read_text() == f'TOKEN = "{secret}"  # kept\nx = 2\n'


async def test_unknown_marker_is_not_written(task: Task, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="stands for no known value"):
        await task.call("write_file", path="a.txt", content="key: \u27e6secret#0123456789ab\u27e7\n")

    assert not (tmp_path / "a.txt").exists()


async def test_lines_after_a_secret_of_several_lines_keep_their_numbers(task: Task, tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIB\nAAAA\n-----END PRIVATE KEY-----"
    (tmp_path / "a.txt").write_text(f"first\n{key}\nlast\n")

    page = await task.call("read_file", path="a.txt")

    assert [line.split("|")[0] for line in page["content"].split("\n")] == ["1", "2", "6", "7"]


async def test_secrets_are_shown_where_hiding_is_switched_off(task: Task, tmp_path: Path) -> None:
    task.settings["security"] = {"redact_secrets": False}
    (tmp_path / "a.txt").write_text("ghp_" + "a1B2" * 9)

    assert (await task.call("read_file", path="a.txt"))["content"] == "1|ghp_" + "a1B2" * 9


LINE = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=20)
ENDED = st.tuples(LINE, st.sampled_from(["\n", "\r\n", "\n", "\r"]))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(ENDED, max_size=10),
    tail=LINE,
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"]),
)
async def test_what_was_read_can_be_written_back_unchanged(
    tmp_path: Path, lines: list[tuple[str, str]], tail: str, codec: str
) -> None:
    data = ("".join(line + end for line, end in lines) + tail).encode(codec, "replace")
    (tmp_path / "a.txt").write_bytes(data)
    async with task_in(tmp_path) as task:
        page = await task.call("read_file", path="a.txt")
        if "error" in page:
            return
        shown = page["content"].split("\n") if page["content"] else []
        content = "\n".join(line.partition("|")[2] for line in shown)
        await task.call("write_file", path="a.txt", content=content)

    assert (tmp_path / "a.txt").read_bytes() == data
