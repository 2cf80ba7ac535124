"""The children of one agent: made for a call, run side by side, and none of them left when the call has ended."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hermes.config.sections.delegation import Section
from hermes.models.lent_guard import has_cheap_prefixes
from hermes.runtime.context import CallContext
from hermes.runtime.delegation.child_events import ChildEvents
from hermes.runtime.delegation.child_options import child_options, may_delegate, task_text, tools_for
from hermes.runtime.delegation.child_record import ChildRecord
from hermes.runtime.delegation.child_task import ChildTask, tasks_of
from hermes.runtime.delegation.file_claims import FileClaims
from hermes.runtime.delegation.loan import Loan
from hermes.runtime.delegation.other_agent import allowed_programs, other_model
from hermes.runtime.delegation.parent_link import ParentLink
from hermes.runtime.delegation.running_child import ChildSurroundings, RunningChild
from hermes.runtime.delegation.summaries import shortened
from hermes.runtime.options import AgentOptions, SessionOptions
from hermes.runtime.parts import Joining
from hermes.runtime.parts.mcp import MEMO as SERVERS
from hermes.scope import CallInterrupted
from hermes.seams import Decision
from hermes.tools.registry import tool_result
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.account import Account
    from hermes.runtime.agent import AIAgent

STOP_S = 0.8  # that children have to put their ends away when their parent is interrupted
STAGGER_S = 2.0  # that the others wait for the first one to fill the provider's cache


class Family:
    """Runs the calls of `delegate_task` of one agent, and knows which children are at work."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._section = agent.settings.of(Section)
        self._link = agent.options.parent
        self._places = asyncio.Semaphore(self._section.max_concurrent_children)
        self.running: dict[str, RunningChild] = {}  # by name
        self.claims = self._link.claims if self._link is not None else FileClaims()

    @property
    def depth(self) -> int:
        """0 is the agent that a person talks to."""
        return self._link.depth if self._link is not None else 0

    async def delegate(self, args: Mapping[str, Any], call: CallContext) -> str:
        """The result of a call: what each child came to, in the order of the tasks."""
        tasks = tasks_of(args, self._section, self.depth)
        programs = await allowed_programs(tasks, call) if any(task.program for task in tasks) else {}
        services, started = self._agent.services, self._agent.services.clock.monotonic()
        loan = await Loan.taken(self._agent, call.session_id, call.call_id, len(tasks))
        children = [self._child(task, call, loan.share(task.index), programs.get(task.program)) for task in tasks]
        self.running |= {child.record.name: child for child in children}
        try:
            results = await self._run(children, call)
        finally:
            loan.close()
            for child in children:
                self.running.pop(child.record.name, None)
        seconds = round(services.clock.monotonic() - started, 2)
        return tool_result(
            results=await shortened(results, self._section, self._agent, call), total_duration_seconds=seconds
        )

    def at_work(self) -> tuple[RunningChild, ...]:
        """The children that run now, those of a child behind it."""
        found: list[RunningChild] = []
        for child in self.running.values():
            if child.record.result is None:  # else it waits for its siblings
                found += [child, *(child.agent.children if child.agent is not None else ())]
        return tuple(found)

    def stop(self, name: str) -> bool:
        """Stop one child, here or below; False when none of this name is at work."""
        child = next((one for one in self.at_work() if one.record.name == name), None)
        if child is not None:
            child.stop()
        return child is not None

    # -- side by side --------------------------------------------------------------------------------------------------

    async def _run(self, children: Sequence[RunningChild], call: CallContext) -> list[JsonObject]:
        """Run them. An interrupt goes to each of them, and what they have come to is the call's result all the same."""
        first = children[0].events.first_byte if self._keeps_prefixes() and len(children) > 1 else None
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run_one(one, call, first), name=one.record.name) for one in children]
                try:
                    await asyncio.wait(tasks)
                except asyncio.CancelledError:
                    for child in children:
                        child.stop()
                    # Not a second cancellation, which would cut their last commits off: they end by themselves.
                    await asyncio.wait(tasks, timeout=STOP_S)
                    raise
        except asyncio.CancelledError as stopped:
            known = [one.record.result or one.record.failed("interrupted", "it was stopped") for one in children]
            raise CallInterrupted(tool_result(results=known, interrupted=True)) from stopped
        return [task.result() for task in tasks]

    async def _run_one(self, child: RunningChild, call: CallContext, first: asyncio.Event | None) -> JsonObject:
        if first is not None and first is not child.events.first_byte:
            try:
                async with asyncio.timeout(STAGGER_S):
                    await first.wait()
            except TimeoutError:
                pass  # a slow first answer holds nobody up for longer; the others fill the cache themselves
        async with self._places:
            return await child.run(call.environment.cwd, self._agent.settings)

    def _keeps_prefixes(self) -> bool:
        """Whether what the first child reads is cheaper, or faster, for the others: the provider keeps a cache."""
        client = self._agent.client
        endpoint = client.endpoint
        if endpoint is None:
            return False
        return endpoint.quirks.cache_markers or has_cheap_prefixes(client.model, client.price)

    # -- one child ---------------------------------------------------------------------------------------------------

    def _child(
        self, task: ChildTask, call: CallContext, account: "Account | None", decision: Decision | None
    ) -> RunningChild:
        services = self._agent.services
        path = (*(self._link.path if self._link is not None else ()), f"sa-{task.index}-{secrets.token_hex(4)}")
        record = ChildRecord(
            path=path,
            session_id=f"{services.ids.session()}{secrets.token_hex(2)}",  # many are made within a second
            parent_session_id=call.session_id,
            turn_id=call.turn.turn_id,
            call_id=call.call_id,
            task=replace(task, is_orchestrator=may_delegate(task, self._section, len(path))),
            clock=services.clock,
            started=services.clock.monotonic(),
            model=self._agent.client.model.name,
        )
        settings = self._agent.settings.mapping
        tools = tools_for(task, call.turn.tools, settings, self._section, len(path))
        toolsets = tuple(sorted({call.turn.tools.rules(tool).toolset for tool in tools} - {""}))
        events = ChildEvents(record, toolsets, call.emit)

        mine = self._agent.options.session

        def make(folder: str, settings: "Settings") -> "AIAgent":
            link = ParentLink(
                path=path,
                goal=task.goal,
                task=task_text(task, folder),
                tools=tools,
                scope=call.scope,
                account=account,
                budget=call.turn.budget if self._shares_iterations else None,
                claims=self.claims,
                asks_as=self._link.asks_as if self._link is not None else mine.gateway_session_key or call.session_id,
                says_yes=self._section.subagent_auto_approve,
                settings=settings,
                process=self._agent.process,
                at_end=record.at_end,
                servers=services.memo.get(SERVERS),
            )
            agent = self._options_in(link, record, events, folder)
            if decision is not None:
                agent = replace(agent, model=other_model(task.program, decision, settings))
            return _made(agent)

        around = ChildSurroundings(services.store, services.hooks, lambda: self._agent.process.supervisor)
        return RunningChild(record, events, account, around, make)

    def _options_in(self, link: ParentLink, record: ChildRecord, events: ChildEvents, folder: str) -> AgentOptions:
        session = SessionOptions(session_id=record.session_id, parent_session_id=record.parent_session_id)
        options = child_options(self._agent.options, self._section, link, session, events)
        limits = replace(options.limits, iteration_budget=link.budget)
        return replace(options, tools=replace(options.tools, cwd=folder), limits=limits)

    @property
    def _shares_iterations(self) -> bool:
        given = self._agent.options.limits.iteration_budget is not None
        return given or self._section.share_iterations


def _made(options: AgentOptions) -> "AIAgent":
    from hermes.runtime.agent import AIAgent  # which is built on this

    return AIAgent.of(options)
