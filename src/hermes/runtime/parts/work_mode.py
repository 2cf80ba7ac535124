"""The mode of the session, told to the model beside the person's message: prompt and tools stay as they are."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.work_mode import WorkMode, WorkModeName

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext

# Tools that change nothing, or nothing that the gate is not asked about; any other one says that it only reads.
_JUDGED = frozenset(
    {
        *("terminal", "process", "execute_code", "write_file", "patch", "delegate_task"),
        *("todo", "clarify", "session_search"),
    }
)


class ModeWords(Part):
    """Says the mode with each message for which it is not the usual one, and each change of it.

    In plan mode it refuses the tools that change something and do not ask the gate.
    """

    def __init__(self, mode: WorkMode) -> None:
        self._mode = mode
        self._told: WorkModeName = "edits"

    @classmethod
    def join(cls, agent: Joining) -> "ModeWords":
        return cls(agent.options.tools.work_mode)

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        return None if self._mode.name == self._told == "edits" else self._said()

    def news(self, *session_ids: str) -> Awaitable[str] | None:
        return None if self._mode.name == self._told else self._said()

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        """In *plan*, no call of a tool that may change something by itself: memory, skills, jobs, those of plugins."""
        if self._mode.name != "plan":
            return None
        asked, rules = call.asked, call.asked.rules
        is_listing = asked.name == "cronjob" and asked.args.get("action") == "list"
        if rules.read_only or asked.name in _JUDGED or rules.toolset.startswith("mcp-") or is_listing:
            return None
        from hermes.runtime.mode_words import refused_in_plan  # as below

        return refused_in_plan(call)

    async def _said(self) -> str:
        from hermes.runtime.mode_words import change_words  # most sessions never leave the usual one

        before, self._told = self._told, self._mode.name
        return change_words(before, self._told)


part = ModeWords
