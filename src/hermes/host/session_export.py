"""Sessions as text to keep or send: JSON lines, Markdown, or what the person said alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from hermes.host.session_text import markdown

if TYPE_CHECKING:
    from hermes.state import SessionDB

ExportForm: TypeAlias = Literal["jsonl", "md", "prompts"]


def exported(db: "SessionDB", ids: Sequence[str], *, lineage: str = "single") -> Iterator[Mapping[str, Any]]:
    """Each session with its messages; with the lineage "logical" also all that it grew out of."""
    read: Callable[[str], Mapping[str, Any] | None] = (
        db.export_session_lineage if lineage == "logical" else db.export_session
    )
    for each in ids:
        found = read(each)
        if found is not None:  # another process may have deleted it meanwhile
            yield found


def export_texts(sessions: Iterator[Mapping[str, Any]], form: ExportForm, *, with_tools: bool = False) -> Iterator[str]:
    """Each session as the text to be written."""
    for whole in sessions:
        if form == "jsonl":
            yield msgspec.json.encode(whole).decode() + "\n"
            continue
        for session in whole.get("sessions", [whole]):
            if form == "prompts":
                yield from (f"{text}\n" for text in _prompts(session))
            else:
                yield markdown(session, with_tools=with_tools)


def _prompts(session: Mapping[str, Any]) -> Iterator[str]:
    for message in session["messages"]:
        if message["role"] == "user":
            kept = {"session_id": session["id"], "timestamp": message["timestamp"], "content": message["content"]}
            yield msgspec.json.encode(kept).decode()
