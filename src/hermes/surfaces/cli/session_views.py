"""Sessions on a screen: lists, transcripts, hits."""

from collections.abc import Mapping, Sequence

from hermes.host.session_text import Row, age, calls_of, moment, said, title_of
from hermes.surfaces.cli.output import Output, cut

RESULT_CHARS = 2000
CALL_CHARS = 160
BEGAN_CHARS = 60


def table(out: Output, rows: Sequence[Row]) -> None:
    """One line a session."""
    heads, has_states = ["ID", "LAST", "SOURCE", "MESSAGES", "TITLE"], any(row.get("state") for row in rows)
    cells = [
        [row["id"], age(row.get("last_active")), row.get("source"), row.get("message_count"), title_of(row)]
        + ([row.get("state")] if has_states else [])
        for row in rows
    ]
    out.table([*heads, "STATE"] if has_states else heads, cells, flexible=4)


def transcript(out: Output, session: Row, *, with_tools: bool) -> None:
    """The facts of a session and what was said in it."""
    out.line(out.style(str(session.get("title") or session["id"]), "bold"))
    facts = {
        "id": session["id"],
        "started": moment(session.get("started_at")),
        "model": session.get("model"),
        "source": session.get("source"),
        "cwd": session.get("cwd"),
        "tokens": _tokens(session),
    }
    for name, value in facts.items():
        if value:
            out.line(f"  {name:<8} {value}")
    for message in session["messages"]:
        _message(out, message, with_tools=with_tools)


def hits(out: Output, groups: Sequence[Row], began: Mapping[str, Sequence[Row]]) -> None:
    """What a search found, conversation by conversation: its title, and the best lines of it.

    `began` has the first message of those without a title.
    """
    for group in groups:
        first = [{"preview": cut(said(row), BEGAN_CHARS)} for row in began.get(str(group["session_id"]), ())]
        title = group["title"] or (title_of(first[0]) if first else "") or "no title"
        out.line(f"{out.style(title, 'bold')}  {group['when']}  {group['session_id']}")
        for hit in group["hits"]:
            snippet = " ".join(str(hit["snippet"]).split())
            marked = snippet.replace(">>>", "\x1b[1m").replace("<<<", "\x1b[0m") if out.colours else snippet
            out.line(f"  {hit['role']}: {marked}")


def _message(out: Output, message: Row, *, with_tools: bool) -> None:
    role, content = message["role"], said(message)
    if role == "tool":
        if with_tools:
            from hermes.surfaces.cli.chat.events import printed  # a list does without it

            shown = printed(content) or content
            out.line(f"\n{out.style(str(message.get('tool_name') or 'tool'), 'dim')}")
            out.line(cut(shown, RESULT_CHARS) if len(shown) > RESULT_CHARS else shown)
        return
    if content.strip():
        out.line(
            f"\n{out.style('You' if role == 'user' else role.capitalize(), 'cyan' if role == 'user' else 'green')}"
        )
        out.line(content)
    for call in calls_of(message):
        out.line(out.style(f"  → {cut(call, CALL_CHARS)}", "dim"))


def _tokens(session: Row) -> str:
    read, written = session.get("input_tokens") or 0, session.get("output_tokens") or 0
    return f"{read} in, {written} out" if read or written else ""
