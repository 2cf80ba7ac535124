"""Skills: their index in the prompt, their tools, `/skill-name`, and the variables that their commands may see."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.errors import ToolError
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.runtime.prompt import Tier
from hermes.seams import PromptSource, ToolContext
from hermes.types import Content, JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.extensions.skills.skill_book import Offered, SkillBook
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.runtime.context import CallContext
    from hermes.runtime.session.history import History

MEMO = "skills"  # where the tools find this part
LENT = "lent_variables"  # the names that scripts are given beside those of the settings
_RUNS = frozenset({"terminal", "execute_code", "process"})
_TOOLS = frozenset({"skills_list", "skill_view"})
Result = TypeVar("Result")
log = logging.getLogger(__name__)


class SkillsPart(Part):
    """Answers the tools of skills for one session. Nothing of the skills is read before somebody asks."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._session_id = agent.session_id
        self._made: SkillDesk | None = None
        self._past: Sequence[JsonObject] | None = None  # of a session that goes on, until its skills were looked up
        self._offered: frozenset[str] | None = None
        self._given: set[str] = set()  # variables that commands see already
        self._this_turn: list[str] = []
        self._has_failed = False  # the last command of the turn

    @classmethod
    def join(cls, agent: Joining) -> "SkillsPart":
        part = cls(agent)
        agent.services.memo[MEMO] = part
        return part

    # -- the prompt and the message ----------------------------------------------------------------------------------

    def prompt(self) -> Sequence[PromptSource]:
        return (_SkillIndex(self),)

    async def index(self, tools: Sequence[str] | None) -> str:
        """The list of skills for a session with these tools; empty when none of them could load one."""
        if tools is not None:
            self._offered = frozenset(tools)
            if not _TOOLS & self._offered:
                return ""
        section, own = self._agent.settings.of(Section), paths.skills_dir(self._agent.settings.home)
        if not section.external_dirs and not os.access(own, os.F_OK):
            return ""
        return await self._in_thread(self._index)

    def _index(self) -> str:
        from hermes.extensions.skills.skill_index import skill_index  # paid by who has skills
        from hermes.extensions.skills.usage_log import UsageLog

        book = self._book()
        self._follow_bundled(book)
        heads = book.usable(self._offers())
        return skill_index(heads, book.category_words(heads), UsageLog(book.own).counts())

    def _follow_bundled(self, book: "SkillBook") -> None:
        """A newer version of Hermes may bring newer skills; where one was edited, that is told."""
        try:
            has_bundled = b'"bundled"' in (book.own / ".lock.json").read_bytes()
        except OSError:  # none was ever installed, chosen or made
            return
        if has_bundled:
            from hermes.extensions.skills.bundled_skills import follow  # paid by who has chosen one

            for line in follow(book):
                self._tell(line)

    def _tell(self, line: str) -> None:
        parts = self._agent.services.parts
        (parts.tell or parts.untold.append)(StatusChanged("skills", line))

    def history_read(self, history: "History") -> None:
        self._this_turn, self._has_failed = [], False
        if self._made is None and self._past is None and history.dicts:
            self._past = history.dicts

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        return self._invoked(turn.said) if turn.said.startswith("/") else None

    async def _invoked(self, said: str) -> str:
        desk = self._desk()
        before = desk.loads
        words = await self._in_thread(desk.slash_words, said)
        self._this_turn += desk.loads_since(before)
        return words

    # -- the tools ---------------------------------------------------------------------------------------------------

    async def skills_list(self, query: str, category: str) -> JsonObject:
        return await self._in_thread(self._desk().listed, query, category, self._offers())

    async def skill_view(self, name: str, file_path: str) -> JsonObject:
        desk = self._desk()
        before = desk.loads
        answer = await self._in_thread(desk.view, name, file_path)
        self._this_turn += desk.loads_since(before)
        return answer

    async def skill_manage(self, asked: JsonObject, ctx: ToolContext) -> JsonObject:
        from hermes.extensions.skills.skill_change import ManageRequest, WriteFacts
        from hermes.typed import convert

        request = convert(asked, ManageRequest)
        source_of = await self._sources(ctx.session_id)
        return await self._in_thread(self._desk().manage, request, WriteFacts(ctx.session_id), source_of)

    async def _sources(self, session_id: str) -> Callable[[str], str]:
        """Who said what in the session so far, as a question about words that are to last."""
        from hermes.context.memory.session_words import words_of_session
        from hermes.context.origin import OutsideWords

        store = self._agent.services.store
        record = await store.load(session_id)
        earlier = [await store.load(one) for one in (record.earlier if record else ())]
        heard = words_of_session([one for one in (*earlier, record) if one is not None], is_whole=None not in earlier)

        def source_of(text: str) -> str:
            found = OutsideWords().origin(text, heard.outside, heard.own)
            return found.source if found is not None else ""

        return source_of

    # -- commands ----------------------------------------------------------------------------------------------------

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        if call.asked.name not in _RUNS or (self._made is None and self._past is None):
            return None
        self._remember()
        names = self._variables()
        return self._lending(call, names) if names - self._given else None

    @asynccontextmanager
    async def _lending(self, call: "CallContext", names: set[str]) -> AsyncIterator[None]:
        """Let commands see the variables of the skills that were loaded, before the first one that may need them."""
        settings = self._agent.settings
        values = {name: value for name in sorted(names) if (value := settings.lookup(name))}
        call.memo[LENT] = self._agent.services.memo[LENT] = tuple(values)
        lend = getattr(call.environment, "lend", None)
        if lend is not None:
            try:
                await lend({name: value for name, value in values.items() if name not in self._given}, call.scope)
            except ToolError as error:
                log.warning("commands do not see the variables of the skills: %s", error)
        self._given = names
        yield

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> None:
        if self._this_turn and call.asked.name in _RUNS:
            self._has_failed = bool(call.details.get("exit_code"))

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> Awaitable[None] | None:
        if self._made is not None:
            for line in self._made.untold:
                self._tell(line)
            self._made.untold.clear()
        if not self._this_turn or (answer is not None and not self._has_failed):
            return None
        return self._note_failures(tuple(dict.fromkeys(self._this_turn)), turn.session_id)

    async def _note_failures(self, names: tuple[str, ...], session_id: str) -> None:
        usage = self._desk().usage
        for name in names:
            await self._in_thread(usage.failed, name, session_id)

    async def session_moved(self, old: str, new: str) -> None:
        self._session_id = new
        if self._made is not None:
            self._made.session_id = new

    # -- what it works with ------------------------------------------------------------------------------------------

    def _book(self) -> "SkillBook":
        from hermes.extensions.skills.skill_book import SkillBook

        return SkillBook(self._agent.settings, self._agent.options.session.platform or "cli")

    def _desk(self) -> "SkillDesk":
        if self._made is None:
            from hermes.extensions.skills.skill_desk import SkillDesk  # paid by the first skill that is asked for
            from hermes.runtime.setup.skill_setup import skill_services

            self._made = SkillDesk(self._book(), skill_services(self._agent.settings), self._session_id)
        return self._made

    def _offers(self) -> "Offered | None":
        if self._offered is None:
            return None
        from hermes.extensions.skills.skill_book import Offered
        from hermes.tools.registry import registry

        entries = [found for name in self._offered if (found := registry.get(name)) is not None]
        return Offered(self._offered, frozenset(one.entry.toolset for one in entries))

    def _variables(self) -> set[str]:
        if self._made is None:
            return set()
        return {name for one in self._made.loaded.values() for name in one.variables}

    def _remember(self) -> None:
        """The skills that the session loaded before this process had it."""
        past, self._past = self._past, None
        if past:
            names = _loaded_in(past)
            if names:
                self._desk().restore(names)

    async def _in_thread(self, function: Callable[..., Result], *args: Any) -> Result:
        return await self._agent.process.pool.run(function, *args)


class _SkillIndex(Struct, frozen=True):
    """The part's place in the prompt."""

    part: SkillsPart
    name: str = "4-skills"
    tier: Tier = "stable"

    async def text(self, session: JsonObject) -> str:
        return await self.part.index(session.get("tools"))


def _loaded_in(past: Sequence[JsonObject]) -> list[str]:
    """The names of skills that a history shows as loaded, by the tool or by a person."""
    from hermes.extensions.skills.skill_desk import leading_names
    from hermes.tools.results.tool_result import as_object

    names: dict[str, None] = {}
    for message in past:
        content = message.get("content")
        if not isinstance(content, str):
            continue
        if message.get("role") == "tool" and message.get("name") == "skill_view":
            answer = as_object(content) or {}
            if answer.get("success") is True and isinstance(answer.get("path"), str):
                names[answer["path"].removesuffix("/SKILL.md")] = None
        elif message.get("role") == "user" and content.startswith("/"):
            names.update(dict.fromkeys(leading_names(content)))
    return list(names)


part = SkillsPart
