"""A copy of a session, to go on in while the original stays as it is, whoever works on it."""

from hermes.dicts import to_dict
from hermes.errors import UserError
from hermes.ops import MessageAppended, SessionRecord
from hermes.runtime.session.history import from_record
from hermes.runtime.setup.process import RandomIds
from hermes.state import SessionDB
from hermes.types import JsonObject

COPIED = ("model", "model_config", "system_prompt", "tool_definitions", "user_id", "cwd")
STILL_RUNNING = "Not known here: this call was still running in session {} when this copy of the conversation was made."


def copied(db: SessionDB, old: str, title: str = "") -> str:
    """A new session with everything that was said in `old`; its id. Nobody goes on with `old` here."""
    row, record = db.get_session(old), db.queries.load(old)
    if row is None or record is None:
        raise UserError("nothing was said in this session yet, so there is nothing to branch from")
    new = RandomIds().session()
    fields = {name: row[name] for name in COPIED if row.get(name) is not None}
    # No parent: a child is left out of lists, and the copy must be there also when the original goes on.
    db.create_session(new, str(row["source"]), **fields)
    last = record.messages[-1].id or 0 if record.messages else 0
    said = [message for message in db.get_messages(old) if message["id"] <= last]
    db.replace_messages(new, [*said, *_answers(record)])
    if record.lease is None:
        db.end_session(old, "branched")
    base = title or str(row.get("title") or "")
    if base:
        db.set_session_title(new, db.get_next_title_in_lineage(base))
    return new


def _answers(record: SessionRecord) -> list[JsonObject]:
    """A result for every call that has none: the copy does not learn what becomes of it."""
    answers = [to_dict(op.message) for op in from_record(record)[1] if isinstance(op, MessageAppended)]
    if record.lease is not None:
        for answer in answers:
            if answer.get("status") == "unknown":
                answer["content"] = STILL_RUNNING.format(record.session_id)
    return answers
