"""Children of a session in an editor: each is an entry of its own among the calls, live and in a replay the same."""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from hermes.surfaces.acp.call_view import text_content, title_of_call
from hermes.surfaces.acp.protocol import CallMoved, CallTold, Update
from hermes.types import ChildProgress, JsonObject

DELEGATE = "delegate_task"
STOPPED = "It was stopped."
MOST_LINES = 20  # of what a child does that are shown at once


class ChildEntries:
    """The children that are at work for one session."""

    def __init__(self) -> None:
        self._at_work: dict[str, deque[str]] = {}  # what each does, line by line

    def see(self, event: ChildProgress) -> Iterator[Update]:
        """What an editor is told of this news; of most there is nothing to tell."""
        lines = self._at_work.get(event.child_session_id)
        if event.stage == "complete":
            if lines is None:  # it was stopped before it began
                yield _begun(event.child_session_id, event.goal)
            self._at_work.pop(event.child_session_id, None)
            yield _ended(event.child_session_id, event.outcome or {})
            return
        if lines is None:
            lines = self._at_work[event.child_session_id] = deque(maxlen=MOST_LINES)
            yield _begun(event.child_session_id, event.goal)
        line = title_of_call(event.tool_name, event.args or {}) if event.stage == "tool" else event.preview.strip()
        if line and event.stage in ("tool", "text", "progress"):
            lines.append(line)
            content = text_content("\n".join(lines))
            yield CallMoved(tool_call_id=_id(event.child_session_id), content=content)

    def close(self) -> Iterator[Update]:
        """The ends of those that have not told theirs: a turn that is over has no child."""
        for child in list(self._at_work):
            del self._at_work[child]
            yield _ended(child, {"status": "interrupted", "summary": STOPPED})


def children_of(args: Mapping[str, Any], result: str) -> Iterator[Update]:
    """The children that a call of `delegate_task` had, from its stored result."""
    try:
        found = json.loads(result)
    except (ValueError, RecursionError):
        return
    rows = found.get("results") if isinstance(found, dict) else None
    tasks = args.get("tasks") or [args]
    goals = {index: task.get("goal") for index, task in enumerate(tasks) if isinstance(task, dict)}
    for row in rows if isinstance(rows, list) else ():
        child = row.get("child_session_id") if isinstance(row, dict) else None
        if isinstance(child, str) and child:
            yield _begun(child, str(goals.get(row.get("task_index")) or ""))
            yield _ended(child, row)


def _id(child_session_id: str) -> str:
    return f"child-{child_session_id}"


def _begun(child: str, goal: str) -> CallTold:
    title = title_of_call(f"child: {goal}", {})
    return CallTold(tool_call_id=_id(child), title=title, kind="other", status="in_progress", raw_input={"goal": goal})


def _ended(child: str, outcome: JsonObject) -> CallMoved:
    status = str(outcome.get("status") or "failed")
    is_done = status == "completed"
    words = str(outcome.get("summary") or "")
    said = words if is_done else "\n".join(part for part in (f"{status}: {outcome.get('error') or ''}", words) if part)
    return CallMoved(
        tool_call_id=_id(child), status="completed" if is_done else "failed", content=text_content(said or status)
    )
