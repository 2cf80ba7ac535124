"""Updating a git clone of Hermes: fetched, fast-forwarded, its environment made, tried, and taken back if it fails.

Nobody is updated unasked, local changes are never touched, and whatever is stopped or fails on the way leaves a
version that runs: git moves a clone to a commit or not, and the next start makes anew what was not finished.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.confinement.outside import outside
from hermes.errors import ToolError, UserError
from hermes.host.command_word import is_same
from hermes.host.installation import Installation
from hermes.host.self_install import read_record, write_record
from hermes.own_git import GitAnswer, OwnGit
from hermes.seams import Decision, SpawnSpec, Supervisor

CHANGELOG = "CHANGELOG.md"
SHOWN = 20
PURPOSE = "update Hermes"


class UpdateNews(msgspec.Struct, frozen=True):
    """What is new between two commits, as the changelog says it, else by the commits' subjects."""

    old: str
    new: str
    commits: int
    lines: tuple[str, ...]


class CloneUpdate:
    """The clone at `root`, which the launcher started. Its git may contact the remote of its branch, and no other."""

    def __init__(self, installation: Installation, root: Path, supervisor: Supervisor) -> None:
        self._installation = installation
        self._root = root
        self._supervisor = supervisor
        self._git = OwnGit(supervisor, installation.environ, root)

    async def look(self) -> UpdateNews | None:
        """Fetch, and tell what is new; None where nothing is. `UserError` says why an update would not be safe."""
        await self._check_clone()
        branch = (await self._ask("symbolic-ref", "--short", "-q", "HEAD")).strip()
        if not branch:
            raise UserError(f"no branch is checked out in {self._root}; choose one: git -C {self._root} switch main")
        remote = (await self._ask("config", f"branch.{branch}.remote")).strip()
        if not remote:
            raise UserError(f"the branch {branch!r} of {self._root} follows no other, so there is nothing to fetch")
        fetcher = self._git._replace(fetches=True)
        fetched = await self._run(fetcher, "fetch", "--quiet", "--upload-pack=git-upload-pack", "--", remote)
        if fetched.code != 0:
            raise UserError(f"git could not fetch ({fetched.complaint}); by hand: git -C {self._root} pull --ff-only")
        old, new = [(await self._must("rev-parse", name)).strip() for name in ("HEAD", "@{upstream}")]
        behind = int(await self._must("rev-list", "--count", f"{old}..{new}"))
        ahead = int(await self._must("rev-list", "--count", f"{new}..{old}"))
        if behind and ahead:
            raise UserError(
                f"the branch {branch!r} has {ahead} commits of its own, so it cannot be fast-forwarded; "
                f"merge or rebase it by hand in {self._root}"
            )
        return UpdateNews(old, new, behind, await self._news(old, new)) if behind else None

    async def apply(self, news: UpdateNews, tell: Callable[[str], None]) -> str:
        """Move to what `look` has found; the new version. What does not start is taken back, and that is told."""
        await self._check_unchanged()
        self._remember(news.old, news.new)
        moved = await self._run(self._git, "merge", "--quiet", "--ff-only", news.new)
        if moved.code != 0:
            raise UserError(f"git could not move the clone ({moved.complaint}); nothing was changed")
        return await self._started(news.old, tell)

    async def back(self, tell: Callable[[str], None]) -> str:
        """Move to the commit before the last update; the version there."""
        await self._check_clone()
        record = read_record(self._installation.root)
        here = (await self._must("rev-parse", "HEAD")).strip()
        if not record.updated_from or here != record.updated_to:
            raise UserError("there is no update to take back: the clone is not at the commit that the last one led to")
        await self._check_unchanged()
        await self._must("reset", "--quiet", "--keep", record.updated_from)
        version = await self._started(here, tell)
        self._remember("", "")
        return version

    # -- steps ---------------------------------------------------------------------------------------------------

    async def _check_clone(self) -> None:
        answer = await self._run(self._git, "rev-parse", "--show-toplevel")
        top = answer.output.decode("utf-8", "replace").strip()
        if answer.code != 0 and "not a git repository" not in answer.complaint:
            raise UserError(f"git does not work in {self._root}: {answer.complaint}")
        if not top or not is_same(Path(top), self._root):
            raise UserError(
                f"{self._root} is no git clone, so it cannot be updated in place; clone Hermes anew, "
                f"and delete this folder: sessions and settings are in {self._installation.root}"
            )

    async def _check_unchanged(self) -> None:
        changed = (await self._must("status", "--porcelain", "--untracked-files=no")).splitlines()
        if changed:
            names = ", ".join(line[3:] for line in changed[:5]) + (" …" if len(changed) > 5 else "")
            raise UserError(
                f"files of {self._root} were changed by hand ({names}); nothing was updated. "
                f"Put them aside first: git -C {self._root} stash"
            )

    async def _started(self, before: str, tell: Callable[[str], None]) -> str:
        """The version that starts now, with its environment made; back to `before` where none does."""
        tell("seeing whether it starts; its environment is made again where it asks for other packages")
        code, said = await self._launch(tell)
        if code == 0:
            return said.partition("\n")[0]
        await self._must("reset", "--quiet", "--keep", before)
        again, _ = await self._launch(tell)
        state = "the version before is back" if again == 0 else "the version before is back, and its environment is not"
        raise UserError(f"the new version does not start here (see above); {state}")

    async def _launch(self, tell: Callable[[str], None]) -> tuple[int, str]:
        """Run the launcher as a person would; what it says on stderr (it makes environments) is told."""
        environ = {name: value for name, value in self._installation.environ.items() if name != "HERMES_CHILD_OF"}
        child = await self._supervisor.spawn(
            Decision.own(PURPOSE),
            SpawnSpec(
                argv=(str(self._root / "hermes"), "version"),
                cwd="/",
                env=environ,
                owner="update",
                merge_stderr=False,
                confinement=outside("own launcher"),
            ),
        )
        try:
            said = b"".join([chunk async for chunk in child.output()])
            code = await child.wait()
            if errors := child.stderr_tail().decode("utf-8", "replace").strip():
                tell(errors)
        finally:
            child.release()
        return code, said.decode("utf-8", "replace")

    async def _news(self, old: str, new: str) -> tuple[str, ...]:
        diff = await self._must("diff", "--unified=0", old, new, "--", CHANGELOG)
        added = [line[1:].strip() for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
        entries = [line for line in added if line.startswith("- ")]
        if not entries:
            subjects = await self._must("log", "--format=- %s", f"{old}..{new}")
            entries = subjects.splitlines()
        more = [f"… and {len(entries) - SHOWN} more"] if len(entries) > SHOWN else []
        return (*entries[:SHOWN], *more)

    def _remember(self, old: str, new: str) -> None:
        record = read_record(self._installation.root)
        record.updated_from, record.updated_to = old, new
        write_record(self._installation.root, record)

    # -- git -----------------------------------------------------------------------------------------------------

    async def _run(self, git: OwnGit, *words: str) -> GitAnswer:
        try:
            return await git.ask(*words, purpose=PURPOSE)
        except ToolError as error:
            raise UserError(str(error)) from error

    async def _ask(self, *words: str) -> str:
        """What git says; nothing where it says no."""
        answer = await self._run(self._git, *words)
        return answer.output.decode("utf-8", "replace") if answer.code == 0 else ""

    async def _must(self, *words: str) -> str:
        answer = await self._run(self._git, *words)
        if answer.code != 0:
            raise UserError(f"git {words[0]} failed in {self._root}: {answer.complaint}")
        return answer.output.decode("utf-8", "replace")
