"""Large results on disk: private, per session, streamed, and given back byte for byte."""

import os
import stat
from pathlib import Path

import pytest

from hermes.config.paths import results_dir
from hermes.errors import ToolError
from hermes.state import SessionDB
from hermes.tools.results.shelf import SCHEME, FileShelf, ResultWriter


async def test_what_was_put_is_read_back_in_any_pieces(tmp_path: Path) -> None:
    shelf = FileShelf(results_dir(tmp_path, "s/1"))
    data = os.urandom(100_000)
    handle = await shelf.put("web/extract ü", data)
    assert handle.startswith(f"{SCHEME}web-extract-")
    assert await shelf.size(handle) == len(data)
    assert await shelf.read(handle) == data
    assert b"".join([await shelf.read(handle, start, 777) for start in range(0, len(data), 777)]) == data
    assert await shelf.read(handle, len(data) + 5, 10) == b""


async def test_a_session_that_comes_back_finds_its_results_and_another_does_not(tmp_path: Path) -> None:
    handle = await FileShelf(results_dir(tmp_path, "one")).put("t", b"mine")
    assert await FileShelf(results_dir(tmp_path, "one")).read(handle) == b"mine"
    for name in ("two", "one ", "One"):
        with pytest.raises(ToolError, match="no result"):
            await FileShelf(results_dir(tmp_path, name)).read(handle)


async def test_files_are_the_owners_alone_and_go_with_their_session(tmp_path: Path) -> None:
    shelves = {name: FileShelf(results_dir(tmp_path, name)) for name in ("mine", "other")}
    files = {name: shelf.path(await shelf.put("t", b"x")) for name, shelf in shelves.items()}
    assert stat.S_IMODE(files["mine"].stat().st_mode) == 0o600
    assert stat.S_IMODE(files["mine"].parent.stat().st_mode) == 0o700
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("mine", "test")
        db.delete_session("mine")
    assert not files["mine"].parent.exists()
    assert files["other"].exists()


@pytest.mark.parametrize(
    "handle", ["hermes://result/../x", "hermes://result/", "/etc/passwd", "hermes://result/a/b", ""]
)
async def test_a_handle_leads_nowhere_else(tmp_path: Path, handle: str) -> None:
    (tmp_path / "x").write_text("secret", encoding="utf-8")
    with pytest.raises(ToolError):
        await FileShelf(tmp_path / "s").read(handle)


def test_a_stream_is_kept_up_to_its_limit_and_says_when_it_was_cut(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, "r1", limit_bytes=10)
    for _ in range(4):
        writer.write(b"abcd")
    assert (writer.total_bytes, writer.kept_bytes, writer.cut) == (16, 10, True)
    handle = writer.finish()
    assert handle == f"{SCHEME}r1"
    assert (tmp_path / "r1").read_bytes() == b"abcdabcdab"
    left = ResultWriter(tmp_path, "r2")
    left.write(b"x")
    left.discard()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r1"]
