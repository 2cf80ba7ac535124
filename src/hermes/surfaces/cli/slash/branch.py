"""Go on in a copy of this session; the original stays as it is."""

from hermes.errors import UserError
from hermes.runtime.shared import RandomIds
from hermes.state import SessionDB
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash

COPIED = ("model", "model_config", "system_prompt", "tool_definitions", "user_id", "cwd")


async def run(chat: Chat, words: str) -> None:
    old = chat.session_id
    new = await chat.in_thread(copied, chat.db, old, words)
    await chat.open(new, is_copy=True)
    chat.say(f"You are in a copy now, {new}; the original is {old}.")


def copied(db: SessionDB, old: str, title: str) -> str:
    """A new session with everything that was said in `old`; its id."""
    row = db.get_session(old)
    if row is None:
        raise UserError("nothing was said in this session yet, so there is nothing to branch from")
    new = RandomIds().session()
    fields = {name: row[name] for name in COPIED if row.get(name) is not None}
    # No parent: a child is left out of lists, and the copy must be there also when the original goes on.
    db.create_session(new, str(row["source"]), **fields)
    db.replace_messages(new, db.get_messages(old))
    db.end_session(old, "branched")
    base = title or str(row.get("title") or "")
    if base:
        db.set_session_title(new, db.get_next_title_in_lineage(base))
    return new


COMMAND = Slash(run=run, args="[TITLE]", aliases=("fork",), when_busy=False)
