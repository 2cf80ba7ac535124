"""What every backend owes: one suite, run against each of them. A backend's test file subclasses `Conformance`."""

import asyncio
import os
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Decision, Environment, ExecResult
from hermes.tools.environments.run_child import CommandInterrupted

ALLOWED = Decision(allowed=True)


async def run(environment: Environment, command: str, **options: Any) -> ExecResult:
    options.setdefault("timeout_s", 60.0)
    return await environment.execute(command, ALLOWED, TurnScope(), **options)


def own(number: int) -> str:
    """A number of seconds that no other test worker uses: what is left of a command is found by it."""
    return f"{number}{os.getpid()}"


class FileConformance:
    """What an environment owes whoever works with its files, a fake as well. Fixture: `environment`."""

    async def test_files_go_both_ways_unchanged(self, environment: Environment) -> None:
        data = bytes(range(256)) * 1000
        await environment.write("deep/er/file.bin", data, mode=0o640)
        info = await environment.stat("deep/er/file.bin")
        assert info is not None
        assert (info.kind, info.size, info.mode) == ("file", len(data), 0o640)
        assert info.path == f"{environment.cwd}/deep/er/file.bin"
        assert await environment.read("deep/er/file.bin") == data
        assert await environment.read("deep/er/file.bin", 255, 3) == data[255:258]
        await environment.write("deep/er/file.bin", b"new")
        changed = await environment.stat("deep/er/file.bin")
        assert changed is not None
        assert (changed.size, changed.mode) == (3, 0o640)
        await environment.write("empty", b"")
        assert await environment.read("empty") == b""

    async def test_the_first_file_of_several_is_found(self, environment: Environment) -> None:
        for name in ("dir/inside", "with 'quotes' $HOME", "new\nline"):
            await environment.write(name, b"1")
        places = ["missing", "dir", "dir/inside/more", "with 'quotes' $HOME", "new\nline"]
        assert await environment.first_file(places) == "with 'quotes' $HOME"
        assert await environment.first_file([f"{environment.cwd}/{place}" for place in reversed(places)]) == (
            f"{environment.cwd}/new\nline"
        )
        assert await environment.first_file(["missing", "dir", "-f"]) is None
        assert await environment.first_file([]) is None

    async def test_folders_are_listed_moved_and_removed(self, environment: Environment) -> None:
        for name in ("b", ".hidden", "with space", "new\nline"):
            await environment.write(f"dir/{name}", b"1")
        assert await environment.list_dir("dir") == sorted(["b", ".hidden", "with space", "new\nline"])
        await environment.rename("dir/b", "other/c")
        assert await environment.stat("dir/b") is None
        assert await environment.read("other/c") == b"1"
        await environment.remove("other/c")
        await environment.remove("other")
        assert await environment.stat("other") is None
        folder = await environment.stat("dir")
        assert folder is not None
        assert folder.kind == "dir"
        with pytest.raises(ToolError, match="dir"):
            await environment.remove("dir")
        assert len(await environment.list_dir("dir")) == 3

    async def test_file_troubles_are_tool_errors(self, environment: Environment) -> None:
        with pytest.raises(ToolError, match="gone"):
            await environment.read("gone")
        with pytest.raises(ToolError, match="gone"):
            await environment.list_dir("gone")
        with pytest.raises(ToolError, match="gone"):
            await environment.remove("gone")
        with pytest.raises(ToolError, match="gone"):
            await environment.rename("gone", "there")

    async def test_nothing_runs_without_an_allowed_decision(self, environment: Environment) -> None:
        with pytest.raises(ToolError, match="choose another way"):
            await environment.execute("touch canary", Decision(allowed=False, reason="choose another way"), TurnScope())
        assert await environment.stat("canary") is None

    async def test_a_closed_environment_says_so(self, environment: Environment) -> None:
        await run(environment, "true")
        await environment.close()
        with pytest.raises(ToolError, match="closed"):
            await run(environment, "echo alive")


class Conformance(FileConformance):
    """Subclasses give the fixtures `environment` (a fresh one, standing in an empty folder) and `kind`."""

    async def test_output_code_and_backend(self, environment: Environment, kind: str) -> None:
        result = await run(environment, "echo out; echo err >&2; exit 3")
        assert sorted(result.output.split()) == ["err", "out"]
        assert (result.exit_code, result.backend, environment.kind) == (3, kind, kind)
        assert (result.timed_out, result.total_bytes) == (False, 8)

    async def test_cwd_is_one_value_for_all_who_ask(self, environment: Environment) -> None:
        await run(environment, "mkdir -p 'a b/ü' && cd 'a b/ü'")
        shown = (await run(environment, "pwd -P")).output.strip()
        assert shown.endswith("/a b/ü")
        assert environment.cwd == shown
        await environment.write("here.txt", b"x")
        assert (await run(environment, "ls")).output == "here.txt\n"
        moved = await run(environment, "pwd", cwd="..")
        assert moved.cwd == environment.cwd == shown.removesuffix("/ü")

    async def test_exports_functions_and_aliases_last(self, environment: Environment) -> None:
        await run(
            environment, "export WORD='it is \"quoted\" $HOME'; greet() { echo \"hi $1\"; }; alias hello='greet you'"
        )
        result = await run(environment, 'printf "%s\\n" "$WORD"; hello')
        assert result.output == 'it is "quoted" $HOME\nhi you\n'
        await run(environment, "unset WORD; exit 4")
        assert (await run(environment, 'echo "[${WORD-none}]"; cd - >/dev/null 2>&1; true')).output == "[none]\n"

    async def test_a_failing_cd_is_told_and_moves_nothing(self, environment: Environment) -> None:
        before = (await run(environment, "pwd -P")).output.strip()
        assert (await run(environment, "cd /no/such/folder")).exit_code == 1
        missing = await run(environment, "true", cwd="/no/such/folder")
        assert missing.exit_code == 126
        assert "/no/such/folder" in missing.output
        assert environment.cwd == before

    async def test_stdin_reaches_the_command(self, environment: Environment) -> None:
        assert (await run(environment, "wc -c", stdin=b"\x00\xff" * 500)).output.strip() == "1000"
        assert (await run(environment, "cat; echo end")).output == "end\n"

    async def test_unicode_and_bytes_that_are_no_text(self, environment: Environment) -> None:
        assert (await run(environment, "echo 'grüße 世界 🎉'")).output == "grüße 世界 🎉\n"
        assert (await run(environment, r"printf 'a\xff\xfeb'")).output == "a\ufffd\ufffdb"

    async def test_a_large_output_keeps_its_ends_and_a_file_of_the_whole(self, environment: Environment) -> None:
        result = await run(environment, "seq 1 400000")
        assert result.output.startswith("1\n2\n")
        assert result.output.endswith("\n400000\n")
        assert result.total_bytes == 2_688_895
        assert len(result.output) < 1_100_000
        assert result.spill_path is not None

    async def test_a_large_command_runs(self, environment: Environment) -> None:
        assert (await run(environment, f": {'x' * 200_000}\necho large")).output == "large\n"

    async def test_a_timeout_ends_the_command_and_all_below_it(self, environment: Environment) -> None:
        result = await run(environment, f"echo begun; (setsid sleep {own(7301)} &) ; sleep {own(7301)}", timeout_s=4.0)
        assert (result.exit_code, result.timed_out) == (124, True)
        assert result.output == "begun\n"
        assert await self.alive(environment, own(7301)) == 0

    async def test_what_a_command_leaves_behind_ends_with_it(self, environment: Environment) -> None:
        result = await asyncio.wait_for(
            run(environment, f"setsid sleep {own(7302)} & disown; sleep {own(7302)} & echo done"), 30
        )
        assert (result.output, result.exit_code) == ("done\n", 0)
        assert await self.alive(environment, own(7302)) == 0

    async def test_an_interrupt_ends_the_command_and_keeps_what_it_said(self, environment: Environment) -> None:
        await run(environment, "true")
        scope = TurnScope()
        caught: list[CommandInterrupted] = []

        async def work() -> None:
            async with scope:
                try:
                    await environment.execute(
                        f"echo begun; touch begun; sleep {own(7303)}", ALLOWED, scope, timeout_s=60
                    )
                except CommandInterrupted as error:
                    caught.append(error)
                    raise

        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            async with asyncio.timeout(30):
                while await environment.stat("begun") is None:  # noqa: ASYNC110 - the command makes it
                    await asyncio.sleep(0.05)
            scope.cancel("stop")
        assert scope.state == "cancelled"
        assert caught[0].output == "begun\n"
        assert await self.alive(environment, own(7303)) == 0

    async def test_the_turns_deadline_limits_a_command(self, environment: Environment) -> None:
        await run(environment, "true")
        scope = TurnScope(timeout_s=60)
        async with scope:
            async with asyncio.timeout(30):
                inner = scope.child("call", timeout_s=1.0)
                async with inner:
                    await environment.execute(f"sleep {own(7304)}", ALLOWED, inner, timeout_s=50)
        assert inner.state in ("expired", "done")
        assert await self.alive(environment, own(7304)) == 0

    async def test_commands_and_callers_see_the_same_files(self, environment: Environment) -> None:
        await environment.write("dir/file.bin", bytes(300))
        assert (await run(environment, "wc -c < dir/file.bin")).output.strip() == "300"
        await run(environment, "ln -s dir/file.bin link")
        link = await environment.stat("link")
        assert link is not None
        assert (link.kind, link.is_link, link.path) == ("file", True, f"{environment.cwd}/dir/file.bin")

    async def alive(self, environment: Environment, word: str) -> int:
        """How many processes of this number there are where the environment runs."""
        listing = await run(environment, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
        return listing.output.split("\n").count(word)
