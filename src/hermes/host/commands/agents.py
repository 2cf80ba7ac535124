"""List the children that work for this turn, look into one, or stop one."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of
from hermes.host.conversation import CommandScene
from hermes.host.live_session import LiveSession
from hermes.runtime.delegation.running_child import RunningChild
from hermes.types import JsonObject

NOBODY = "No children are at work."
SHOWN_CALLS = 10


async def run(call: CommandCall) -> CommandResult:
    children = call.session.agent.children
    match words_of(call.words):
        case []:
            rows = [_facts(child) for child in children]
            text = "\n".join(_line(row) for row in rows) or NOBODY
            return CommandResult(text=text, form="lines", data={"children": rows})
        case [name]:
            child = _found(children, name)
            return CommandResult(text=_close_up(child), form="lines", data=_facts(child))
        case ["stop", "all"]:
            for child in children:
                child.stop()
            return CommandResult(text=f"Stopped: {len(children)}.", data={"stopped": len(children)})
        case ["stop", name]:
            child = _found(children, name)
            child.stop()
            return CommandResult(text=f"{child.record.name} is stopped; the others go on.", data={"stopped": 1})
        case _:
            raise UserError("type /agents, /agents NAME, /agents stop NAME or /agents stop all")


def _found(children: tuple[RunningChild, ...], name: str) -> RunningChild:
    """The child that `name` means: its name, or the beginning of exactly one."""
    found = [child for child in children if child.record.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(child.record.name for child in children)
    raise UserError(f"no single child is named {name!r}; at work: {known}" if known else NOBODY)


def _facts(child: RunningChild) -> JsonObject:
    record = child.record
    return {
        "name": record.name,
        "path": list(record.path),
        "session_id": record.session_id,
        "goal": record.task.goal,
        "doing": record.doing,
        "calls": record.tool_count,
        "tokens": record.tokens,
        "seconds": round(record.seconds, 1),
    }


def _line(row: JsonObject) -> str:
    """The words of its task come last, since a screen cuts the end."""
    indent = "  " * (len(row["path"]) - 1)
    used = f"{row['calls']} call{'' if row['calls'] == 1 else 's'}, {row['tokens']} tokens, {row['seconds']:.0f} s"
    return f"{indent}{row['name']}  {row['doing']}; {used}: {' '.join(str(row['goal']).split())}"


def _close_up(child: RunningChild) -> str:
    """What it is about, what it did last, and what it says just now."""
    record, row = child.record, _facts(child)
    done = [
        f"  {one['status']:5} {one['tool']} ({one['result_bytes']} bytes)" for one in list(record.trace)[-SHOWN_CALLS:]
    ]
    now = [f"  now   {record.doing} {record.preview}"] if record.preview else []
    said = [f"  {line}" for line in record.text.strip().splitlines()[-SHOWN_CALLS:]]
    return "\n".join([_line(row).strip(), f"session {record.session_id}", *done, *now, *said])


def _names(session: CommandScene, begun: str) -> list[str]:
    children = session.agent.children if isinstance(session, LiveSession) else ()  # a server's are known there
    words = ["stop", *(child.record.name for child in children)]
    return [word for word in words if word.startswith(begun)]


COMMAND = SlashCommand(run=run, args="[NAME | stop NAME|all]", aliases=("tasks",), complete=_names)
