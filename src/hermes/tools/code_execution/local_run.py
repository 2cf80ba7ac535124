"""A script on this machine: a child of its own, in the terminal's sandbox where there is one, calling over a socket."""

import asyncio
import marshal
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from hermes.scope import TurnScope
from hermes.seams import Child, SpawnSpec, ToolContext
from hermes.tools.code_execution.child import COMPILED, MODULE, RUNNER, SCRIPT
from hermes.tools.code_execution.child_environment import child_environment
from hermes.tools.code_execution.desk import Desk
from hermes.tools.code_execution.interpreter import project_python
from hermes.tools.code_execution.order import Order, Stopped
from hermes.tools.code_execution.outcome import Limits, Output, Run
from hermes.tools.code_execution.socket_line import listen, serve
from hermes.tools.code_execution.stubs import stub_module
from hermes.tools.supervisor.link import in_memory_file

INTERRUPT_GRACE_S = 0.3
_STACK_BYTES = 64 << 10


@runtime_checkable
class Confines(Protocol):
    """An environment whose children may run in a sandbox."""

    async def confined(self, spec: SpawnSpec) -> SpawnSpec: ...


class _Place(NamedTuple):
    folder: Path
    listener: socket.socket
    stack: int  # a nameless file that the child writes its stack to

    def close(self) -> None:
        self.listener.close()
        os.close(self.stack)


async def run_here(order: Order, ctx: ToolContext, desk: Desk, scope: TurnScope) -> tuple[Run, Output]:
    """Run the script to its end or to that of `scope`, and leave nothing behind: no process, file or socket.

    A cancellation from outside stops the child quickly and passes on; `Stopped` carries what it had printed.
    """
    python = sys.executable
    if order.mode == "project":
        python = await project_python(os.environ, ctx.supervisor, ctx.in_thread)
    place = await ctx.in_thread(_make_place, order, python)
    output = Output()
    try:
        spec = _spec(order, python, ctx, desk, place)
        if isinstance(ctx.environment, Confines):
            spec = await ctx.environment.confined(spec)
        child = await ctx.supervisor.spawn(order.decision, spec)
        try:
            run = await _attend(child, desk, place, output, scope, order.limits)
        except asyncio.CancelledError as cancelled:
            await _stop_quickly(child, output)
            raise Stopped(output) from cancelled
        finally:
            child.release()
        run.stack = os.pread(place.stack, _STACK_BYTES, 0)
        run.folder = str(place.folder)
        return run, output
    finally:
        place.close()
        await asyncio.shield(ctx.in_thread(_remove, place.folder))


def _make_place(order: Order, python: str) -> _Place:
    # A socket's path may have about 100 characters, and macOS has long names for its temporary folder.
    base = "/tmp" if sys.platform == "darwin" else None  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="hermes-code-", dir=base))
    try:
        (folder / SCRIPT).write_bytes(order.code.encode("utf-8", "surrogatepass"))
        if python == sys.executable:
            compiled = compile(order.code, str(folder / SCRIPT), "exec", dont_inherit=True)
            (folder / COMPILED).write_bytes(marshal.dumps(compiled))
        (folder / MODULE).write_text(stub_module(order.tools), encoding="utf-8")
        return _Place(folder, listen(folder / "rpc"), in_memory_file(b""))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


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


def _spec(order: Order, python: str, ctx: ToolContext, desk: Desk, place: _Place) -> SpawnSpec:
    folder = str(place.folder)
    added = {"HERMES_RPC_SOCKET": f"{folder}/rpc", "HERMES_RPC_TOKEN": desk.token, "PYTHONPATH": folder}
    limit_s = order.limits.timeout_s
    when = time.monotonic() + limit_s - min(0.3, limit_s * 0.1)
    flags = ("-u",) if order.mode == "project" else ("-u", "-s")
    return SpawnSpec(
        argv=(python, *flags, "-c", RUNNER, folder, f"{when:.3f}", str(place.stack), order.mode),
        cwd=ctx.environment.cwd if order.mode == "project" else folder,
        env=child_environment(os.environ, order.passthrough, added),
        owner=ctx.call_id,
        merge_stderr=False,
        pass_fds=(place.stack,),
        max_processes=order.limits.max_processes,
    )


async def _attend(child: Child, desk: Desk, place: _Place, output: Output, scope: TurnScope, limits: Limits) -> Run:
    """Read, serve and wait, until the child is gone or the time is up."""
    code: int | None = None
    async with scope, asyncio.TaskGroup() as group:
        server = group.create_task(serve(place.listener, desk))
        async for chunk in child.output():
            output.add(chunk)
        code = await child.wait()
        server.cancel()
    if scope.expired and code is None:
        await child.stop(limits.term_grace_s)
        async for chunk in child.output():
            output.add(chunk)
        return Run(status="timeout", stderr=child.stderr_tail())
    assert code is not None
    storm = getattr(child, "storm_limit", None)
    reason = f"Script was killed: it had more than {storm} processes." if storm else ""
    return Run(
        status="success" if code == 0 and not storm else "error",
        exit_code=code,
        stderr=child.stderr_tail(),
        reason=reason,
    )


async def _stop_quickly(child: Child, output: Output) -> None:
    # The keeper goes on with it should this wait be cut short by a second cancellation or by the limit.
    try:
        async with asyncio.timeout(1.0):
            await child.stop(INTERRUPT_GRACE_S)
            async for chunk in child.output():
                output.add(chunk)
    except TimeoutError:
        return
