"""The one client: a row per attempt, retries, keys, models that take over, caps; against the scripted server."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.models import stream_wait as waiting_module
from hermes.models.client import CallPlan
from hermes.models.http.client import HttpClient
from hermes.models.providers.credentials import Credential, CredentialPool
from hermes.models.providers.key_pool import PooledModel
from hermes.models.wires.transport import make_model
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.fakes import HandClock
from hermes.testing.replies import Reply, fault, says
from hermes.testing.server import RecordedRequest, ScriptedServer
from hermes.types import PrefixBroken
from tests.models.rooms import QUICK, Room, failing, scripted
from tests.models.wire_cases import CHAT, MESSAGES, WireCase, asked, every_wire

# -- retries -----------------------------------------------------------------------------------------------------


async def test_retry_after_is_waited_to_the_second(http: HttpClient) -> None:
    async with ScriptedServer([fault("rate_limit", retry_after=17), says("ok")]) as server:
        room = Room(CHAT.model(server, http))
        answer = await room.ask()
    assert answer.response.message.content == "ok"
    assert room.scope.slept == [17.0]
    assert [outcome for *_, outcome in room.rows()] == ["failed", "ok"]
    assert "in 17 s (1/3)" in room.statuses("retry")[0]


async def test_without_a_word_from_the_provider_waits_double_and_jitter_adds_half_at_most() -> None:
    for jitter, expected in ((0.0, [2.0, 4.0]), (1.0, [3.0, 6.0])):
        model = scripted("m", *[failing("server_error", retryable=True)] * 3)
        room = Room(model, jitter=lambda jitter=jitter: jitter)
        with pytest.raises(ProviderError, match="server_error"):
            await room.ask()
        assert room.scope.slept == expected
        assert [outcome for *_, outcome in room.rows()] == ["failed"] * 3


@every_wire
@pytest.mark.parametrize("name", ["server_error", "overloaded", "reset", "disconnect", "stall", "truncated_json"])
async def test_a_fault_before_words_is_retried(case: WireCase, http: HttpClient, name: str) -> None:
    broken = fault(name, after=0) if name == "truncated_json" else fault(name)
    async with ScriptedServer([broken, says("ok")]) as server:
        room = Room(case.model(server, http, limits=QUICK if name == "stall" else None))
        async with asyncio.timeout(20):
            answer = await room.ask()
    assert answer.response.message.content == "ok"
    assert [outcome for *_, outcome in room.rows()] == ["failed", "ok"]


@pytest.mark.parametrize("name", ["unauthorized", "no_credit", "model_not_found", "context_overflow", "policy_blocked"])
async def test_what_cannot_be_helped_is_not_asked_again(http: HttpClient, name: str) -> None:
    async with ScriptedServer([fault(name)]) as server:
        room = Room(CHAT.model(server, http))
        with pytest.raises(ProviderError):
            await room.ask()
    server.assert_finished()
    assert room.scope.slept == []


async def test_an_interrupted_wait_or_request_closes_its_row() -> None:
    model = scripted("m", fault("stall"))
    room = Room(model)
    scope = TurnScope()

    async def run() -> None:
        async with scope:
            await room.client.call(asked(), CallPlan(purpose="turn", session_id=None), scope)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(run())
        await model.stalled.wait()
        scope.cancel("stop")
    assert [outcome for *_, outcome in room.rows()] == ["cancelled"]


async def test_one_request_may_take_only_so_long() -> None:
    room = Room(scripted("m", fault("stall"), says("ok")), timeout_s=0.05)
    async with asyncio.timeout(10):
        answer = await room.ask()
    assert answer.response.message.content == "ok"
    assert [outcome for *_, outcome in room.rows()] == ["failed", "ok"]


async def test_the_time_of_a_request_is_that_of_its_own_model(http: HttpClient) -> None:
    async with ScriptedServer([fault("stall", after=1)]) as server, asyncio.timeout(10):
        endpoint = replace(CHAT.endpoint(server), timeout_s=0.05)
        room = Room(CHAT.make(endpoint, http), timeout_s=60.0, max_attempts=1)
        with pytest.raises(ProviderError, match=r"within 0\.05 s"):
            await room.ask()


async def test_what_broke_off_is_asked_again_as_often_as_is_set() -> None:
    for retries, expected in ((0, 1), (1, 2), (None, 3)):
        broken = failing("connection", retryable=True)
        room = Room(scripted("m", *[broken] * 3), stream_retries=retries)
        with pytest.raises(ProviderError, match="connection"):
            await room.ask()
        assert len(room.rows()) == expected
    room = Room(scripted("m", failing("server_error", retryable=True), says("ok")), stream_retries=0)
    assert (await room.ask()).response.message.content == "ok"


async def test_each_model_is_asked_for_what_it_may_write(http: HttpClient) -> None:
    async with ScriptedServer([fault("unauthorized"), says("ok")]) as server:
        one, two = (CHAT.make(replace(CHAT.endpoint(server), max_tokens=most), http) for most in (11, 22))
        await Room(one, two).ask()
    assert [got.json["max_tokens"] for got in server.requests] == [11, 22]


@pytest.mark.parametrize("name", ["reset", "blank"])
async def test_a_very_long_request_that_is_hung_up_on_is_too_long(http: HttpClient, name: str) -> None:
    """Also where another model could be asked: what is too long must become shorter, not go elsewhere."""
    broken = fault("reset") if name == "reset" else fault("refused", status=400, text="Error")
    async with ScriptedServer([broken] * 3) as server:
        endpoint = replace(CHAT.endpoint(server), context_length=1000)
        room = Room(CHAT.make(endpoint, http), scripted("two"))
        with pytest.raises(ProviderError) as error:
            await room.ask(asked("word " * 2000))
    assert error.value.reason == "context_overflow"
    assert len(room.rows()) == (3 if name == "reset" else 1)


async def test_a_person_is_told_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_module, "STILL_WAITING_S", 0.02)
    room = Room(scripted("m", fault("stall"), says("ok")), timeout_s=0.3)
    async with asyncio.timeout(10):
        await room.ask()
    assert any("nothing has come from m" in text for text in room.statuses("waiting"))


async def test_a_window_too_small_for_work_is_told_of_once(http: HttpClient) -> None:
    async with ScriptedServer([says("a"), says("b")]) as server:
        room = Room(CHAT.make(replace(CHAT.endpoint(server), context_length=8_192), http))
        await room.ask()
        await room.ask()
    (told,) = room.statuses("warning")
    assert "reads 8,192 tokens at most" in told


# -- other models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["auth", "billing", "model_not_found", "format_error", "timeout", "rate_limit"])
async def test_the_next_model_takes_over_and_the_user_is_told_which_and_why(reason: Any) -> None:
    error = failing(reason, retryable=reason in ("timeout", "rate_limit"))
    room = Room(scripted("one", error, says("back")), scripted("two", says("from two")))
    answer = await room.ask()
    assert (answer.model, answer.response.message.content) == ("two", "from two")
    assert room.scope.slept == []
    expected = f"one (one-provider) failed ({reason.replace('_', ' ')}); two (two-provider) answers instead"
    assert room.statuses("fallback") == [expected]
    assert PrefixBroken("model_switch") in room.told


async def test_the_turn_stays_with_the_second_model_and_the_next_begins_with_the_first() -> None:
    room = Room(scripted("one", failing("auth"), says("one again")), scripted("two", says("a"), says("b")))
    assert [(await room.ask()).model, (await room.ask()).model] == ["two", "two"]
    room.client.new_turn()
    assert (await room.ask()).model == "one"


async def test_after_a_rate_limit_the_first_model_is_left_alone_for_a_minute() -> None:
    room = Room(
        scripted("one", failing("rate_limit", retryable=True), says("one again")), scripted("two", says("a"), says("b"))
    )
    await room.ask()
    room.client.new_turn()
    assert (await room.ask()).model == "two"
    room.clock.at += 61
    room.client.new_turn()
    assert (await room.ask()).model == "one"


async def test_a_short_rate_limit_is_waited_out() -> None:
    room = Room(scripted("one", failing("rate_limit", retryable=True, retry_after_s=3), says("a")), scripted("two"))
    assert (await room.ask()).model == "one"
    assert room.scope.slept == [3]


async def test_what_no_model_could_take_is_not_handed_on() -> None:
    room = Room(scripted("one", failing("context_overflow")), scripted("two"))
    with pytest.raises(ProviderError, match="context_overflow"):
        await room.ask()


async def test_a_stalled_provider_is_left_at_its_limit(http: HttpClient) -> None:
    """The fallback is asked when the first-byte limit has passed once: no retries in between."""
    async with ScriptedServer([fault("stall")]) as one, ScriptedServer([says("two")]) as two, asyncio.timeout(15):
        room = Room(CHAT.model(one, http, limits=QUICK), MESSAGES.model(two, http))
        answer = await room.ask()
    assert answer.response.message.content == "two"
    assert [provider for _, provider, _ in room.rows()] == ["chat", "messages"]


# -- several keys ------------------------------------------------------------------------------------------------


def by_key(**replies: Callable[[], Reply]) -> Callable[[RecordedRequest], Reply]:
    return lambda got: replies[got.headers["authorization"].removeprefix("Bearer ")]()


def pooled(server: ScriptedServer, http: HttpClient, pool: CredentialPool) -> PooledModel:
    endpoint = CHAT.endpoint(server)
    return PooledModel(pool, lambda one: make_model(replace(endpoint, api_key=one.key), http))


def keys_used(server: ScriptedServer) -> list[str]:
    return [got.headers["authorization"].removeprefix("Bearer ") for got in server.requests]


async def test_an_empty_account_is_passed_over_at_once(http: HttpClient) -> None:
    script = by_key(a=lambda: fault("no_credit"), b=lambda: says("ok"))
    async with ScriptedServer(script) as server:
        room = Room(pooled(server, http, CredentialPool([Credential("a"), Credential("b")])))
        await room.ask()
        await room.ask()
        assert keys_used(server) == ["a", "b", "b"]
    assert room.scope.slept == []


async def test_a_rate_limited_key_gets_a_second_chance(http: HttpClient) -> None:
    script = by_key(a=lambda: fault("rate_limit", retry_after=1), b=lambda: says("ok"))
    async with ScriptedServer(script) as server:
        room = Room(pooled(server, http, CredentialPool([Credential("a"), Credential("b")])))
        await room.ask()
        assert keys_used(server) == ["a", "a", "b"]
    assert room.scope.slept == [1.0]


async def test_when_every_key_is_refused_the_next_model_takes_over(http: HttpClient) -> None:
    script = by_key(a=lambda: fault("unauthorized"), b=lambda: fault("unauthorized"))
    async with ScriptedServer(script) as server:
        pool = CredentialPool([Credential("a"), Credential("b")])
        room = Room(pooled(server, http, pool), scripted("two", says("from two")))
        assert (await room.ask()).model == "two"
        assert keys_used(server) == ["a", "b"]


def test_strategies_choose_among_the_keys_that_are_ready() -> None:
    clock = HandClock()
    three = [Credential("a"), Credential("b"), Credential("c")]
    fill = CredentialPool(three, clock=clock.now)
    assert [fill.pick().key for _ in range(3)] == ["a", "a", "a"]
    assert [CredentialPool(three, "round_robin").pick().key for _ in range(2)] == ["a", "a"]
    turns = CredentialPool(three, "round_robin")
    assert [turns.pick().key for _ in range(4)] == ["a", "b", "c", "a"]
    least = CredentialPool(three, "least_used")
    assert sorted(least.pick().key for _ in range(3)) == ["a", "b", "c"]
    assert fill.refused(three[0], failing("auth"))
    assert fill.pick().key == "b"
    clock.at += 301
    assert fill.pick().key == "a"


# -- mending -----------------------------------------------------------------------------------------------------


async def test_a_refusal_is_mended_once_and_costs_no_attempt() -> None:
    model = scripted("m", failing("tool_rejected", subject="read"), says("ok"))
    room = Room(model, max_attempts=1)
    lighter = ModelRequest(system="s", tools=(), units=asked().units)
    answer = await room.ask(repair=lambda _request, error: lighter if error.subject == "read" else None)
    assert answer.response.message.content == "ok"
    assert model.full_requests[1] == lighter


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens",
        "max_tokens is too large: 128000. This model supports at most 64000 completion tokens",
    ],
)
async def test_an_output_limit_that_the_provider_names_is_kept_from_then_on(text: str) -> None:
    model = scripted("m", ProviderError(text, reason="format_error", status=400), says("ok"), says("again"))
    room = Room(model, max_attempts=1)
    await room.ask(asked(max_tokens=128_000))
    await room.ask(asked(max_tokens=128_000))
    assert [request.options.max_tokens for request in model.full_requests] == [128_000, 64_000, 64_000]


async def test_what_cannot_be_mended_twice_is_an_error() -> None:
    refused = failing("image_rejected")
    room = Room(scripted("m", refused, refused), max_attempts=1)
    with pytest.raises(ProviderError, match="image_rejected"):
        await room.ask(repair=lambda request, _error: request)
    assert [outcome for *_, outcome in room.rows()] == ["failed", "failed"]
