"""See and change what is remembered, decide what waits, or learn why something was recalled."""

from hermes.config.sections.memory import Section
from hermes.context.memory.local.turn_index import session_number
from hermes.context.memory.memory_book import MemoryBook, history_lines
from hermes.context.memory.recall_report import recall_lines
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of, words_of
from hermes.host.live_session import LiveSession

WORDS = ("why", "history", "undo", "forget", "take", "drop")
NOTHING = "Nothing was recalled for the last message."


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    word, *rest = words_of(call.words) or [""]
    if word == "why":
        lines = await session.in_thread(_recalled, session)
        return CommandResult(text="\n".join(lines) or NOTHING, form="lines" if lines else "text", data={"lines": lines})
    section = session.settings.of(Section)
    limits = {"memory": section.memory_char_limit, "user": section.user_char_limit}
    book = MemoryBook(session.settings.home, {"memory": limits["memory"], "user": limits["user"]})
    told: CommandResult = await session.in_thread(_told, book, word, rest)
    return told


def _recalled(session: LiveSession) -> list[str]:
    record = session.db.queries.load(session.session_id)
    return recall_lines(session.settings.home, record, session_number(session.session_id))


def _told(book: MemoryBook, word: str, rest: list[str]) -> CommandResult:
    if word in ("", "list"):
        rows = tuple((one.name, one.text) for one in book.entries())
        waiting = tuple((str(one.number), one.line) for one in book.proposals.waiting())
        sections = (
            ("Remembered", rows),
            *((("Waiting for a yes: /memory take N, /memory drop N", waiting),) if waiting else ()),
        )
        return CommandResult(
            sections=sections if rows or waiting else (), text="" if rows or waiting else "Nothing yet."
        )
    if word in ("review", "proposals"):
        lines = [one.line for one in book.proposals.waiting()]
        note = "/memory take N keeps one, /memory drop N throws it away" if lines else ""
        return CommandResult(text="\n".join(lines) or "Nothing waits.", form="lines", note=note)
    if word == "history":
        return CommandResult(text="\n".join(history_lines(book.history()[-20:])) or "Nothing yet.", form="lines")
    if word == "forget":
        return CommandResult(text=book.forget(" ".join(rest)))
    if word in ("take", "drop", "undo"):
        number = _number(rest)
        if word == "undo":
            return CommandResult(text=book.undo(number))
        if number is None:
            raise UserError(f"/memory {word} needs a number; /memory review tells them")
        return CommandResult(text=book.take(number) if word == "take" else book.drop(number))
    raise UserError(f"/memory knows no {word!r}; it knows {', '.join(WORDS)}")


def _number(rest: list[str]) -> int | None:
    if not rest:
        return None
    if not rest[0].isdigit():
        raise UserError(f"{rest[0]!r} is no number")
    return int(rest[0])


COMMAND = SlashCommand(
    run=run, args="[why | review | take N | drop N | forget WORDS | undo [N] | history]", complete=one_of(*WORDS)
)
