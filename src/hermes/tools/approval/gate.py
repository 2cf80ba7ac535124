"""The gate: one decision for every action with an effect, whatever route it came by."""

import asyncio
import logging
import posixpath
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, structs

from hermes.config.sections.terminal import CONTAINERS
from hermes.confinement.policy import Confinement
from hermes.redact import MARKER
from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.approval.analysis import View
from hermes.tools.approval.border import (
    BORDER_KINDS,
    NOT_MOVED,
    SUDO_INSIDE,
    BorderView,
    leaves_border,
    reach_analysis,
    write_effect,
)
from hermes.tools.approval.decide import REFUSED, Context, Verdict, decide, is_exact, is_judged, rules_outside
from hermes.tools.approval.effects_model import Analysis, Effect, Severity
from hermes.tools.approval.made_here import Makings, imports_made_here, runs_made_here
from hermes.tools.approval.mode_verdict import ASKED_BY_MODE, PLAN, in_mode
from hermes.tools.approval.paths import GIT_RUNS
from hermes.tools.approval.policy import Grant, GrantScope, Policy, binding, path_class
from hermes.tools.approval.question import Answer, ApprovalQuestion, facts_of
from hermes.tools.web.web_access import is_ordinary
from hermes.work_mode import WorkMode

GRACE_S = 0.5  # who is asked counts the time too, and may say why it is a no
UNATTENDED = frozenset({"cron", "batch"})  # routes on which a person is never waited for
NOBODY = "nobody to ask"  # the rule of a decision that a person would have had to make
PLACEHOLDER = (
    "The text holds a placeholder for a secret, which only the file tools turn back into its value. "
    "Use them, or let the program read the value itself."
)
_LONG = 4096
_MOST_WRITTEN = 10_000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ENDING_KEYS = "\x03\x04"  # Ctrl-C and Ctrl-D stop things; every other key may change what a line says
_UNASKED = ("effects", "border")  # the rules of a verdict that looked at what the text itself does
_NOT_UNDERSTOOD = frozenset({"unknown", "unknown_program", "inline_code"})
_RUNS_INPUT = re.compile(
    r"(?:\A|[\s/])(?:(?:ba|z|da|k|fi|c|tc)?sh|ssh|su|sudo|docker|podman|kubectl|nsenter|chroot|screen|tmux|script|expect"
    r"|i?python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|irb|perl|php|lua|R|psql|mysql|mariadb|sqlite3|mongosh|redis-cli|gdb|ed|vim?|emacs)"
    r"(?=\s|\Z)"
)
_SHELLS = (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash", b"#!/usr/bin/env sh", b"#!/usr/bin/bash")
logger = logging.getLogger(__name__)


_PlainCalls: TypeAlias = dict[tuple[Any, ...], tuple[Analysis, Verdict]]


class Grants(Protocol):
    """Where the yeses are kept."""

    async def given(self, session_id: str) -> Sequence[Grant]: ...
    async def add(self, grant: Grant) -> None: ...
    async def use_once(self, grant: Grant) -> None: ...


class NobodyHere(Exception):
    """Raised by an `Ask` that finds nobody to ask."""


Ask = Callable[[ApprovalQuestion, TurnScope], Awaitable[Answer]]
Judge = Callable[[ApprovalQuestion, TurnScope], Awaitable[Literal["approve", "deny", "escalate"]]]
Record = Callable[[ApprovalQuestion, Decision], Awaitable[None]]
OnCall = Callable[["ApprovalGate", Action, TurnScope], None]
Tell = Callable[[str, dict[str, Any]], Awaitable[None]]
"""`(hook, payload)`: hooks are told that somebody is asked, and what was said."""


class SettledQuestion(Struct, frozen=True):
    """A decision, and the question that it answers."""

    question: ApprovalQuestion
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskView:
    """What the gate may look at on the disk; without it, it judges by names alone."""

    home: str
    own_home: str
    workspace: str | None = None  # the folder the work belongs to; None is wherever a command runs
    read_script: Callable[[str], bytes | None] = lambda _path: None
    real: Callable[[str], str] | None = None
    has_host_mounts: bool = False  # of the container that commands run in
    pushes_home: Callable[[str], bool] | None = None  # whether a remote was the workspace's when the session began


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGate:
    """Decides by policy, then by asking. Nobody to ask, a failed or late answer, or a failed record means deny."""

    policy: Callable[[], Policy]
    grants: Grants
    record: Record
    sight: DiskView
    ask: Ask | None = None
    judge: Judge | None = None
    is_remote: bool = False  # the question goes to a chat, where people answer later
    is_bypassed: Callable[[str], bool] = lambda _session: False  # a person switched asking off for this session
    in_thread: Callable[..., Awaitable[Any]] | None = None
    tell: Tell | None = None
    border: Callable[[], Awaitable[Confinement | None]] | None = None  # what the session's programs are held by
    makings: Callable[[], Makings] | None = None  # what the session has made on this machine
    on_call: OnCall | None = None  # told of each command that may run: questions of its programs come in its name
    written: set[str] = field(default_factory=set)  # what it has made on another
    work_mode: WorkMode = field(default_factory=WorkMode)  # how far the session goes by itself, as of now
    plain_calls: _PlainCalls = field(default_factory=dict)  # calls of tools that have no effect to be asked about

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        if action.kind == "tool" and (known := self._as_before(action)) is not None:
            decision = _allowed(known.verdict)
            await self.record(known, decision)
            return decision
        return (await self.settle(action, scope)).decision

    async def settle(self, action: Action, scope: TurnScope) -> SettledQuestion:
        """`decide` for whoever must tell why: the same decision and row, with the question that was settled."""
        policy = self.policy()
        border = await self._border(action)
        analysis, scripts = await self._analysed(action)
        if action.kind == "write" and border is not None:
            analysis = _beside_border(analysis, action, border)
        analysis = self._with_makings(analysis, action, border)
        context = Context(
            tool=action.tool,
            backend=action.backend,
            has_host_mounts=self.sight.has_host_mounts or bool(action.details.get("host_mounts")),
            session_id=action.session_id,
            task_id=action.task_id,
            binding=binding(f"{_form(action)} {action.text}", action.cwd, scripts),
            is_bypassed=self.is_bypassed(action.session_id),
            border=border,
        )
        given = await self.grants.given(action.session_id)
        verdict = decide(analysis, policy, given, context)
        beyond, leaves = _beyond_effects(action), bool(action.details.get("sandbox"))
        is_unasked = _is_held(verdict, action, policy, analysis) if leaves else verdict.rule in _UNASKED
        if beyond and is_unasked and not any(is_exact(grant, context) for grant in given):
            verdict = Verdict(outcome="ask", reason=beyond, rule="effects", scopes=("once", "task"), outside=leaves)
        elif leaves and verdict.rule == "mode" and border is not None and border.stands:
            verdict = Verdict(outcome="deny", reason=f"{beyond}; {NOT_MOVED}", rule="border")
        if verdict.outcome == "ask" and action.details.get("rule"):
            verdict = structs.replace(verdict, reason=str(action.details["why"]))  # what it says, not its key
        if action.kind == "command" and border is not None and border.stands and not action.details.get("sandbox"):
            verdict = _leaving(verdict, analysis)
        if action.kind == "tool" and verdict.outcome == "allow" and verdict.rule == "effects" and not verdict.effects:
            self.plain_calls[(action.tool, action.text, action.backend)] = (analysis, verdict)
        mode = self.work_mode.for_file(action.text) if action.kind == "write" else self.work_mode.name
        verdict = in_mode(mode, verdict, action, analysis, border)
        question = ApprovalQuestion(action=action, analysis=analysis, verdict=verdict)
        decision = await self._decide(question, context, policy, scope)
        if decision.allowed and verdict.rule == "grant":
            for grant in given:
                if grant.scope == "once" and grant.binding == context.binding:
                    await self.grants.use_once(grant)
        self._remember(question, decision)
        await self.record(question, decision)
        is_models = action.kind in ("command", "code") and action.route != "person"  # whose word opens every host
        if decision.allowed and self.on_call is not None and is_models:
            self.on_call(self, action, scope)
        return SettledQuestion(question, decision)

    def _as_before(self, action: Action) -> ApprovalQuestion | None:
        """The question of a tool's call that was allowed before, where nothing it hangs on has changed.

        There was nothing to ask about, and the rules of a policy hold as long as the gate. What else may change while
        it stands, yeses and the list of what is always allowed, answers questions and makes none, so no file has to be
        looked at.
        """
        known = self.plain_calls.get((action.tool, action.text, action.backend))
        if known is None or "rule" in action.details or self.is_bypassed(action.session_id):
            return None
        analysis, verdict = known
        left = in_mode(self.work_mode.name, verdict, action, analysis, None)
        return ApprovalQuestion(action=action, analysis=analysis, verdict=left) if left is verdict else None

    def _with_makings(self, analysis: Analysis, action: Action, border: BorderView | None) -> Analysis:
        """Where no border stands, what was made in this session is asked about before it runs."""
        level = border.confinement.level if border is not None else "none"
        if action.kind not in ("command", "code") or level == "full" or action.backend in CONTAINERS:
            return analysis
        if action.backend != "local":
            makings = Makings(self.written.__contains__)
        elif self.makings is not None:
            makings = self.makings()
        else:
            return analysis
        found = runs_made_here(analysis, action.cwd, makings, only_shell=level == "files")
        if action.kind == "code" and level == "none":
            found += imports_made_here(action.text, action.cwd, makings)
        return structs.replace(analysis, effects=(*analysis.effects, *dict.fromkeys(found))) if found else analysis

    def _remember(self, question: ApprovalQuestion, decision: Decision) -> None:
        """Keep what another machine's files are made by, since nothing there can be looked at."""
        action = question.action
        if not decision.allowed or action.backend == "local" or len(self.written) >= _MOST_WRITTEN:
            return
        if action.kind == "write":
            self.written.add(action.text)
        for effect in question.analysis.effects if action.kind in ("command", "code") else ():
            if effect.kind in ("write", "project_env"):
                self.written.update(posixpath.normpath(posixpath.join(action.cwd, path)) for path in effect.paths)

    async def _border(self, action: Action) -> BorderView | None:
        if (
            self.border is None
            or action.kind == "tool"
            or (action.kind == "network" and not action.details.get("reach"))
        ):
            return None
        confinement = await self.border()
        if confinement is None:
            return None
        return BorderView(confinement, self.sight.home, self.sight.workspace or action.cwd)

    async def _analysed(self, action: Action) -> tuple[Analysis, dict[str, bytes]]:
        if self.in_thread is not None and len(action.text) > _LONG:
            found: tuple[Analysis, dict[str, bytes]] = await self.in_thread(self._analyse, action)
            return found
        return self._analyse(action)

    def _analyse(self, action: Action) -> tuple[Analysis, dict[str, bytes]]:
        """What the action itself would do, and the scripts it runs; with the budget of one judgement for all of it."""
        if action.kind == "tool":
            return _tool_called(action), {}
        view = self._view()
        analysis = self._look(view, action)
        scripts = self._scripts(analysis, action)
        return _with_scripts(view, analysis, scripts), scripts

    def _look(self, view: View, action: Action) -> Analysis:
        text, cwd = action.text, action.cwd or None
        if action.kind == "code":
            return view.code(text, cwd)
        if action.kind == "network" and action.details.get("reach"):
            return reach_analysis(action)
        if action.kind == "network":
            return view.request(text, cwd)
        if action.kind == "write":
            return _as_file_tool(view.write(text, cwd), text)
        analysis = view.command(text, cwd)
        into = action.details.get("typed_into")
        if into is not None and not _RUNS_INPUT.search(str(into)):
            # An answer to a program that runs nothing it is told: prose need not parse as bash.
            known = tuple(effect for effect in analysis.effects if effect.kind not in _NOT_UNDERSTOOD)
            return Analysis(command="", normalised=text, commands=analysis.commands, effects=known, unknown=())
        return analysis

    def _view(self) -> View:
        sight = self.sight
        view = View(home=sight.home, own_home=sight.own_home, workspace=sight.workspace, real=sight.real)
        view.pushes_home = sight.pushes_home
        return view

    def _scripts(self, analysis: Analysis, action: Action) -> dict[str, bytes]:
        if action.kind not in ("command", "code"):
            return {}
        return {path: body for path in analysis.scripts if (body := self.sight.read_script(path)) is not None}

    async def _decide(self, question: ApprovalQuestion, context: Context, policy: Policy, scope: TurnScope) -> Decision:
        verdict = question.verdict
        if question.action.kind in ("command", "code") and MARKER.search(question.action.text):
            return Decision(allowed=False, reason=PLACEHOLDER, rule="placeholder")
        if verdict.outcome == "allow":
            return _allowed(verdict)
        if verdict.outcome == "deny":
            if verdict.rule == PLAN:
                return Decision(allowed=False, reason=verdict.reason, rule=PLAN)
            reason = f"{verdict.reason}. {REFUSED}" if verdict.is_hardline or verdict.rule == "border" else REFUSED
            return Decision(allowed=False, reason=reason, rule=verdict.rule)
        moves = verdict.outside or any(effect.kind in BORDER_KINDS for effect in verdict.effects)
        if moves and question.action.route in UNATTENDED:
            return _nobody(verdict)
        if question.action.route == "cron" and policy.cron_mode == "approve" and is_judged(verdict.effects):
            return Decision(allowed=True, reason="scheduled jobs may do this unasked", rule="cron_mode")
        is_persons = moves or verdict.rule == ASKED_BY_MODE or bool(question.action.details.get("persons_yes"))
        if policy.mode == "smart" and self.judge is not None and not is_persons:
            judged = await _guarded(self.judge(question, scope), scope, policy.timeout, "escalate")
            if judged == "approve":
                reason = "approved by the auxiliary model"
                return Decision(allowed=True, reason=reason, rule=verdict.rule, decided_by="model")
            if judged == "deny":
                return Decision(allowed=False, reason=_refused(verdict), rule=verdict.rule, decided_by="model")
        if self.ask is None or question.action.route in UNATTENDED or question.action.details.get("is_unasked"):
            return _nobody(verdict)
        limit_s = (policy.gateway_timeout if self.is_remote else policy.timeout) + GRACE_S
        facts = {**facts_of(question), "session_id": question.action.session_id}
        if self.tell is not None:
            await self.tell("pre_approval_request", facts)
        answer = await _guarded(self._asked(question, scope), scope, limit_s, "timeout")
        if self.tell is not None:
            await self.tell("post_approval_response", {**facts, "choice": answer})
        if answer == "nobody":
            return _nobody(verdict)
        return await self._answered(question, context, answer)

    async def _asked(self, question: ApprovalQuestion, scope: TurnScope) -> str:
        assert self.ask is not None
        try:
            return await self.ask(question, scope)
        except NobodyHere:
            return "nobody"

    async def _answered(self, question: ApprovalQuestion, context: Context, answer: str) -> Decision:
        verdict = question.verdict
        if answer not in ("once", *verdict.scopes):
            by = "nobody" if answer == "timeout" else "person"
            return Decision(allowed=False, reason=_refused(verdict), rule=verdict.rule, scope=answer, decided_by=by)
        if verdict.rule == ASKED_BY_MODE and answer == "session":
            self.work_mode.change("edits")
        for grant in _grants(answer, verdict, context):
            await self.grants.add(grant)
        return Decision(
            allowed=True,
            reason="approved",
            rule=verdict.rule,
            scope=answer,
            decided_by="person",
            outside=verdict.outside,
        )


def _allowed(verdict: Verdict) -> Decision:
    return Decision(
        allowed=True,
        reason=verdict.reason,
        rule=verdict.rule,
        outside=verdict.outside,
        read_only=verdict.read_only,
    )


def _tool_called(action: Action) -> Analysis:
    """A plugin's rule may want a person to see the call: its key is in `rule`, its words are in `why`."""
    text, rule, why = action.text, str(action.details.get("rule", "")), str(action.details.get("why", ""))
    asked = (Effect(rule, Severity.ASK, why),) if rule else ()
    return Analysis(command="" if rule else text, normalised=text, commands=(), effects=asked, unknown=())


def _as_file_tool(analysis: Analysis, path: str) -> Analysis:
    """A file tool shows what it changes and keeps the values of secrets, so a project's settings are files like others
    to it; but not what git runs later, outside every sandbox.
    """
    if GIT_RUNS.search(path):
        return analysis
    kept = tuple(_as_note(effect) if effect.kind == "project_env" else effect for effect in analysis.effects)
    return structs.replace(analysis, effects=kept, unknown=())


def _beside_border(analysis: Analysis, action: Action, border: BorderView) -> Analysis:
    """A write by a file tool is held to what a command may write: beyond that it is the same question."""
    effect = write_effect(action.text, border.confinement)
    if effect is not None and action.details.get("why"):  # for a command: what it said, and what a yes does
        effect = effect._replace(detail=str(action.details["why"]))
    return structs.replace(analysis, effects=(*analysis.effects, effect)) if effect is not None else analysis


def _leaving(verdict: Verdict, analysis: Analysis) -> Verdict:
    """A command that can only work outside is asked about as that; an exact yes from before was for that, too."""
    if verdict.outside or verdict.outcome == "deny" or verdict.rule == "mode" or not leaves_border(analysis):
        return verdict
    if verdict.rule == "grant" and verdict.outcome == "allow":
        return structs.replace(verdict, outside=True)
    reason = f"{SUDO_INSIDE} ({verdict.reason})" if verdict.outcome == "ask" and verdict.reason else SUDO_INSIDE
    rule = verdict.rule if verdict.outcome == "ask" else "border"
    return structs.replace(
        verdict, outcome="ask", reason=reason, rule=rule, scopes=("once", "task"), keys=(), outside=True
    )


def _with_scripts(view: View, analysis: Analysis, scripts: dict[str, bytes]) -> Analysis:
    """The analysis with what the shell scripts it runs would do beyond the workspace and temp."""
    found: list[Effect] = []
    for path, body in scripts.items():
        if path.endswith((".sh", ".bash")) or body.startswith(_SHELLS):
            inside = view.command(body.decode("utf-8", "replace"), path.rpartition("/")[0])
            found += [
                effect._replace(detail=f"in {path}: {effect.detail}", source=-1)
                for effect in inside.dangers
                if effect.kind not in _NOT_UNDERSTOOD and effect.path_class not in ("workspace", "temp")
            ]
    return structs.replace(analysis, effects=(*analysis.effects, *found)) if found else analysis


async def _guarded(waiting: Awaitable[str], scope: TurnScope, limit_s: float, failed: str) -> str:
    left = scope.remaining()
    try:
        async with asyncio.timeout(limit_s if left is None else min(limit_s, left)):
            return await waiting
    except TimeoutError:
        return failed
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        logger.warning("whoever was asked for approval left with a cancellation that nobody had asked for")
        return failed
    except Exception:  # the border to a surface or a model: whatever fails there must not let the action through
        logger.exception("asking for approval failed")
        return failed


def _is_held(verdict: Verdict, action: Action, policy: Policy, analysis: Analysis) -> bool:
    """Whether what is to leave the border has no leave for that: of a rule, or because asking is switched off."""
    if verdict.outcome != "allow":
        return verdict.outcome == "ask"
    return not (verdict.outside or verdict.rule == "mode" or rules_outside(analysis, policy, action.tool))


def _beyond_effects(action: Action) -> str:
    """What must be asked about although nothing in the text itself is dangerous."""
    if action.details.get("sandbox"):
        return str(action.details.get("why") or "leave the sandbox")
    into = action.details.get("typed_into")
    if into is not None and _RUNS_INPUT.search(str(into)) and _CONTROLS.search(action.text.strip(_ENDING_KEYS)):
        return "send keys that edit or recall a line in a shell"
    method = action.details.get("method")
    return f"send data ({method})" if action.kind == "network" and method and not is_ordinary(action) else ""


def _form(action: Action) -> str:
    return f"{action.kind} {action.details.get('sandbox', action.details.get('rule', ''))}"


def _as_note(effect: Effect) -> Effect:
    return effect._replace(kind="write", severity=Severity.NOTE)


def _refused(verdict: Verdict) -> str:
    return f"{verdict.reason}: {REFUSED[0].lower()}{REFUSED[1:]}" if verdict.reason else REFUSED


def _nobody(verdict: Verdict) -> Decision:
    what = f" ({verdict.reason})" if verdict.reason else ""
    reason = f"This needs a person's approval{what}, and nobody is here to give it. Choose a way that needs none."
    return Decision(allowed=False, reason=reason, rule=NOBODY, decided_by="nobody")


def _grants(answer: str, verdict: Verdict, context: Context) -> list[Grant]:
    """What a yes leaves behind. `once` is spent at once and leaves nothing."""
    if answer == "task":
        key = ", ".join(verdict.keys)
        return [
            Grant(
                scope="task", key=key, binding=context.binding, session_id=context.session_id, task_id=context.task_id
            )
        ]
    if answer not in ("session", "always"):
        return []
    scope: GrantScope = "session" if answer == "session" else "always"
    return [
        Grant(scope=scope, key=effect.key, path_class=path_class(effect), session_id=context.session_id)
        for effect in dict.fromkeys(verdict.effects)
        if effect.severity is Severity.ASK
    ]
