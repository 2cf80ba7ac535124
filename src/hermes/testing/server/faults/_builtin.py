"""The common faults. The words of the errors are those by which clients tell them apart."""

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import msgspec

from hermes.testing.server.faults import FAULTS, Failing
from hermes.types import JsonObject


async def rate_limit(failing: Failing, *, retry_after: float | None = None) -> None:
    """429, with `Retry-After` when it is given."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    await failing.error(429, "rate_limit", "Rate limit reached for requests", headers)


async def server_error(failing: Failing, *, status: int = 500) -> None:
    """500, or another 5xx."""
    await failing.error(status, "server_error", "The server had an error while processing your request")


async def overloaded(failing: Failing, *, retry_after: float | None = None) -> None:
    """529, as Anthropic and others answer when they are full."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    await failing.error(529, "overloaded", "Overloaded", headers)


async def unauthorized(failing: Failing) -> None:
    """401: the key is wrong."""
    await failing.error(401, "unauthorized", "Incorrect API key provided")


async def no_credit(failing: Failing) -> None:
    """402: the account is empty."""
    await failing.error(402, "insufficient_quota", "Insufficient credits. Add more to continue")


async def model_not_found(failing: Failing) -> None:
    """404: there is no such model."""
    text = f"The model `{failing.answer.model}` does not exist or you do not have access to it"
    await failing.error(404, "model_not_found", text)


async def refused(failing: Failing, *, status: int = 400, text: str = "Bad request") -> None:
    """A refusal in whatever words."""
    await failing.error(status, "invalid_request", text)


async def bad_tool(failing: Failing, *, tool: str) -> None:
    """400 that names a tool whose schema is refused."""
    await failing.error(400, "invalid_function_parameters", f"Invalid schema for function '{tool}': not a valid type")


async def bad_image(failing: Failing) -> None:
    """400: a picture cannot be read."""
    await failing.error(400, "invalid_image", "Could not process image: the image data is not valid")


async def context_overflow(failing: Failing, *, limit: int = 128_000) -> None:
    """400: the request is longer than the model's window."""
    text = f"This model's maximum context length is {limit} tokens. However, your messages resulted in more tokens"
    await failing.error(400, "context_overflow", text)


async def too_large(failing: Failing) -> None:
    """413: the body is too long."""
    await failing.error(413, "request_too_large", "Request exceeds the maximum size")


async def policy_blocked(failing: Failing) -> None:
    """400: the content is refused."""
    await failing.error(400, "content_policy_violation", "The request was rejected by the safety system")


async def reset(failing: Failing, *, after: int = 0) -> None:
    """A TCP reset, before the answer or after that many frames of it."""
    await _begin(failing, after)
    failing.exchange.reset()


async def disconnect(failing: Failing, *, after: int = 0) -> None:
    """An orderly close, before the answer or after that many frames of it."""
    await _begin(failing, after)
    await failing.exchange.cut()


async def stall(failing: Failing, *, after: int = 0) -> None:
    """Silence until the client leaves: before the first byte, or after that many frames."""
    await _begin(failing, after)
    await failing.exchange.stall()


async def truncated_json(failing: Failing, *, after: int = 1) -> None:
    """The answer ends inside a JSON value, though the transfer itself ends as it should."""
    if not failing.is_stream:
        body = msgspec.json.encode(failing.wire.whole(failing.answer))
        await failing.exchange.respond(200, body[: len(body) // 2])
        return
    frames = failing.wire.frames(failing.answer)
    broken = [*frames.content, *frames.ending][after]
    await _begin(failing, after)
    if not after:
        failing.exchange.start(failing.wire.content_type)
    await failing.exchange.send(broken[: len(broken) // 2])
    await failing.exchange.finish()


async def cut_before_end(failing: Failing) -> None:
    """All words arrive and the transfer ends well, but the events that finish the answer are missing."""
    content = failing.wire.frames(failing.answer).content
    failing.exchange.start(failing.wire.content_type)
    await failing.exchange.send(*content)
    await failing.exchange.finish()


async def without_finish(failing: Failing) -> None:
    """The answer and the end of the stream, but between them no word on why it ended."""
    frames = failing.wire.frames(failing.answer)
    failing.exchange.start(failing.wire.content_type)
    await failing.exchange.send(*frames.content, *frames.ending[1:])
    await failing.exchange.finish()


async def split_utf8(failing: Failing) -> None:
    """A good answer in chunks of one byte, so that characters and events are cut everywhere."""
    await slow_drip(failing, delay_s=0.0)


async def slow_drip(failing: Failing, *, delay_s: float = 0.001, size: int = 1) -> None:
    """A good answer, `size` bytes at a time."""
    frames = failing.wire.frames(failing.answer)
    failing.report()
    failing.exchange.start(failing.wire.content_type)
    whole = b"".join([*frames.content, *frames.ending])
    for start in range(0, len(whole), size):
        await failing.exchange.send(whole[start : start + size])
        await asyncio.sleep(delay_s)
    await failing.exchange.finish()


async def duplicate(failing: Failing) -> None:
    """A good answer whose final events come twice."""
    frames = failing.wire.frames(failing.answer)
    failing.report()
    failing.exchange.start(failing.wire.content_type)
    await failing.exchange.send(*frames.content, *frames.ending, *frames.ending)
    await failing.exchange.finish()


async def late(failing: Failing) -> None:
    """A good answer, after whose end its words come once more."""
    frames = failing.wire.frames(failing.answer)
    failing.report()
    failing.exchange.start(failing.wire.content_type)
    await failing.exchange.send(*frames.content, *frames.ending, *frames.content)
    await failing.exchange.finish()


async def wrong_usage(failing: Failing, *, usage: JsonObject | None = None) -> None:
    """A good answer with token counts that cannot be: of the wrong type, or whatever `usage` holds."""
    nonsense: dict[str, Any] = {"prompt_tokens": -7, "completion_tokens": "many", "input_tokens": None}
    answer = replace(failing.answer, raw_usage=nonsense if usage is None else usage)
    await good(replace(failing, answer=answer, report=lambda: None))


async def not_sse(failing: Failing, *, body: str = "<html>It works!</html>", content_type: str = "text/html") -> None:
    """200 with something that is no answer at all, as a captive portal or a wrong base URL gives."""
    await failing.exchange.respond(200, body.encode(), {"content-type": content_type})


async def not_streamed(failing: Failing) -> None:
    """A good answer in one JSON body, though a stream was asked for."""
    failing.report()
    await failing.exchange.respond(200, msgspec.json.encode(failing.wire.whole(failing.answer)))


async def verbatim(
    failing: Failing,
    *,
    body: str | bytes,
    status: int = 200,
    headers: dict[str, str] | None = None,
    cuts: tuple[int, ...] = (),
    stalls: bool = False,
) -> None:
    """These bytes, whatever they are, sent in pieces cut at `cuts`; then a close, or silence until the client leaves.

    Without a `content-length` among `headers` the body ends with the connection; with one, it may be a lie.
    """
    text = body.encode() if isinstance(body, str) else body
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    fields = {"content-type": failing.wire.content_type, "connection": "close", **(headers or {})}
    await failing.exchange.write_as_is(status, fields, *pieces)
    if stalls:
        await failing.exchange.stall()


async def endless(failing: Failing, *, piece: str | bytes, first: str | bytes = b"") -> None:
    """`first`, then `piece` again and again until the client leaves."""
    failing.exchange.start(failing.wire.content_type)
    more = first or piece
    while True:
        await failing.exchange.send(more.encode() if isinstance(more, str) else more)
        more = piece
        await asyncio.sleep(0)


async def good(failing: Failing) -> None:
    """No fault: the answer as scripted, at its pace."""
    exchange, pace = failing.exchange, failing.answer.reply.pace
    failing.report()
    if not failing.is_stream:
        await exchange.respond(200, msgspec.json.encode(failing.wire.whole(failing.answer)))
        return
    frames = failing.wire.frames(failing.answer)
    exchange.start(failing.wire.content_type)
    if pace.chunk_delay_s:
        for frame in (*frames.content, *frames.ending):
            await exchange.send(frame)
            await asyncio.sleep(pace.chunk_delay_s)
    else:
        await exchange.send(*frames.content, *frames.ending)
    await exchange.finish()


async def _begin(failing: Failing, after: int) -> None:
    """The first `after` frames of the stream; with 0, nothing at all."""
    if after:
        frames = failing.wire.frames(failing.answer)
        failing.exchange.start(failing.wire.content_type)
        await failing.exchange.send(*[*frames.content, *frames.ending][:after])


for _fault in (
    rate_limit,
    server_error,
    overloaded,
    unauthorized,
    no_credit,
    model_not_found,
    refused,
    bad_tool,
    bad_image,
    context_overflow,
    too_large,
    policy_blocked,
    reset,
    disconnect,
    stall,
    truncated_json,
    cut_before_end,
    without_finish,
    split_utf8,
    slow_drip,
    duplicate,
    late,
    wrong_usage,
    not_sse,
    not_streamed,
    verbatim,
    endless,
    good,
):
    FAULTS.add(_fault.__name__, _fault)
