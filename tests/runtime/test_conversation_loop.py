"""A turn, entered where a user enters: through `AIAgent`, with a scripted model and everything else real."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.errors import ProviderError, StoreError, UserError
from hermes.ops import AttemptClosed, AttemptOpened, CallJournalled, ContextAttached, MessageAppended
from hermes.runtime.conversation_loop import NO_SUMMARY, SUM_UP
from hermes.runtime.guardrails import IterationBudget
from hermes.runtime.requests import OUTCOME_UNKNOWN
from hermes.runtime.steps import NUDGE
from hermes.seams import Effects
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, calls_with, fault, says, thinks
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import Event, Message, StatusChanged, ToolCall, TurnFinished, text_of

MakeAgent = Callable[..., AIAgent]


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    """Agents in a scratch workspace, closed at the end."""
    made: list[AIAgent] = []

    def make(*script: Any, store: MemoryStore | None = None, **keywords: Any) -> AIAgent:
        model = script[0] if len(script) == 1 and isinstance(script[0], ScriptedModel) else ScriptedModel(*script)
        agent = AIAgent(model=model, store=store or MemoryStore(), cwd=str(tmp_path), **keywords)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        await agent.aclose()


@pytest.fixture
def echo_tool() -> Any:
    """A tool that answers with what it was given, or fails when told to."""

    def echo(args: dict[str, Any], **_: Any) -> str:
        if args["text"] == "boom":
            raise ValueError("boom")
        return tool_result(echoed=args["text"])

    schema = {
        "name": "echo",
        "description": "Give back the text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    harmless = Traits(effects=lambda _args, _ctx: Effects())
    registry.register(name="echo", toolset="testing", schema=schema, handler=echo, traits=harmless)
    yield
    registry.deregister("echo")


async def test_a_question_is_answered_and_stored_in_two_commits(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(says("Hello there."))
    result = await make_agent(model, store=store, session_id="s1").arun_conversation("Hi")

    assert result["final_response"] == "Hello there."
    assert (result["completed"], result["turn_exit_reason"]) == (True, "text_response(finish_reason=stop)")
    assert [(m["role"], m["content"]) for m in result["messages"]] == [("user", "Hi"), ("assistant", "Hello there.")]
    kinds = [[type(op).__name__ for op in commit] for commit in store.commits]
    assert kinds == [
        ["SessionCreated", "LeaseTaken", "MessageAppended", "AttemptOpened"],
        ["AttemptClosed", "MessageAppended", "LeaseReleased"],
    ]
    model.assert_finished()


@pytest.mark.usefixtures("echo_tool")
async def test_a_tool_round_takes_two_commits_and_the_model_sees_the_result(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(says("Let me look.") + calls("echo", text="a") + calls("echo", text="b"), says("Done."))
    result = await make_agent(model, store=store).arun_conversation("Go")

    assert result["final_response"] == "Done."
    answers = [m for m in model.requests[1] if m.role == "tool"]
    assert [json.loads(text_of(m.content)) for m in answers] == [{"echoed": "a"}, {"echoed": "b"}]
    kinds = [[type(op).__name__ for op in commit] for commit in store.commits]
    assert kinds == [
        ["SessionCreated", "LeaseTaken", "MessageAppended", "AttemptOpened"],
        ["LeaseHeld", "AttemptClosed", "MessageAppended", "CallJournalled", "CallJournalled"],
        ["LeaseHeld", "MessageAppended", "CallClosed", "MessageAppended", "CallClosed", "AttemptOpened"],
        ["AttemptClosed", "MessageAppended", "LeaseReleased"],
    ]
    assert result["api_calls"] == 2


@pytest.mark.usefixtures("echo_tool")
async def test_a_handler_that_raises_is_told_to_the_model_and_the_turn_goes_on(make_agent: MakeAgent) -> None:
    model = ScriptedModel(calls("echo", text="boom"), says("It failed."))
    result = await make_agent(model).arun_conversation("Go")
    assert result["final_response"] == "It failed."
    assert "Tool execution failed: ValueError: boom" in text_of(model.requests[1][-1].content)
    assert [call["name"] for call in result["failed_calls"]] == ["echo"]


async def test_each_request_begins_with_the_one_before(make_agent: MakeAgent) -> None:
    model = ScriptedModel(*(says(f"answer {n}") for n in range(5)))
    agent = make_agent(model)
    for n in range(5):
        await agent.arun_conversation(f"question {n}")
    for before, after in zip(model.full_requests, model.full_requests[1:], strict=False):
        assert after.system == before.system
        assert after.tools == before.tools
        assert [u.messages for u in after.units][: len(before.units)] == [u.messages for u in before.units]


async def test_another_process_sends_the_same_prefix(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    first = ScriptedModel(says("one"))
    await make_agent(first, store=store, session_id="s").arun_conversation("a")
    second = ScriptedModel(says("two"))
    cold = make_agent(second, store=store, session_id="s")
    (await cold._assembled()).warm.take(store, "s")  # as in a new process
    await cold.arun_conversation("b")
    assert second.full_requests[0].system == first.full_requests[0].system
    assert second.full_requests[0].tools == first.full_requests[0].tools
    assert [text_of(m.content) for m in second.requests[0]] == ["a", "one", "b"]


async def test_a_started_call_without_a_result_is_told_once_and_never_run_again(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    await make_agent(says("ready"), store=store, session_id="s").arun_conversation("hello")
    call = ToolCall("c9", "terminal", '{"command": "rm x"}')
    await store.commit(
        MessageAppended("s", Message(role="user", content="go")),
        MessageAppended("s", Message(role="assistant", tool_calls=(call,))),
        CallJournalled("s", call),
    )
    model = ScriptedModel(says("I will check."), says("again"))
    agent = make_agent(model, store=store, session_id="s")
    await agent.arun_conversation("what happened?")
    await agent.arun_conversation("and now?")
    told = [m for m in model.requests[1] if text_of(m.content) == OUTCOME_UNKNOWN]
    assert [(m.tool_call_id, m.status) for m in told] == [("c9", "unknown")]
    record = await store.load("s")
    assert record is not None
    assert record.open_calls == ()


@pytest.mark.usefixtures("echo_tool")
async def test_at_the_limit_there_is_one_more_call_without_tools(make_agent: MakeAgent) -> None:
    model = ScriptedModel(*(calls("echo", text=str(n)) for n in range(3)), says("So far so good."))
    result = await make_agent(model, max_iterations=3).arun_conversation("Go")
    assert result["turn_exit_reason"] == "max_iterations_reached(3/3)"
    assert (result["api_calls"], result["completed"]) == (3, False)
    assert result["final_response"] == "So far so good."
    last = model.full_requests[-1]
    assert last.tools == ()
    assert last.units[-1].context.endswith(SUM_UP)


@pytest.mark.usefixtures("echo_tool")
async def test_a_summary_that_calls_tools_is_an_apology(make_agent: MakeAgent) -> None:
    model = ScriptedModel(calls("echo", text="1"), calls("echo", text="2"))
    result = await make_agent(model, max_iterations=1).arun_conversation("Go")
    assert result["final_response"] == NO_SUMMARY


@pytest.mark.usefixtures("echo_tool")
async def test_a_shared_budget_is_consumed_by_all_who_share_it(make_agent: MakeAgent) -> None:
    budget = IterationBudget(3)
    one = make_agent(calls("echo", text="1"), says("ok"), iteration_budget=budget)
    two = make_agent(calls("echo", text="1"), says("summed up"), iteration_budget=budget)
    assert (await one.arun_conversation("Go"))["completed"]
    result = await two.arun_conversation("Go")
    assert result["turn_exit_reason"].startswith("max_iterations_reached")
    assert budget.remaining == 0


@pytest.mark.usefixtures("echo_tool")
async def test_an_empty_answer_after_tools_is_nudged_once_and_leaves_no_trace(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(calls("echo", text="1"), says(""), says("Here it is."))
    result = await make_agent(model, store=store).arun_conversation("Go")
    assert result["final_response"] == "Here it is."
    assert [m["role"] for m in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert model.full_requests[2].units[-1].context == NUDGE
    assert any(isinstance(op, ContextAttached) for commit in store.commits for op in commit)


async def test_nothing_but_silence_ends_with_its_reason(make_agent: MakeAgent) -> None:
    result = await make_agent(*(says("") for _ in range(4))).arun_conversation("Go")
    assert (result["turn_exit_reason"], result["final_response"]) == ("empty_response_exhausted", "(empty)")
    assert result["completed"] is False


async def test_an_answer_cut_by_the_output_limit_is_continued(make_agent: MakeAgent) -> None:
    model = ScriptedModel(says("one, ").finishing("length"), says("two, ").finishing("length"), says("three"))
    result = await make_agent(model).arun_conversation("Count")
    assert result["final_response"] == "one, two, three"


async def test_a_provider_that_fails_is_retried_and_each_attempt_is_in_the_ledger(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    sink = MemorySink()
    wait = ProviderError("busy", reason="rate_limit", retryable=True, retry_after_s=0.0)
    result = await make_agent(wait, wait, says("ok"), store=store, sink=sink).arun_conversation("Hi")
    assert result["final_response"] == "ok"
    assert [closed.outcome for _, closed in store.attempts.values() if closed] == ["failed", "failed", "ok"]
    assert [event.kind for event in sink.events if isinstance(event, StatusChanged)] == ["retry", "retry"]


async def test_a_provider_that_refuses_ends_the_turn_with_its_sentence(make_agent: MakeAgent) -> None:
    error = ProviderError("'m' answered (HTTP 401): bad key", reason="auth")
    result = await make_agent(error).arun_conversation("Hi")
    assert (result["failed"], result["error"]) == (True, "'m' answered (HTTP 401): bad key")
    assert result["turn_exit_reason"] == "all_retries_exhausted_no_response"
    assert (result["model"], result["provider"]) == ("scripted", "testing")
    assert [m["role"] for m in result["messages"]] == ["user"]


async def test_without_a_durable_record_the_turn_fails_visibly(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    store.fail_next(StoreError("the disk is full"))
    result = await make_agent(says("never asked"), store=store).arun_conversation("Hi")
    assert (result["failed"], result["error"]) == (True, "the disk is full")
    assert store.commits == []


async def interrupted_while(agent: AIAgent, waiting: Awaitable[object], message: str = "stop") -> dict[str, Any]:
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("Go"))
        await asyncio.wait_for(waiting, 5)
        agent.interrupt(message)
    return turn.result()


async def test_interrupt_during_the_model_call_ends_the_turn(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(fault("stall"), says("next"))
    agent = make_agent(model, store=store)
    result = await interrupted_while(agent, model.stalled.wait())
    assert (result["interrupted"], result["turn_exit_reason"]) == (True, "interrupted_by_user")
    assert result["interrupt_message"] == "stop"
    assert [closed.outcome for _, closed in store.attempts.values() if closed] == ["cancelled"]
    assert (await agent.arun_conversation("again"))["final_response"] == "next"


async def test_interrupt_during_a_retry_wait_ends_the_turn(make_agent: MakeAgent) -> None:
    sleeping = asyncio.Event()

    class Waiting(MemorySink):
        def emit(self, event: Event) -> None:
            if isinstance(event, StatusChanged):
                sleeping.set()

    error = ProviderError("busy", reason="rate_limit", retryable=True, retry_after_s=300)
    agent = make_agent(error, says("next"), sink=Waiting())
    result = await interrupted_while(agent, sleeping.wait())
    assert result["turn_exit_reason"] == "interrupted_by_user"
    assert (await agent.arun_conversation("again"))["final_response"] == "next"


async def test_interrupt_during_a_tool_answers_every_call_of_the_batch(make_agent: MakeAgent) -> None:
    running = asyncio.Event()

    async def slow(args: dict[str, Any], **_: Any) -> str:
        running.set()
        await asyncio.Event().wait()
        return "{}"

    schema = {
        "name": "slow",
        "description": "",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    registry.register(name="slow", toolset="testing", schema=schema, handler=slow, is_async=True)
    try:
        store = MemoryStore()
        model = ScriptedModel(calls("slow", n=1) + calls("slow", n=2), says("next"))
        agent = make_agent(model, store=store, session_id="s")
        result = await interrupted_while(agent, running.wait())
        assert result["interrupted"]
        tools = [m for m in result["messages"] if m["role"] == "tool"]
        assert [m["status"] for m in tools] == ["unknown", "cancelled"]
        assert tools[1]["content"] == "[Tool execution cancelled — slow was skipped due to user interrupt]"
        record = await store.load("s")
        assert record is not None
        assert record.open_calls == ()
        assert (await agent.arun_conversation("again"))["final_response"] == "next"
    finally:
        registry.deregister("slow")


async def test_an_interrupt_after_the_end_does_not_touch_the_next_turn(make_agent: MakeAgent) -> None:
    agent = make_agent(says("one"), says("two"))
    await agent.arun_conversation("a")
    agent.interrupt("too late")
    assert (await agent.arun_conversation("b"))["final_response"] == "two"


async def test_steering_reaches_the_model_with_the_last_result(make_agent: MakeAgent) -> None:
    box: list[AIAgent] = []

    def look(args: dict[str, Any], **_: Any) -> str:
        assert box[0].steer("use the other file")
        return tool_result(seen=True)

    schema = {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}
    registry.register(name="look", toolset="testing", schema=schema, handler=look)
    try:
        model = ScriptedModel(calls("look"), says("ok"))
        box.append(make_agent(model))
        result = await box[0].arun_conversation("Go")
    finally:
        registry.deregister("look")
    told = json.loads(text_of(model.requests[1][-1].content))
    assert told["_user"] == "[The user says meanwhile: use the other file]"
    assert "pending_steer" not in result
    assert box[0].steer("nobody listens") is False


async def test_history_given_by_the_caller_is_the_history_and_is_stored_once(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    given = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older"}]
    model = ScriptedModel(says("1"), says("2"))
    agent = make_agent(model, store=store, session_id="s")
    first = await agent.arun_conversation("a", conversation_history=given)
    await agent.arun_conversation("b", conversation_history=first["messages"])
    assert [text_of(m.content) for m in model.requests[1]] == ["old", "older", "a", "1", "b"]
    record = await store.load("s")
    assert record is not None
    assert [text_of(m.content) for m in record.messages] == ["old", "older", "a", "1", "b", "2"]
    assert given == [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older"}]


async def test_what_is_stored_of_the_user_message_may_differ_from_what_is_sent(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(says("ok"))
    agent = make_agent(model, store=store, session_id="s")
    result = await agent.arun_conversation("long expanded text", persist_user_message="/short")
    assert text_of(model.requests[0][0].content) == "long expanded text"
    assert result["messages"][0]["content"] == "/short"


@pytest.mark.parametrize("history", ["old", [None], [{"role": "user", "content": "old"}, 3]])
async def test_history_that_is_no_list_of_messages_is_refused(make_agent: MakeAgent, history: Any) -> None:
    agent = make_agent(ScriptedModel())
    with pytest.raises(UserError, match="conversation_history is a list of messages"):
        await agent.arun_conversation("a", conversation_history=history)


async def test_lone_surrogates_and_nuls_are_taken(make_agent: MakeAgent) -> None:
    result = await make_agent(says("ok")).arun_conversation("a\ud800b\x00c")
    assert result["final_response"] == "ok"


async def test_reasoning_is_kept_and_returned(make_agent: MakeAgent) -> None:
    result = await make_agent(thinks("hmm") + says("ok")).arun_conversation("Hi")
    assert result["last_reasoning"] == "hmm"
    assert result["messages"][-1]["reasoning"] == "hmm"


@pytest.mark.usefixtures("echo_tool")
async def test_repeated_ids_and_doubled_calls_are_told_apart(make_agent: MakeAgent) -> None:
    same = calls_with("echo", '{"text": "x"}', call_id="c")
    model = ScriptedModel(same + same, calls_with("echo", '{"text": "y"}', call_id="c"), says("ok"))
    result = await make_agent(model).arun_conversation("Go")
    ids = [call["id"] for m in result["messages"] for call in m.get("tool_calls", ())]
    assert len(ids) == len(set(ids)) == 2


async def test_the_turn_ends_with_a_record(make_agent: MakeAgent) -> None:
    sink = MemorySink()
    await make_agent(says("ok"), sink=sink).arun_conversation("Hi")
    last = sink.events[-1]
    assert isinstance(last, TurnFinished)
    assert (last.completed, last.api_calls) == (True, 1)


async def test_totals_add_up_over_turns(make_agent: MakeAgent) -> None:
    agent = make_agent(
        says("a").with_usage(input_tokens=7, output_tokens=3), says("b").with_usage(input_tokens=5, output_tokens=2)
    )
    await agent.arun_conversation("1")
    result = await agent.arun_conversation("2")
    assert (result["input_tokens"], result["output_tokens"], result["total_tokens"]) == (12, 5, 17)
    assert (result["estimated_cost_usd"], result["cost_status"]) == (None, "unknown")


async def test_two_turns_at_once_are_refused(make_agent: MakeAgent) -> None:
    model = ScriptedModel(fault("stall"))
    agent = make_agent(model)
    async with asyncio.TaskGroup() as group:
        group.create_task(agent.arun_conversation("a"))
        await asyncio.wait_for(model.stalled.wait(), 5)
        with pytest.raises(UserError, match="already running"):
            await agent.arun_conversation("b")
        agent.interrupt()


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'max_iterations'"):
        AIAgent(max_iteration=3)  # type: ignore[call-arg]  # a slip of the pen


def test_sync_callbacks_run_in_the_calling_thread_in_order(tmp_path: Path) -> None:
    seen: list[tuple[str, Any, int]] = []

    def note(kind: str) -> Callable[..., None]:
        return lambda *args, **_: seen.append((kind, args[0], threading.get_ident()))

    agent = AIAgent(
        model=ScriptedModel(calls("todo"), says("done")),
        store=MemoryStore(),
        cwd=str(tmp_path),
        step_callback=note("step"),
        stream_delta_callback=note("delta"),
        tool_start_callback=note("start"),
        tool_complete_callback=note("complete"),
        tool_progress_callback=note("progress"),
        tool_gen_callback=note("gen"),
    )
    assert agent.chat("Go") == "done"
    agent.close()
    assert [(kind, value) for kind, value, _ in seen] == [
        ("step", 1),
        ("gen", "todo"),
        ("delta", None),
        ("progress", "tool.started"),
        ("start", "call_1_0"),
        ("progress", "tool.completed"),
        ("complete", "call_1_0"),
        ("step", 2),
        ("delta", "\n\ndone"),
    ]
    assert {thread for _, _, thread in seen} == {threading.get_ident()}


@pytest.mark.usefixtures("echo_tool")
async def test_calls_beyond_the_limit_are_answered_unrun_and_told(make_agent: MakeAgent) -> None:
    store, sink = MemoryStore(), MemorySink()
    model = ScriptedModel(sum((calls("echo", text=str(n)) for n in range(1, 200)), calls("echo", text="0")), says("ok"))
    result = await make_agent(model, store=store, sink=sink, session_id="s").arun_conversation("Go")

    answers = [text_of(m.content) for m in model.requests[1] if m.role == "tool"]
    assert [json.loads(answer)["echoed"] for answer in answers[:128]] == [str(n) for n in range(128)]
    assert set(answers[128:]) == {
        "[not run: one message may make 128 calls, and this came after them; ask again for what you still need]"
    }
    assert (len(answers), result["final_response"]) == (200, "ok")
    assert sum(isinstance(op, CallJournalled) for commit in store.commits for op in commit) == 128
    told = [event.message for event in sink.events if isinstance(event, StatusChanged)]
    assert told == ["the model asked for 200 tool calls at once; the first 128 are run, the others are not"]
    cold = make_agent(later := ScriptedModel(says("yes")), store=store, session_id="s")
    (await cold._assembled()).warm.take(store, "s")  # as in a new process
    await cold.arun_conversation("And now?")
    assert [text_of(m.content) for m in later.requests[0] if m.role == "tool"] == answers


@pytest.mark.usefixtures("echo_tool")
async def test_the_limit_of_calls_is_a_setting(make_agent: MakeAgent) -> None:
    path = paths.made(paths.hermes_home()) / "config.yaml"
    path.write_text("agent:\n  max_calls_per_message: 2\n")
    model = ScriptedModel(calls("echo", text="a") + calls("echo", text="b") + calls("echo", text="c"), says("ok"))
    await make_agent(model).arun_conversation("Go")
    answers = [text_of(m.content)[:8] for m in model.requests[1] if m.role == "tool"]
    assert answers == ['{"echoed', '{"echoed', "[not run"]


@pytest.mark.usefixtures("echo_tool")
async def test_an_interrupt_in_a_round_of_too_many_calls_leaves_one_answer_for_each(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    model = ScriptedModel(sum((calls("echo", text=str(n)) for n in range(1, 150)), calls("echo", text="0")))
    agents: list[AIAgent] = []
    stop = {"tool_start_callback": lambda *_: agents[0].interrupt()}
    agents.append(agent := make_agent(model, store=store, session_id="s", **stop))
    result = await agent.arun_conversation("Go")
    assert result["turn_exit_reason"] == "interrupted_by_user"
    answered = [m["tool_call_id"] for m in result["messages"] if m["role"] == "tool"]
    (asked,) = [m for m in result["messages"] if m.get("tool_calls")]
    assert answered == [call["id"] for call in asked["tool_calls"]]


@pytest.mark.usefixtures("echo_tool")
async def test_a_turn_that_a_guardrail_stops_is_told_as_a_status(make_agent: MakeAgent) -> None:
    told: list[tuple[str, str]] = []
    rounds = [calls("echo", text="boom") for _ in range(9)]
    agent = make_agent(*rounds, status_callback=lambda kind, message: told.append((kind, message)))
    result = await agent.arun_conversation("Go")
    assert result["turn_exit_reason"] == "guardrail_halt"
    assert told == [("guardrail", f"the turn is stopped: {result['guardrail']['message']}")]


EVENT_CALLBACKS = (
    "tool_progress_callback", "tool_start_callback", "tool_complete_callback", "thinking_callback",
    "reasoning_callback", "step_callback", "tool_gen_callback", "status_callback", "interim_assistant_callback",
    "stream_delta_callback", "stream_callback",
)  # fmt: skip


def _broken(name: str) -> Callable[..., None]:
    def explode(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"{name} is broken")

    return explode


def _busy_script() -> tuple[Any, ...]:
    """A turn that has something for every callback, most of it twice."""
    return (
        says(""),
        thinks("hm") + says("I look.") + calls("echo", text="a"),
        thinks("hm") + says("Again.") + calls("echo", text="b"),
        says("done"),
    )


def _logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = [record for record in caplog.records if record.name == "hermes.runtime.sinks"]
    assert all(record.exc_info for record in told)
    return sorted(record.getMessage().split()[0] for record in told)


@pytest.mark.usefixtures("echo_tool")
def test_callbacks_that_raise_are_logged_once_each_and_the_turn_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken: dict[str, Any] = {name: _broken(name) for name in EVENT_CALLBACKS}
    stream = broken.pop("stream_callback")
    agent = AIAgent(model=ScriptedModel(*_busy_script()), store=MemoryStore(), cwd=str(tmp_path), **broken)
    result = agent.run_conversation("Go", stream_callback=stream)
    agent.close()
    assert (result["final_response"], result["completed"]) == ("done", True)
    assert _logged(caplog) == sorted(EVENT_CALLBACKS)


@pytest.mark.usefixtures("echo_tool")
async def test_callbacks_that_raise_on_the_callers_loop_do_not_end_the_turn(
    make_agent: MakeAgent, caplog: pytest.LogCaptureFixture
) -> None:
    broken: dict[str, Any] = {name: _broken(name) for name in EVENT_CALLBACKS}
    stream = broken.pop("stream_callback")
    result = await make_agent(*_busy_script(), **broken).arun_conversation("Go", stream_callback=stream)
    assert result["final_response"] == "done"
    assert _logged(caplog) == sorted(EVENT_CALLBACKS)


def test_ctrl_c_in_a_callback_ends_the_turn_and_reaches_the_caller(tmp_path: Path) -> None:
    def hit(*_: Any) -> None:
        raise KeyboardInterrupt

    agent = AIAgent(model=ScriptedModel(says("x")), store=MemoryStore(), cwd=str(tmp_path), step_callback=hit)
    with pytest.raises(KeyboardInterrupt):
        agent.run_conversation("Go")
    agent.close()


async def test_a_callback_that_nobody_would_await_is_refused(make_agent: MakeAgent) -> None:
    async def later(*_: Any) -> None: ...

    with pytest.raises(UserError, match=r"^step_callback is a plain function, since nothing waits for it, not "):
        make_agent(says("x"), step_callback=later)
    with pytest.raises(UserError, match=r"^stream_callback is a plain function"):
        await make_agent(says("x")).arun_conversation("Go", stream_callback=later)


async def test_ledger_rows_open_before_the_request(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    seen: list[int] = []

    def reply(_: object) -> Any:
        seen.append(len(store.attempts))
        return says("ok")

    await make_agent(reply, store=store).arun_conversation("Hi")
    assert seen == [1]
    (opened, closed) = next(iter(store.attempts.values()))
    assert isinstance(opened, AttemptOpened)
    assert isinstance(closed, AttemptClosed)
    assert opened.purpose == "turn"
