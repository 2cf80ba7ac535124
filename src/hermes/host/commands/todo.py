"""Show the task list."""

from hermes.host.command import CommandCall, CommandResult, SlashCommand
from hermes.host.live_session import LiveSession
from hermes.types import JsonObject

MARKS = {"completed": "☑", "in_progress": "▶", "cancelled": "☒"}
LOOKED_AT = 400  # messages from the end


async def run(call: CommandCall) -> CommandResult:
    tasks = call.session.tasks or await call.session.in_thread(_stored, call.session)
    lines = [f"  {MARKS.get(str(one.get('status')), '☐')} {one.get('content')}" for one in tasks]
    done = sum(one.get("status") == "completed" for one in tasks)
    note = f"{done} of {len(tasks)} done" if tasks else "There is no task list in this session."
    return CommandResult(text="\n".join(lines), form="lines", note=note, data={"tasks": list(tasks)})


def _stored(session: LiveSession) -> tuple[JsonObject, ...]:
    """The list as its newest result holds it, for a session that goes on."""
    from hermes.tools.builtin.todo import items_in  # a session that goes on
    from hermes.types import Message

    count = session.db.message_count(session.session_id)
    rows = session.db.get_messages(session.session_id, limit=LOOKED_AT, offset=max(0, count - LOOKED_AT))
    for row in reversed(rows):
        if row["role"] == "tool" and row.get("tool_name") == "todo":
            found = items_in(Message(role="tool", content=str(row.get("content") or "")))
            if found is not None:
                return tuple({**item} for item in found)
    return ()


COMMAND = SlashCommand(run=run)
