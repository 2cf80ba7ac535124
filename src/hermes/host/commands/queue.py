"""Show what waits; /queue TEXT adds, edit [N] takes one into the input line, remove N, clear, go."""

from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of
from hermes.host.message_queue import WaitingMessage


async def run(call: CommandCall) -> CommandResult:
    session, words = call.session, call.words
    word, _, rest = words.partition(" ")
    waiting = session.queue.open_ones
    if not words:
        text = "\n".join(f"{number}. {one.text}" for number, one in enumerate(waiting, 1))
        return CommandResult(
            text=text or "Nothing waits.", form="lines", data={"waiting": [one.text for one in waiting]}
        )
    if word == "edit" and (not rest or rest.split()[0].isdecimal()):
        return await _edit(call, waiting, rest)
    if word == "remove" and rest.isdecimal():
        await session.queue.drop(_number(waiting, rest))
        return CommandResult(text=f"{len(session.queue.open_ones)} wait now.")
    if words == "clear":
        await session.queue.drop(*waiting)
        return CommandResult(text=f"{len(waiting)} removed.")
    if words == "go":
        session.release()
    else:
        await session.queue.add(words)
        if not session.is_held:
            session.release()
    return CommandResult()


async def _edit(call: CommandCall, waiting: tuple[WaitingMessage, ...], rest: str) -> CommandResult:
    """With other words, change it in its place; without, put it into the input line."""
    number, _, text = rest.partition(" ")
    one = _number(waiting, number or str(len(waiting)))
    if not text.strip():
        return CommandResult(offer=one.text, withdraws=one.id)
    await call.session.queue.edit(one, text.strip())
    return CommandResult()


def _number(waiting: tuple[WaitingMessage, ...], number: str) -> WaitingMessage:
    if not number.isdecimal() or not 1 <= int(number) <= len(waiting):
        raise UserError(f"{len(waiting)} wait; there is no number {number}")
    return waiting[int(number) - 1]


COMMAND = SlashCommand(
    run=run,
    args="[TEXT|edit N|remove N|clear|go]",
    aliases=("q",),
    complete=one_of("edit", "remove", "clear", "go"),
)
