"""Show what waits; /queue TEXT adds, edit [N] takes one into the input line, remove N, clear, go."""

from hermes.errors import UserError
from hermes.host.message_queue import Waited
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, words: str) -> None:
    word, _, rest = words.partition(" ")
    waiting = chat.waiting.open_ones
    if not words:
        for number, one in enumerate(waiting, 1):
            chat.face.write(chat.painter.line(f"{number}. {one.text}"))
        chat.say("" if waiting else "Nothing waits.")
    elif word == "edit" and (not rest or rest.split()[0].isdecimal()):
        await _edit(chat, waiting, rest)
    elif word == "remove" and rest.isdecimal():
        await chat.waiting.drop(_number(waiting, rest))
        chat.say(f"{len(chat.waiting.open_ones)} wait now.")
    elif words == "clear":
        await chat.waiting.drop(*waiting)
        chat.say(f"{len(waiting)} removed.")
    elif words == "go":
        chat.release()
    else:
        await chat.waiting.add(words)
        if not chat.is_held:
            chat.release()
    chat.face.refresh()


async def _edit(chat: Chat, waiting: tuple[Waited, ...], rest: str) -> None:
    """With other words, change it in its place; without, put it into the input line."""
    number, _, text = rest.partition(" ")
    one = _number(waiting, number or str(len(waiting)))
    if text.strip():
        await chat.waiting.edit(one, text.strip())
    elif chat.face.offer(one.text):
        await chat.waiting.drop(one)
    else:
        raise UserError("something stands in the input line already; send it or clear it first")


def _number(waiting: tuple[Waited, ...], number: str) -> Waited:
    if not number.isdecimal() or not 1 <= int(number) <= len(waiting):
        raise UserError(f"{len(waiting)} wait; there is no number {number}")
    return waiting[int(number) - 1]


COMMAND = Slash(run=run, args="[TEXT|edit N|remove N|clear|go]", aliases=("q",))
