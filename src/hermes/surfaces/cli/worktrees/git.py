"""Ask git about the person's own repository; the supervisor starts it."""

from collections.abc import Mapping
from pathlib import Path

from hermes.errors import ToolError, UserError
from hermes.own_git import OwnGit
from hermes.seams import Supervisor


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
            raise GitFailed(f"--worktree needs git, which did not start: {error}") from error
        if answer.code != 0:
            raise GitFailed(f"git {words[0]} failed: {answer.complaint}")
        return answer.output.decode("utf-8", "surrogateescape").splitlines()

    async def line(self, *words: str) -> str:
        """The first line of what git prints."""
        return (await self.lines(*words) or [""])[0]
