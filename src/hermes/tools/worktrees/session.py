"""Make a worktree for one run; afterwards remove it, unless something is in it that is nowhere else."""

import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import ToolError, UserError
from hermes.own_git import OwnGit
from hermes.seams import Supervisor
from hermes.tools.worktrees import include

FOLDER = ".worktrees"
_OURS = re.compile(r"hermes-[0-9a-f]{8}")
_OWNER = re.compile(r"hermes (\d+)")


class GitFailed(UserError):
    """Git said no; the text is its last line."""


class Git:
    """Git in one folder."""

    def __init__(self, supervisor: Supervisor, environ: Mapping[str, str], folder: Path) -> None:
        self._supervisor = supervisor
        self._environ = environ
        self.folder = folder

    def at(self, folder: Path) -> "Git":
        """The same, elsewhere."""
        return Git(self._supervisor, self._environ, folder)

    async def lines(self, *words: str, beside: Path | None = None) -> list[str]:
        """What git prints; `GitFailed` with its complaint when it fails. For `beside` see `OwnGit.ask`."""
        try:
            git = OwnGit(self._supervisor, self._environ, self.folder)
            answer = await git.ask(*words, purpose="a worktree", beside=beside)
        except ToolError as error:
            raise GitFailed(f"a worktree needs git, which did not start: {error}") from error
        if answer.code != 0:
            raise GitFailed(f"git {words[0]} failed: {answer.complaint}")
        return answer.output.decode("utf-8", "surrogateescape").splitlines()

    async def line(self, *words: str) -> str:
        """The first line of what git prints."""
        return (await self.lines(*words) or [""])[0]


class Worktree(Struct, frozen=True, kw_only=True):
    """A folder and a branch of the repository at `root`, begun at the commit `base`."""

    root: Path
    common: Path  # the repository itself: .git of the root
    path: Path
    base: str = ""

    @property
    def branch(self) -> str:
        return f"hermes/{self.path.name}"

    @property
    def own_part(self) -> Path:
        """What git keeps about this worktree alone."""
        return self.common / "worktrees" / self.path.name


class Place(Struct, frozen=True):
    """Where the run works, and the settings for it."""

    folder: Path
    settings: Settings


@asynccontextmanager
async def in_worktree(
    tell: Callable[[str], None],
    settings: Settings,
    supervisor: Supervisor,
    folder: Path | None = None,
    *,
    is_quiet: bool = False,
    asked_by: str = "--worktree",
) -> AsyncIterator[Place]:
    """A fresh worktree of the repository around `folder` (default: where Hermes was started).

    At the end it is removed with its branch when nothing is in it that is nowhere else, which `is_quiet` leaves untold;
    otherwise it is kept and `tell` says where. Those that earlier runs left are looked at first.
    """
    backend = settings.of(terminal.Section).backend
    if backend != "local":
        raise UserError(f"{asked_by} works on this machine, and terminal.backend is {backend!r}; leave one of them out")
    git = Git(supervisor, settings.environ, folder or Path.cwd())
    made, prefix = await _make(git, asked_by)
    await _forsake_stale(git.at(made.root), made)
    for sentence in include.bring(made.root, made.path):
        tell(f"warning: {sentence}")
    place = made.path / prefix
    place.mkdir(parents=True, exist_ok=True)
    try:
        yield Place(place, _with_branch_writable(settings, made))
    finally:
        kept = await _leave(git.at(made.root), made)
        if kept or not is_quiet:
            tell(kept or f"The worktree {made.path.name} had nothing new and is removed.")


async def _make(git: Git, asked_by: str) -> tuple[Worktree, str]:
    try:
        top, common, prefix = await git.lines(
            "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-prefix"
        )
        base = await git.line("rev-parse", "--verify", "HEAD^{commit}")
    except GitFailed as error:
        raise UserError(
            f"{asked_by} needs a git repository with a commit, and {str(git.folder)!r} is not in one ({error})"
        ) from error
    # Inside a linked worktree the toplevel is that one; ours go beside it, in the main folder, where they are ignored.
    root = Path(common).parent if Path(common).name == ".git" else Path(top)
    made = Worktree(root=root, common=Path(common), path=root / FOLDER / f"hermes-{secrets.token_hex(4)}", base=base)
    _ignore(made.common)
    await git.lines("worktree", "add", "--quiet", "--no-checkout", "-b", made.branch, str(made.path), base)
    await git.lines("worktree", "lock", "--reason", f"hermes {os.getpid()}", str(made.path))
    # Its files by a git that stands in it: settings can depend on the folder and the branch, by conditional includes.
    await git.at(made.path).lines("reset", "--hard", "--quiet")
    return made, prefix


def _ignore(common: Path) -> None:
    """Let git overlook the folder, without touching a file that is committed."""
    file = common / "info" / "exclude"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if f"/{FOLDER}/" not in text.splitlines():
        file.parent.mkdir(exist_ok=True)
        gap = "" if not text or text.endswith("\n") else "\n"
        file.write_text(f"{text}{gap}/{FOLDER}/\n", encoding="utf-8")


def _with_branch_writable(settings: Settings, made: Worktree) -> Settings:
    """Sandboxed commands may commit to the branch; the repository's hooks, settings and other branches stay shut."""
    parts = ("objects", f"worktrees/{made.path.name}", "refs/heads/hermes", "logs/refs/heads/hermes")
    needed = [str(made.common / part) for part in parts if (made.common / part).is_dir()]
    writable = [*settings.of(terminal.Section).sandbox_writable, *needed]
    return settings.with_flags({"terminal.sandbox_writable": writable})


async def _leave(git: Git, made: Worktree) -> str:
    """Remove the worktree when that loses nothing; else one sentence about where it is and why."""
    try:
        await git.lines("worktree", "unlock", str(made.path))
        reasons = await _reasons_to_keep(git, made)
        if not reasons:
            await _remove(git, made)
            return ""
    except GitFailed as error:
        reasons = [str(error)]
    return f"The worktree is kept ({', '.join(reasons)}): {made.path}, branch {made.branch}"


async def _reasons_to_keep(git: Git, made: Worktree) -> list[str]:
    inside = git.at(made.path)
    brought = set(include.names(made.root))
    status = await inside.lines("status", "--porcelain", "--untracked-files=all")
    dirty = [line[3:] for line in status if line[3:].rstrip("/") not in brought]
    dirty += include.changed(made.root, made.path)
    others = ["--not", "--remotes", f"--exclude={made.branch}", "--branches", *([made.base] if made.base else [])]
    count = int(await inside.line("rev-list", "--count", "HEAD", f"refs/heads/{made.branch}", *others))
    reasons = [f"{len(dirty)} changed files"] if dirty else []
    return [*reasons, f"{count} commits that are nowhere else"] if count else reasons


async def _remove(git: Git, made: Worktree) -> None:
    include.take_away(made.root, made.path)
    await git.lines("worktree", "remove", str(made.path), beside=made.path)
    await git.lines("branch", "--quiet", "-D", made.branch)


async def _forsake_stale(git: Git, mine: Worktree) -> None:
    """Remove worktrees of runs that are over, when nothing is in them; leave all others alone."""
    for path in sorted((mine.root / FOLDER).iterdir()):
        stale = Worktree(root=mine.root, common=mine.common, path=path)
        if path == mine.path or not _OURS.fullmatch(path.name) or _is_owned(stale):
            continue
        try:
            if (stale.own_part / "locked").exists():
                await git.lines("worktree", "unlock", str(path))
            if not await _reasons_to_keep(git, stale):
                await _remove(git, stale)
        except GitFailed:
            continue  # whatever it is, it is not ours to delete


def _is_owned(worktree: Worktree) -> bool:
    """Whether the run that made it may still be going on."""
    try:
        owner = _OWNER.match((worktree.own_part / "locked").read_text(encoding="utf-8"))
    except OSError:
        return not worktree.own_part.is_dir()
    if owner is None:
        return True  # somebody else locked it
    try:
        os.kill(int(owner[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
