"""Going back to a message: files and words are as they were, what is the person's stays, and it can be taken back."""

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import UserError
from hermes.host.command import CommandResult, SurfaceFacts, run_command
from hermes.host.live_session import LiveSession
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.context.bench_room import tree
from tests.host.conftest import Ear, Hosting, Starting
from tests.surfaces.cli.interactive.terminal import answering


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with a script, a link, bytes that are no text, and a folder with a mode of its own."""
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.txt").write_text("old\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o750)
    (folder / "data").write_bytes(bytes(range(256)))
    (folder / "link").symlink_to("a.txt")
    (folder / "sub" / "b.txt").write_text("b\n")
    (folder / "sub").chmod(0o700)
    return folder


def picture(folder: Path) -> dict[str, Any]:
    """Every byte, mode and link."""
    return {
        str(path.relative_to(folder)): (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder",
            path.lstat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.parts
    }


async def say(live: LiveSession, typed: str) -> CommandResult:
    return await run_command(live, typed, SurfaceFacts())


EDITS = [
    calls("write_file", path="a.txt", content="new\n"),
    calls("write_file", path="made/deep/c.txt", content="c\n"),
    calls("terminal", command="chmod 600 run.sh && ln -sf data link && printf x > data && mv sub/b.txt sub/z.txt"),
    says("Done."),
]


async def test_every_byte_mode_and_link_comes_back_and_goes_again(
    hosting: Hosting, starting: Starting, work: Path
) -> None:
    before = picture(work)
    with ServerThread(answering({"Edit": EDITS, "Hello": [says("Hi.")]})) as server:
        async with hosting() as host:
            live = host.session(_in(starting(server), work))
            ear = Ear(live)
            for words in ("Hello", "Edit"):
                await live.submit(words)
                await ear.turn_end()
            after = picture(work)
            assert after != before
            listed = (await say(live, "rewind")).data["points"]
            assert [point["text"] for point in listed] == ["Edit", "Hello"]
            assert {"a.txt", "data", "link", "made/deep/c.txt", "run.sh", "sub/b.txt", "sub/z.txt"} <= set(
                listed[0]["files"]
            )
            shown = await say(live, "rewind 1")
            assert shown.offer == "/rewind 1 both"
            assert picture(work) == after  # nothing was done yet
            done = await say(live, "rewind 1 both")
            assert picture(work) == before
            assert done.offer == "Edit"
            assert [row["content"] for row in live.db.get_messages(live.session_id)] == ["Hello", "Hi."]
            await say(live, "rewind back")
            assert picture(work) == after
            assert len(live.db.get_messages(live.session_id)) > 2
            await say(live, "rewind 1 files")
            assert picture(work) == before
            await say(live, "rewind back")
            with pytest.raises(UserError, match="no rewind"):
                await say(live, "rewind back")


async def test_what_the_person_changed_since_is_kept_and_listed(
    hosting: Hosting, starting: Starting, work: Path
) -> None:
    script = [
        calls("write_file", path="a.txt", content="new\n"),
        calls("terminal", command="echo x >> sub/b.txt && echo y > fresh"),
        says("Done."),
    ]
    with ServerThread(answering({"Edit": script})) as server:
        async with hosting() as host:
            live = host.session(_in(starting(server), work))
            ear = Ear(live)
            await live.submit("Edit")
            await ear.turn_end()
            (work / "a.txt").write_text("mine\n")
            (work / "own.txt").write_text("mine\n")
            shown = await say(live, "rewind 1")
            assert shown.data["kept"] == ["a.txt"]
            await say(live, "rewind 1 files")
    assert (work / "a.txt").read_text() == "mine\n"
    assert (work / "own.txt").read_text() == "mine\n"
    assert (work / "sub" / "b.txt").read_text() == "b\n"
    assert not (work / "fresh").exists()


async def test_what_was_too_large_to_be_kept_is_said_before_anything_is_done(
    hosting: Hosting, starting: Starting, work: Path
) -> None:
    (work / "big").write_bytes(b"x" * 1_500_000)
    script = [calls("terminal", command="echo y >> big && echo z >> a.txt"), says("Done.")]
    with ServerThread(answering({"Edit": script})) as server:
        async with hosting() as host:
            start = starting(server, flags={"checkpoints__max_file_size_mb": 1})
            live = host.session(_in(start, work))
            ear = Ear(live)
            await live.submit("Edit")
            await ear.turn_end()
            shown = await say(live, "rewind 1")
            assert (shown.data["files"], shown.data["not_kept"]) == (["a.txt"], ["big"])
            await say(live, "rewind 1 files")
    assert (work / "a.txt").read_text() == "old\n"
    assert (work / "big").stat().st_size == 1_500_002
    assert tree(work)


def _in(start: Any, folder: Path) -> Any:
    from msgspec import structs

    return structs.replace(start, folder=str(folder))
