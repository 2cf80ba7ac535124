"""Messages to a session: submit, steer, take back, let go on; and questions aside from it."""

import secrets
from collections.abc import Mapping

from msgspec import structs

from hermes.errors import HermesError
from hermes.host.host_errors import NothingPending
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.state.message_line import BusyMode
from hermes.surfaces.serve.method import Method, MethodCall, OfSession
from hermes.types import JsonObject


class Submit(OfSession, frozen=True, kw_only=True):
    """A message. One whose `key` was heard before is not heard again; `mode` is what it does during a turn."""

    text: str = ""
    key: str | None = None
    mode: BusyMode | None = None


class Steer(OfSession, frozen=True, kw_only=True):
    text: str = ""


class Keyed(OfSession, frozen=True, kw_only=True):
    key: str = ""


async def submit(call: MethodCall, params: Submit) -> JsonObject:
    """It is stored when this answers."""
    live = await call.live(params.session_id)
    if not params.text.strip():
        raise WireError(frames.EMPTY_INPUT, "the message is empty")
    mode: BusyMode = params.mode or live.busy_mode
    was_busy = live.is_busy
    added = await live.submit(params.text, mode, params.key)
    call.server.refresh(live)
    if added is None:
        return {"status": "steered", "text": params.text}
    return {"status": "queued" if was_busy else "streaming", "key": added.id}


async def steer(call: MethodCall, params: Steer) -> JsonObject:
    live = await call.live(params.session_id)
    if not params.text.strip():
        raise WireError(frames.EMPTY_INPUT, "there are no words to steer with")
    if not live.steer(params.text):
        raise NothingPending("no turn runs that could be steered; send it as a message")
    return {"status": "queued", "text": params.text}


async def withdraw(call: MethodCall, params: Keyed) -> JsonObject:
    live = await call.live(params.session_id)
    await live.withdraw(params.key)
    call.server.refresh(live)
    return {"status": "withdrawn"}


async def release(call: MethodCall, params: OfSession) -> JsonObject:
    """Go on with what is held."""
    live = await call.live(params.session_id)
    live.release()
    return {"status": "streaming" if live.queue.open_ones else "idle"}


async def background(call: MethodCall, params: Steer) -> JsonObject:
    """Ask something in a session of its own; the answer comes as `background.complete`."""
    live = await call.live(params.session_id)
    if not params.text.strip():
        raise WireError(frames.EMPTY_INPUT, "the message is empty")
    task_id, server, client = f"bg_{secrets.token_hex(4)}", call.server, call.client
    aside = server.host.for_question(structs.replace(live.start, can_ask=False))

    async def run() -> None:
        try:
            told = _answer(await aside.ask(params.text))
        except HermesError as error:
            told = f"error: {error}"
        finally:
            await aside.close("background")
        if not client.is_gone.is_set():
            payload = {"task_id": task_id, "text": told, "session_key": aside.session_id}
            await client.tell("background.complete", params.session_id, payload)

    server.host.begin(run(), task_id)
    return {"task_id": task_id}


def _answer(result: Mapping[str, object]) -> str:
    return str(result.get("final_response") or result.get("error") or "")


METHODS: dict[str, Method] = {
    "prompt.submit": Method(Submit, submit, is_ordered=True),
    "prompt.withdraw": Method(Keyed, withdraw),
    "prompt.release": Method(OfSession, release),
    "prompt.background": Method(Steer, background),
    "session.steer": Method(Steer, steer),
}
