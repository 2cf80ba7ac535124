"""Models on this machine: found by asking, and understood also when they write their calls as text."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.models.attempts import ClientOptions
from hermes.models.client import CallPlan, ModelClient
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.providers.endpoint_check import check_endpoint
from hermes.models.providers.local import LocalModel
from hermes.models.providers.server_facts import look
from hermes.models.wires.answer_text import ThinkSplitter, parse_text_calls
from hermes.scope import TurnScope
from hermes.testing.fakes import CountedIds, HandClock
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer
from tests.models.rooms import answering
from tests.models.wire_cases import asked

CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'


SERVERS: dict[str, tuple[dict[str, Any], str, dict[str, int]]] = {
    "vllm": (
        {"v1__models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 40960}]}},
        "vllm",
        {"m": 40960},
    ),
    "llamacpp": (
        {
            "v1__models": {"data": [{"id": "m", "owned_by": "llamacpp"}]},
            "props": {"default_generation_settings": {"n_ctx": 8192}},
        },
        "llamacpp",
        {"m": 8192},
    ),
    "lmstudio": (
        {
            "v1__models": {"data": [{"id": "m", "owned_by": "organization_owner"}, {"id": "idle"}]},
            "api__v0__models": {"data": [{"id": "m", "loaded_context_length": 4096}, {"id": "idle"}]},
        },
        "lmstudio",
        {"m": 4096},
    ),
    "ollama": (
        {
            "v1__models": {"data": [{"id": "m", "owned_by": "library"}, {"id": "idle", "owned_by": "library"}]},
            "api__ps": {"models": [{"name": "m", "context_length": 16384}]},
        },
        "ollama",
        {"m": 16384},
    ),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_the_window_and_the_loaded_model_are_asked_for(http: HttpClient, name: str) -> None:
    pages, server, windows = SERVERS[name]
    async with answering(**pages) as base_url:
        facts = await look(http, base_url, {})
    assert (facts.server, facts.windows, facts.models) == (server, windows, ("m",))


def local(server: ScriptedServer, http: HttpClient, folder: Path, name: str = "") -> tuple[ModelClient, MemoryStore]:
    store = MemoryStore()
    model = LocalModel(Endpoint(base_url=server.base_url, model=name, provider="ollama"), http, folder)
    return ModelClient([model], store, HandClock(), CountedIds(), ClientOptions()), store


async def ask(client: ModelClient, store: MemoryStore) -> Any:
    answer = await client.call(asked(), CallPlan(purpose="turn", session_id=None), TurnScope())
    await store.commit(answer.closing)
    return answer.response.message


async def test_a_model_that_calls_properly_is_read_as_it_is(http: HttpClient, tmp_path: Path) -> None:
    async with ScriptedServer([calls("report_ready"), says(CALL)]) as server:
        client, store = local(server, http, tmp_path)
        message = await ask(client, store)
    assert (message.content, message.tool_calls) == (CALL, ())
    assert client.model.name == "scripted"
    assert [opened.purpose for opened, _ in store.attempts.values()] == ["probe", "turn"]


async def test_calls_written_as_text_are_read_after_a_failed_probe_only(http: HttpClient, tmp_path: Path) -> None:
    probe = '<tool_call>{"name": "report_ready", "arguments": {}}</tool_call>'
    async with ScriptedServer([says(probe), says(f"Reading. {CALL}"), says(CALL)]) as server:
        client, store = local(server, http, tmp_path)
        message = await ask(client, store)
        again, other = local(server, http, tmp_path)  # another process: what was found is known
        second = await ask(again, other)
    assert server.answered == 3
    assert message.content == "Reading."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("read", '{"path":"a"}')]
    assert second.tool_calls
    assert [opened.purpose for opened, _ in other.attempts.values()] == ["turn"]


async def test_a_server_that_cuts_the_conversation_is_told_of_once(http: HttpClient, tmp_path: Path) -> None:
    told: list[Any] = []
    cut = says("ok").with_usage(input_tokens=500, output_tokens=2)
    async with ScriptedServer([calls("report_ready"), cut, cut]) as server:
        client, store = local(server, http, tmp_path)
        for _ in range(2):
            plan = CallPlan(purpose="turn", session_id=None, on_status=told.append)
            answer = await client.call(asked("long words " * 4000), plan, TurnScope())
            await store.commit(answer.closing)
    warnings = [one.message for one in told if one.kind == "warning"]
    assert len(warnings) == 1
    assert "has cut the conversation" in warnings[0]


async def test_several_models_and_no_name_is_a_question_for_the_user(http: HttpClient, tmp_path: Path) -> None:
    async with ScriptedServer([], models=("a", "b")) as server:
        client, store = local(server, http, tmp_path)
        with pytest.raises(UserError, match="choose one with --model: a, b"):
            await ask(client, store)


TEXTS = {
    "hermes": CALL,
    "fenced": '```json\n{"name": "read", "arguments": {"path": "a"}}\n```',
    "bare": '{"name": "read", "parameters": {"path": "a"}}',
    "mistral": '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a"}}]',
    "llama": '<|python_tag|>{"name": "read", "parameters": {"path": "a"}}<|eom_id|>',
    "qwen-coder": "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "function": '<function=read>{"path":"a"}</function>',
    "openai": '{"type": "function", "function": {"name": "read", "arguments": "{\\"path\\":\\"a\\"}"}}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_common_ways_to_write_a_call_are_understood(name: str) -> None:
    rest, found = parse_text_calls(TEXTS[name])
    assert [(call, msgspec.json.decode(arguments)) for call, arguments in found] == [("read", {"path": "a"})]
    assert rest == ""


@given(st.text())
def test_ordinary_text_is_left_alone(text: str) -> None:
    rest, found = parse_text_calls(text)
    assert found or rest == text


@pytest.mark.parametrize(
    "text", ["{}", '{"name": "x"}', "[1]", "<tool_call>{broken</tool_call>", '```json\n{"a": 1}\n```']
)
def test_what_names_no_call_clearly_is_none(text: str) -> None:
    assert parse_text_calls(text) == (text, [])


@given(st.lists(st.integers(1, 5)))
def test_a_leading_think_block_is_parted_wherever_it_is_cut(sizes: list[int]) -> None:
    text = "\n<think>one <b> two</think>\nThe answer with <think> in it."
    splitter = ThinkSplitter()
    pieces, at = [], 0
    for size in [*sizes, len(text)]:
        pieces.append(splitter.feed(text[at : at + size]))
        at += size
    thought = "".join(piece[0] for piece in pieces)
    words = "".join(piece[1] for piece in pieces) + splitter.rest()
    assert (thought, words.lstrip("\n")) == ("one <b> two", "The answer with <think> in it.")


@pytest.mark.parametrize(
    "piece",
    ["<tools>", "<tool_call> ", "<function=a>", "<function=a><parameter=b>", "```\n", "[TOOL_CALLS] [", " ", "]"],
)
def test_nothing_but_openings_is_read_in_one_go(piece: str) -> None:
    """Each opening tried against all that follows would take hours."""
    text = piece * (1_000_000 // len(piece))
    assert parse_text_calls(text)[1] == []


def test_fenced_code_that_is_no_call_stays() -> None:
    call = '```json\n{"name": "list", "arguments": {"a": "```x"}}\n```'
    rest, found = parse_text_calls(f"One:\n```\nx = 1\n```\nTwo:\n{call}")
    assert (rest, found) == ("One:\n```\nx = 1\n```\nTwo:", [("list", '{"a":"```x"}')])


ODD_LISTS: tuple[object, ...] = (
    5,
    "abc",
    None,
    [],
    {},
    [[]],
    {"data": 5},
    {"data": "x"},
    {"data": [5, None, {"id": 7}]},
)


@pytest.mark.parametrize("told", ODD_LISTS, ids=repr)
async def test_a_list_of_models_that_is_none_is_an_empty_one(told: object) -> None:
    assert (await look(_Tells(told), "http://127.0.0.1:9/v1", {})).models == ()
    endpoint = Endpoint(base_url="https://models.example/v1", model="m")
    assert (await check_endpoint(_Tells(told), endpoint)).models == ()


@pytest.mark.parametrize("size", [-1, 0, 10**30, 4.5, "8192", True, None, [], {}])
async def test_a_window_that_cannot_be_is_unknown(size: object) -> None:
    told = {
        "data": [{"id": "m", "max_model_len": size, "loaded_context_length": size}],
        "models": [{"name": "m", "context_length": size}],
        "n_ctx": size,
    }
    facts = await look(_Tells(told), "http://127.0.0.1:9/v1", {})
    assert (facts.models, facts.window("m")) == (("m",), None)


class _Tells:
    """A server that answers every question alike."""

    def __init__(self, told: object) -> None:
        self._told = told

    async def get_json(self, *_: object) -> Any:
        return self._told

    async def post_stream(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
        yield json.dumps(self._told).encode()

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("text", ["plain", "<thin", "< think>x", "  ", "a <think>b</think>"])
def test_text_without_a_leading_block_is_all_answer(text: str) -> None:
    splitter = ThinkSplitter()
    pieces = [splitter.feed(char) for char in text]
    assert "".join(piece[1] for piece in pieces) + splitter.rest() == text
