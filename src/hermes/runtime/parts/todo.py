"""The task list: put back from the history of a session, and carried along when that is compressed."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.context.marks import END, PREFIX, TASKS
from hermes.runtime.parts import Joining, Part
from hermes.typed import from_json
from hermes.types import Message, text_of

if TYPE_CHECKING:
    from hermes.runtime.session.history import History

MEMO = "todo"  # where the tool keeps its list
log = logging.getLogger(__name__)


class TaskList(Part):
    """Knows the list by the session's memo."""

    def __init__(self, memo: dict[str, Any]) -> None:
        self._memo = memo

    @classmethod
    def join(cls, agent: Joining) -> "TaskList":
        return cls(agent.services.memo)

    def history_read(self, history: "History") -> None:
        if history.tasks is not None and MEMO not in self._memo:
            self._memo[MEMO] = restored_tasks((history.tasks,))

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """`kept` with the open tasks, where the result that holds them was left out."""
        from hermes.context.summary import extended, is_summary  # paid by the first compression
        from hermes.tools.builtin.todo import open_items

        items = open_items(self._memo[MEMO] if MEMO in self._memo else restored_tasks(before))
        if not items or open_items(restored_tasks(kept)) == items:
            return kept
        block = f"{TASKS}\n{msgspec.json.encode(items).decode()}"
        place = next((place for place, message in enumerate(kept) if is_summary(message)), None)
        if place is None:
            return [Message(role="user", content=f"{PREFIX}\n\n{block}"), *kept]
        return [*kept[:place], extended(kept[place], block), *kept[place + 1 :]]


def restored_tasks(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The task list as a history left it: in its newest result, or in a summary that came after that."""
    from hermes.context.summary import is_summary  # only who has tasks needs it
    from hermes.tools.builtin.todo import restore

    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role == "tool" and message.tool_name == "todo" and (found := restore((message,))):
            return found
        if is_summary(message) and TASKS in (text := text_of(message.content)):
            return _tasks_in(text)
    return []


def _tasks_in(text: str) -> list[dict[str, str]]:
    line = text.partition(END)[0].rpartition(TASKS)[2].strip()
    try:
        return from_json(line, list[dict[str, str]])
    except msgspec.DecodeError as error:
        log.warning("the task list in a summary cannot be read: %s", error)
        return []


part = TaskList
