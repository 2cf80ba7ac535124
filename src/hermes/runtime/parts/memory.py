"""Memory: two files in the prompt, the tool that writes them, and a provider that recalls beside the question."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.config import paths
from hermes.config.sections.memory import Section
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.types import Content, JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.context.memory.entries import Target
    from hermes.context.memory.memory_tool import MemoryAnswer, MemoryDesk
    from hermes.context.memory.provider_calls import MemoryManager
    from hermes.context.memory.session_words import SessionText
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext, Services
    from hermes.runtime.prompt import Tier
    from hermes.seams import PromptSource, ToolContext
    from hermes.tools.registry import Registered

MEMO = "memory"  # where the tool looks for who writes
TOOLSET = "memory"
PLACES: dict["Target", str] = {"memory": "1-memory", "user": "2-user"}


class MemoryPart(Part):
    """Keeps the files of the home. Imports what it needs when something is kept for the first time."""

    def __init__(self, agent: Joining, targets: Sequence["Target"], section: Section) -> None:
        self._agent = agent
        self._services: Services = agent.services
        self._targets = tuple(targets)
        self._section = section
        self._desk: MemoryDesk | None = None
        self._waiting: list[str] = []  # what is told at the end of the turn
        self._manager: MemoryManager | None = None
        self._is_ready = False  # the provider was told of the session
        self._turns = 0
        self._session_id = agent.session_id
        # Room for the provider's own deadline, which is the shorter one.
        self.limit_s = section.prefetch_timeout + 2.0

    @classmethod
    def join(cls, agent: Joining) -> "MemoryPart | None":
        section = agent.settings.of(Section)
        switches: dict[Target, bool] = {"memory": section.memory_enabled, "user": section.user_profile_enabled}
        targets = [target for target, is_on in switches.items() if is_on]
        if agent.options.session.skip_memory or not (targets or section.provider):
            agent.services.memo.pop(MEMO, None)
            return None
        made = cls(agent, targets, section)
        if targets:
            agent.services.memo[MEMO] = made.write
        if section.provider:
            made.choose_provider(section.provider)
        return made

    def choose_provider(self, name: str) -> None:
        """Take the provider of this name; without it, the files alone serve, and that is told once."""
        from hermes.context.memory.provider import PROVIDERS  # for who has one
        from hermes.context.memory.provider_calls import MemoryManager
        from hermes.context.memory.provider_home import provider_home

        agent, section = self._agent, self._section
        manager = MemoryManager(self._waiting.append, section.prefetch_timeout)
        try:
            made = PROVIDERS.make(name, provider_home(agent.settings, agent.services.store))
            if not made.is_available():
                raise LookupError("what it needs is not here; see: hermes memory status")
        except KeyError:
            self._waiting.append(f"there is no memory provider {name!r}; there are: {', '.join(PROVIDERS.names())}")
            return
        except Exception as error:  # noqa: BLE001 - the border to a provider's code; it is told to the person
            self._waiting.append(f"the memory provider {name!r} is left out: {error}")
            return
        manager.add_provider(made)
        self._manager = manager

    # -- the prompt, and what is recalled ----------------------------------------------------------------------------

    def prompt(self) -> Sequence["PromptSource"]:
        blocks: list[PromptSource] = [MemoryBlock(self, target) for target in self._targets]
        return [*blocks, ProviderBlock(self)] if self._manager is not None else blocks

    def history_read(self, history: Any) -> None:
        if self._desk is not None:
            self._desk.new_turn()

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        return None if self._manager is None else self._recalled(self._manager, turn)

    async def _recalled(self, manager: "MemoryManager", turn: TurnFacts) -> str:
        await self.ready(manager)
        if not self._turns:
            self._turns = sum(1 for message in turn.history if message.get("role") == "user") - 1
        self._turns += 1
        manager.on_turn_start(self._turns, turn.said)
        return await manager.prefetch_all(turn.said, turn.session_id)

    async def ready(self, manager: "MemoryManager") -> None:
        """Tell the provider of the session, once."""
        if self._is_ready:
            return
        self._is_ready = True
        session = self._agent.options.session
        facts = {"user_id": session.user_id, "chat_id": session.chat_id, "thread_id": session.thread_id}
        await manager.initialize_all(
            self._session_id,
            hermes_home=str(self._agent.settings.home),
            platform=session.platform or "cli",
            agent_context="primary",
            agent_identity=self._agent.settings.home.name,
            agent_workspace=self._services.environment.cwd,
            parent_session_id=session.parent_session_id or "",
            **{name: value for name, value in facts.items() if value},
        )

    async def tools(self, session: "SessionRecord | None") -> Sequence["Registered"]:
        """The provider's own, after the built-in ones."""
        manager = self._manager
        if manager is None:
            return ()
        from hermes.tools.registry import Registered, ToolEntry

        await self.ready(manager)
        found: list[Registered] = []
        for schema in await manager.get_all_tool_schemas():
            name = str(schema["name"])
            entry = ToolEntry(name, TOOLSET, dict(schema), _handler(manager, name), is_async=True)
            found.append(Registered(entry, source="memory provider"))
        return found

    # -- the tool ----------------------------------------------------------------------------------------------------

    def desk(self) -> "MemoryDesk":
        if self._desk is None:
            from hermes.context.memory.memory_files import MemoryFiles  # paid by the first write
            from hermes.context.memory.memory_tool import MemoryDesk

            section = self._section
            limits: dict[Target, int] = {"memory": section.memory_char_limit, "user": section.user_char_limit}
            files = MemoryFiles(self._agent.settings.home, limits)
            redactor = self._services.redactor
            self._desk = MemoryDesk(files, self._targets, redactor, asks_always=section.write_approval)
        return self._desk

    async def write(self, args: Mapping[str, object], ctx: "ToolContext") -> dict[str, Any]:
        """A call of the memory tool."""
        from hermes.context.memory.memory_history import MemoryWriter

        writer = MemoryWriter(by="agent", at=self._services.clock.now(), session_id=ctx.session_id)
        answer = await ctx.in_thread(self.desk().call, args, writer, await self._heard(ctx.session_id))
        self._waiting += answer.told
        self._tell_provider(answer, ctx)
        return answer.body

    async def _heard(self, session_id: str) -> "SessionText":
        from hermes.context.memory.session_words import words_of_session

        store = self._services.store
        record = await store.load(session_id)
        earlier = [await store.load(one) for one in (record.earlier if record else ())]
        records = [one for one in [*earlier, record] if one is not None]
        return words_of_session(records, is_whole=None not in earlier)

    def _tell_provider(self, answer: "MemoryAnswer", ctx: "ToolContext") -> None:
        if self._manager is None:
            return
        facts = {
            "write_origin": "assistant_tool",
            "execution_context": "foreground",
            "session_id": ctx.session_id,
            "platform": self._agent.options.session.platform or "cli",
            "tool_name": "memory",
            "task_id": ctx.task_id,
            "tool_call_id": ctx.call_id,
        }
        for change in answer.changes:
            more = {"old_text": change.old} if change.old else {}
            self._manager.on_memory_write(change.action, answer.target, change.new, {**facts, **more})

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        if self._manager is not None and call.asked.name == "delegate_task":
            from hermes.context.memory.delegation_report import finished_children

            for task, summary, child in finished_children(call.asked.args, content):
                self._manager.on_delegation(task, summary, child_session_id=child)
        return None

    # -- the end of a turn, of a session, of the agent ---------------------------------------------------------------

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        tell = self._services.parts.tell
        if tell is not None:
            for line in waiting:
                tell(StatusChanged("memory", line))
        if self._manager is not None and answer is not None:
            self._manager.sync_all(turn.said, answer, turn.session_id)
            self._manager.queue_prefetch_all(turn.said, turn.session_id)
        if self.has_files():
            files = self.desk().files
            for target in self._targets:
                await self._services.pool.run(files.use.note, files.entries(target), f"{turn.said}\n{answer or ''}")

    async def before_compression(self, messages: Sequence[JsonObject]) -> str:
        return "" if self._manager is None else await self._manager.on_pre_compress(messages)

    async def session_moved(self, old: str, new: str) -> None:
        self._session_id = new
        if self._manager is not None:
            self._manager.on_session_switch(new, parent_session_id=old)

    async def close(self, *ended: str) -> None:
        if self._manager is None or not self._is_ready:
            return
        if ended:
            record = await self._services.store.load(ended[0])
            from hermes.dicts import to_dict

            self._manager.on_session_end([to_dict(message) for message in record.messages] if record else [])
        await self._manager.shutdown_all(self._services.pool.run)

    def has_files(self) -> bool:
        return paths.memories_dir(self._agent.settings.home).is_dir()


class MemoryBlock:
    """One file as the model reads it when a session begins."""

    tier: "Tier" = "volatile"

    def __init__(self, part: MemoryPart, target: "Target") -> None:
        self._part = part
        self._target = target
        self.name = PLACES[target]

    async def text(self, session: JsonObject) -> str:
        if not self._part.has_files():
            return ""
        from hermes.context.memory.prompt_block import prompt_block

        return prompt_block(self._part.desk().files, self._target)


class ProviderBlock:
    """What the provider says to a session that begins."""

    tier: "Tier" = "volatile"
    name = "3-provider"

    def __init__(self, part: MemoryPart) -> None:
        self._part = part

    async def text(self, session: JsonObject) -> str:
        manager = self._part._manager
        if manager is None:
            return ""
        await self._part.ready(manager)
        return await manager.build_system_prompt()


def _handler(manager: "MemoryManager", name: str) -> Any:
    async def call(args: dict[str, Any], *, session_id: str | None = None, **_: Any) -> str:
        return await manager.handle_tool_call(name, args, session_id=session_id or "")

    return call


part = MemoryPart
