"""Git as the runtime starts it by itself: what a repository's own settings name is not run.

Commands in the sandbox can write a repository's settings, and git runs outside it here. So hooks, the file system
monitor, filters, external diffs, pagers, editors, signature programs and all that fetches are off, whoever set them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.confinement.outside import outside
from hermes.errors import ToolError
from hermes.programs import find_program, split_path
from hermes.seams import Decision, SpawnSpec, Supervisor

_SETTINGS = (
    # The monitor is empty, not "false": before 2.36 git took the value for the name of a program.
    *("core.fsmonitor=", "core.hooksPath=/dev/null", "core.pager=cat", "core.editor=:", "sequence.editor=:"),
    *("core.sshCommand=false", "core.askPass=", "credential.helper=", "gpg.program=false", "log.showSignature=false"),
    *("submodule.recurse=false", "protocol.allow=never", "gc.auto=0", "core.quotePath=false"),
)
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_ALLOW_PROTOCOL": "none",  # a list of what is allowed: a partial clone would fetch what it lacks by itself
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
# What a fetch needs of the above: ssh that asks nothing, and the protocols that are encrypted or stay on this machine.
_FETCHING = ("core.sshCommand=ssh -oBatchMode=yes", "fetch.fsckObjects=true")
_FETCHES = {"GIT_ALLOW_PROTOCOL": "https:ssh:file"}
# The other variables of git are dropped: set by a hook or an alias that runs hermes, they would lead git elsewhere.
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
# A submodule has settings of its own, which those given here do not cover: git must not go into it.
_INTO_NO_SUBMODULE = ("--ignore-submodules=dirty",)
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", *_INTO_NO_SUBMODULE)
_PLAIN = {"diff": _PLAIN_DIFF, "log": _PLAIN_DIFF, "status": _INTO_NO_SUBMODULE}
_FILTERING = frozenset({"diff", "merge", "reset", "status", "worktree"})
_FILTER = re.compile(r"filter\.(.+)\.[^.]+", re.DOTALL)


class GitAnswer(NamedTuple):
    """How git ended, what it printed, and the line of its complaint that says what is wrong."""

    code: int
    output: bytes
    complaint: str


class OwnGit(NamedTuple):
    """Git in a folder of the person's. Every `Supervisor` can start it.

    With `fetches` it may contact the hosts it is told, and no others; only for a folder that nobody else can write.
    """

    supervisor: Supervisor
    environ: Mapping[str, str]
    folder: Path
    fetches: bool = False

    async def ask(
        self, *words: str, purpose: str, beside: Path | None = None, most_bytes: int | None = None
    ) -> GitAnswer:
        """Run it to its end, or until it has printed `most_bytes`.

        `beside` is a worktree that git will look into on its way: its settings may differ, by conditional includes.
        Raises `ToolError` when there is no git, or when it does not start.
        """
        filters: dict[str, None] = {}
        if words[0] in _FILTERING:
            for folder in (self.folder, *([beside] if beside is not None else [])):
                listed = await self._run(("config", "--list", "--name-only", "-z"), folder, (), purpose, None)
                if listed.code != 0:
                    return listed
                filters |= dict.fromkeys(_filters(listed.output))
        if odd := next((name for name in filters if "=" in name or "\n" in name), None):
            return GitAnswer(1, b"", f"the filter {odd!r} in the git settings cannot be switched off; rename it")
        return await self._run(words, self.folder, _without(filters), purpose, most_bytes)

    async def _run(
        self, words: Sequence[str], folder: Path, settings: Sequence[str], purpose: str, most_bytes: int | None
    ) -> GitAnswer:
        more = (*settings, *(_FETCHING if self.fetches else ()))
        spec = SpawnSpec(
            argv=own_git_argv(self.environ, folder, words, more),
            cwd=str(folder),
            env={**_environment(self.environ, folder), **(_FETCHES if self.fetches else {})},
            owner="git",
            merge_stderr=False,
            confinement=outside("own git"),
        )
        child = await self.supervisor.spawn(Decision.own(purpose), spec)
        said = bytearray()
        try:
            async for chunk in child.output():
                said += chunk
                if most_bytes is not None and len(said) >= most_bytes:
                    await child.stop()
                    return GitAnswer(0, bytes(said[:most_bytes]), "")
            code = await child.wait()
            complaint = _complaint(child.stderr_tail()) or f"exit code {code}"
        finally:
            child.release()
        return GitAnswer(code, bytes(said), complaint)


def own_git_argv(
    environ: Mapping[str, str], folder: Path, words: Sequence[str], settings: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command line: git by its full path, its settings, then `words`, with the plain form of what they ask for."""
    program = find_program("git", environ, folder)
    if program is None:
        raise ToolError("git is not installed, or only inside the workspace or its virtualenv")
    given = [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]
    return (program, "--no-pager", *given, words[0], *_PLAIN.get(words[0], ()), *words[1:])


def _complaint(said: bytes) -> str:
    """Its last words; but `git diff` outside a repository says what is wrong first, and then how it is used."""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    marked = [line for line in lines if line.startswith(("fatal:", "error:", "warning: Not a git repository"))]
    return marked[-1] if marked else last


def _environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    return {**kept, **_ENVIRONMENT, "PATH": split_path(environ, folder).own}


def _without(filters: Iterable[str]) -> list[str]:
    """Settings under which these filters pass a text on as it is."""
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return [f"filter.{name}.{part}={value}" for name in filters for part, value in values.items()]


def _filters(listed: bytes) -> list[str]:
    names = listed.decode("utf-8", "surrogateescape").split("\0")
    return [found[1] for found in map(_FILTER.fullmatch, names) if found]
