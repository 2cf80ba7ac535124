"""Skills: their index in the prompt, their tools, `/skill-name`, and the variables that their commands may see."""

import os
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.runtime.parts.memory import WRITE_ORIGIN
from hermes.runtime.prompt import Tier
from hermes.seams import PromptSource, ToolContext
from hermes.types import Content, JsonObject

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext
    from hermes.runtime.session.history import History
    from hermes.runtime.session.session_skills import SessionSkills

MEMO = "skills"  # where the tools find this part, and its name
_TOOLS = frozenset({"skills_list", "skill_view"})


class SkillsPart(Part):
    """Joins every agent. What it does is in `SessionSkills`, which is made when there is a skill or somebody asks."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._made: SessionSkills | None = None
        self._has_past = True  # until it was looked whether the session had loaded a skill before
        self._carried: list[str] = []  # the skills that were loaded before the last compression

    @classmethod
    def join(cls, agent: Joining) -> "SkillsPart":
        part = cls(agent)
        agent.services.memo[MEMO] = part
        return part

    def prompt(self) -> Sequence[PromptSource]:
        return (_SkillIndex(self),)

    async def index(self, tools: Sequence[str] | None) -> str:
        """The list of skills for a session with these tools; empty when none of them could load one."""
        if tools is not None and _TOOLS.isdisjoint(tools):
            return ""
        section, own = self._agent.settings.of(Section), paths.skills_dir(self._agent.settings.home)
        if not section.external_dirs and not os.access(own, os.F_OK):
            return ""
        return await self._skills().index(tools)

    def history_read(self, history: "History") -> None:
        names = history.carried.get(MEMO)
        self._carried = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def carried(self) -> object:
        loaded = self._made.loaded if self._made is not None else ()
        return list(dict.fromkeys([*self._carried, *loaded])) or None

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        if self._made is not None:
            self._made.turn_begins()
        if self._has_past:
            self._has_past = False
            if self._carried or any(_may_have_loaded(message) for message in turn.history):
                return self._skills().begun(turn, self._carried)
        return self._skills().invoked(turn.said) if turn.said.startswith("/") else None

    async def skills_list(self, query: str, category: str) -> JsonObject:
        return await self._skills().listed(query, category)

    async def skill_view(self, name: str, file_path: str) -> JsonObject:
        return await self._skills().view(name, file_path)

    async def skill_manage(self, asked: JsonObject, ctx: ToolContext) -> JsonObject:
        return await self._skills().manage(asked, ctx.session_id, ctx.memo.get(WRITE_ORIGIN, "assistant_tool"))

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> None:
        if self._made is not None:
            self._made.call_ended(call.asked.name, call.details.get("exit_code"))

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> Awaitable[None] | None:
        return self._made.turn_ended(turn.session_id, answer) if self._made is not None else None

    async def session_moved(self, old: str, new: str) -> None:
        if self._made is not None:
            self._made.moved(new)

    def _skills(self) -> "SessionSkills":
        if self._made is None:
            from hermes.runtime.session.session_skills import SessionSkills  # paid by who has skills

            self._made = SessionSkills(self._agent)
        return self._made


class _SkillIndex(Struct, frozen=True):
    """The part's place in the prompt."""

    part: SkillsPart
    name: str = "4-skills"
    tier: Tier = "stable"

    async def text(self, session: JsonObject) -> str:
        return await self.part.index(session.get("tools"))


def _may_have_loaded(message: JsonObject) -> bool:
    if message.get("role") == "tool":
        return message.get("name") == "skill_view"
    return message.get("role") == "user" and str(message.get("content") or "").startswith("/")


part = SkillsPart
