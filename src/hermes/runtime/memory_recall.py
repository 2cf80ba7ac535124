"""Memory with a provider: the files as ever, and whoever `memory.provider` names recalls beside the question."""

import logging
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from hermes.config.sections.memory import Section
from hermes.context.memory.delegation_report import finished_children
from hermes.context.memory.provider import PROVIDERS
from hermes.context.memory.provider_calls import MemoryManager
from hermes.context.memory.provider_faults import KeptFault, keep_fault
from hermes.context.memory.provider_home import provider_home
from hermes.dicts import to_dict
from hermes.runtime.parts import Joining, TurnFacts
from hermes.runtime.parts.memory import WRITE_ORIGIN, MemoryPart
from hermes.tools.registry import Registered, ToolEntry
from hermes.types import Content, JsonObject

if TYPE_CHECKING:
    from hermes.context.memory.entries import Target
    from hermes.context.memory.memory_tool import MemoryAnswer
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext
    from hermes.runtime.prompt import Tier
    from hermes.seams import PromptSource, ToolContext

TOOLSET = "memory"
log = logging.getLogger("hermes")
SPARE_S = 2.0  # the provider's own deadline is the shorter one, so that it is told by its name


class RecallingMemory(MemoryPart):
    """Asks and tells the provider. Without one that works, the files alone serve, and that is told once."""

    def __init__(self, agent: Joining, targets: Sequence["Target"], section: Section) -> None:
        super().__init__(agent, targets, section)
        self.limit_s = section.prefetch_timeout + SPARE_S
        self.manager = MemoryManager(self.untold.append, section.prefetch_timeout, self._keep_fault)
        self._is_ready = False  # the provider was told of the session
        self._turns = 0
        self._session_id = agent.session_id
        self._choose(section.provider)

    def _choose(self, name: str) -> None:
        try:
            if name not in PROVIDERS.names():
                from hermes.runtime.plugin_joints.providers import add_memory_provider  # for who has one of a plugin

                add_memory_provider(name, self.agent.settings)
            made = PROVIDERS.make(name, provider_home(self.agent.settings, self.services.store))
            if not made.is_available():
                raise LookupError("what it needs is not here; see: hermes memory status")
        except KeyError:
            self.untold.append(f"there is no memory provider {name!r}; there are: {', '.join(PROVIDERS.names())}")
            return
        except Exception as error:  # noqa: BLE001 - the border to a provider's code; it is told to the person
            self.untold.append(f"the memory provider {name!r} is left out: {error}")
            return
        self.manager.add_provider(made)

    def _keep_fault(self, method: str, why: str) -> None:
        provider = self.manager.provider
        fault = KeptFault(
            provider.name if provider else self.section.provider,
            method,
            self.services.redactor.redact(why),
            self.services.clock.now(),
        )
        try:
            keep_fault(self.agent.settings.home, fault)
        except OSError as error:
            log.warning("a fault of the memory provider could not be kept for doctor: %s", error)

    # -- the prompt, the tools, and what is recalled -----------------------------------------------------------------

    def prompt(self) -> Sequence["PromptSource"]:
        return [*super().prompt(), ProviderBlock(self)]

    async def tools(self, session: "SessionRecord | None") -> Sequence[Registered]:
        """The provider's own."""
        await self.ready()
        found: list[Registered] = []
        for schema in await self.manager.get_all_tool_schemas():
            name = str(schema["name"])
            entry = ToolEntry(name, TOOLSET, dict(schema), _handler(self.manager, name), is_async=True)
            found.append(Registered(entry, source="memory provider"))
        return found

    async def context(self, turn: TurnFacts) -> str:
        await self.ready()
        if not self._turns:
            self._turns = sum(1 for message in turn.history if message.get("role") == "user") - 1
        self._turns += 1
        self.manager.on_turn_start(self._turns, turn.said)
        return await self.manager.prefetch_all(turn.said, turn.session_id)

    async def ready(self) -> None:
        """Tell the provider of the session, once."""
        if self._is_ready:
            return
        self._is_ready = True
        session = self.agent.options.session
        facts = {"user_id": session.user_id, "chat_id": session.chat_id, "thread_id": session.thread_id}
        await self.manager.initialize_all(
            self._session_id,
            hermes_home=str(self.agent.settings.home),
            platform=session.platform or "cli",
            agent_context="primary",
            agent_identity=self.agent.settings.home.name,
            agent_workspace=self.services.environment.cwd,
            parent_session_id=session.parent_session_id or "",
            **{name: value for name, value in facts.items() if value},
        )

    # -- what it is told ---------------------------------------------------------------------------------------------

    def written(self, answer: "MemoryAnswer", ctx: "ToolContext") -> None:
        facts = {
            "write_origin": ctx.memo.get(WRITE_ORIGIN, "assistant_tool"),
            "execution_context": "background" if WRITE_ORIGIN in ctx.memo else "foreground",
            "session_id": ctx.session_id,
            "platform": self.agent.options.session.platform or "cli",
            "tool_name": "memory",
            "task_id": ctx.task_id,
            "tool_call_id": ctx.call_id,
        }
        for change in answer.changes:
            more = {"old_text": change.old} if change.old else {}
            self.manager.on_memory_write(change.action, answer.target, change.new, {**facts, **more})

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        if call.asked.name == "delegate_task":
            for task, summary, child in finished_children(call.asked.args, content):
                self.manager.on_delegation(task, summary, child_session_id=child)
        return None

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        if answer is not None:
            self.manager.sync_all(turn.said, answer, turn.session_id)
            self.manager.queue_prefetch_all(turn.said, turn.session_id)
        await super().turn_ended(turn, answer)

    async def before_compression(self, messages: Sequence[JsonObject]) -> str:
        return await self.manager.on_pre_compress(messages)

    async def session_moved(self, old: str, new: str) -> None:
        self._session_id = new
        self.manager.on_session_switch(new, parent_session_id=old)

    async def close(self, *ended: str) -> None:
        if not self._is_ready:
            return
        if ended:
            record = await self.services.store.load(ended[0])
            self.manager.on_session_end([to_dict(message) for message in record.messages] if record else [])
        await self.manager.shutdown_all(self.services.pool.run)


class ProviderBlock:
    """What the provider says to a session that begins."""

    tier: "Tier" = "volatile"
    name = "3-provider"

    def __init__(self, part: RecallingMemory) -> None:
        self._part = part

    async def text(self, session: JsonObject) -> str:
        await self._part.ready()
        return await self._part.manager.build_system_prompt()


def _handler(manager: MemoryManager, name: str) -> Any:
    async def call(args: dict[str, Any], *, session_id: str | None = None, **_: Any) -> str:
        return await manager.handle_tool_call(name, args, session_id=session_id or "")

    return call
