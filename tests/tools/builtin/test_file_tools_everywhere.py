"""The file tools do the same wherever the session runs: here, over ssh, and in containers of docker and podman."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Environment
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.builtin.test_patch_tasks import TASKS
from tests.tools.environments.conformance import run
from tests.tools.files.workbench import Task, local_environment
from tests.tools.real_backends import Engine, SshServer, container, over_ssh

IS_FULL = os.environ.get("HERMES_TEST_FULL") == "1"
MATCHES = [("a.py", 1, "x = 'needle'"), ("sub/b b.py", 2, "  needle = 2"), ("sub/b b.py", 3, "needle()")]
FEWER = slice(None, None, 8)  # of the edits, where each takes several commands on another machine


class FarFileTools:
    """What depends on the programs of the other side: edits, modes and links, searches.

    Subclasses give the fixture `environment`, one that stands in an empty folder.
    """

    @pytest.fixture
    async def supervisor(self) -> AsyncIterator[ProcessSupervisor]:
        one = ProcessSupervisor()
        yield one
        await one.close()

    @pytest.fixture
    async def task(self, supervisor: ProcessSupervisor, environment: Environment) -> AsyncIterator[Task]:
        async with TurnScope(timeout_s=300) as scope:
            yield Task(environment, supervisor, scope)

    async def test_edit_tasks(self, task: Task) -> None:
        home = task.environment.cwd
        is_near = task.environment.kind == "local"
        chosen = TASKS if is_near or IS_FULL else TASKS[FEWER]
        for number, edit in enumerate(chosen):
            await run(task.environment, f"mkdir {home}/{number} && cd {home}/{number}")
            for name, text in edit.before.items():
                await task.environment.write(name, text.encode() if isinstance(text, str) else text)
            answers = [await task.call("patch", **call) for call in edit.calls]
            assert answers[-1]["success"] is not edit.fails, (edit.name, answers)
            for name, expected in edit.after.items():
                there = await task.environment.stat(name)
                found = await task.environment.read(name) if there else None
                assert found == (expected.encode() if isinstance(expected, str) else expected), edit.name

    async def test_bytes_mode_and_link_stay(self, task: Task) -> None:
        before = b"\xef\xbb\xbfone\r\ntwo\nthree"
        await task.environment.write("real.sh", before, mode=0o750)
        await run(task.environment, "ln -s real.sh link.sh")
        answer = await task.call("patch", mode="replace", path="link.sh", old_string="two", new_string="2")
        assert answer["diff"].startswith("--- a/link.sh\n+++ b/link.sh\n@@ -1,3 +1,3 @@\n")
        assert await task.environment.read("real.sh") == before.replace(b"two", b"2")
        info, link = await task.environment.stat("real.sh"), await task.environment.stat("link.sh")
        assert info is not None
        assert link is not None
        assert (info.mode, link.is_link) == (0o750, True)
        written = await task.call("write_file", path="deep/er/new.sh", content="if\n")
        assert (written["bytes_written"], written["dirs_created"]) == (3, True)
        assert written["lint"]["status"] == "error"
        assert "syntax error" in written["lint"]["output"]

    async def test_searches(self, task: Task) -> None:
        await task.environment.write("a.py", b"x = 'needle'\ny = 1\n")
        await task.environment.write("sub/b b.py", b"one\n  needle = 2\nneedle()\n")
        await task.environment.write("sub/c.txt", b"nothing\n")
        await task.environment.write(".hidden/d.py", b"needle\n")
        await task.environment.write("bin.dat", b"needle\0\1")
        found = await task.call("search_files", pattern="needle", file_glob="*.py")
        assert sorted(_rows(found)) == MATCHES
        paged = [await task.call("search_files", pattern="needle", limit=2, offset=n) for n in (0, 2)]
        assert [row for page in paged for row in _rows(page)] == MATCHES
        assert (paged[0]["total_count"], paged[0]["truncated"]) == (3, True)
        around = await task.call("search_files", pattern="needle = 2", context=1)
        assert (around["matches"][0]["before"], around["matches"][0]["after"]) == (["1|one"], ["3|needle()"])
        names = await task.call("search_files", pattern="needle", output_mode="files_only")
        assert sorted(names["files"]) == ["a.py", "sub/b b.py"]
        counts = await task.call("search_files", pattern="needle", output_mode="count", file_glob="*.py")
        assert counts["counts"] == {"a.py": 1, "sub/b b.py": 2}
        files = await task.call("search_files", pattern="*.py", target="files")
        assert sorted(files["files"]) == ["a.py", "sub/b b.py"]
        one = await task.call("search_files", pattern="needle", path="sub/b b.py")
        assert one["total_count"] == 2
        missing = await task.call("search_files", pattern="x", path="subb")
        assert "sub" in missing["similar_paths"]
        handle = await task.shelf.put("r", b"first\nneedle in a result\n")
        assert (await task.call("search_files", pattern="needle", path=handle))["matches"][0]["line"] == 2
        with pytest.raises(ToolError, match="failed"):
            await task.call("search_files", pattern="(")


class FileTools(FarFileTools):
    """And what asks of a backend only what the suite of every backend asks of it as well."""

    async def test_pages_encodings_and_what_is_no_text(self, task: Task) -> None:
        await task.environment.write("long.txt", b"".join(b"line %d\r\n" % number for number in range(1, 3001)))
        await task.environment.write("wide.txt", "grüße\n".encode("utf-16"))
        await task.environment.write("nul.dat", bytes(range(256)))
        await task.environment.write("empty.txt", b"")
        page = await task.call("read_file", path="long.txt", offset=2001, limit=2)
        assert page["content"] == "2001|line 2001\n2002|line 2002"
        assert (page["total_lines"], page["truncated"]) == (3000, True)
        assert (await task.call("read_file", path="wide.txt"))["content"] == "1|grüße\n2|"
        assert (await task.call("read_file", path="nul.dat"))["is_binary"]
        assert (await task.call("read_file", path="empty.txt"))["content"] == ""
        assert (await task.call("read_file", path="longg.txt"))["similar_files"] == ["long.txt"]
        assert (await task.call("read_file", path="long.txt", offset=2001, limit=2))["dedup"]

    async def test_a_change_of_someone_else_is_shown_and_kept(self, task: Task) -> None:
        await task.environment.write("a.txt", b"one\n")
        await task.call("read_file", path="a.txt")
        await run(task.environment, "printf 'theirs and longer\\n' > a.txt")
        patched = await task.call("patch", mode="replace", path="a.txt", old_string="one", new_string="two")
        assert patched["current_text"] == {"a.txt": "theirs and longer\n"}
        await run(task.environment, "printf 'theirs again, longer still\\n' > a.txt")
        written = await task.call("write_file", path="a.txt", content="ours\n")
        assert written["current_text"] == {"a.txt": "theirs again, longer still\n"}
        assert await task.environment.read("a.txt") == b"theirs again, longer still\n"

    async def test_a_patch_that_cannot_be_written_leaves_all_as_it_was(self, task: Task) -> None:
        await task.environment.write("a.txt", b"one\n")
        await run(task.environment, "ln -s /proc/nothing-can-be-made-here there")
        text = "*** Update File: a.txt\n-one\n+two\n*** Add File: there/b.txt\n+new\n"
        with pytest.raises(ToolError):
            await task.call("patch", mode="patch", patch=text)
        assert await task.environment.read("a.txt") == b"one\n"

    async def test_what_may_not_be_touched_is_refused(self, task: Task) -> None:
        await run(task.environment, "mkfifo pipe; ln -s /etc/passwd link; ln -s nowhere broken; ln -s /dev/zero zero")
        for path in ("/etc/hosts", "link", "../" * 30 + "etc/hosts", "~/.ssh/config", "~/.bashrc", "pipe", "broken"):
            with pytest.raises(ToolError):
                await task.call("write_file", path=path, content="x")
        assert "named pipe" in (await task.call("read_file", path="pipe"))["error"]
        for path in ("/dev/zero", "zero"):
            assert "device" in (await task.call("read_file", path=path))["error"]
        assert "folder" in (await task.call("read_file", path="."))["error"]


def _rows(found: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(match["path"], match["line"], match["content"]) for match in found["matches"]]


class TestLocal(FileTools):
    """On this machine."""

    @pytest.fixture
    async def environment(self, supervisor: ProcessSupervisor, tmp_path: Path) -> AsyncIterator[Environment]:
        one = local_environment(supervisor, tmp_path)
        yield one
        await one.close()


@pytest.mark.real
class TestSsh(FileTools if IS_FULL else FarFileTools):  # type: ignore[misc]  # chosen when the file is read
    """Over a real sshd on loopback; all of it under ./check --full."""

    @pytest.fixture
    async def environment(
        self, supervisor: ProcessSupervisor, sshd: SshServer, tmp_path: Path
    ) -> AsyncIterator[Environment]:
        (tmp_path / "work").mkdir()
        one = over_ssh(supervisor, sshd, str(tmp_path / "work"))
        yield one
        await one.close()


class TestDocker(FileTools if IS_FULL else FarFileTools):  # type: ignore[misc]  # chosen when the file is read
    """In a container of a real dockerd; all of it under ./check --full."""

    @pytest.fixture
    async def environment(self, supervisor: ProcessSupervisor, docker_engine: Engine) -> AsyncIterator[Environment]:
        one = container(supervisor, docker_engine)
        yield one
        await one.close()


@pytest.mark.full
class TestPodman(FileTools):
    """In a container of a real podman, whose own ways the suite of environments asks about in every run."""

    @pytest.fixture
    async def environment(self, supervisor: ProcessSupervisor, podman_engine: Engine) -> AsyncIterator[Environment]:
        one = container(supervisor, podman_engine)
        yield one
        await one.close()
