"""Tell how full the model's window is."""

from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash


async def run(chat: Chat, _words: str) -> None:
    used, window = chat.view.context_tokens or chat.spent.in_context, chat.spent.window
    count = await chat.in_thread(chat.db.message_count, chat.session_id)
    if not used:
        chat.say(f"{count} messages; how many tokens they are is known after the next answer.")
    elif window:
        guessed = ", which nobody has told: it is assumed" if chat.spent.is_window_assumed else ""
        chat.say(f"{used} of {window} tokens ({used / window:.0%}) in {count} messages{guessed}.")
    else:
        chat.say(f"{used} tokens in {count} messages; how much this model can read is not known.")


COMMAND = Slash(run=run)
