"""A script on another machine or in a container: the same module and runner, calling over files in a folder there."""

import asyncio
import contextlib
import json
import re
import shlex
from base64 import b64decode
from pathlib import Path

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Decision, Environment, ExecResult, ToolContext
from hermes.tools.code_execution import child_environment
from hermes.tools.code_execution.call_server import MAX_REQUEST_BYTES, CallServer, too_large
from hermes.tools.code_execution.child import LAUNCHER, files_of, postman
from hermes.tools.code_execution.result_json import ScriptOutput, ScriptRun
from hermes.tools.code_execution.script_request import ScriptRequest, Stopped
from hermes.tools.environments.run_child import CommandInterrupted

_ROUND_S = 20.0  # how long requests are waited for at once; a postman that was forgotten ends after it
_LAST_MAIL_S = 1.0
_KEPT_BYTES = 64 << 10
_CLEAN_UP_S = 10.0
_SHORT_S = 60.0
_OWN = Decision.own("script folder")
_MAIL = re.compile(r"^(req_\d+_\d+) ([A-Za-z0-9+/=]+|-)$", re.MULTILINE)

_PREPARE = """command -v python3 >/dev/null || exit 96
folder=$(mktemp -d "${TMPDIR:-/tmp}/hermes_exec_XXXXXXXX") && mkdir -m 700 "$folder/rpc" && printf '<%s>' "$folder"
"""


async def run_there(
    order: ScriptRequest, ctx: ToolContext, desk: CallServer, scope: TurnScope
) -> tuple[ScriptRun, ScriptOutput]:
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


async def _prepare(environment: Environment, order: ScriptRequest, desk: CallServer, ctx: ToolContext) -> str:
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
        "pid": f"{folder}/pid",
        "passthrough": order.passthrough,
        "added": {"HERMES_RPC_DIR": f"{folder}/rpc", "HERMES_RPC_TOKEN": desk.token, "PYTHONPATH": folder},
    }
    files = {
        **files_of(order.code, order.tools),
        "postman.py": postman().encode(),
        "launch.py": rules + f"_order = {json.dumps(told)}\n".encode() + LAUNCHER.encode(),
    }
    async with asyncio.TaskGroup() as group:
        for name, data in files.items():
            group.create_task(environment.write(f"{folder}/{name}", data, mode=0o600))
    return folder


async def _attend(
    ctx: ToolContext, order: ScriptRequest, desk: CallServer, folder: str, scope: TurnScope
) -> tuple[ScriptRun, ScriptOutput]:
    environment = ctx.environment
    quoted = shlex.quote(folder)
    where = folder if order.mode == "strict" else environment.cwd
    # `exec`: the shell that would write down its state is gone, so what the script's own calls did to it stays.
    command = f"cd -- {shlex.quote(where)} && exec python3 -I {quoted}/launch.py 2>{quoted}/stderr </dev/null"
    output = ScriptOutput()
    result: ExecResult | None = None
    failed: ToolError | None = None
    try:
        async with scope, asyncio.TaskGroup() as group:
            mail = group.create_task(_answer_mail(environment, desk, folder))
            try:
                result = await environment.execute(command, order.decision, scope)
                await asyncio.wait([mail], timeout=_LAST_MAIL_S)  # it ends with the script; to stop it costs a command
            except CommandInterrupted as stopped:
                output.add(stopped.output.encode())
                raise asyncio.CancelledError from stopped  # a TaskGroup takes a subclass for an error
            except ToolError as error:  # out of the group it would come wrapped
                failed = error
            finally:
                mail.cancel()
    except asyncio.CancelledError as cancelled:
        raise Stopped(output) from cancelled
    if failed is not None:
        raise failed
    if result is None:
        return ScriptRun(status="timeout"), output
    output.add(result.output.encode())
    output.total = max(output.total, result.total_bytes)
    if result.spill_path is not None:
        await ctx.in_thread(Path(result.spill_path).unlink, missing_ok=True)
    if result.timed_out:
        return ScriptRun(status="timeout"), output
    return ScriptRun(status="success" if result.exit_code == 0 else "error", exit_code=result.exit_code), output


async def _answer_mail(environment: Environment, desk: CallServer, folder: str) -> None:
    """Answer each request in a task of its own, until the script is gone; what is open then is cancelled."""
    command = f"exec python3 -I {shlex.quote(folder)}/postman.py {shlex.quote(folder)} {_ROUND_S:g} </dev/null"
    async with asyncio.TaskGroup() as group:
        open_now: set[asyncio.Task[None]] = set()
        while True:
            try:
                came = await environment.execute(command, _OWN, TurnScope(), timeout_s=_SHORT_S)
            except CommandInterrupted as stopped:
                raise asyncio.CancelledError from stopped  # as above
            except ToolError:  # the other side is gone, and the script's own command tells of it
                break
            for name, packed in _MAIL.findall(came.output):
                task = group.create_task(_answer_one(environment, desk, f"{folder}/rpc/{name}", packed))
                open_now.add(task)
                task.add_done_callback(open_now.discard)
            if came.exit_code != 0:
                break
        for task in open_now:
            task.cancel()


async def _answer_one(environment: Environment, desk: CallServer, path: str, packed: str) -> None:
    """The request that lay at `path`: its bytes packed, or a dash when they are left there."""
    left = path.replace("/req_", "/got_")
    try:
        asked = await environment.read(left, 0, MAX_REQUEST_BYTES + 1) if packed == "-" else b64decode(packed)
        answer = too_large() if len(asked) > MAX_REQUEST_BYTES else await desk.answer(asked)
        await environment.write(path.replace("/req_", "/res_"), answer, mode=0o600)
        if packed == "-":
            await environment.remove(left)
    except ToolError:  # the script has removed its folder: nobody waits for the answer
        return


async def _read(environment: Environment, path: str) -> bytes:
    """How a file there begins; nothing when the script removed it or put something else in its place."""
    try:
        return await environment.read(path, 0, _KEPT_BYTES)
    except ToolError:
        return b""
