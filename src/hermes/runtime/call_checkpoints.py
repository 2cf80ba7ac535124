"""Take checkpoints around calls that change files: what a call may touch, and what is told when none could be taken."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.config.sections import checkpoints as checkpoints_section
from hermes.config.values import plain
from hermes.context.checkpoints import CheckpointError, CheckpointLimits, Checkpoints, Touch
from hermes.context.checkpoints.step_keeper import StepKeeper
from hermes.scope import unbroken
from hermes.types import JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext
    from hermes.runtime.parts import Joining

_PATCHED = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete|Move) File|Move to): (.+?)\s*$", re.MULTILINE)
_MAX_TEXT = 150
_MAX_PATHS = 20
_WRITING = ("terminal", "code_execution", "all")


class CallCheckpoints:
    """The checkpoints of one session's calls."""

    def __init__(self, agent: "Joining", checkpoints: Checkpoints, steps: StepKeeper, *, takes_snapshots: bool) -> None:
        self._agent = agent
        self._look: asyncio.Task[None] | None = None
        self.checkpoints = checkpoints
        self.steps = steps
        self._takes_snapshots = takes_snapshots  # of the whole project, before each turn's first change
        self._told: set[str] = set()  # complaints that were shown, each once

    @asynccontextmanager
    async def around(self, ctx: "CallContext") -> AsyncIterator[None]:
        """Run a call, with a snapshot before it where it may change files. One that fails never stops the call."""
        touch = touch_of(ctx)
        if touch is not None:
            touch = replace(touch, text=ctx.turn.services.redactor.redact(touch.text))
        if touch is None or not self._is_covered(ctx):
            yield
            return
        is_snapped = self._takes_snapshots and await self._before(touch, ctx)
        is_kept = await self._keep(touch, ctx)
        try:
            yield
        finally:
            await unbroken(self._after(touch, ctx, is_snapped=is_snapped, is_kept=is_kept))

    def _is_covered(self, ctx: "CallContext") -> bool:
        if ctx.environment.kind == "local":
            return True
        self._complain(
            ctx,
            f"no checkpoint was taken: they cover files on this machine, and this session works on "
            f"{ctx.environment.kind}, where nothing can be taken back with /rollback",
        )
        return False

    async def _keep(self, touch: Touch, ctx: "CallContext") -> bool:
        """Keep what the call may change, for `/rewind`."""
        try:
            await self.steps.before(touch)
        except (CheckpointError, OSError, UnicodeError) as error:
            self._complain(ctx, f"/rewind cannot bring back what this changes: {error}")
            return False
        return True

    async def _before(self, touch: Touch, ctx: "CallContext") -> bool:
        try:
            taken = await self.checkpoints.before(touch)
        except (CheckpointError, OSError) as error:
            self._complain(ctx, f"no checkpoint was taken: {error}")
            return False
        if taken:
            await ctx.note("checkpoint", taken[-1].short_hash)
        return True

    async def _after(self, touch: Touch, ctx: "CallContext", *, is_snapped: bool, is_kept: bool) -> None:
        try:
            if is_snapped:
                await self.checkpoints.after(touch, ctx.details.get("files_changed") or ())
            if is_kept:
                await self.steps.after(touch)
        except (CheckpointError, OSError) as error:
            self._complain(ctx, f"what this call changed cannot be told from your own changes: {error}")

    def begin_look(self) -> None:
        """Look at the project, where commands may come that change it."""
        named, environment = self._agent.options.tools.enabled_toolsets, self._agent.services.environment
        runs = named is None or any(each in _WRITING or each.startswith("hermes-") for each in named)
        if self._look is None and runs and not self._takes_snapshots and environment.kind == "local":
            self._look = asyncio.get_running_loop().create_task(self._prepare(environment.cwd), name="first look")

    async def close(self) -> None:
        """Give up a look that is still under way."""
        look = self._look
        if look is not None and not look.done() and look.get_loop() is asyncio.get_running_loop():
            look.cancel()
            await asyncio.wait([look])

    async def _prepare(self, folder: str) -> None:
        try:
            await self.steps.prepare(folder)
        except (CheckpointError, OSError, UnicodeError) as error:  # the first command tells of it
            self._agent.services.log.info("the project was not looked at: %s", error)

    def _complain(self, ctx: "CallContext", text: str) -> None:
        ctx.turn.services.log.warning("%s", text)
        if text not in self._told:
            self._told.add(text)
            ctx.emit(StatusChanged("warning", text))


def call_checkpoints(agent: "Joining") -> CallCheckpoints:
    """The checkpoints of an agent that takes them; a keyword that was given wins over the settings."""
    options, settings, process = agent.options, agent.settings, agent.process
    limits, asked = CheckpointLimits.of(plain(settings.of(checkpoints_section.Section))), options.tools
    if "checkpoint_max_snapshots" in options.given:
        limits = replace(limits, max_snapshots=asked.checkpoint_max_snapshots)
    if "checkpoint_max_total_size_mb" in options.given:
        limits = replace(limits, max_total_bytes=asked.checkpoint_max_total_size_mb * 1_000_000)
    if "checkpoint_max_file_size_mb" in options.given:
        limits = replace(limits, max_file_bytes=asked.checkpoint_max_file_size_mb * 1_000_000)
    run, now = process.pool.run, process.clock.now
    made = Checkpoints(settings.home, process.supervisor, run, limits, now)
    # Who asks for snapshots gets one of the whole project before each turn's first change; else what changes is kept.
    is_asked = "checkpoints_enabled" in options.given or bool((settings.tree.get("checkpoints") or {}).get("enabled"))
    return CallCheckpoints(agent, made, StepKeeper(made, run, now), takes_snapshots=is_asked)


def touch_of(ctx: "CallContext") -> Touch | None:
    """What the call may change where the session works; None when that is nothing."""
    name, args = ctx.asked.name, ctx.asked.args
    base = Touch(
        call_id=ctx.call_id,
        turn_id=ctx.turn.turn_id,
        session_id=ctx.session_id,
        tool=name,
        paths=(),
        cwd=ctx.environment.cwd,
    )
    if ctx.asked.rules.edits:
        named = _named(args)
        return replace(base, paths=named, text=_shown(", ".join(named))) if named else None
    if name == "terminal":
        return _of_command(base, str(args.get("command") or ""), str(args.get("workdir") or ""))
    if name == "execute_code":
        return replace(base, is_command=True, text=_shown(str(args.get("code") or "")))
    return None


def _named(args: JsonObject) -> tuple[str, ...]:
    given = [str(args["path"])] if args.get("path") else []
    for line in _PATCHED.findall(str(args.get("patch") or "")):
        given += [part.strip() for part in line.split(" -> ")]
    return tuple(str(Path(path).expanduser()) for path in dict.fromkeys(given))


def _of_command(base: Touch, command: str, workdir: str) -> Touch | None:
    from hermes.tools.approval import analyse  # a parser that only commands need
    from hermes.tools.approval.only_reads import only_reads

    cwd = str(Path(base.cwd, Path(workdir).expanduser())) if workdir else base.cwd
    analysis = analyse(command, cwd=cwd, home=str(Path.home()))
    if only_reads(analysis):
        return None
    effects = [effect for effect in analysis.effects if effect.kind != "network"]
    reached = dict.fromkeys(path for effect in effects for path in effect.paths if path.startswith("/"))
    return replace(
        base,
        cwd=cwd,
        paths=(cwd, *list(reached)[:_MAX_PATHS]),
        text=_shown(command),
        is_command=True,
        is_destructive=bool(analysis.dangers) or any(effect.kind == "delete" for effect in effects),
    )


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}…"
