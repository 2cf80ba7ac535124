"""How much a model reads: told by its server, kept for the next process, assumed where nobody tells."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.providers.local import PROBES_FILE
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.models.providers.server_facts import look
from hermes.models.providers.windows import DAY_S, Window, WindowMemory, Windows
from hermes.models.wires.transport import make_model
from hermes.scope import TurnScope
from hermes.testing.fakes import HandClock
from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer
from tests.models.rooms import Room, answering

ASSUMED = Window(128_000, is_assumed=True)


def served(base_url: str, **more: Any) -> Endpoint:
    return Endpoint(base_url=base_url, model="m", asks_window=True, **more)


def listed(**entry: Any) -> dict[str, Any]:
    return {"data": [{"id": "other", "context_length": 1_000_000}, {"id": "m", **entry}]}


SPELLINGS: dict[str, dict[str, Any]] = {
    "openrouter": {"context_length": 32_768},
    "openrouter, inside": {"top_provider": {"context_length": 32_768}},
    "vllm": {"owned_by": "vllm", "max_model_len": 32_768},
    "groq": {"context_window": 32_768},
    "mistral": {"max_context_length": 32_768},
    "litellm": {"model_info": {"max_input_tokens": 32_768}},
    "llama.cpp": {"owned_by": "llamacpp", "meta": {"n_ctx": 32_768, "n_ctx_train": 131_072}},
}


@pytest.mark.parametrize("entry", SPELLINGS.values(), ids=SPELLINGS)
async def test_a_list_of_models_tells_the_window_however_it_spells_it(http: HttpClient, entry: dict[str, Any]) -> None:
    async with answering(v1__models=listed(**entry)) as base_url:
        facts = await look(http, base_url, {}, "m")
    assert facts.windows["m"] == 32_768


@pytest.mark.parametrize("told", [0, -1, True, "many", 10**15, None, [4096], {"tokens": 4096}])
async def test_what_is_no_window_is_not_taken_for_one(http: HttpClient, told: Any) -> None:
    async with answering(v1__models={"data": [{"id": "m", "context_length": told}, 7, None, {"id": 3}]}) as base_url:
        facts = await look(http, base_url, {}, "m")
    assert (facts.windows, facts.models) == ({}, ("m",))


@pytest.mark.parametrize("page", [[], "no", 7, {"data": "m"}, {"data": {"m": 1}}])
async def test_a_list_that_is_none_tells_nothing(http: HttpClient, page: Any) -> None:
    async with answering(v1__models=page, props=[1], api__ps={"models": "none"}) as base_url:
        assert (await look(http, base_url, {}, "m")).windows == {}


async def test_a_server_with_a_single_model_serves_that_under_any_name(http: HttpClient) -> None:
    page = {"data": [{"id": "/srv/weights.gguf", "owned_by": "llamacpp"}]}
    async with answering(v1__models=page, props={"default_generation_settings": {"n_ctx": 8_192}}) as base_url:
        facts = await look(http, base_url, {}, "m")
    assert (facts.window("m"), facts.window("")) == (8_192, 8_192)
    async with answering(v1__models=listed()) as base_url:
        assert (await look(http, base_url, {}, "m")).window("m") is None


async def test_a_server_that_answers_every_path_with_its_list_is_not_taken_for_another(http: HttpClient) -> None:
    page = {"data": [{"id": "m"}, {"id": "n"}]}
    async with answering(v1__models=page, api__v0__models=page, api__ps=page, props=page) as base_url:
        facts = await look(http, base_url, {}, "m")
    assert (facts.server, facts.windows, facts.unloaded) == ("", {}, frozenset())


async def test_nonsense_without_end_is_no_list(http: HttpClient, tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    async with answering(v1__models={"data": [{"id": "m", "context_length": 4_096, "more": deep}]}) as base_url:
        windows, endpoint = Windows(WindowMemory(http), tmp_path / PROBES_FILE), served(base_url)
        await windows.ask(endpoint)
    assert windows.of("m", endpoint) in (ASSUMED, Window(4_096))


async def test_that_there_is_no_list_is_kept_as_well(http: HttpClient, tmp_path: Path) -> None:
    seen: list[str] = []
    async with answering(seen) as base_url:
        for _ in range(2):  # in two processes
            windows = Windows(WindowMemory(http), tmp_path / PROBES_FILE)
            if windows.is_due(served(base_url)):
                await windows.ask(served(base_url))
    assert seen == ["/v1/models"]


async def test_an_interrupt_ends_the_question_with_the_call(http: HttpClient, tmp_path: Path) -> None:
    seen: list[str] = []
    before = asyncio.all_tasks()
    async with answering(seen, v1__models=..., v1__chat__completions=...) as base_url:
        scope = TurnScope()
        room = Room(make_model(served(base_url), http), windows=Windows(WindowMemory(http), tmp_path / PROBES_FILE))
        room.scope = scope
        async with asyncio.timeout(10):
            async with scope, asyncio.TaskGroup() as group:
                group.create_task(_cancel_when_asked(seen, scope))
                await room.ask()
        left = {task.get_coro().__qualname__ for task in asyncio.all_tasks() - before}  # type: ignore[union-attr]
    assert scope.cancelled
    assert left <= {"answering.<locals>.serve"}


async def _cancel_when_asked(seen: list[str], scope: TurnScope) -> None:
    while len(seen) < 2:  # noqa: ASYNC110 - the request and the question are under way
        await asyncio.sleep(0.01)
    scope.cancel("enough")


async def test_only_the_list_is_read_where_it_tells_or_where_there_is_none(http: HttpClient, tmp_path: Path) -> None:
    seen: list[str] = []
    async with answering(seen, v1__models=listed(context_length=8_192)) as base_url:
        await look(http, base_url, {}, "m")
    async with answering(seen) as base_url:
        windows = Windows(WindowMemory(http), tmp_path / "kept")
        await windows.ask(served(base_url))
    assert seen == ["/v1/models", "/v1/models"]


async def test_ollama_shows_a_model_that_is_not_loaded_and_is_asked_again(http: HttpClient, tmp_path: Path) -> None:
    listing = {"data": [{"id": "m", "owned_by": "library"}]}
    shown = {"model_info": {"qwen2.context_length": 131_072}, "parameters": "stop  <end>\nnum_ctx   8192"}
    clock = HandClock()
    async with answering(v1__models=listing, api__ps={"models": []}, api__show=shown) as base_url:
        endpoint = served(base_url)
        windows = Windows(WindowMemory(http, clock.now), tmp_path / PROBES_FILE)
        await windows.ask(endpoint)
        assert windows.of("m", endpoint) == Window(8_192)
        facts = await look(http, base_url, {}, "m")
    assert (facts.windows, facts.unloaded) == ({"m": 8_192}, frozenset({"m"}))
    assert not (tmp_path / PROBES_FILE).exists(), "what may still change is not kept"
    clock.at += 60
    assert windows.is_due(endpoint)


async def test_what_was_told_is_kept_for_a_day_and_for_the_next_process(http: HttpClient, tmp_path: Path) -> None:
    seen: list[str] = []
    clock = HandClock()
    async with answering(seen, v1__models=listed(context_length=8_192)) as base_url:
        endpoint = served(base_url)
        for _ in range(2):
            windows = Windows(WindowMemory(http, clock.now), tmp_path / PROBES_FILE)
            async with asyncio.TaskGroup() as group:  # many agents at once: one asks
                for _ in range(8):
                    group.create_task(windows.ask(endpoint))
            assert windows.of("m", endpoint) == Window(8_192)
        assert seen == ["/v1/models"]
        other = served(base_url, context_length=4_096)
        assert windows.of("m", other) == Window(8_192), "the server knows better than a table"
        clock.at += DAY_S
        assert windows.is_due(endpoint)


async def test_a_server_that_says_nothing_is_assumed_and_told_of_once(http: HttpClient, tmp_path: Path) -> None:
    file = tmp_path / PROBES_FILE
    async with ScriptedServer([says("a"), says("b"), says("c"), says("d")], models=("m",), window=None) as server:
        endpoint = served(server.base_url)
        told = []
        for _ in range(2):  # in two processes
            room = Room(make_model(endpoint, http), windows=Windows(WindowMemory(http), file))
            await room.ask()
            assert room.client.window == ASSUMED
            await room.ask()
            told += room.statuses("warning")
    assert len(told) == 1
    assert "128,000 tokens are assumed" in told[0]
    assert "model.context_length" in told[0]


async def test_a_first_request_does_not_wait_for_a_server_that_will_not_tell(http: HttpClient, tmp_path: Path) -> None:
    async with answering(v1__models=...) as silent, ScriptedServer([says("a")]) as server:
        model = make_model(served(server.base_url), http)
        memory = WindowMemory(http)
        windows = Windows(memory, tmp_path / PROBES_FILE)
        object.__setattr__(model, "endpoint", served(silent))  # the answer comes from one, its window from nobody
        room = Room(model, windows=windows)
        assert (await room.ask()).response.message.content == "a"
        assert not windows.is_due(served(silent)), "it is left alone for a while"
        assert room.client.window == ASSUMED


async def test_a_small_window_is_told_when_it_is_learnt(http: HttpClient, tmp_path: Path) -> None:
    async with ScriptedServer([says("a"), says("b"), says("c")], models=("m",), window=8_192) as server:
        model = make_model(served(server.base_url), http)
        room = Room(model, windows=Windows(WindowMemory(http), tmp_path / PROBES_FILE))
        for _ in range(3):
            await room.ask()
    (warning,) = room.statuses("warning")
    assert "reads 8,192 tokens" in warning
    assert len(server.looked_up) == 1


async def test_a_failed_call_is_told_as_itself_while_its_server_is_asked(http: HttpClient, tmp_path: Path) -> None:
    async with answering(v1__models=...) as base_url:
        model = make_model(served(base_url), http)
        room = Room(model, windows=Windows(WindowMemory(http), tmp_path / PROBES_FILE), max_attempts=1)
        with pytest.raises(ProviderError, match="404"):
            await room.ask()


@pytest.mark.parametrize(
    ("config", "asked", "context", "asks"),
    [
        ("", {"base_url": "http://127.0.0.1:1/v1", "name": "home-made"}, None, True),
        ("", {"base_url": "http://127.0.0.1:1/v1", "name": "llama-3.3-70b-instruct"}, 131_072, True),
        ("model: {context_length: 9000}", {"base_url": "http://127.0.0.1:1/v1", "name": "m"}, 9_000, False),
        ("", {"provider": "anthropic", "name": "claude-sonnet-4-5", "api_key": "k"}, 200_000, False),
        ("", {"provider": "openrouter", "name": "nobody/knows", "api_key": "k"}, None, True),
    ],
)
def test_who_is_asked(hermes_home: Path, config: str, asked: dict[str, Any], context: int | None, asks: bool) -> None:
    (hermes_home / "config.yaml").write_text(config, encoding="utf-8")
    endpoint = resolve(load_settings(), ModelQuery(**asked)).endpoint
    assert (endpoint.context_length, endpoint.asks_window) == (context, asks)


def test_a_window_that_a_refusal_named_belongs_to_that_model_alone() -> None:
    windows, one, other = Windows(), Endpoint(base_url="a", model="m"), Endpoint(base_url="b", model="m")
    windows.named("m", one, 9_000)
    assert (windows.of("m", one), windows.of("m", other), windows.of("m", None)) == (Window(9_000), ASSUMED, ASSUMED)


def test_a_file_that_is_damaged_is_as_none(http: HttpClient, tmp_path: Path) -> None:
    (tmp_path / PROBES_FILE).write_text('{"x m": {"window": "many"}}')
    assert Windows(WindowMemory(http), tmp_path / PROBES_FILE).of("m", served("x")) == ASSUMED
