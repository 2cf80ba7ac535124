"""A result too large to send is read again through its handle, whole, by page and by search, by the real file tools."""

import json
import os
from pathlib import Path
from typing import Any

from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registry import Registered, registry
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.types import ToolCall, text_of
from tests.runtime.rooms import Room, room, tool


def builtin(name: str) -> Registered:
    ensure_builtins()
    found = registry.get(name)
    assert found is not None
    return found


async def call(it: Room, name: str, **args: Any) -> dict[str, Any]:
    (result,) = await it.run(ToolCall("c", name, json.dumps(args)))
    value = json.loads(text_of(result.content))
    assert isinstance(value, dict)
    return value


async def test_lines_and_search_through_a_handle(tmp_path: Path) -> None:
    lines = "\n".join(f"line {number} {'needle' if number == 7777 else 'hay'}" for number in range(1, 20_001))
    supervisor = ProcessSupervisor()
    options = LocalOptions(env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, source_bashrc=False)
    environment = LocalEnvironment(supervisor, str(tmp_path), options)
    big = tool("big", lambda args: lines)
    async with room(tmp_path, big, builtin("read_file"), builtin("search_files"), environment=environment) as it:
        short = await call(it, "big")
        assert (short["lines"], short["chars"]) == (20_000, len(lines))
        page = await call(it, "read_file", path=short["handle"], offset=7777, limit=1)
        assert page["content"].rstrip().endswith("line 7777 needle")
        found = await call(it, "search_files", path=short["handle"], pattern="needle")
        assert found["total_count"] == 1
        assert found["matches"][0]["line"] == 7777
        await environment.close()
    await supervisor.close()


async def test_one_line_of_ten_megabytes_is_reached_anywhere_to_its_last_character(tmp_path: Path) -> None:
    line = "".join(f"{number:09d} " for number in range(1_000_000))
    seen = 0
    async with room(tmp_path, tool("big", lambda args: line), builtin("read_file"), timeout_s=120) as it:
        short = await call(it, "big")
        for offset in (1, 41, 2500, 4961):
            page = await call(it, "read_file", path=short["handle"], offset=offset, limit=40)
            text = "".join(row.partition("|")[2] for row in page["content"].split("\n"))
            start = (offset - 1) * 2000
            assert text == line[start : start + 80_000]
            seen += 1
        assert page["truncated"] is False
        assert start + len(text) == len(line) == 10_000_000
    assert seen == 4


async def test_a_handle_is_never_written_to(tmp_path: Path) -> None:
    async with room(tmp_path, builtin("write_file"), builtin("patch")) as it:
        for name, args in (("write_file", {"content": "x"}), ("patch", {"old_string": "x", "new_string": "y"})):
            refused = await call(it, name, path="hermes://result/big-1", **args)
            assert "is a kept result" in refused["error"]
    assert not (tmp_path / "hermes:").exists()
