"""Tell what this session used and cost, and the last days."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, show_command


async def run(chat: Chat, words: str) -> None:
    spent = chat.spent
    price = "an unknown price" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    chat.say(f"This session: {spent.read} tokens read, {spent.written} written, {price}.")
    await show_command(chat, "usage", "--days", words if words.isdecimal() and int(words) else "30")


COMMAND = Slash(run=run, args="[DAYS]")
