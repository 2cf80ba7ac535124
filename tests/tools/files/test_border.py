"""The file tools under the policy that commands are held to: every spelling, every race."""

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.confinement.policy import Confinement, PathRule
from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.approval.gate import ApprovalGate, DiskView
from hermes.tools.approval.policy import Policy
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.real_paths import RealPaths
from hermes.tools.environments import exact_files, host_files
from hermes.tools.environments.local import LocalEnvironment
from tests.tools.approval.test_gate import MemoryGrants
from tests.tools.files.workbench import Task, task_in


class Held(LocalEnvironment):
    """This machine, held to a confinement of the test's own."""

    held: Confinement

    async def confinement(self) -> Confinement:
        return self.held

    def widen(self, wider: Confinement) -> None:
        self.held = wider


class Ground:
    """A home with a key, a workspace in it, and one person who answers."""

    def __init__(self, root: Path, task: Task, *answers: Answer) -> None:
        self.home, self.work, self.task = root, root / "work", task
        self.asked: list[ApprovalQuestion] = []
        self.answers = list(answers)
        (root / ".ssh").mkdir()
        (root / ".ssh" / "id_ed25519").write_text("the key itself\n")
        (root / "other").mkdir()
        (root / "other" / "x.py").write_text("theirs\n")
        rules = (
            PathRule(str(self.work), "write", "workspace", "the workspace"),
            PathRule(f"{self.work}/.git/hooks", "read", "protected", "git runs hooks by itself"),
            PathRule(f"{self.work}/.envrc", "read", "self-running", "other programs run this by themselves"),
            PathRule(f"{root}/.ssh", "hidden", "secret", "keys and passwords are not for commands"),
        )
        environment = task.environment
        assert isinstance(environment, LocalEnvironment)
        environment.__class__ = Held
        assert isinstance(environment, Held)
        environment.held = Confinement(level="full", workspace=str(self.work), home=str(root), rules=rules)
        self.environment = environment
        real = RealPaths(str(root), f"{root}/.hermes")
        task.gate = ApprovalGate(  # type: ignore[assignment]  # the real one in place of the open one
            policy=Policy,
            grants=MemoryGrants(),
            record=self._record,
            sight=DiskView(home=str(root), own_home=f"{root}/.hermes", workspace=str(self.work), real=real),
            ask=self._ask,
            border=environment.confinement,
        )

    async def _ask(self, question: ApprovalQuestion, _: TurnScope) -> Answer:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else "deny"

    async def _record(self, *_: object) -> None:
        return

    async def refused(self, name: str, **args: Any) -> str:
        with pytest.raises(ToolError) as raised:
            await self.task.call(name, **args)
        return str(raised.value)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "work"
    (folder / ".git" / "hooks").mkdir(parents=True)
    return folder


async def test_no_spelling_leads_a_write_past_the_roots(work: Path) -> None:
    async with task_in(work) as task:
        ground = Ground(work.parent, task)
        (work / "out").symlink_to(work.parent / "other")
        (work / "file").symlink_to(work.parent / "other" / "x.py")
        spellings = [
            f"{work.parent}/other/x.py",
            "../other/x.py",
            "out/x.py",
            "file",
            "out/new/deep.py",
            f"/proc/self/root{work.parent}/other/x.py",
            f"/proc/{os.getpid()}/root{work.parent}/other/x.py",
            ".git/hooks/pre-commit",
            ".GIT/hooks/pre-commit",
            ".envrc",
        ]
        for path in spellings:
            answer = await ground.refused("write_file", path=path, content="pwned\n")
            assert "not allowed" in answer or "protected" in answer, path
        assert len(ground.asked) == len([path for path in spellings if not path.startswith("/proc/")])
        assert (work.parent / "other" / "x.py").read_text() == "theirs\n"
        assert not (work / ".envrc").exists()
        assert not list((work / ".git" / "hooks").iterdir())
        await task.call("write_file", path="mine.py", content="ok = 1\n")
        assert (work / "mine.py").read_text() == "ok = 1\n"


async def test_a_patch_moves_and_deletes_nothing_outside(work: Path) -> None:
    async with task_in(work) as task:
        ground = Ground(work.parent, task)
        (work / "a.txt").write_text("a\n")
        (work.parent / "other" / "link").symlink_to(work / "a.txt")
        for body in (
            "*** Delete File: ../other/x.py",
            "*** Delete File: ../other/link",
            "*** Update File: a.txt\n*** Move to: ../other/a.txt\n-a\n+b",
            "*** Add File: ../other/n.txt\n+n",
        ):
            await ground.refused("patch", mode="patch", patch=f"*** Begin Patch\n{body}\n*** End Patch\n")
        assert sorted(path.name for path in (work.parent / "other").iterdir()) == ["link", "x.py"]
        assert (work / "a.txt").read_text() == "a\n"


async def test_what_commands_cannot_see_no_tool_reads(work: Path) -> None:
    async with task_in(work) as task:
        ground = Ground(work.parent, task)
        key = work.parent / ".ssh" / "id_ed25519"
        (work / "link").symlink_to(key)
        (work / "second").hardlink_to(key)
        for path in (str(key), "../.ssh/id_ed25519", "link", "second", f"/proc/self/root{key}"):
            answer = await task.call("read_file", path=path)
            assert "out of sight" in answer["error"] or "belongs to a process" in answer["error"], path
            assert "the key itself" not in str(answer)
        assert "out of sight" in await ground.refused("search_files", pattern="key", path="../.ssh")
        answer = await task.call("read_file", path="/proc/self/environ")
        assert "belongs to a process" in answer["error"]


async def test_a_yes_opens_the_folder_for_commands_too(work: Path) -> None:
    async with task_in(work) as task:
        ground = Ground(work.parent, task, "session")
        await task.call("write_file", path="../other/y.py", content="y = 1\n")
        assert ground.asked[0].verdict.keys == ("write outside the workspace",)
        assert ground.environment.held.may_write(f"{work.parent}/other/z.py")
        assert not ground.environment.held.may_write(f"{work.parent}/z.py")
        await task.call("write_file", path="../other/z.py", content="z = 1\n")
        assert len(ground.asked) == 1


async def test_a_folder_that_becomes_a_link_between_look_and_write_is_an_error(work: Path) -> None:
    """The swap happens at the worst moment: after the gate has agreed to the path."""
    async with task_in(work) as task:
        ground = Ground(work.parent, task)
        (work / "sub").mkdir()

        class Swapping:
            async def decide(self, action: Action, scope: TurnScope) -> Decision:
                (work / "sub").rename(work / "was")
                (work / "sub").symlink_to(work.parent / "other")
                return Decision(allowed=True)

        task.gate = Swapping()  # type: ignore[assignment]  # a gate that loses the race
        assert "link" in await ground.refused("write_file", path="sub/x.py", content="pwned\n")
        assert (work.parent / "other" / "x.py").read_text() == "theirs\n"


def test_exact_files_follow_no_link(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "real").mkdir()
    (root / "real" / "f").write_text("kept\n")
    (root / "way").symlink_to("real")
    (root / "leaf").symlink_to("real/f")
    for path in (f"{root}/way/f", f"{root}/leaf", f"{root}/real/../real/f", "relative"):
        with pytest.raises(ToolError):
            exact_files.write_exact(path, b"x", None)
        with pytest.raises(ToolError):
            exact_files.read_exact(path, 0, None)
    with pytest.raises(ToolError):
        exact_files.remove_exact(f"{root}/way/f")
    assert (root / "real" / "f").read_text() == "kept\n"
    exact_files.write_exact(f"{root}/new/deep/f", b"x", 0o640)
    assert (root / "new" / "deep" / "f").stat().st_mode & 0o777 == 0o640
    host_files.write_path(f"{root}/leaf", b"through\n", None)
    assert (root / "leaf").is_symlink()
    assert (root / "real" / "f").read_text() == "through\n"
    assert sorted(path.name for path in (root / "real").iterdir()) == ["f"]
