"""Answers to what a session asks. The first one wins; without an id the oldest question is meant."""

from hermes.host.host_errors import NothingPending
from hermes.host.live_session import LiveSession
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.surfaces.serve.method import Method, MethodCall, OfSession
from hermes.types import JsonObject, QuestionKind


class Approval(OfSession, frozen=True, kw_only=True):
    """A word about what may be done; `all` says it about everything that is asked just now."""

    choice: str = "deny"
    all: bool = False
    id: str | None = None


class Said(OfSession, frozen=True, kw_only=True):
    """What was answered. `request_id` is enough, in whatever session it is."""

    request_id: str = ""
    answer: str | None = None
    value: str | None = None
    password: str | None = None


async def approve(call: MethodCall, params: Approval) -> JsonObject:
    live = await call.live(params.session_id)
    waiting = [one for one in live.questions.open_ones if one.kind in ("approval", "edit")]
    if params.id is not None:
        waiting = [one for one in waiting if one.id == params.id]
    elif not params.all:
        waiting = waiting[:1]
    for question in waiting:
        if params.choice not in ("deny", *question.choices):
            raise WireError(
                frames.BAD_VALUE, f"{params.choice!r} is none of the choices: {', '.join(question.choices)}"
            )
    for question in waiting:
        live.answer(question.id, params.choice, _who(call))
    return {"resolved": len(waiting)}


async def clarify(call: MethodCall, params: Said) -> JsonObject:
    live = _asker(call, params, ("clarify",))
    if live is None:
        raise NothingPending("there is no such open question; it may have been answered, or its time is over")
    live.answer(params.request_id, params.answer, _who(call))
    return {"status": "ok"}


async def sudo(call: MethodCall, params: Said) -> JsonObject:
    return _secret(call, params, "sudo", params.password)


async def secret(call: MethodCall, params: Said) -> JsonObject:
    return _secret(call, params, "secret", params.value)


async def answer(call: MethodCall, params: Said) -> JsonObject:
    """Any question, in the session's own words: a choice, a text, or nothing for a no."""
    live = await call.live(params.session_id)
    question = live.answer(params.request_id or None, params.answer, _who(call))
    return {"status": "ok", "request_id": question.id}


def _secret(call: MethodCall, params: Said, kind: QuestionKind, value: str | None) -> JsonObject:
    live = _asker(call, params, (kind,))
    if live is None:
        return {"status": "expired"}
    live.answer(params.request_id, value, _who(call))
    return {"status": "ok"}


def _asker(call: MethodCall, params: Said, kinds: tuple[QuestionKind, ...]) -> LiveSession | None:
    """The session that asks this; only one that the client may change."""
    for live in call.server.host.sessions.values():
        for question in live.questions.open_ones:
            if question.id == params.request_id and question.kind in kinds:
                if call.client.is_read_only(call.server.book.id_of(live)):
                    raise WireError(frames.REFUSED, "this session is attached read-only")
                return live
    return None


def _who(call: MethodCall) -> str:
    return call.client.name or "client"


METHODS: dict[str, Method] = {
    "approval.respond": Method(Approval, approve),
    "clarify.respond": Method(Said, clarify),
    "sudo.respond": Method(Said, sudo),
    "secret.respond": Method(Said, secret),
    "question.answer": Method(Said, answer),
}
