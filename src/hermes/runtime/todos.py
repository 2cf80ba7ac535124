"""The task list of a session that comes back, rebuilt from its history."""

from collections.abc import Sequence
from typing import Any

from hermes.context.marks import PREFIX
from hermes.types import Message


def restore_tasks(messages: Sequence[Message], memo: dict[str, Any]) -> None:
    """Put the list back where the todo tool keeps it, unless it is there; one that a crash cut off is not lost."""
    if "todo" in memo or not any(_may_hold_tasks(message) for message in messages):
        return
    from hermes.runtime.carrying import restored_tasks  # noqa: PLC0415 - only sessions with a list need it

    memo["todo"] = restored_tasks(messages)


def _may_hold_tasks(message: Message) -> bool:
    if message.role == "tool":
        return message.tool_name == "todo"
    return isinstance(message.content, str) and message.content.startswith(PREFIX)
