"""Local commands inside bubblewrap: workspace and tool caches writable, the rest read-only, secrets out of sight."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from hermes.errors import MissingPart
from hermes.programs import TOOL_CACHES, find_program
from hermes.seams import Decision, SpawnSpec, Supervisor
from hermes.tools.environments.output_spool import Spool
from hermes.tools.environments.run_child import run_child
from hermes.tools.supervisor.child import StartFailed
from hermes.tools.supervisor.threads import RunBlocking

Mode: TypeAlias = Literal["auto", "on", "off"]
PROBE_LIMIT_S = 5.0

# What commands may see of HERMES_HOME; everything else in it is hidden.
VISIBLE_IN_HOME = ("skills", "tools", "plugins")


class SandboxOptions(Struct, frozen=True, kw_only=True):
    """What a sandboxed command may touch. `mode` is `terminal.sandbox`."""

    mode: Mode = "auto"
    workspace: str
    network: bool = True
    hermes_home: str = ""
    user_home: str = ""
    writable: tuple[str, ...] = ()


class SandboxProbe(Struct, frozen=True):
    """Whether bubblewrap works here, and if not, why."""

    works: bool
    why: str = ""
    program: str = ""


class Sandbox:
    """Wraps command lines; knows which further paths were allowed since the session began."""

    def __init__(self, options: SandboxOptions) -> None:
        self.options = options
        self._allowed: list[str] = []
        self._shown: list[str] = []
        self._planned: dict[bool, list[str]] = {}  # by whether there are hooks to protect: found out once, then kept

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that were made writable beyond the usual ones."""
        return (*self.options.writable, *self._allowed)

    def hides(self, path: str) -> bool:
        """Whether commands find nothing at `path`, although it may be there."""
        own = os.path.realpath(self.options.hermes_home) if self.options.hermes_home else "\0"
        inside = os.path.relpath(path, own) if f"{path}/".startswith(f"{own}/") else None
        return inside is not None and inside.split("/", 1)[0] not in VISIBLE_IN_HOME

    def show(self, folder: str) -> None:
        """Let commands read a folder that they may not write, wherever it lies."""
        self._shown.append(os.path.realpath(folder))

    def folder_for(self, path: str) -> str | None:
        """The folder that must be writable for a write at `path`; None when it would be the whole home or more."""
        found = Path(path)
        while not found.exists():
            found = found.parent
        folder = os.path.realpath(found if found.is_dir() else found.parent)
        is_too_much = f"{os.path.realpath(self.options.user_home or '/')}/".startswith(f"{folder.rstrip('/')}/")
        return None if is_too_much else folder

    def allow(self, folder: str) -> None:
        """Let later commands write below `folder`."""
        self._allowed.append(folder)
        self._planned.clear()

    def wrap(
        self, argv: tuple[str, ...], env: Mapping[str, str], *, terminal: bool = False, outlives: bool = False
    ) -> tuple[str, ...]:
        """`argv` inside the sandbox; what outlives the session is not shown its folders. Blocks for a few calls."""
        words = [
            *("bwrap", "--die-with-parent", "--cap-drop", "ALL", "--unshare-pid"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        ]
        if terminal:
            words += ["--dev-bind", "/dev/pts", "/dev/pts"]
        if not self.options.network:
            words.append("--unshare-net")
        has_hooks = Path(f"{self.options.workspace}/.git").is_dir()
        if has_hooks not in self._planned:
            # Outer folders first: an inner mount lies on top of the one around it.
            mounts = sorted(self._mounts(env), key=lambda each: each[0].count("/"))
            self._planned[has_hooks] = [word for _, mount in mounts for word in mount]
        shown = [] if outlives else [word for path in self._shown for word in ("--ro-bind", path, path)]
        return (*words, *self._planned[has_hooks], *shown, "--", *argv)

    def _mounts(self, env: Mapping[str, str]) -> list[tuple[str, tuple[str, ...]]]:
        options = self.options
        home = options.user_home or env.get("HOME", "")
        writable = [options.workspace, tempfile.gettempdir(), "/var/tmp", *self.writable]  # noqa: S108
        writable += [f"{home}/{name}" for name in TOOL_CACHES] if home else []
        writable += [env["VIRTUAL_ENV"]] if env.get("VIRTUAL_ENV") else []
        mounts: list[tuple[str, tuple[str, ...]]] = [
            (path, ("--bind", path, path))
            for path in _outermost(map(os.path.realpath, writable))
            if Path(path).exists()
        ]
        hooks = os.path.realpath(f"{options.workspace}/.git/hooks")
        if Path(hooks).parent.is_dir():
            mounts.append((hooks, ("--ro-bind", hooks, hooks) if Path(hooks).is_dir() else ("--tmpfs", hooks)))
        if options.hermes_home:
            own = os.path.realpath(options.hermes_home)
            if Path(own).is_dir():
                mounts.append((own, ("--tmpfs", own)))
            mounts += [
                (f"{own}/{name}", ("--ro-bind-try", f"{own}/{name}", f"{own}/{name}")) for name in VISIBLE_IN_HOME
            ]
        return mounts


def _outermost(folders: Iterable[str]) -> list[str]:
    """Each folder once, and none that lies in another: every mount costs a command some time."""
    kept: list[str] = []
    for folder in sorted(set(folders)):
        if not kept or not folder.startswith(f"{kept[-1].rstrip('/')}/"):
            kept.append(folder)
    return kept


_answers: dict[str, SandboxProbe] = {}  # by program: whether it works does not change while a runtime lives


async def probed(supervisor: Supervisor, run_blocking: RunBlocking, *workspaces: str) -> SandboxProbe:
    """Whether bubblewrap works here; it is tried once in the life of this process."""
    program = find_program("bwrap", os.environ, *workspaces)
    if program is None:
        return SandboxProbe(works=False, why="bubblewrap (the program bwrap) is not installed")
    if program not in _answers:
        _answers[program] = await _probe(supervisor, run_blocking, program)
    return _answers[program]


async def _probe(supervisor: Supervisor, run_blocking: RunBlocking, program: str) -> SandboxProbe:
    """Run bubblewrap once, with the namespaces a command will get."""
    sandbox = Sandbox(SandboxOptions(workspace=tempfile.gettempdir()))
    argv = sandbox.wrap(("/bin/sh", "-c", "exit 42"), {})
    spool = Spool(Path(tempfile.gettempdir()), memory_bytes=4096, disk_bytes=0)
    try:
        child = await supervisor.spawn(
            Decision.own("sandbox probe"), SpawnSpec(argv=(program, *argv[1:]), cwd="/", env={})
        )
        ended = await run_child(child, spool, PROBE_LIMIT_S, run_blocking)
    except StartFailed as error:
        return SandboxProbe(works=False, why=str(error))
    if ended.code == 42:
        return SandboxProbe(works=True, program=program)
    said = spool.finish().decode("utf-8", "replace").strip()
    return SandboxProbe(works=False, why=f"bubblewrap does not work here: {said or f'exit code {ended.code}'}")


def missing(why: str) -> MissingPart:
    """The error for `terminal.sandbox: on` where there is none."""
    return MissingPart(
        f"terminal.sandbox is on, and {why}; install bubblewrap (Debian, Fedora, Arch: package bubblewrap) "
        "or set terminal.sandbox: auto"
    )
