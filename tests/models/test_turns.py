"""Whole turns through `AIAgent` against the scripted server: what a user sees when a provider misbehaves."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.errors import UserError
from hermes.host.turn_verdict import verdict_of, why_for
from hermes.models import client as client_module
from hermes.models.http.client import HttpClient
from hermes.state.sqlite.store import SqliteStore
from hermes.surfaces.cli.chat.turn_words import exit_code, words_for
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, calls_with, fault, says, thinks
from hermes.testing.server import ScriptedServer
from hermes.tools.registry import registry, tool_result
from hermes.types import PrefixBroken, StatusChanged
from tests.models.histories import PIXEL
from tests.models.wire_cases import WireCase, every_wire

MakeAgent = Callable[..., AIAgent]
MODES = {
    "chat": "chat_completions",
    "messages": "anthropic_messages",
    "responses": "codex_responses",
    "converse": "bedrock_converse",
}
PICTURE = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
]


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    made: list[AIAgent] = []

    def make(server: ScriptedServer, **keywords: Any) -> AIAgent:
        keywords = {"store": MemoryStore(), "model": "scripted", "base_url": server.base_url, **keywords}
        made.append(AIAgent(cwd=str(tmp_path), **keywords))
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are tested on their own; here they only take time."""
    monkeypatch.setattr(client_module, "BACKOFF_BASE_S", 0.0)


@pytest.fixture
def odd_tool() -> Iterator[None]:
    ran: list[dict[str, Any]] = []

    def odd(args: dict[str, Any], **_: Any) -> str:
        ran.append(args)
        return tool_result(ok=True)

    schema = {"name": "odd_tool", "description": "Odd.", "parameters": {"type": "object", "properties": {}}}
    registry.register(name="odd_tool", toolset="testing", schema=schema, handler=odd)
    yield
    registry.deregister("odd_tool")


def names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.json.get("tools", ())]


# -- quarantine --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("odd_tool")
async def test_a_refused_tool_is_left_out_now_and_in_later_turns(make_agent: MakeAgent, tmp_path: Path) -> None:
    store, sink = SqliteStore(tmp_path / "state.db"), MemorySink()
    script = [fault("bad_tool", tool="odd_tool"), says("Without it."), says("Still without.")]
    async with ScriptedServer(script) as server:
        first = await make_agent(server, store=store, session_id="s", sink=sink).arun_conversation("Go")
        second = await make_agent(server, store=store, session_id="s").arun_conversation("And?")
    await store.close()
    assert (first["final_response"], second["final_response"]) == ("Without it.", "Still without.")
    assert ["odd_tool" in names(request) for request in server.requests] == [True, False, False]
    assert [event for event in sink.events if isinstance(event, PrefixBroken)] == [PrefixBroken("quarantine")]
    assert any("'odd_tool' is left out" in e.message for e in sink.events if isinstance(e, StatusChanged))


async def test_a_refused_picture_is_left_out_for_good(make_agent: MakeAgent, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    script = [fault("bad_image"), says("I cannot see it."), says("Fine.")]
    async with ScriptedServer(script) as server:
        first = await make_agent(server, store=store, session_id="s").arun_conversation(PICTURE)
        second = await make_agent(server, store=store, session_id="s").arun_conversation("And now?")
    await store.close()
    assert (first["final_response"], second["final_response"]) == ("I cannot see it.", "Fine.")
    assert [PIXEL in request.raw.decode() for request in server.requests] == [True, False, False]
    assert first["messages"][0]["content"][1]["type"] == "image_url", "the transcript keeps what was said"


async def test_a_picture_refused_again_ends_in_one_sentence(make_agent: MakeAgent) -> None:
    async with ScriptedServer([fault("bad_image"), fault("bad_image")]) as server:
        result = await make_agent(server).arun_conversation(PICTURE)
    assert (result["failed"], result["error_reason"]) == (True, "image_rejected")


# -- streams, limits, windows ------------------------------------------------------------------------------------


async def test_a_stream_that_dies_after_words_is_kept_as_partial(make_agent: MakeAgent) -> None:
    words = "The first part arrives and then the line goes dead. " * 3
    async with ScriptedServer([says(words).failing("reset", after=6), says("Going on.")]) as server:
        agent = make_agent(server)
        result = await agent.arun_conversation("Tell me")
        again = await agent.arun_conversation("Go on")
    assert (result["partial"], result["turn_exit_reason"]) == (True, "partial_stream_recovery")
    assert words.startswith(result["final_response"])
    assert again["final_response"] == "Going on."
    sent = json.dumps(server.requests[1].json, ensure_ascii=False)
    assert result["final_response"].strip() in sent


async def test_what_broke_off_is_told_with_its_reason(make_agent: MakeAgent) -> None:
    async with ScriptedServer([says("Half an answer, and no more.").failing("disconnect", after=2)]) as server:
        result = await make_agent(server).arun_conversation("Tell me")
    assert result["error"].startswith("the connection to 'scripted' broke")
    code = exit_code(result)
    assert "say continue for the rest" in why_for(verdict_of(result), result)
    assert words_for(code, result).endswith(f"hermes chat --resume {result['session_id']} -q continue")


@every_wire
@pytest.mark.parametrize("absurd", [-1, 99999999999999999999999, 3.5, "many", True, [], {}, None])
async def test_tokens_that_cannot_be_counted_are_unknown_in_the_ledger(
    case: WireCase, make_agent: MakeAgent, tmp_path: Path, absurd: object
) -> None:
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "inputTokens", "outputTokens")
    details = {"cached_tokens": absurd, "reasoning_tokens": absurd}
    usage = {
        **dict.fromkeys((*names, "cacheReadInputTokens", "cache_read_input_tokens"), absurd),
        **dict.fromkeys(("prompt_tokens_details", "input_tokens_details", "output_tokens_details"), details),
    }
    store = SqliteStore(tmp_path / "state.db")
    reply = says("Fine.").failing("wrong_usage", usage=usage)
    async with ScriptedServer(lambda _: reply) as server:
        url = server.base_url if case.is_openai_style else server.url
        keywords = {"api_mode": MODES[case.name], "base_url": url, "provider": "custom", "api_key": "k"}
        result = await make_agent(server, store=store, **keywords).arun_conversation("Hi")
    assert (result["final_response"], result["completed"]) == ("Fine.", True)
    counts = store.read(lambda db: db.execute("SELECT output_tokens, cache_read_tokens FROM attempts").fetchall())
    await store.close()
    assert {tuple(row) for row in counts} == {(None, None)}


async def test_bytes_that_are_no_text_are_kept_as_far_as_they_can_be_read(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"gr\xfcn \xff"},"finish_reason":"stop"}]}\n\n'
    store = SqliteStore(tmp_path / "state.db")
    async with ScriptedServer(lambda _: Reply().failing("verbatim", body=event)) as server:
        result = await make_agent(server, store=store).arun_conversation("Hi")
    await store.close()
    assert (result["final_response"], result["completed"]) == ("gr\ufffdn \ufffd", True)


async def test_a_window_that_is_too_small_is_told_in_one_sentence(make_agent: MakeAgent) -> None:
    async with ScriptedServer([fault("context_overflow")]) as server:
        result = await make_agent(server).arun_conversation("Hi")
    assert (result["failed"], result["error_reason"]) == (True, "context_overflow")
    assert "start a new session, or choose a model with a larger one" in result["error"]


async def test_an_answer_cut_by_its_limit_is_continued(make_agent: MakeAgent) -> None:
    async with ScriptedServer([says("One, ").finishing("length"), says("two.")]) as server:
        result = await make_agent(server).arun_conversation("Count")
    assert result["final_response"] == "One, two."


# -- who answers -------------------------------------------------------------------------------------------------


async def test_the_fallback_answers_and_the_first_model_is_back_in_the_next_turn(make_agent: MakeAgent) -> None:
    sink = MemorySink()
    async with ScriptedServer([fault("unauthorized"), says("one")]) as one, ScriptedServer([says("two")]) as two:
        chain = [{"provider": "custom", "model": "second", "base_url": two.base_url}]
        agent = make_agent(one, fallback_model=chain, sink=sink)
        first = await agent.arun_conversation("Hi")
        second = await agent.arun_conversation("Hi")
    assert [(r["model"], r["final_response"]) for r in (first, second)] == [("second", "two"), ("scripted", "one")]
    told = [event.message for event in sink.events if isinstance(event, StatusChanged) and event.kind == "fallback"]
    assert told == ["scripted (custom) failed (auth, HTTP 401); second (custom) answers instead"]


async def test_an_answerless_model_hands_over(make_agent: MakeAgent) -> None:
    async with ScriptedServer([says("")] * 4) as one, ScriptedServer([says("two")]) as two:
        chain = {"provider": "custom", "model": "second", "base_url": two.base_url}
        result = await make_agent(one, fallback_model=chain).arun_conversation("Hi")
    assert (result["final_response"], result["model"]) == ("two", "second")


async def test_keys_given_by_keyword_are_used_in_turn(make_agent: MakeAgent) -> None:
    def reply(got: Any) -> Any:
        return says("ok") if got.headers["authorization"] == "Bearer k2" else fault("no_credit")

    async with ScriptedServer(reply) as server:
        result = await make_agent(server, credential_pool=["k1", {"api_key": "k2"}]).arun_conversation("Hi")
    assert result["final_response"] == "ok"


# -- keywords ----------------------------------------------------------------------------------------------------


async def body_of(make_agent: MakeAgent, **keywords: Any) -> Any:
    async with ScriptedServer([says("ok")]) as server:
        await make_agent(server, **keywords).arun_conversation("Hi")
    return server.requests[0].json


async def test_routing_reaches_an_aggregator(make_agent: MakeAgent, hermes_home: Path) -> None:
    async with ScriptedServer([says("ok")]) as server:
        (hermes_home / "config.yaml").write_text(f"providers: {{openrouter: {{base_url: '{server.base_url}'}}}}\n")
        agent = make_agent(
            server,
            base_url=None,
            provider="openrouter",
            providers_allowed=["a", "b"],
            providers_ignored=["c"],
            providers_order=["b"],
            provider_sort="price",
            provider_require_parameters=True,
            provider_data_collection="deny",
            openrouter_min_coding_score=0.7,
        )
        await agent.arun_conversation("Hi")
    body = server.requests[0].json
    assert body["provider"] == {
        "only": ["a", "b"],
        "ignore": ["c"],
        "order": ["b"],
        "sort": "price",
        "require_parameters": True,
        "data_collection": "deny",
    }
    assert body["plugins"] == [{"id": "pareto-router", "min_coding_score": 0.7}]


async def test_routing_without_an_aggregator_is_refused(make_agent: MakeAgent) -> None:
    async with ScriptedServer() as server:
        with pytest.raises(UserError, match="is no aggregator"):
            await make_agent(server, providers_allowed=["a"]).arun_conversation("Hi")


async def test_request_keywords_reach_the_provider(make_agent: MakeAgent) -> None:
    body = await body_of(
        make_agent,
        max_tokens=77,
        service_tier="flex",
        reasoning_config={"enabled": True, "effort": "low"},
        request_overrides={"temperature": 0.1, "max_tokens": 78},
        ephemeral_system_prompt="Only now.",
        prefill_messages=[{"role": "user", "content": "before"}, {"role": "assistant", "content": "after"}],
    )
    assert (body["max_tokens"], body["service_tier"], body["reasoning_effort"]) == (78, "flex", "low")
    assert body["temperature"] == 0.1
    system, *rest = body["messages"]
    assert system["content"].endswith("Only now.")
    assert [(m["role"], m["content"]) for m in rest] == [("user", "before"), ("assistant", "after"), ("user", "Hi")]


async def test_a_single_model_has_its_own_effort_and_keywords_win(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text(
        "agent: {reasoning_effort: low, reasoning_overrides: {deep: high, scripted: minimal}}\n"
    )
    assert (await body_of(make_agent))["reasoning_effort"] == "minimal"
    assert (await body_of(make_agent, model="deep"))["reasoning_effort"] == "high"
    assert (await body_of(make_agent, model="other"))["reasoning_effort"] == "low"
    assert (await body_of(make_agent, reasoning_config={"effort": "xhigh"}))["reasoning_effort"] == "xhigh"


async def test_the_older_name_of_the_fallback_still_works(make_agent: MakeAgent, hermes_home: Path) -> None:
    async with ScriptedServer([fault("unauthorized")]) as one, ScriptedServer([says("two")]) as two:
        entry = f"{{provider: custom, model: second, base_url: '{two.base_url}'}}"
        (hermes_home / "config.yaml").write_text(f"fallback_model: {entry}\n")
        result = await make_agent(one).arun_conversation("Hi")
    assert (result["final_response"], result["model"]) == ("two", "second")


async def test_the_ephemeral_prompt_is_not_stored(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    await body_of(make_agent, store=store, session_id="s", ephemeral_system_prompt="Only now.")
    assert "Only now." not in store.columns("s")["system_prompt"]


async def test_overrides_cannot_replace_the_conversation(make_agent: MakeAgent) -> None:
    async with ScriptedServer() as server:
        with pytest.raises(UserError, match="cannot replace 'messages'"):
            await make_agent(server, request_overrides={"messages": []}).arun_conversation("Hi")


@pytest.mark.parametrize(
    ("mode", "path"),
    [("anthropic_messages", "/v1/messages"), ("codex_responses", "/v1/responses")],
)
async def test_api_mode_chooses_the_protocol(make_agent: MakeAgent, mode: str, path: str) -> None:
    async with ScriptedServer([thinks("hm") + calls("todo"), says("ok")]) as server:
        result = await make_agent(server, api_mode=mode).arun_conversation("Hi")
    server.assert_finished()
    assert result["final_response"] == "ok"
    assert {request.path for request in server.requests} == {path}


# -- caps --------------------------------------------------------------------------------------------------------


async def test_a_looping_turn_stops_at_its_dollar(make_agent: MakeAgent, hermes_home: Path, tmp_path: Path) -> None:

    def again(got: Any) -> Any:
        turn = len(got.json["messages"])
        return calls("todo", todos=[{"id": str(turn), "content": "x", "status": "pending"}]).with_usage(
            input_tokens=5, output_tokens=1
        )

    store = SqliteStore(tmp_path / "state.db")
    async with ScriptedServer(again) as server:
        mine = {"base_url": server.base_url, "prices": {"scripted": {"input": 0, "output": 70000}}}
        config = {"spending": {"session_usd": 1.0}, "providers": {"mine": mine}}
        (hermes_home / "config.yaml").write_text(json.dumps(config))
        agent = make_agent(server, base_url=None, provider="mine", store=store, session_id="s")
        result = await agent.arun_conversation("Loop")
        more = await agent.arun_conversation("Again")
    spent = store.read(lambda conn: conn.execute("SELECT sum(cost_usd), count(*) FROM attempts").fetchone())
    await store.close()
    assert result["turn_exit_reason"] == "spend_cap_reached"
    assert "the cap of this session is reached" in result["error"]
    assert (more["turn_exit_reason"], more["api_calls"]) == ("spend_cap_reached", 1)
    assert spent == (pytest.approx(1.05), 15)


# -- malformed answers -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("odd_tool")
async def test_calls_cut_by_the_limit_are_never_run(make_agent: MakeAgent) -> None:
    cut = calls_with("odd_tool", "").finishing("length")
    async with ScriptedServer([cut, cut]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert (result["partial"], result["turn_exit_reason"]) == (True, "truncated_tool_call")
    assert "split large content over several calls" in json.dumps(server.requests[1].json)
    assert not any(message["role"] == "tool" for message in result["messages"])


async def test_a_model_that_invents_tools_is_stopped(make_agent: MakeAgent) -> None:
    async with ScriptedServer([calls(f"wish_{n}") for n in range(3)]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert (result["partial"], result["turn_exit_reason"]) == (True, "invalid_tool_calls")
    told = [m["content"] for m in result["messages"] if m["role"] == "tool"]
    assert len(told) == 3
    assert all("does not exist" in text or "nknown tool" in text for text in told)


def results_of(result: dict[str, Any]) -> list[str]:
    return [message["content"] for message in result["messages"] if message["role"] == "tool"]


@pytest.mark.usefixtures("odd_tool")
@pytest.mark.parametrize("written", ["Odd_Tool", "odd-tool", "odd tool", "OddTool", "odd_tool_tool", "od_tool"])
async def test_a_tool_name_that_is_almost_right_is_repaired(make_agent: MakeAgent, written: str) -> None:
    async with ScriptedServer([calls(written), says("done")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert (result["final_response"], json.loads(results_of(result)[0])) == ("done", {"ok": True})


@pytest.mark.usefixtures("odd_tool")
async def test_of_a_batch_the_known_tools_run_and_the_others_are_explained(make_agent: MakeAgent) -> None:
    async with ScriptedServer([calls("odd_tool") + calls("wish") + calls_with("", "{}"), says("done")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    known, unknown, blank = results_of(result)
    assert json.loads(known) == {"ok": True}
    assert "odd_tool" in unknown, "the names that exist are listed"
    assert len(blank) < len(unknown), "a call without a name gets a short answer"
    assert result["final_response"] == "done"


@pytest.mark.usefixtures("odd_tool")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"path": "a', "cut off after 11 characters"),
        ('{"path": }', "not valid JSON"),
        ("[1]", "must be a JSON object"),
    ],
)
async def test_broken_arguments_are_told_to_the_model_and_never_run(
    make_agent: MakeAgent, arguments: str, words: str
) -> None:
    async with ScriptedServer([calls_with("odd_tool", arguments), says("done")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    (told,) = results_of(result)
    assert words in told
    assert "nothing was run" in told
    assert result["final_response"] == "done"


@pytest.mark.usefixtures("odd_tool")
async def test_empty_arguments_of_a_finished_call_are_no_arguments(make_agent: MakeAgent) -> None:
    async with ScriptedServer([calls_with("odd_tool", ""), says("done")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert json.loads(results_of(result)[0]) == {"ok": True}


@pytest.mark.usefixtures("odd_tool")
async def test_the_same_call_twice_in_one_answer_is_one(make_agent: MakeAgent) -> None:
    async with ScriptedServer([calls("odd_tool", a=1) + calls("odd_tool", a=1), says("done")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert len(results_of(result)) == 1


async def test_an_answer_that_is_cut_again_and_again_ends_partial(make_agent: MakeAgent) -> None:
    async with ScriptedServer([says(f"{n} ").finishing("length") for n in range(4)]) as server:
        result = await make_agent(server).arun_conversation("Count")
    assert (result["final_response"], result["partial"]) == ("0 1 2 3 ", True)


async def test_an_incomplete_response_is_continued_three_times(make_agent: MakeAgent) -> None:
    cut = [says(f"{n} ").finishing("incomplete") for n in range(3)]
    async with ScriptedServer([*cut, says("end")]) as server:
        agent = make_agent(server, api_mode="codex_responses")
        result = await agent.arun_conversation("Count")
    assert (result["final_response"], result["completed"]) == ("0 1 2 end", True)


@pytest.mark.parametrize("reply", [says("<think>and so on"), thinks("and so on")], ids=["unclosed tag", "field"])
async def test_thoughts_without_an_answer_are_asked_again(make_agent: MakeAgent, reply: Reply) -> None:
    async with ScriptedServer([reply, reply, says("The answer.")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert (result["final_response"], result["completed"]) == ("The answer.", True)


async def test_silence_after_housekeeping_leaves_what_was_said_beside_it(make_agent: MakeAgent) -> None:
    aside = says("All is noted.") + calls("todo", todos=[])
    async with ScriptedServer([aside, says("")]) as server:
        result = await make_agent(server).arun_conversation("Note it")
    assert (result["final_response"], result["turn_exit_reason"]) == ("All is noted.", "fallback_prior_turn_content")


@pytest.mark.usefixtures("odd_tool")
async def test_silence_after_tools_is_nudged_then_retried_then_handed_on(make_agent: MakeAgent) -> None:
    async with ScriptedServer([calls("odd_tool"), *[says("")] * 5]) as one, ScriptedServer([says("from two")]) as two:
        chain = [{"provider": "custom", "model": "two", "base_url": two.base_url}]
        result = await make_agent(one, fallback_model=chain).arun_conversation("Go")
        one.assert_finished()
    assert (result["final_response"], result["model"]) == ("from two", "two")
    assert "Your last answer was empty" in json.dumps(one.requests[2].json)
    assert "Your last answer was empty" not in json.dumps(result["messages"])


async def test_thinking_in_the_text_is_not_the_answer(make_agent: MakeAgent) -> None:
    async with ScriptedServer([says("<think>hm</think>\nThe answer.")]) as server:
        result = await make_agent(server).arun_conversation("Go")
    assert (result["final_response"], result["last_reasoning"]) == ("The answer.", "hm")


async def test_a_scripted_model_object_still_works(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        agent = AIAgent(model=ScriptedModel(says("hi")), store=MemoryStore(), cwd=str(tmp_path))
        assert (await agent.arun_conversation("x"))["final_response"] == "hi"
        await agent.aclose()


# -- a prompt that is too long -------------------------------------------------------------------------------------


@every_wire
@pytest.mark.parametrize("name", ["context_overflow", "too_large"])
async def test_a_prompt_that_is_too_long_is_summed_up_and_asked_again(
    case: WireCase, name: str, http: HttpClient, tmp_path: Path
) -> None:
    store, notes = SqliteStore(tmp_path / "state.db"), says("## Active Task\nmany questions")
    script = [*(says("an answer " + "v" * 900) for _ in range(6)), fault(name), notes, says("Now it fits.")]
    async with ScriptedServer(script) as server:
        agent = AIAgent(model=case.model(server, http), store=store, session_id="s", cwd=str(tmp_path))
        for number in range(6):
            await agent.arun_conversation(f"question {number} " + "w" * 900)
        result = await agent.arun_conversation("the last question")
        bodies = [json.dumps(request.json) for request in server.requests]
        await agent.aclose()
    await store.close()
    assert (result["final_response"], result["completed"]) == ("Now it fits.", True)
    assert result["session_id"] == agent.session_id != "s"
    assert len(bodies) == len(script), "one request was refused, one asked for the summary, one was answered"
    assert len(bodies[-1]) < len(bodies[-3])
    assert "many questions" in bodies[-1]
    assert "the last question" in bodies[-1]
    assert server.mistakes == []
