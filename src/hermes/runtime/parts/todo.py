"""The task list: put back from the history of a session, and carried along when that is compressed."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hermes.context.marks import END, PREFIX, TASKS
from hermes.runtime.parts import Joining, Part
from hermes.types import Message, text_of

if TYPE_CHECKING:
    from hermes.runtime.session.history import History

NAME: Final = "todo"  # of this part
MEMO = "todo"  # where the tool keeps its list
_MARKS = {"pending": " ", "in_progress": ">"}
_LINE = re.compile(r"^- \[[ >]\] (.+?)\. (.*) \((pending|in_progress)\)$", re.MULTILINE)


class TaskList(Part):
    """Knows the list by the session's memo."""

    def __init__(self, memo: dict[str, Any]) -> None:
        self._memo = memo

    @classmethod
    def join(cls, agent: Joining) -> "TaskList":
        return cls(agent.services.memo)

    def history_read(self, history: "History") -> None:
        if MEMO in self._memo or (history.tasks is None and NAME not in history.carried):
            return
        newest = history.tasks
        if newest is None or newest.role != "tool":  # what came before the compression counts, finished ones too
            tasks = history.carried.get(NAME)
        else:
            from hermes.tools.builtin.todo import items_in  # only who has tasks needs it

            tasks = items_in(newest)
        self._memo[MEMO] = tasks if isinstance(tasks, list) else _tasks_in(newest)

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """`kept` with the open tasks, where the result that holds them was left out."""
        from hermes.context.summary import extended, is_summary  # paid by the first compression
        from hermes.tools.builtin.todo import open_items

        items = open_items(self._memo[MEMO] if MEMO in self._memo else restored_tasks(before))
        if not items or open_items(restored_tasks(kept)) == items:
            return kept
        block = "\n".join([TASKS, *map(_line, items)])
        place = next((place for place, message in enumerate(kept) if is_summary(message)), None)
        if place is None:
            return [Message(role="user", content=f"{PREFIX}\n\n{block}"), *kept]
        return [*kept[:place], extended(kept[place], block), *kept[place + 1 :]]

    def carried(self) -> object:
        return self._memo.get(MEMO)


def restored_tasks(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The task list as a history left it: in its newest result, or in a summary that came after that."""
    from hermes.runtime.session.history import History  # only a compression asks
    from hermes.tools.builtin.todo import items_in

    history = History()
    for message in messages:
        history.add(message)
    newest = history.tasks
    return (items_in(newest) if newest is not None and newest.role == "tool" else None) or _tasks_in(newest)


def _line(item: Mapping[str, str]) -> str:
    words = " ".join(item["content"].split())
    return f"- [{_MARKS[item['status']]}] {item['id']}. {words} ({item['status']})"


def _tasks_in(message: Message | None) -> list[dict[str, str]]:
    """The open tasks that a summary tells of."""
    text = text_of(message.content).partition(END)[0] if message is not None and message.role != "tool" else ""
    found = _LINE.findall(text.rpartition(TASKS)[2]) if TASKS in text else []
    return [{"id": name, "content": words, "status": status} for name, words, status in found]


part = TaskList
