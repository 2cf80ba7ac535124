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
from hermes.tools.code_execution.child import LAUNCHER, files_of
from hermes.tools.code_execution.desk import MAX_REQUEST_BYTES, Desk, too_large
from hermes.tools.code_execution.order import Order, Stopped
from hermes.tools.code_execution.outcome import Output, Run
from hermes.tools.environments.running import CommandInterrupted

LOOK_EVERY_S = 0.1
LOOK_LEAST_S = 0.5
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
        async with asyncio.TaskGroup() as group:
            stderr = group.create_task(_read(environment, f"{folder}/stderr"))
            stack = group.create_task(_read(environment, f"{folder}/stack"))
        run.stderr, run.stack = stderr.result(), stack.result()
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
            *("-u", f"{folder}/main.py", f"+{limit_s - min(0.3, limit_s * 0.1):.3f}", f"{folder}/stack", order.mode),
        ],
        "passthrough": order.passthrough,
        "added": {"HERMES_RPC_DIR": f"{folder}/rpc", "HERMES_RPC_TOKEN": desk.token, "PYTHONPATH": folder},
    }
    files = {
        **files_of(order.code, order.tools),
        "launch.py": rules + f"_order = {json.dumps(told)}\n".encode() + LAUNCHER.encode(),
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
    command = f"cd -- {shlex.quote(where)} && exec python3 -I {quoted}/launch.py 2>{quoted}/stderr </dev/null"
    output = Output()
    result: ExecResult | None = None
    try:
        async with scope, asyncio.TaskGroup() as group:
            mail = group.create_task(_answer_mail(environment, desk, f"{folder}/rpc"))
            try:
                result = await environment.execute(command, order.decision, scope)
            except CommandInterrupted as stopped:
                output.add(stopped.output.encode())
                raise asyncio.CancelledError from stopped  # a TaskGroup takes a subclass for an error
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
    wait_s = LOOK_EVERY_S
    async with asyncio.TaskGroup() as group:
        while True:
            new = [name for name in await _names(environment, folder) if _REQUEST.fullmatch(name)]
            new = [name for name in new if name not in taken]
            taken.update(new)
            for name in new:
                group.create_task(_answer_one(environment, desk, PurePosixPath(folder) / name))
            # Each look is a process here and one there: a script that asks for nothing is looked at less often.
            wait_s = LOOK_EVERY_S if new else min(wait_s * 1.2, LOOK_LEAST_S)
            await asyncio.sleep(wait_s)


async def _names(environment: Environment, folder: str) -> list[str]:
    try:
        return await environment.list_dir(folder)
    except CommandInterrupted as stopped:
        raise asyncio.CancelledError from stopped  # as above


async def _answer_one(environment: Environment, desk: Desk, request: PurePosixPath) -> None:
    asked = await environment.read(str(request), 0, MAX_REQUEST_BYTES + 1)
    answer = too_large() if len(asked) > MAX_REQUEST_BYTES else await desk.answer(asked)
    reply = str(request.with_name(request.name.replace("req_", "res_", 1)))
    async with asyncio.TaskGroup() as group:
        group.create_task(environment.write(reply, answer, mode=0o600))
        group.create_task(environment.remove(str(request)))


async def _read(environment: Environment, path: str) -> bytes:
    """How a file there begins; nothing when the script removed it or put something else in its place."""
    try:
        return await environment.read(path, 0, _KEPT_BYTES)
    except ToolError:
        return b""
