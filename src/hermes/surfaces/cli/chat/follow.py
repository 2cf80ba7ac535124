"""What few runs of `hermes chat -q` need: a session that another process works on, and conversations kept as data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.errors import SessionInUse
from hermes.host.sent_message import SendStopped, SentMessage, put_in_line
from hermes.host.session_select import open_sessions
from hermes.runtime.trajectory import ModelBriefing, saved

if TYPE_CHECKING:
    from hermes.surfaces.cli.chat.headless import _Listener, _Run


async def follow(listener: "_Listener", error: SessionInUse, question: Any, told: str | None) -> dict[str, Any]:
    """Send the question to where the session runs, and follow it; Ctrl-C takes it back while it waits."""
    live = listener.live
    after = await live.in_thread(live.db.queries.newest_event)
    key = await put_in_line(live, question)
    sent = SentMessage(live, key, listener.follow, lambda: live.ask(question, told))
    listener.stops.append(sent.stop)
    try:
        return await sent.result(error, after)
    except SendStopped as stopped:
        if stopped.is_waiting:
            await sent.take_back()
        elif not listener.is_quiet:
            listener.cli.out.note("Your message goes on where the session runs.")
        raise KeyboardInterrupt from None


def save(run: "_Run", result: dict[str, Any]) -> None:
    """The conversation as training data, in the folder where this was started."""
    with open_sessions(run.cli) as db:
        row = (db.get_session(str(result["session_id"])) if db else None) or {}
    for is_wanted, alone in ((run.wish.trajectories, False), (run.wish.sample, True)):
        if is_wanted:
            told = ModelBriefing(str(row.get("system_prompt") or ""), str(row.get("tool_definitions") or "[]"))
            run.cli.out.note(f"The conversation is in {saved(Path.cwd(), result, told, alone=alone)}")
