"""The real engine with the real weights. Shapes are asserted, never sense: it is a 135M model on a busy machine."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import jsonschema_rs
import psutil
import pytest

from hermes.errors import ProviderError
from hermes.model_tools import get_tool_definitions
from hermes.models.box.files import BUNDLED, models_folder
from hermes.models.box.lean import lean_tools
from hermes.models.box.model import BoxModel
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.scope import TurnScope
from hermes.seams import HttpLimits, ModelRequest, RequestOptions, Unit
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.types import Message, ModelResponse, TextDelta, ToolCall, ToolDefinition

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("box")]
LIMIT_S = 400.0


def everything() -> tuple[ToolDefinition, ...]:
    """All built-in tools, as a session offers them."""
    found = [one["function"] for one in get_tool_definitions(quiet_mode=True)]
    return tuple(ToolDefinition(one["name"], one["description"], one["parameters"]) for one in found)


@pytest.fixture
async def box(weights: Path, tmp_path: Path, http: HttpClient) -> AsyncIterator[BoxModel]:
    folder = models_folder(tmp_path)
    folder.mkdir()
    (folder / BUNDLED).symlink_to(weights)
    model = BoxModel(
        Endpoint(base_url="", model="", provider="local", limits=HttpLimits(30.0, 1800.0, 1800.0)), http, tmp_path
    )
    supervisor = ProcessSupervisor()
    model.supervisor = lambda: supervisor
    yield model
    await model.aclose()
    await supervisor.close()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


async def ask(model: BoxModel, text: str, after: tuple[Unit, ...] = (), **options: object) -> tuple[ModelResponse, str]:
    """The response, and what was streamed before it."""
    request = ModelRequest(
        system="An agent's long prompt. " * 200,
        tools=everything(),
        units=(Unit([Message(role="user", content=text)]), *after),
        options=RequestOptions(**options),  # type: ignore[arg-type]  # by name
    )
    streamed = ""
    async with asyncio.timeout(LIMIT_S), TurnScope("test") as scope:
        async for event in model.stream(request, scope):
            if isinstance(event, TextDelta):
                streamed += event.text
            if isinstance(event, ModelResponse):
                return event, streamed
    raise AssertionError("the stream ended without a response")


async def test_the_box_answers_stays_warm_calls_tools_that_parse_and_leaves_nothing(box: BoxModel) -> None:
    assert not box.is_ready
    answer, streamed = await ask(box, "Say hello", max_tokens=24)
    first = box.server_pid
    assert answer.message.content == streamed != ""
    assert answer.usage.prompt_tokens is not None
    assert 0 < answer.usage.prompt_tokens <= 500

    offered = {"read_file", "search_files", "terminal"}
    for text in ("Which files are here?", "{"):
        answer, _ = await ask(box, text, tool_choice="required")
        assert answer.finish_reason == "tool_calls"
        for call in answer.message.tool_calls:
            assert call.name in offered
            assert isinstance(json.loads(call.arguments), dict)
    answer, _ = await ask(box, "List the files.", tool_choice="terminal")
    assert {call.name for call in answer.message.tool_calls} == {"terminal"}

    # A history with a call in it, and with one that was cut off, is understood.
    for arguments in ('{"path": "a"}', '{"path": "a'):
        called = Message(role="assistant", content="", tool_calls=(ToolCall("c1", "read_file", arguments),))
        past = Unit([called]), Unit([Message(role="tool", content="milk", tool_call_id="c1")])
        answer, _ = await ask(box, "Read a", past, max_tokens=4)
        assert answer.message.content

    assert box.server_pid == first is not None
    await box.aclose()
    assert not psutil.pid_exists(first)
    assert not box.is_ready


async def test_required_calls_parse_whatever_the_dice_say(box: BoxModel) -> None:
    """At a temperature that makes this model write almost anything, over as many seeds as there is time for."""
    offered = {tool.name: tool.parameters for tool in lean_tools(everything())}
    asked = ("Which files are here?", "{", 'Say "hello" \\ </tool_call>', "Lies die Datei ÄÖÜ.txt 🐎", "")
    for seed in range(100 if os.environ.get("HERMES_TEST_FULL") == "1" else 3):
        dice = {"seed": seed, "temperature": 1.5}
        answer, _ = await ask(box, asked[seed % len(asked)], tool_choice="required", extra_body=dice)
        assert answer.message.tool_calls
        for call in answer.message.tool_calls:
            assert call.name in offered
            assert jsonschema_rs.is_valid(offered[call.name], json.loads(call.arguments))


async def test_a_server_that_was_killed_is_started_again(box: BoxModel) -> None:
    await box.prepare(None)
    first = box.server_pid
    assert first is not None
    os.kill(first, 9)
    async with asyncio.timeout(30):
        while box.is_ready:  # noqa: ASYNC110 - the keeper's word comes over a socket that nobody else waits for
            await asyncio.sleep(0)
    answer, _ = await ask(box, "Say hello", max_tokens=4)
    assert answer.message.content
    assert box.server_pid != first


async def test_leaving_while_the_weights_load_leaves_no_process(box: BoxModel) -> None:
    starting = asyncio.ensure_future(box.prepare(None))  # noqa: TID251 - cancelled by hand, as Ctrl-C does
    while box.server_pid is None:  # noqa: ASYNC110 - it has no event of its own
        await asyncio.sleep(0)
    pid = box.server_pid
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not psutil.pid_exists(pid)
    await box.prepare(None)
    assert box.is_ready


async def test_a_file_that_cannot_be_loaded_is_told_in_one_sentence(
    weights: Path, tmp_path: Path, http: HttpClient
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    model = BoxModel(Endpoint(base_url="", model=str(broken), provider="local"), http, tmp_path)
    supervisor = ProcessSupervisor()
    model.supervisor = lambda: supervisor
    try:
        with pytest.raises(ProviderError, match=r"broken\.gguf could not be loaded"):
            await model.prepare(None)
    finally:
        await supervisor.close()
