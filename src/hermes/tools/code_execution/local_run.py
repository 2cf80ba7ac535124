"""A script on this machine: a child of its own, in the terminal's sandbox where there is one, calling over a socket."""

import asyncio
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import structs

from hermes.config import paths
from hermes.config.dotenv import lent, read_env
from hermes.confinement.policy import TEMP_FOLDERS, Confinement
from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Child, SpawnSpec, ToolContext
from hermes.tools.code_execution.call_server import CallServer, listen, serve, serve_passed
from hermes.tools.code_execution.child import CACHE, files_of
from hermes.tools.code_execution.child_environment import child_environment
from hermes.tools.code_execution.interpreter import project_python
from hermes.tools.code_execution.result_json import ScriptOutput, ScriptRun
from hermes.tools.code_execution.script_limits import ScriptLimits
from hermes.tools.code_execution.script_request import ScriptRequest, Stopped
from hermes.tools.supervisor.child import StartFailed
from hermes.tools.supervisor.keeper.start import in_memory_file

INTERRUPT_GRACE_S = 0.3
_STACK_BYTES = 64 << 10


LONGEST_BASE = 64  # a socket's path may have about 100 characters


@runtime_checkable
class Confines(Protocol):
    """An environment whose children may be confined."""

    async def confinement(self) -> Confinement: ...
    async def confined(self, spec: SpawnSpec, *, read_only: bool = False) -> SpawnSpec: ...
    async def settled(self) -> tuple[str, ...]: ...


def new_folder() -> str:
    """A name for the folder of one script. Nothing has that name yet."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > LONGEST_BASE:
        base = "/tmp"  # noqa: S108 - macOS and some build systems have long names for their temporary folders
    return f"{base}/hermes-code-{secrets.token_hex(8)}"


async def run_here(
    order: ScriptRequest, ctx: ToolContext, desk: CallServer, scope: TurnScope
) -> tuple[ScriptRun, ScriptOutput]:
    """Run the script to its end or to that of `scope`, and leave nothing behind: no process, file or socket.

    A cancellation from outside stops the child quickly and passes on; `Stopped` carries what it had printed.
    """
    python = sys.executable
    if order.mode == "project":
        python = project_python(os.environ).program
    files = files_of(order.code, order.tools, order.compiled if python == sys.executable else None)
    confined = await ctx.environment.confinement() if isinstance(ctx.environment, Confines) else None
    # Here and not in a thread: a few small files in a temporary folder, and a thread costs more.
    try:
        place = _RunFolder(_FolderNames.of(order.folder, confined), files)
    except OSError as error:
        raise ToolError(f"no folder for the script could be made: {error}") from error
    output = ScriptOutput()
    try:
        spec = _spec(order, python, ctx, desk, place)
        if isinstance(ctx.environment, Confines):
            spec = _with_line(await ctx.environment.confined(spec, read_only=order.decision.read_only), place)
        child = await ctx.supervisor.spawn(order.decision, spec)
        place.hand_over()
        try:
            run = await _attend(child, desk, place, output, scope, order.limits)
        except asyncio.CancelledError as cancelled:
            await _stop_quickly(child, output)
            raise Stopped(output) from cancelled
        finally:
            child.release()
        if isinstance(ctx.environment, Confines):
            run.notes = await ctx.environment.settled()
        run.stack = os.pread(place.stack, _STACK_BYTES, 0)
        run.folder = place.folder
        return run, output
    finally:
        if not place.closed():
            await asyncio.shield(ctx.in_thread(_remove, Path(place.here)))


class _FolderNames(NamedTuple):
    """What the script calls its folder, and where the runtime finds it."""

    folder: str
    here: str

    @classmethod
    def of(cls, wanted: str, confined: Confinement | None) -> "_FolderNames":
        """`wanted`, or one of that name in the private temporary folder of a confined session."""
        if confined is None or not confined.temp:
            return cls(wanted, wanted)
        here = f"{confined.temp}/{os.path.basename(wanted)}"  # noqa: PTH119
        inside = f"{TEMP_FOLDERS[0]}/{os.path.basename(wanted)}"  # noqa: PTH119
        return cls(inside if confined.level == "full" else here, here)


class _RunFolder:
    """A script's folder, the socket it calls over, and a nameless file that it writes its stack to."""

    def __init__(self, names: _FolderNames, files: Mapping[str, bytes]) -> None:
        folder, self.here = names
        self.folder = folder
        self.main = f"{folder}/{next(iter(files))}"
        self._names = [*files, "rpc"]
        self.mother: socket.socket | None = None  # over which the script hands its connections, where it can make none
        self._theirs: socket.socket | None = None
        os.mkdir(self.here, 0o700)  # noqa: PTH102
        self._at = os.open(self.here, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _write(self._at, files)
            # A socket's name is short, and that of a home may be long: by the folder's descriptor it is never too long.
            self.listener = listen(f"{self.here}/rpc" if self.here == folder else f"/proc/self/fd/{self._at}/rpc")
            self.stack = in_memory_file(b"")
        except BaseException:
            os.close(self._at)
            shutil.rmtree(self.here, ignore_errors=True)
            raise

    def line_to_inherit(self) -> int:
        """Open the line over which the script hands its connections; the number is that of its end."""
        self.mother, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.mother.setblocking(False)
        return self._theirs.fileno()

    def hand_over(self) -> None:
        """The script has its end of the line."""
        if self._theirs is not None:
            self._theirs.close()

    def closed(self) -> bool:
        """Close what is open, and remove the folder as it was made; False when the script made more or less of it."""
        self.hand_over()
        if self.mother is not None:
            self.mother.close()
        self.listener.close()
        os.close(self.stack)
        try:
            for name in self._names:  # by descriptor: the script may have put a link in the place of its folder
                os.unlink(name, dir_fd=self._at)
            if any(name.startswith(CACHE) for name in self._names):
                os.rmdir(CACHE, dir_fd=self._at)
            os.rmdir(self.here)  # noqa: PTH106
        except OSError:
            return False
        finally:
            os.close(self._at)
        return True


def _write(at: int, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        if name.startswith(CACHE):
            os.mkdir(CACHE, 0o700, dir_fd=at)
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at), "wb") as file:
            file.write(data)


def _remove(folder: Path) -> None:
    """Remove what the script made of its folder: also one it locked, or one it put a link in the place of."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir():
        _unlock(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _unlock(folder: Path) -> None:
    folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            inner = Path(place, name)
            if not inner.is_symlink():
                inner.chmod(0o700)


def _spec(order: ScriptRequest, python: str, ctx: ToolContext, desk: CallServer, place: _RunFolder) -> SpawnSpec:
    folder = place.folder
    added = {"HERMES_RPC_SOCKET": f"{folder}/rpc", "HERMES_RPC_TOKEN": desk.token, "PYTHONPATH": folder}
    limit_s = order.limits.timeout_s
    when = time.monotonic() + limit_s - min(0.3, limit_s * 0.1)
    flags = ("-u",) if order.mode == "project" else ("-u", "-s")
    return SpawnSpec(
        argv=(python, *flags, place.main, f"{when:.3f}", str(place.stack), order.mode),
        cwd=ctx.environment.cwd if order.mode == "project" else folder,
        env=child_environment(_lent(order.passthrough), order.passthrough, added),
        owner=ctx.call_id,
        merge_stderr=False,
        pass_fds=(place.stack,),
        await_start=False,
        max_processes=order.limits.max_processes,
        confinement=None,  # which the environment gives it
    )


def _with_line(spec: SpawnSpec, place: _RunFolder) -> SpawnSpec:
    """`spec` with a way to call that its confinement leaves open."""
    if not isinstance(spec.confinement, Confinement) or spec.confinement.level != "files":
        return spec
    fd = place.line_to_inherit()
    return structs.replace(spec, env={**spec.env, "HERMES_RPC_SOCKET": f"fd:{fd}"}, pass_fds=(*spec.pass_fds, fd))


def _lent(names: Sequence[str]) -> Mapping[str, str]:
    """The environment, with those of .env that are passed through by name."""
    if all(name in os.environ for name in names):
        return os.environ
    return lent(os.environ, names, read_env(paths.env_file(paths.hermes_home())))


async def _attend(
    child: Child,
    desk: CallServer,
    place: _RunFolder,
    output: ScriptOutput,
    scope: TurnScope,
    limits: ScriptLimits,
) -> ScriptRun:
    """Read, serve and wait, until the child is gone or the time is up."""
    code: int | None = None
    unstarted: StartFailed | None = None
    async with scope, asyncio.TaskGroup() as group:
        servers = [group.create_task(serve(place.listener, desk))]
        if place.mother is not None:
            servers.append(group.create_task(serve_passed(place.mother, desk)))
        async for chunk in child.output():
            output.add(chunk)
        try:
            code = await child.wait()
        except StartFailed as error:  # out of the group it would come wrapped
            unstarted = error
        for server in servers:
            server.cancel()
    if unstarted is not None:
        raise unstarted
    if scope.expired and code is None:
        await child.stop(limits.term_grace_s)
        async for chunk in child.output():
            output.add(chunk)
        return ScriptRun(status="timeout", stderr=child.stderr_tail())
    assert code is not None
    excess = getattr(child, "excess", "")
    return ScriptRun(
        status="success" if code == 0 and not excess else "error",
        exit_code=code,
        stderr=child.stderr_tail(),
        reason=f"Script was killed: it had {excess}." if excess else "",
    )


async def _stop_quickly(child: Child, output: ScriptOutput) -> None:
    # The keeper goes on with it should this wait be cut short by a second cancellation or by the limit.
    try:
        async with asyncio.timeout(1.0):
            await child.stop(INTERRUPT_GRACE_S)
            async for chunk in child.output():
                output.add(chunk)
    except TimeoutError:
        return
