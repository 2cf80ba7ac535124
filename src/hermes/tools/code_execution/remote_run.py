"""A script on another machine or in a container: the same module and runner, calling over files in a folder there."""

import asyncio
import contextlib
import json
import re
import shlex
from pathlib import Path, PurePosixPath

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Decision, Environment, ExecResult, ToolContext
from hermes.tools.code_execution import child_environment
from hermes.tools.code_execution.child import LAUNCHER, MODULE, RUNNER, SCRIPT
from hermes.tools.code_execution.desk import MAX_REQUEST_BYTES, Desk, too_large
from hermes.tools.code_execution.order import Order, Stopped
from hermes.tools.code_execution.outcome import Output, Run
from hermes.tools.code_execution.stubs import stub_module
from hermes.tools.environments.running import CommandInterrupted

LOOK_EVERY_S = 0.1
_KEPT_BYTES = 64 << 10
_CLEAN_UP_S = 10.0
_SHORT_S = 60.0
_OWN = Decision.own("script folder")
_REQUEST = re.compile(r"req_\d+_\d+")

_PREPARE = """command -v python3 >/dev/null || exit 96
folder=$(mktemp -d "${TMPDIR:-/tmp}/hermes_exec_XXXXXXXX") && mkdir -m 700 "$folder/rpc" && printf '<%s>' "$folder"
"""


async def run_there(order: Order, ctx: ToolContext, desk: Desk, scope: TurnScope) -> tuple[Run, Output]:
    """Run the script to its end or to that of `scope`. Its folder there is removed whatever happens."""
    environment = ctx.environment
    folder = await _prepare(environment, order, desk, ctx)
    try:
        run, output = await _attend(ctx, order, desk, folder, scope)
        run.stderr = await _read(environment, f"{folder}/stderr")
        run.stack = await _read(environment, f"{folder}/stack")
        run.folder = folder
        return run, output
    finally:
        # The other side may be gone, and then so is the folder, or nothing here can remove it.
        with contextlib.suppress(ToolError, TimeoutError):
            async with asyncio.timeout(_CLEAN_UP_S):
                await environment.execute(f"rm -rf -- {shlex.quote(folder)}", _OWN, TurnScope(), timeout_s=_CLEAN_UP_S)


async def _prepare(environment: Environment, order: Order, desk: Desk, ctx: ToolContext) -> str:
    made = await environment.execute(_PREPARE, _OWN, ctx.scope, timeout_s=_SHORT_S)
    found = re.search(r"<(/[^<>\n]+)>\s*\Z", made.output)
    if made.exit_code == 96:
        raise ToolError(f"execute_code needs python3 in the {environment.kind} environment, and there is none")
    if made.exit_code != 0 or found is None:
        raise ToolError(f"no folder for the script could be made in the {environment.kind} environment: {made.output}")
    folder = found[1]
    limit_s = order.limits.timeout_s
    rules = await ctx.in_thread(Path(child_environment.__file__).read_bytes)
    told = {
        "argv": [
            *("-u", "-c", RUNNER, folder, f"+{limit_s - min(0.3, limit_s * 0.1):.3f}", f"{folder}/stack"),
            order.mode,
        ],
        "passthrough": order.passthrough,
        "added": {"HERMES_RPC_DIR": f"{folder}/rpc", "HERMES_RPC_TOKEN": desk.token, "PYTHONPATH": folder},
    }
    files = {
        SCRIPT: order.code.encode("utf-8", "surrogatepass"),
        MODULE: stub_module(order.tools).encode(),
        "launch.py": rules + LAUNCHER.encode(),
        "order.json": json.dumps(told).encode(),
    }
    async with asyncio.TaskGroup() as group:
        for name, data in files.items():
            group.create_task(environment.write(f"{folder}/{name}", data, mode=0o600))
    return folder


async def _attend(ctx: ToolContext, order: Order, desk: Desk, folder: str, scope: TurnScope) -> tuple[Run, Output]:
    environment = ctx.environment
    quoted = shlex.quote(folder)
    where = folder if order.mode == "strict" else environment.cwd
    # `exec`: the shell that would write down its state is gone, so what the script's own calls did to it stays.
    command = (
        f"cd -- {shlex.quote(where)} && "
        f"exec python3 -I {quoted}/launch.py {quoted}/order.json 2>{quoted}/stderr </dev/null"
    )
    output = Output()
    result: ExecResult | None = None
    try:
        async with scope, asyncio.TaskGroup() as group:
            mail = group.create_task(_answer_mail(environment, desk, f"{folder}/rpc"))
            try:
                result = await environment.execute(command, order.decision, scope)
            except CommandInterrupted as stopped:
                output.add(stopped.output.encode())
                raise
            finally:
                mail.cancel()
    except asyncio.CancelledError as cancelled:
        raise Stopped(output) from cancelled
    if result is None:
        return Run(status="timeout"), output
    output.add(result.output.encode())
    output.total = max(output.total, result.total_bytes)
    if result.spill_path is not None:
        await ctx.in_thread(Path(result.spill_path).unlink, missing_ok=True)
    if result.timed_out:
        return Run(status="timeout"), output
    return Run(status="success" if result.exit_code == 0 else "error", exit_code=result.exit_code), output


async def _answer_mail(environment: Environment, desk: Desk, folder: str) -> None:
    """Look for requests until cancelled; answer each in a task of its own."""
    taken: set[str] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            for name in await environment.list_dir(folder):
                if name not in taken and _REQUEST.fullmatch(name):
                    taken.add(name)
                    group.create_task(_answer_one(environment, desk, PurePosixPath(folder) / name))
            await asyncio.sleep(LOOK_EVERY_S)


async def _answer_one(environment: Environment, desk: Desk, request: PurePosixPath) -> None:
    info = await environment.stat(str(request))
    if info is None:
        return
    if info.kind != "file" or info.size > MAX_REQUEST_BYTES:
        answer = too_large()
    else:
        answer = await desk.answer(await environment.read(str(request)))
    await environment.remove(str(request))
    await environment.write(str(request.with_name(request.name.replace("req_", "res_", 1))), answer, mode=0o600)


async def _read(environment: Environment, path: str) -> bytes:
    """The end of a file there; nothing when the script removed it."""
    try:
        info = await environment.stat(path)
        if info is None or info.kind != "file":
            return b""
        return await environment.read(path, max(0, info.size - _KEPT_BYTES), _KEPT_BYTES)
    except ToolError:
        return b""
