"""What a call of delegate_task says about the children that finished."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hermes.typed import from_json
from hermes.types import Content, JsonObject, text_of


def finished_children(args: Mapping[str, Any], content: Content) -> Iterator[tuple[str, str, str]]:
    """The task, the summary and the session id of each child; nothing where the result is of another form."""
    try:
        results = from_json(text_of(content), JsonObject).get("results")
    except msgspec.DecodeError:
        return
    tasks = args.get("tasks")
    for one in results if isinstance(results, list) else ():
        if not isinstance(one, dict):
            continue
        place = one.get("task_index")
        asked = tasks[place] if isinstance(tasks, list) and isinstance(place, int) and place < len(tasks) else args
        goal = asked.get("goal") if isinstance(asked, Mapping) else ""
        yield str(goal or ""), str(one.get("summary") or ""), str(one.get("child_session_id") or "")
