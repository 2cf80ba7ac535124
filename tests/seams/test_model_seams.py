"""`Model` and `HttpStream`: what the kernel relies on, held against the real ones and their fakes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.http.errors import HttpStatusError
from hermes.models.wires.chat_completions import chat_completions
from hermes.runtime.requests import build_units
from hermes.scope import TurnScope
from hermes.seams import HttpStream, Model, ModelRequest
from hermes.testing.fakes import CannedHttp
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, fault, says, thinks
from hermes.testing.server import ScriptedServer
from hermes.types import CallAnnounced, Message, ModelResponse, ReasoningDelta, TextDelta

Play = Callable[[Reply], Awaitable[Model]]
REQUEST = ModelRequest(system="Be brief.", tools=(), units=tuple(build_units([Message(role="user", content="Hi")])))


@pytest.fixture(params=["in process", "over http"])
async def play(request: pytest.FixtureRequest) -> AsyncIterator[Play]:
    """A function that gives a model playing one reply."""
    servers: list[ScriptedServer] = []
    http = HttpClient()

    async def one(reply: Reply) -> Model:
        if request.param == "in process":
            return ScriptedModel(reply)
        server = ScriptedServer([reply])
        await server.__aenter__()
        servers.append(server)
        return chat_completions(Endpoint(base_url=server.base_url, model="scripted"), http)

    yield one
    await http.close()
    for server in servers:
        await server.__aexit__(None, None, None)


async def test_deltas_come_first_and_one_response_last(play: Play) -> None:
    model = await play(thinks("hm") + says("Hello, world.") + calls("ls", path="."))
    events = [event async for event in model.stream(REQUEST, TurnScope())]
    assert [type(event) for event in events if not isinstance(event, TextDelta | ReasoningDelta)] == [
        CallAnnounced,
        ModelResponse,
    ]
    response = events[-1]
    assert isinstance(response, ModelResponse)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == response.message.content
    assert [(call.name, call.arguments) for call in response.message.tool_calls] == [("ls", '{"path":"."}')]
    assert response.finish_reason == "tool_calls"
    assert response.usage.input_tokens is not None


async def test_a_failure_is_a_provider_error_and_no_response(play: Play) -> None:
    model = await play(fault("server_error"))
    with pytest.raises(ProviderError) as caught:
        [event async for event in model.stream(REQUEST, TurnScope())]
    assert caught.value.retryable


async def test_leaving_early_ends_the_request(play: Play) -> None:
    model = await play(says("a long answer").timed(chunk_size=1).failing("stall", after=3))
    async with aclosing(model.stream(REQUEST, TurnScope())) as events:  # type: ignore[type-var]  # all are generators
        assert isinstance(await asyncio.wait_for(anext(events), 10), TextDelta)


async def read_all(http: HttpStream, url: str) -> bytes:
    return b"".join([chunk async for chunk in http.post_stream(url, {}, b"{}", TurnScope())])


async def test_the_fake_byte_seam_answers_fails_and_is_left_like_the_real_one() -> None:
    http = CannedHttp([b"one", b"two"], 503, [b"first", None])
    assert await read_all(http, "http://127.0.0.1/x") == b"onetwo"
    with pytest.raises(HttpStatusError) as caught:
        await read_all(http, "http://127.0.0.1/x")
    assert caught.value.status == 503
    async with aclosing(http.post_stream("http://127.0.0.1/x", {}, b"", TurnScope())) as chunks:
        assert await anext(chunks) == b"first"
    assert http.closed_early == 1
    assert len(http.sent) == 3
