"""What is typed into a running process passes the gate too: a shell would run it like any command."""

import re
from typing import Any

from hermes.seams import Action, ToolContext
from hermes.tools.environments.background import Record

_KEY = "typed"
_MAX_KEPT = 4096
_CODE = re.compile(r"(?:\A|[\s/])(?:python|ipython|pypy)[\d.]*(?=\s|\Z)")


async def refused_typing(ctx: ToolContext, record: Record, data: str) -> str | None:
    """Why `data` may not be sent to the process, or None. A line is judged whole, in however many pieces it comes."""
    lines: dict[str, str] = _lines(ctx.memo)
    text = lines.get(record.id, "") + data.replace("\r", "\n")
    action = Action(
        kind="code" if _CODE.search(record.order.command) else "command",
        tool="process",
        text=text,
        cwd=record.order.cwd,
        backend=ctx.environment.kind,
        route="pty" if record.order.pty else "background",
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        details={"typed_into": record.order.command},
    )
    decision = await ctx.gate.decide(action, ctx.scope)
    if not decision.allowed:
        return decision.reason or "this was not allowed"
    lines[record.id] = text.rpartition("\n")[2][-_MAX_KEPT:]
    return None


def _lines(memo: dict[str, Any]) -> dict[str, str]:
    """The unfinished line of each process."""
    found = memo.setdefault(_KEY, {})
    assert isinstance(found, dict)
    return found
