"""A conversation as a turn left it, gone on with in memory: the same prompt, tools and words, and nobody's session."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hermes.models.client import CallPlan, ModelClient
from hermes.runtime.context import TurnContext
from hermes.runtime.outcome import Outcome
from hermes.runtime.parts.memory import WRITE_ORIGIN
from hermes.runtime.requests import build_units
from hermes.runtime.sinks import Unheard
from hermes.runtime.tool_executor import run_calls
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.tools.view import SessionView
from hermes.types import JsonObject, Message, ToolCall, ToolResult


class ForkPlan(Struct, frozen=True, kw_only=True):
    """What a fork is for: the task, which tools are run, how many model calls it takes, its purpose in the ledger."""

    task: str
    tools: frozenset[str]
    rounds: int
    purpose: str
    digest: str = ""  # in place of the conversation, for a model that has not read it


class Fork(Struct, frozen=True, kw_only=True):
    """The snapshot. Requests begin with the bytes that the next one of the session would begin with."""

    request: ModelRequest
    ctx: TurnContext
    client: ModelClient

    async def run(self, plan: ForkPlan, scope: TurnScope, client: ModelClient | None = None) -> list[ToolResult]:
        """Let the model work on the task; the results of the tools that were run, in order.

        What is not among `plan.tools` is answered as switched off, and not run. Only ledger rows are stored.
        """
        ctx, asked = self._context(plan, scope), client or self.client
        before = () if plan.digest else tuple(self.request.units)
        words = f"{plan.digest}\n\n{plan.task}" if plan.digest else plan.task
        messages, done = [Message(role="user", content=words)], list[ToolResult]()
        for _ in range(plan.rounds):
            request = replace(self.request, units=(*before, *build_units(messages)))
            call = CallPlan(purpose=plan.purpose, session_id=ctx.session_id)
            answer = await asked.call(request, call, scope)
            await ctx.services.store.commit(answer.closing)
            message = answer.response.message
            if not message.tool_calls:
                break
            results = await run_calls(ctx, message.tool_calls, _Unkept())
            messages += [message, *map(_as_message, results)]
            done += [result for result in results if result.name in plan.tools]
        return done

    def _context(self, plan: ForkPlan, scope: TurnScope) -> TurnContext:
        services, view = self.ctx.services, self.ctx.tools
        assert isinstance(view, SessionView)
        return replace(
            self.ctx,
            tools=view.restricted(plan.tools),
            services=replace(services, memo={**services.memo, WRITE_ORIGIN: plan.purpose}),
            scope=scope,
            sink=Unheard(),
            outcome=Outcome(),
        )


class _Unkept:
    """`RoundLog` of calls that belong to no transcript."""

    async def persist(self, results: Sequence[ToolResult], starting: Sequence[ToolCall]) -> None:
        """Nothing is kept: what they write are files, each whole or not at all."""

    def started(self, call: ToolCall, args: JsonObject) -> None: ...
    def finished(self, call: ToolCall, args: JsonObject, result: ToolResult) -> None: ...


def _as_message(result: ToolResult) -> Message:
    return Message(
        role="tool", content=result.content, tool_call_id=result.call_id, tool_name=result.name, status=result.status
    )
