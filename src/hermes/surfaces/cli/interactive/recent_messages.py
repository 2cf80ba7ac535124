"""What was said last in a session, for someone who comes back to it."""

import time
from typing import Any

from hermes.config.sections.display import Section as Display
from hermes.host.session_text import calls_of, last_messages, said
from hermes.state import SessionDB
from hermes.surfaces.cli.interactive.markdown_blocks import Blocks
from hermes.surfaces.cli.interactive.markup import Painter, folded

MOST_CHARS = 1_500


def recent(db: SessionDB, session_id: str, display: Display, painter: Painter, is_busy: bool = False) -> str:
    """The last exchanges as lines. The cost depends on how many are shown, not on how long the session is.

    `is_busy`: its last turn goes on, and is told by its events from its beginning on.
    """
    row = db.get_session(session_id)
    if row is None:
        return ""
    title = row.get("title") or session_id
    head = painter.line(f"{title}: {db.message_count(session_id)} messages", "bold")
    wanted = display.resume_exchanges if display.resume_display == "full" else 0
    if not wanted:
        return head
    count = db.message_count(session_id)
    last = next(iter(db.get_messages(session_id, limit=1, offset=max(0, count - 1))), None)
    is_open = last is not None and (last["role"] != "assistant" or bool(last.get("tool_calls")))
    messages = last_messages(db, session_id, wanted)
    if is_open and is_busy:
        messages = messages[: max((place for place, one in enumerate(messages) if one["role"] == "user"), default=0)]
    cut_off = _cut_off(painter, is_call=bool(last.get("tool_calls"))) if last and is_open and not is_busy else ""
    return head + shown(messages, display, painter) + cut_off


def _cut_off(painter: Painter, *, is_call: bool) -> str:
    """A word about a last turn that never came to its end."""
    unknown = "; what its last call did is not known" if is_call else ""
    told = f"The last turn was cut off{unknown}. Say what should become of it, or: continue"
    return "".join(painter.line(row, "yellow") for row in folded(told, painter.width))


def shown(messages: list[dict[str, Any]], display: Display, painter: Painter) -> str:
    """Messages as they looked when they were said; long ones are cut."""
    lines: list[str] = []
    for row in messages:
        text = said(row).strip()
        kept = text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]} …"
        when = time.strftime("%H:%M ", time.localtime(row.get("timestamp") or 0)) if display.timestamps else ""
        if row["role"] == "user":
            lines.append(painter.said(kept, when))
            continue
        blocks = Blocks()
        lines += [painter.block(block) + painter.gap for block in [*blocks.feed(kept), *blocks.finish()]]
        lines += [painter.line(f"  · {call}", "dim") for call in calls_of(row)]
    return "".join(lines)
