"""`execute_code`: a Python script that the model writes and that calls tools; only what it prints is read back."""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from hermes.errors import MissingPart, ToolError
from hermes.scope import CallInterrupted, TurnScope
from hermes.seams import Action, MakesCalls, NestedCalls, ToolContext
from hermes.tools.calling.arguments import schema_of
from hermes.tools.code_execution.call_server import CallServer
from hermes.tools.code_execution.child import SCRIPT
from hermes.tools.code_execution.interpreter import BadScript, compiled, project_python
from hermes.tools.code_execution.local_run import new_folder, run_here
from hermes.tools.code_execution.remote_run import run_there
from hermes.tools.code_execution.result_json import ScriptOutput, ScriptRun, Story, frame, interrupted, told
from hermes.tools.code_execution.script_request import Mode, ScriptRequest, Stopped, limits_of
from hermes.tools.code_execution.stubs import callable_among
from hermes.tools.code_execution.tool_text import has_unix_sockets, refined
from hermes.tools.files.file_memory import FileMemo
from hermes.tools.registry import registry, tool_error, tool_result
from hermes.tools.results.limits import kept_output
from hermes.tools.results.tool_result import sanitise_error
from hermes.tools.traits import Traits
from hermes.types import Content, JsonObject

SHORT_CHARS = 4000
LENT = "lent_variables"  # the memo's key: names of variables that this session was lent


class ExecuteCode(Struct, frozen=True, forbid_unknown_fields=True):
    """Run a Python script that calls tools as functions. Only what it prints comes back: results that it works through
    on the way cost you nothing to read."""

    code: Annotated[str, Meta(description="The script.")]


async def execute_code(
    args: Mapping[str, Any], *, ctx: ToolContext, enabled_tools: Iterable[str] | None = None, **_: object
) -> str:
    code = args.get("code")
    if not isinstance(code, str) or not code.strip():
        return tool_error("code is empty; write a Python script that prints its result")
    limits, mode = limits_of(ctx.settings)
    folder = new_folder()
    ready: CodeType | None = None
    try:
        ready = await _compiled(code, f"{folder}/{SCRIPT}", ctx)
    except BadScript as bad:
        if not _is_newer_there(ctx, mode):
            return tool_result(frame("error"), error=f"{bad}\nNothing was run.")
    decision = await ctx.gate.decide(_action(code, ctx), ctx.scope)
    if not decision.allowed:
        return tool_result(frame("error"), error=decision.reason or "the script was not allowed")
    calls: NestedCalls = ctx.nested() if isinstance(ctx, MakesCalls) else NoCalls()
    order = ScriptRequest(
        code=code,
        compiled=ready,
        folder=folder,
        tools=_callable(calls, enabled_tools),
        limits=limits,
        mode=mode,
        decision=decision,
        passthrough=(*((ctx.settings.get("terminal") or {}).get("env_passthrough") or ()), *ctx.memo.get(LENT, ())),
    )
    return await _run(order, calls, ctx)


async def _compiled(code: str, file: str, ctx: ToolContext) -> CodeType:
    # The way to a thread and back takes longer than to compile a page of code.
    return compiled(code, file) if len(code) < SHORT_CHARS else await ctx.in_thread(compiled, code, file)


def _is_newer_there(ctx: ToolContext, mode: Mode) -> bool:
    """Whether the script's Python may understand what ours does not."""
    if ctx.environment.kind != "local" or mode == "strict":
        return False
    return project_python(os.environ).version > sys.version_info[:2]


def _action(code: str, ctx: ToolContext) -> Action:
    return Action(
        kind="code",
        tool="execute_code",
        text=code,
        cwd=ctx.environment.cwd,
        backend=ctx.environment.kind,
        route="code" if ctx.route == "foreground" else ctx.route,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
    )


async def _run(order: ScriptRequest, calls: NestedCalls, ctx: ToolContext) -> str:
    scope = ctx.scope.child("script", timeout_s=order.limits.timeout_s)
    desk = CallServer(calls, order.tools, order.limits.max_calls, scope)
    started = time.monotonic()
    runner = run_here if ctx.environment.kind == "local" else run_there
    try:
        run, output = await runner(order, ctx, desk, scope)
    except Stopped as stopped:
        story = _story(order, desk, ctx, time.monotonic() - started)
        if ctx.scope.remaining() == 0:  # not a person, but the turn's own deadline
            last = told(
                ScriptRun(status="timeout"), stopped.output, structs.replace(story, timeout_s=round(story.seconds))
            )
        else:
            last = interrupted(stopped.output, story)
        raise CallInterrupted(tool_result(last)) from stopped
    except (ToolError, MissingPart) as error:  # it could not be started, or the machine it ran on is gone
        run, output = ScriptRun(status="error", reason=sanitise_error(str(error))), ScriptOutput()
    story = _story(order, desk, ctx, time.monotonic() - started)
    answer = told(run, output, story)
    if run.exit_code is not None:
        await ctx.note("exit_code", run.exit_code)
    if output.is_cut:
        answer.update(await _kept(output, story, ctx))
    return tool_result(answer)


def _callable(calls: NestedCalls, enabled_tools: Iterable[str] | None) -> tuple[str, ...]:
    """What the script may call: of the seven, those that can be called here and belong to the session."""
    there = callable_among(calls.names())
    wanted = callable_among(enabled_tools or ())
    return tuple(name for name in there if name in wanted) if wanted else there


def _story(order: ScriptRequest, desk: CallServer, ctx: ToolContext, seconds: float) -> Story:
    return Story(
        code=order.code,
        calls=desk.made,
        used=frozenset(desk.used),
        seconds=seconds,
        timeout_s=order.limits.timeout_s,
        clean=FileMemo.of(ctx.memo).redactor.redact,
    )


async def _kept(output: ScriptOutput, story: Story, ctx: ToolContext) -> JsonObject:
    """A handle to the whole of an output that was cut."""
    whole = output.whole()
    if whole is None:
        return {}
    text = story.clean(whole.decode("utf-8", "replace"))
    return await kept_output(ctx.shelf.put("execute_code", text.encode("utf-8", "replace")))


class NoCalls:
    """`NestedCalls` where a handler has no way to make any."""

    def names(self) -> frozenset[str]:
        return frozenset()

    def check(self, name: str, args: JsonObject) -> JsonObject:
        raise ToolError(f"Unknown tool: {name}")

    async def call(self, name: str, args: JsonObject, scope: TurnScope) -> Content:
        raise ToolError(f"Unknown tool: {name}")


registry.register(
    name="execute_code",
    toolset="code_execution",
    schema=schema_of("execute_code", ExecuteCode),
    handler=execute_code,
    check_fn=has_unix_sockets,
    is_async=True,
    emoji="🐍",
    max_result_size_chars=100_000,
    traits=Traits(timeout_s=None, refine=refined),
)
