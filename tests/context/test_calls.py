"""Checkpoints in a turn, entered through `AIAgent`: what the model changes is taken back; what it reads costs none."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.context.checkpoints import CheckpointLimits, Checkpoints
from hermes.runtime.setup.process import shared
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.types import CallFinished, StatusChanged
from tests.context.bench_room import tree
from tests.tools.real_backends import SshServer


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[Path]:
    """A project of two files; what agents of the process share is closed afterwards."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "a.txt").write_text("old\n")
    yield folder
    await shared.close()


async def turn(project: Path, *script: Any, **keywords: Any) -> MemorySink:
    """One turn of an agent that may do everything."""
    sink = MemorySink()
    agent = AIAgent(
        model=ScriptedModel(*script),
        store=MemoryStore(),
        cwd=str(project),
        sink=sink,
        enabled_toolsets=["file", "terminal"],
        approval_callback=lambda *_, **__: "once",
        **keywords,
    )
    await agent.arun_conversation("go")
    await agent.aclose()
    return sink


def own(hermes_home: Path) -> Checkpoints:
    return Checkpoints(hermes_home, shared.supervisor, shared.pool.run, CheckpointLimits(), shared.clock.now)


async def test_a_turn_of_edits_and_commands_is_taken_back(project: Path, hermes_home: Path) -> None:
    await turn(
        project,
        calls("write_file", path="a.txt", content="new\n"),
        calls("terminal", command="echo shell >> a.txt && mkdir sub && echo made > sub/b"),
        calls("write_file", path="sub/deep/c.txt", content="c\n"),
        says("Done."),
        checkpoints_enabled=True,
    )
    assert (project / "a.txt").read_text() == "new\nshell\n"
    done = await own(hermes_home).restore(str(project), "1")
    assert done.kept == ()
    assert sorted(tree(project)) == ["a.txt", "pyproject.toml"]
    assert (project / "a.txt").read_text() == "old\n"


async def test_a_deletion_by_a_command_has_a_snapshot_of_its_own(project: Path, hermes_home: Path) -> None:
    sink = await turn(
        project,
        calls("write_file", path="a.txt", content="new\n"),
        calls("terminal", command="rm a.txt"),
        says("Done."),
        checkpoints_enabled=True,
    )
    listed = await own(hermes_home).list(str(project))
    assert [(one.kind, one.reason) for one in listed] == [
        ("command", "terminal: rm a.txt"),
        ("turn", "write_file: a.txt"),
    ]
    noted = [event.result.details.get("checkpoint") for event in sink.events if isinstance(event, CallFinished)]
    assert noted == [listed[1].short_hash, listed[0].short_hash]
    await own(hermes_home).restore(str(project), "1")
    assert (project / "a.txt").read_text() == "new\n"


async def test_what_only_reads_takes_none_and_neither_does_a_session_that_did_not_ask(
    project: Path, hermes_home: Path
) -> None:
    await turn(
        project,
        calls("terminal", command="ls -la | grep a && cat a.txt && git status || true"),
        calls("read_file", path="a.txt"),
        says("Done."),
        checkpoints_enabled=True,
    )
    await turn(project, calls("write_file", path="a.txt", content="new\n"), says("Done."))
    assert await own(hermes_home).list(str(project)) == []


@pytest.mark.parametrize(
    "command", ["sort -o a.txt a.txt", "uniq a.txt b.txt", "find . -fprint b.txt", "git log --output=b.txt"]
)
async def test_a_reader_that_is_told_to_write_takes_one(project: Path, hermes_home: Path, command: str) -> None:
    await turn(project, calls("terminal", command=command), says("Done."), checkpoints_enabled=True)
    assert len(await own(hermes_home).list(str(project))) == 1


async def test_the_settings_switch_them_on(project: Path, hermes_home: Path) -> None:
    hermes_home.joinpath("config.yaml").write_text("checkpoints:\n  enabled: true\n")
    await turn(project, calls("write_file", path="a.txt", content="new\n"), says("Done."))
    assert len(await own(hermes_home).list(str(project))) == 1


async def test_a_patch_over_several_files_and_a_key_in_a_command(project: Path, hermes_home: Path) -> None:
    text = "*** Begin Patch\n*** Add File: x/new.py\n+a = 1\n*** Delete File: a.txt\n*** End Patch"
    key = "sk-ant-abcdefghijklmnopqrstuvwxyz0123"
    await turn(
        project,
        calls("patch", mode="patch", patch=text),
        calls("terminal", command=f"rm -f nothing # {key}"),
        says("Done."),
        checkpoints_enabled=True,
    )
    listed = await own(hermes_home).list(str(project))
    assert all(key not in one.reason for one in listed)
    done = await own(hermes_home).restore(str(project), str(len(listed)))
    assert (done.restored, done.kept) == (("a.txt", "x/", "x/new.py"), ())


async def test_a_call_runs_and_the_user_is_told_once_when_no_snapshot_can_be_taken(
    project: Path, hermes_home: Path
) -> None:
    hermes_home.joinpath("checkpoints").write_text("in the way")
    sink = await turn(
        project,
        calls("write_file", path="a.txt", content="new\n"),
        calls("write_file", path="a.txt", content="newer\n"),
        says("Done."),
        checkpoints_enabled=True,
    )
    told = [event.message for event in sink.events if isinstance(event, StatusChanged)]
    assert len([each for each in told if "no checkpoint was taken" in each]) == 1
    assert (project / "a.txt").read_text() == "newer\n"


@pytest.mark.real
async def test_a_session_on_another_machine_is_told_once_that_nothing_can_be_taken_back(
    project: Path, hermes_home: Path, sshd: SshServer
) -> None:
    facts = {"backend": "ssh", "ssh_host": "127.0.0.1", "ssh_user": "root", "ssh_port": sshd.port}
    lines = [f"  {name}: {value}" for name, value in {**facts, "ssh_key": sshd.folder / "key", "cwd": project}.items()]
    hermes_home.joinpath("config.yaml").write_text("\n".join(["terminal:", *lines, ""]))
    sink = await turn(
        project,
        calls("write_file", path=str(project / "a.txt"), content="new\n"),
        calls("terminal", command="rm pyproject.toml"),
        says("Done."),
        checkpoints_enabled=True,
    )
    told = [event.message for event in sink.events if isinstance(event, StatusChanged)]
    assert (project / "a.txt").read_text() == "new\n"
    assert len([each for each in told if "this session works on ssh" in each]) == 1
    assert await own(hermes_home).every() == []
