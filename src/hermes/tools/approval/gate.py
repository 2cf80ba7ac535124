"""The gate: one decision for every action with an effect, whatever route it came by."""

import asyncio
import logging
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec import Struct

from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.decide import REFUSED, Context, Verdict, decide
from hermes.tools.approval.model import Analysis, Severity
from hermes.tools.approval.policy import Grant, GrantScope, Policy, binding, path_class

Answer = Literal["once", "task", "session", "always", "deny"]
_END = "HERMES_CODE_END"
logger = logging.getLogger(__name__)


class Question(Struct, frozen=True, kw_only=True):
    """What a person, or the smart mode's model, is shown."""

    action: Action
    analysis: Analysis
    verdict: Verdict


class Grants(Protocol):
    """Where the yeses are kept."""

    async def given(self, session_id: str) -> Sequence[Grant]: ...
    async def add(self, grant: Grant) -> None: ...
    async def use_once(self, grant: Grant) -> None: ...


Ask = Callable[[Question, TurnScope], Awaitable[Answer]]
Judge = Callable[[Question, TurnScope], Awaitable[Literal["approve", "deny", "escalate"]]]
Record = Callable[[Question, Decision], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGate:
    """Decides by policy, then by asking. Nobody to ask, a failed or late answer, or a failed record means deny."""

    policy: Policy
    grants: Grants
    record: Record
    home: str
    own_home: str
    ask: Ask | None = None
    judge: Judge | None = None
    read_script: Callable[[str], bytes | None] = lambda _path: None
    real: Callable[[str], str] | None = None

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        analysis = self._analyse(action)
        scripts = {path: body for path in analysis.scripts if (body := self.read_script(path)) is not None}
        context = Context(
            tool=action.tool,
            backend=action.backend,
            has_host_mounts=bool(action.details.get("host_mounts")),
            session_id=action.session_id,
            task_id=action.task_id,
            binding=binding(action.text, action.cwd, scripts),
        )
        given = await self.grants.given(action.session_id)
        verdict = decide(analysis, self.policy, given, context)
        question = Question(action=action, analysis=analysis, verdict=verdict)
        decision = await self._settle(question, context, scope)
        if decision.allowed and verdict.rule == "grant":
            for grant in given:
                if grant.scope == "once" and grant.binding == context.binding:
                    await self.grants.use_once(grant)
        await self.record(question, decision)
        return decision

    def _analyse(self, action: Action) -> Analysis:
        text = action.text
        if action.kind == "code":
            text = f"python3 - <<'{_END}'\n{text}\n{_END}\n"
        elif action.kind == "write":
            text = f": > {shlex.quote(text)}"
        elif action.kind == "network":
            text = f"curl {shlex.quote(text)}"
        elif action.kind == "tool":
            return Analysis(command=text, normalised=text, commands=(), effects=(), unknown=())
        return analyse(text, cwd=action.cwd or None, home=self.home, own_home=self.own_home, real=self.real)

    async def _settle(self, question: Question, context: Context, scope: TurnScope) -> Decision:
        verdict = question.verdict
        if verdict.outcome == "allow":
            return Decision(allowed=True, reason=verdict.reason, rule=verdict.rule)
        if verdict.outcome == "deny":
            reason = f"{verdict.reason}. {REFUSED}" if verdict.is_hardline else REFUSED
            return Decision(allowed=False, reason=reason, rule=verdict.rule)
        if self.policy.mode == "smart" and self.judge is not None:
            judged = await self._guarded(self.judge(question, scope), scope, "escalate")
            if judged == "approve":
                return Decision(
                    allowed=True, reason="approved by the auxiliary model", rule=verdict.rule, decided_by="smart"
                )
            if judged == "deny":
                return Decision(allowed=False, reason=REFUSED, rule=verdict.rule, decided_by="smart")
        if self.ask is None:
            return Decision(allowed=False, reason=REFUSED, rule="nobody to ask", decided_by="policy")
        answer = await self._guarded(self.ask(question, scope), scope, "deny")
        return await self._answered(question, context, answer)

    async def _guarded(self, waiting: Awaitable[str], scope: TurnScope, failed: str) -> str:
        left = scope.remaining()
        limit_s = self.policy.timeout if left is None else min(self.policy.timeout, left)
        try:
            async with asyncio.timeout(limit_s):
                return await waiting
        except TimeoutError:
            return failed
        except Exception:  # the border to a surface or a model: whatever fails there must not let the action through
            logger.exception("asking for approval failed")
            return failed

    async def _answered(self, question: Question, context: Context, answer: str) -> Decision:
        verdict = question.verdict
        if answer not in ("once", *verdict.scopes):
            return Decision(allowed=False, reason=REFUSED, rule=verdict.rule, decided_by="user")
        for grant in _grants(answer, verdict, context):
            await self.grants.add(grant)
        return Decision(allowed=True, reason="approved", rule=verdict.rule, scope=answer, decided_by="user")


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
