"""Memory: two files in the prompt and the tool that writes them; with a provider, `RecallingMemory` joins instead."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.config import paths
from hermes.config.sections.memory import Section
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.types import JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.context.memory.entries import Target
    from hermes.context.memory.memory_history import Author
    from hermes.context.memory.memory_tool import MemoryAnswer, MemoryDesk
    from hermes.context.memory.session_words import SessionText
    from hermes.runtime.context import Services
    from hermes.runtime.prompt import Tier
    from hermes.seams import PromptSource, ToolContext

MEMO = "memory"  # where the tool looks for who writes
WRITE_ORIGIN = "write_origin"  # in the memo of calls that are not the conversation's own: who makes them
PLACES: dict["Target", str] = {"memory": "1-memory", "user": "2-user"}


class MemoryPart(Part):
    """Keeps the files of the home. Imports what it needs when something is kept for the first time."""

    def __init__(self, agent: Joining, targets: Sequence["Target"], section: Section) -> None:
        self.agent = agent
        self.services: Services = agent.services
        self.section = section
        self._targets = tuple(targets)
        self._desk: MemoryDesk | None = None
        self.untold: list[str] = []  # what a person is told at the end of the turn

    @classmethod
    def join(cls, agent: Joining) -> "MemoryPart | None":
        section = agent.settings.of(Section)
        switches: dict[Target, bool] = {"memory": section.memory_enabled, "user": section.user_profile_enabled}
        targets = [target for target, is_on in switches.items() if is_on]
        if agent.options.session.skip_memory or not (targets or section.provider):
            agent.services.memo.pop(MEMO, None)
            return None
        made = _recalling(agent, targets, section) if section.provider else cls(agent, targets, section)
        if targets:
            agent.services.memo[MEMO] = made.write
        return made

    def prompt(self) -> Sequence["PromptSource"]:
        return [MemoryBlock(self, target) for target in self._targets]

    def history_read(self, history: Any) -> None:
        if self._desk is not None:
            self._desk.new_turn()

    def desk(self) -> "MemoryDesk":
        if self._desk is None:
            from hermes.context.memory.memory_files import MemoryFiles  # paid by the first write
            from hermes.context.memory.memory_tool import MemoryDesk

            section = self.section
            limits: dict[Target, int] = {"memory": section.memory_char_limit, "user": section.user_char_limit}
            files = MemoryFiles(self.agent.settings.home, limits)
            redactor = self.services.redactor
            self._desk = MemoryDesk(files, self._targets, redactor, asks_always=section.write_approval)
        return self._desk

    async def write(self, args: Mapping[str, object], ctx: "ToolContext") -> dict[str, Any]:
        """A call of the memory tool."""
        from hermes.context.memory.memory_history import MemoryWriter

        by: Author = "review" if ctx.memo.get(WRITE_ORIGIN) else "agent"
        writer = MemoryWriter(by=by, at=self.services.clock.now(), session_id=ctx.session_id)
        answer = await ctx.in_thread(self.desk().call, args, writer, await self._heard(ctx.session_id))
        self.untold += answer.told
        self.written(answer, ctx)
        return answer.body

    def written(self, answer: "MemoryAnswer", ctx: "ToolContext") -> None:
        """What the tool was asked is done, or refused."""

    async def _heard(self, session_id: str) -> "SessionText":
        from hermes.context.memory.session_words import words_of_session

        store = self.services.store
        record = await store.load(session_id)
        earlier = [await store.load(one) for one in (record.earlier if record else ())]
        records = [one for one in [*earlier, record] if one is not None]
        return words_of_session(records, is_whole=None not in earlier)

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        told = list(self.untold)
        self.untold.clear()
        tell = self.services.parts.tell
        if tell is not None:
            for line in told:
                tell(StatusChanged("memory", line))
        if self.has_files():
            files = self.desk().files
            for target in self._targets:
                await self.services.pool.run(files.use.note, files.entries(target), f"{turn.said}\n{answer or ''}")

    def has_files(self) -> bool:
        return paths.memories_dir(self.agent.settings.home).is_dir()


def _recalling(agent: Joining, targets: Sequence["Target"], section: Section) -> MemoryPart:
    from hermes.runtime.memory_recall import RecallingMemory  # for who has a provider

    return RecallingMemory(agent, targets, section)


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


part = MemoryPart
