"""`terminal`: run a command where the session's environment is, in the foreground or in the background."""

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any, Protocol, runtime_checkable

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.seams import Action, Decision, ExecResult, HookBus, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.environments.background import BackgroundRequest, background_of
from hermes.tools.environments.run_child import CommandInterrupted
from hermes.tools.registry import registry, tool_error, tool_result
from hermes.tools.results.limits import kept_output
from hermes.tools.terminal.live_tail import live_tail
from hermes.tools.terminal.output_text import MAX_CHARS, cut, meaning_of, plain
from hermes.tools.terminal.sandbox_escape import RunsOutside, Settled, past_sandbox, run_outside
from hermes.tools.terminal.simple_commands import misuse
from hermes.tools.terminal.sudo import provide_password
from hermes.tools.traits import Traits

DEFAULT_TIMEOUT_S = 180.0
MAX_FOREGROUND_S = 600.0
PLANNED = "plan mode: it ran where everything but the temporary folder is read-only"
_ALLOWED_BY = {"person": "the user allowed", "model": "the model that judges commands allowed"}
_NEEDS_PIPE = re.compile(r"\bgh\s+auth\s+login\b.*--with-token")
_WORKDIR = re.compile(r"[\w/\\:.~ +@=,-]+")


@runtime_checkable
class HasHooks(Protocol):
    """A context whose plugins may change what a command printed."""

    @property
    def hooks(self) -> HookBus: ...


class Terminal(Struct, frozen=True, forbid_unknown_fields=True):
    """Run a shell command (bash) in the session's environment. cd, exported variables, functions and aliases last from
    one command to the next. stdout and stderr come together. The call ends when the command does: everything it
    started is stopped then, so servers, watchers and long jobs need background=true, which returns at once with a
    session_id for the process tool. For files use read_file, search_files, write_file and patch rather than cat, grep,
    sed or echo."""

    command: Annotated[str, Meta(description="What to run.")]
    background: Annotated[
        bool, Meta(description="Return at once; follow it with the process tool. For servers and long jobs.")
    ] = False
    timeout: (
        Annotated[int, Meta(ge=1, description="Seconds a foreground command may take (default 180, at most 600).")]
        | UnsetType
    ) = UNSET
    workdir: Annotated[str, Meta(description="Folder to run in; the session stands there afterwards.")] | UnsetType = (
        UNSET
    )
    pty: Annotated[bool, Meta(description="Give it a terminal, for interactive programs; needs background=true.")] = (
        False
    )
    notify_on_complete: Annotated[bool, Meta(description="Background: tell you once when it has ended.")] = False
    watch_patterns: (
        Annotated[
            list[str],
            Meta(description="Background: tell you when new output holds one of these texts, such as a ready line."),
        ]
        | UnsetType
    ) = UNSET


async def terminal(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    if not isinstance(args.get("command"), str):
        return _refused("command must be a string")
    wanted = parse_args(args, Terminal)
    settings = ctx.settings.get("terminal") or {}
    refusal = _refusal(wanted, settings)
    if refusal:
        return refusal
    decision = await _decide(wanted, ctx)
    if not decision.allowed:
        return tool_result(
            output="", exit_code=-1, error=decision.reason or "the command was not allowed", status="blocked"
        )
    if wanted.background and decision.outside:
        return _refused("a command that leaves the border runs in the foreground", status="blocked")
    if wanted.background:
        return await _background(wanted, decision, ctx)
    return await _foreground(wanted, decision, ctx, settings)


def _refusal(wanted: Terminal, settings: Mapping[str, Any]) -> str | None:
    """Why the call cannot be made as it stands, before anybody is asked about it."""
    if not wanted.command.strip():
        return _refused("the command is empty")
    if wanted.workdir and not _WORKDIR.fullmatch(wanted.workdir):
        return _refused(f"workdir {wanted.workdir!r} has characters that no folder here may have", status="blocked")
    if wanted.background:
        return None
    if wanted.pty:
        return _refused("pty=true needs background=true; type into it with process write and submit")
    if wanted.notify_on_complete or wanted.watch_patterns:
        return _refused(
            "notify_on_complete and watch_patterns need background=true; leave them out to wait for the end"
        )
    most = float(settings.get("max_foreground_timeout") or MAX_FOREGROUND_S)
    if wanted.timeout and wanted.timeout > most:
        return tool_error(
            f"timeout {wanted.timeout} is over the {most:g} s a foreground command may take; "
            "use background=true with notify_on_complete=true"
        )
    instead = misuse(wanted.command)
    return _refused(instead) if instead else None


def _refused(why: str, status: str = "error") -> str:
    return tool_result(output="", exit_code=-1, error=why, status=status)


async def _decide(wanted: Terminal, ctx: ToolContext) -> Decision:
    route = ctx.route
    if route == "foreground" and wanted.background:
        route = "pty" if wanted.pty else "background"
    action = Action(
        kind="command",
        tool="terminal",
        text=wanted.command,
        cwd=_folder(wanted, ctx.environment.cwd),
        backend=ctx.environment.kind,
        route=route,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
    )
    return await ctx.gate.decide(action, ctx.scope)


def _folder(wanted: Terminal, cwd: str) -> str:
    """Where the command begins, for a session that stands in `cwd`."""
    folder = wanted.workdir or cwd
    return folder if folder.startswith("~") else posixpath.normpath(posixpath.join(cwd, folder))


async def _foreground(wanted: Terminal, decision: Decision, ctx: ToolContext, settings: Mapping[str, Any]) -> str:
    timeout_s = float(wanted.timeout or settings.get("timeout") or DEFAULT_TIMEOUT_S)
    await ctx.note("command", wanted.command)
    await provide_password(wanted.command, ctx)
    try:
        with live_tail(ctx):
            settled = await _run(wanted, decision, ctx, timeout_s)
    except CommandInterrupted as stopped:
        await ctx.note("exit_code", 130)
        await ctx.note("output", f"{cut(plain(stopped.output))[0]}\n[Command interrupted]")
        raise
    await ctx.note("exit_code", settled.result.exit_code)
    if settled.result.notes:
        await ctx.note("sandbox", "; ".join(settled.result.notes))
    answer = await _worded(wanted.command, settled, ctx, timeout_s)
    return tool_result({**answer, **_approval(decision)})


async def _run(wanted: Terminal, decision: Decision, ctx: ToolContext, timeout_s: float) -> Settled:
    """Run the command where it may run, and once more where the border was in its way and a yes moved it."""
    folder = _folder(wanted, ctx.environment.cwd)
    if decision.outside and isinstance(ctx.environment, RunsOutside):
        return await run_outside(wanted.command, decision, ctx, timeout_s, cwd=folder)
    result = await ctx.environment.execute(
        wanted.command, decision, ctx.scope, timeout_s=timeout_s, cwd=wanted.workdir or None
    )
    if decision.read_only:
        return Settled(result, PLANNED if result.exit_code else "")
    return await past_sandbox(wanted.command, result, ctx, timeout_s, cwd=folder)


async def _worded(command: str, settled: Settled, ctx: ToolContext, timeout_s: float) -> dict[str, object]:
    result = settled.result
    text = await _transformed(command, result, ctx)
    output, is_cut = cut(text, MAX_CHARS)
    if result.timed_out:
        output = f"{output}\n[Command timed out after {timeout_s:g}s]".lstrip()
    answer: dict[str, object] = {"output": output, "exit_code": result.exit_code, "error": None}
    meaning = meaning_of(command, result.exit_code)
    if meaning and not result.timed_out:
        answer["exit_code_meaning"] = meaning
    if result.spill_path is not None:
        answer |= await kept_output(ctx.shelf.put_file("terminal", result.spill_path))
        answer["total_bytes"] = result.total_bytes
    elif is_cut:
        answer |= await kept_output(ctx.shelf.put("terminal", text.encode("utf-8", "replace")))
    if settled.note or result.notes:
        answer["sandbox"] = "; ".join(filter(None, (settled.note, *result.notes)))
    answer["cwd"] = result.cwd
    answer["backend"] = result.backend
    return answer


async def _transformed(command: str, result: ExecResult, ctx: ToolContext) -> str:
    """The text of the output, as plugins leave it."""
    text = plain(result.output).strip()
    if not isinstance(ctx, HasHooks):
        return text
    facts = {"command": command, "output": text, "returncode": result.exit_code}
    facts |= {"task_id": ctx.task_id, "env_type": result.backend}
    return await ctx.hooks.transform("transform_terminal_output", text, facts)


def _approval(decision: Decision) -> dict[str, object]:
    """A word to the model that somebody was asked about this command and allowed it."""
    by = _ALLOWED_BY.get(decision.decided_by)
    return {"approval": f"{by} this command ({decision.scope})"} if by else {}


async def _background(wanted: Terminal, decision: Decision, ctx: ToolContext) -> str:
    patterns = tuple(wanted.watch_patterns or ())
    has_pty = wanted.pty and not _NEEDS_PIPE.search(wanted.command)
    order = BackgroundRequest(
        command=wanted.command,
        cwd=_folder(wanted, ctx.environment.cwd),
        pty=has_pty,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        notify=wanted.notify_on_complete,
        watch=() if wanted.notify_on_complete else patterns,
    )
    started = await background_of(ctx.environment).start(order, decision)
    await ctx.note("command", wanted.command)
    answer: dict[str, object] = {
        "output": "Background process started",
        "session_id": started.id,
        "pid": started.pid,
        "exit_code": 0,
        "error": None,
        "backend": ctx.environment.kind,
        **_approval(decision),
    }
    if order.notify:
        answer["notify_on_complete"] = True
    if order.watch:
        answer["watch_patterns"] = list(order.watch)
    if order.notify and patterns:
        answer["watch_patterns_ignored"] = "notify_on_complete is set; one message comes at the end"
    if wanted.timeout:
        answer["timeout_ignored"] = "a background process has no time limit; end it with process kill"
    if wanted.pty and not has_pty:
        answer["pty_note"] = "started without a terminal: this command reads its token from a pipe"
    return tool_result(answer)


registry.register(
    name="terminal",
    toolset="terminal",
    schema=schema_of("terminal", Terminal),
    handler=terminal,
    is_async=True,
    emoji="💻",
    max_result_size_chars=100_000,
    traits=Traits(timeout_s=None),
)
