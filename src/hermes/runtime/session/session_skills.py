"""The skills of one session: what was loaded in it, what its commands may see of it, and how its turns went."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from hermes import __version__
from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.config.values import plain
from hermes.errors import ToolError
from hermes.extensions.skills.kept_index import KeptIndex, skill_roots
from hermes.runtime.parts import Joining, TurnFacts
from hermes.scope import TurnScope
from hermes.tools.registry import registry
from hermes.typed import convert
from hermes.types import JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.extensions.skills.skill_book import SkillBook
    from hermes.extensions.skills.skill_desk import SkillDesk

LOCK_FILE, USAGE_FILE = ".lock.json", ".usage.jsonl"
LENT = "lent_variables"  # the memo's key: the names that scripts are given beside those of the settings
_RUNS = frozenset({"terminal", "execute_code", "process"})
Result = TypeVar("Result")
log = logging.getLogger(__name__)


class SessionSkills:
    """Answers the tools of skills. The disk is looked at in threads of the pool."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._session_id = agent.session_id
        self._platform = agent.options.session.platform or "cli"
        self._own = paths.skills_dir(agent.settings.home)
        self._made: SkillDesk | None = None
        self._tools: frozenset[str] | None = None
        self._given: set[str] = set()  # variables that commands see already
        self._this_turn: list[str] = []  # the skills that were loaded in it
        self._has_failed = False  # the last command of the turn

    # -- finding -----------------------------------------------------------------------------------------------------

    async def index(self, tools: Sequence[str] | None) -> str:
        """What the prompt says of the skills, to a session with these tools."""
        self._tools = frozenset(tools) if tools is not None else None
        return await self._in_thread(self._index)

    def _index(self) -> str:
        self._follow_bundled()
        settings, offered = self._agent.settings, self._offers()
        section = settings.of(Section)
        facts = (__version__, self._platform, plain(section), offered and [sorted(one) for one in offered])
        beside = [f"{self._own}/{name}" for name in (LOCK_FILE, USAGE_FILE)]
        kept = KeptIndex(settings.home, skill_roots(self._own, section), beside, facts)
        text = kept.text()
        if text is None:
            text = self._made_index(offered)
            kept.keep(text)
        return text

    def _made_index(self, offered: "tuple[frozenset[str], frozenset[str]] | None") -> str:
        from hermes.extensions.skills.skill_book import Offered  # paid when something has changed
        from hermes.extensions.skills.skill_index import skill_index
        from hermes.extensions.skills.usage_log import UsageLog

        heads = self._book.usable(None if offered is None else Offered(*offered))
        return skill_index(heads, self._book.category_words(heads), UsageLog(self._own).counts())

    def _follow_bundled(self) -> None:
        """A newer version of Hermes may bring newer skills; where one was edited, that is told."""
        try:
            has_bundled = b'"bundled"' in (self._own / LOCK_FILE).read_bytes()
        except OSError:  # none was ever installed, chosen or made
            return
        if has_bundled:
            from hermes.extensions.skills.bundled_skills import follow  # paid by who has chosen one

            for line in follow(self._book):
                self._tell(line)

    async def listed(self, query: str, category: str) -> JsonObject:
        from hermes.extensions.skills.skill_book import Offered

        offered = self._offers()
        only = None if offered is None else Offered(*offered)
        return await self._in_thread(self._desk().listed, query, category, only)

    # -- loading -----------------------------------------------------------------------------------------------------

    async def view(self, name: str, file_path: str) -> JsonObject:
        return await self._loading(self._desk().view, name, file_path)

    async def invoked(self, said: str) -> str:
        """What goes to the model beside a message that begins with `/name`."""
        return await self._loading(self._desk().slash_words, said)

    @property
    def loaded(self) -> Sequence[str]:
        """The names of what was loaded so far."""
        return tuple(self._made.loaded) if self._made is not None else ()

    async def begun(self, turn: TurnFacts, carried: Sequence[str]) -> str:
        """The first turn here of a session that went on elsewhere: it has what it had loaded, and what it names now."""
        await self._in_thread(self._desk().restore, [*carried, *_loaded_in(turn.history)])
        words = await self.invoked(turn.said) if turn.said.startswith("/") else ""
        await self._lend()
        return words

    async def _loading(self, load: Callable[..., Result], *args: str) -> Result:
        desk = self._desk()
        before = desk.loads
        answer = await self._in_thread(load, *args)
        self._this_turn += desk.loads_since(before)
        await self._lend()
        return answer

    async def _lend(self) -> None:
        """Let commands and scripts see the variables of the skills that were loaded."""
        names = {name for one in self._desk().loaded.values() for name in one.variables}
        values = {name: value for name in sorted(names) if (value := self._agent.settings.lookup(name))}
        fresh = {name: value for name, value in values.items() if name not in self._given}
        if not fresh:
            return
        self._given |= fresh.keys()
        services = self._agent.services
        services.memo[LENT] = tuple(values)
        lend = getattr(services.environment, "lend", None)
        if lend is None:
            return
        try:
            await lend(fresh, TurnScope("variables of a skill"))
        except ToolError as error:
            self._given -= fresh.keys()
            self._tell(f"commands do not see the variables of the skill: {error}")

    # -- changing ----------------------------------------------------------------------------------------------------

    async def manage(self, asked: JsonObject, session_id: str, origin: str) -> JsonObject:
        from hermes.extensions.skills.skill_change import ManageRequest, WriteFacts

        request = convert(asked, ManageRequest)
        source_of = await self._sources(session_id)
        return await self._in_thread(self._desk().manage, request, WriteFacts(session_id, origin), source_of)

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

    # -- how it went -------------------------------------------------------------------------------------------------

    def turn_begins(self) -> None:
        self._this_turn, self._has_failed = [], False

    def call_ended(self, tool: str, exit_code: object) -> None:
        if self._this_turn and tool in _RUNS:
            self._has_failed = bool(exit_code)

    def turn_ended(self, session_id: str, answer: str | None) -> Awaitable[None] | None:
        """Tell what waits, and count the skills of a turn that came to nothing or whose last command failed."""
        if self._made is not None:
            for line in self._made.untold:
                self._tell(line)
            self._made.untold.clear()
        if not self._this_turn or (answer is not None and not self._has_failed):
            return None
        return self._note_failures(tuple(dict.fromkeys(self._this_turn)), session_id)

    async def _note_failures(self, names: tuple[str, ...], session_id: str) -> None:
        for name in names:
            await self._in_thread(self._desk().usage.failed, name, session_id)

    def moved(self, session_id: str) -> None:
        self._session_id = session_id
        if self._made is not None:
            self._made.session_id = session_id

    # -- what it works with ------------------------------------------------------------------------------------------

    def _desk(self) -> "SkillDesk":
        if self._made is None:
            from hermes.extensions.skills.skill_desk import SkillDesk  # paid by the first skill that is asked for
            from hermes.runtime.setup.skill_setup import skill_services

            self._made = SkillDesk(self._book, skill_services(self._agent.settings), self._session_id)
        return self._made

    @cached_property
    def _book(self) -> "SkillBook":
        from hermes.extensions.skills.skill_book import SkillBook  # a start whose list was kept does without

        return SkillBook(self._agent.settings, self._platform)

    def _offers(self) -> "tuple[frozenset[str], frozenset[str]] | None":
        """The tools and toolsets of the session."""
        if self._tools is None:
            return None
        entries = [found for name in self._tools if (found := registry.get(name)) is not None]
        return (self._tools, frozenset(one.entry.toolset for one in entries))

    def _tell(self, line: str) -> None:
        parts = self._agent.services.parts
        (parts.tell or parts.untold.append)(StatusChanged("skills", line))

    async def _in_thread(self, function: Callable[..., Result], *args: Any) -> Result:
        return await self._agent.process.pool.run(function, *args)


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
