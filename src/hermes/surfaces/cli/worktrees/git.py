"""Ask git about the person's own repository, with their settings; the supervisor starts it."""

from collections.abc import Mapping
from pathlib import Path

from hermes.errors import ToolError, UserError
from hermes.seams import Decision, SpawnSpec, Supervisor

# Set by a hook or a git alias that runs hermes: they would lead git to another repository than the folder's.
_LEADING_AWAY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")


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

    async def lines(self, *words: str) -> list[str]:
        """What git prints; `GitFailed` with its complaint when it fails."""
        env = {name: value for name, value in self._environ.items() if name not in _LEADING_AWAY}
        spec = SpawnSpec(
            argv=("git", "-c", "core.quotePath=false", *words),
            cwd=str(self.folder),
            env={**env, "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C"},
            owner="worktree",
            merge_stderr=False,
        )
        try:
            child = await self._supervisor.spawn(Decision.own("a worktree"), spec)
        except ToolError as error:
            raise GitFailed(f"--worktree needs git, which did not start: {error}") from error
        try:
            said = b"".join([chunk async for chunk in child.output()])
            code = await child.wait()
            complaint = child.stderr_tail().decode("utf-8", "replace").strip().splitlines()
        finally:
            child.release()
        if code != 0:
            raise GitFailed(f"git {words[0]} failed: {complaint[-1] if complaint else f'exit code {code}'}")
        return said.decode("utf-8", "surrogateescape").splitlines()

    async def line(self, *words: str) -> str:
        """The first line of what git prints."""
        return (await self.lines(*words) or [""])[0]
