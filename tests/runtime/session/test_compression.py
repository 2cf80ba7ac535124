"""Compression inside turns: entered through `AIAgent`, with a scripted model and a real store."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.context.limits import threshold_tokens
from hermes.context.marks import PREFIX, TASKS
from hermes.context.summary import ROLE, SYSTEM_NOTE
from hermes.errors import ProviderError, UserError
from hermes.models.endpoint import Endpoint
from hermes.runtime.requests import build_units
from hermes.runtime.session.turn_rotation import named_window
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.state import SessionDB
from hermes.state.sqlite.store import SqliteStore
from hermes.testing.fakes import KeepLast, MemorySink
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, fault, says
from hermes.testing.server import ScriptedServer
from hermes.tools.approval.grants import HomeGrants
from hermes.tools.approval.policy import Grant
from hermes.tools.hooks import Hooks
from hermes.tools.registry import registry, tool_result
from hermes.types import ModelEvent, PrefixBroken, SessionRotated, StatusChanged, text_of

MakeAgent = Callable[..., AIAgent]
WINDOW = 128_000
OVER = threshold_tokens(WINDOW, 0.5)
NOTES = says("## Active Task\nport the files")
TOO_LONG = ProviderError("maximum context length is 9,000 tokens", reason="context_overflow")


class Talker(ScriptedModel):
    """A scripted model that answers requests for summaries from a script of their own, by default with `NOTES`."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.notes: list[Any] = []
        self.summaries: list[ModelRequest] = []

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        inner: ScriptedModel | None = None
        if request.system == ROLE:
            self.summaries.append(request)
            inner = ScriptedModel(self.notes.pop(0) if self.notes else NOTES)
            inner.stalled = self.stalled
        async for event in inner.stream(request, scope) if inner else super().stream(request, scope):
            yield event


def asked(request: ModelRequest) -> str:
    return text_of(request.units[0].messages[0].content)


def scripted(*script: Any, window: int | None = WINDOW, notes: Sequence[Any] = ()) -> Talker:
    model = Talker(*script)
    model.notes += notes
    if window is not None:
        model.endpoint = Endpoint(base_url="", model="scripted", context_length=window)  # type: ignore[attr-defined]  # what a served model has
    return model


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "state.db")
    yield made
    await made.close()


@pytest.fixture
async def make_agent(tmp_path: Path, store: SqliteStore, hermes_home: Path) -> AsyncIterator[MakeAgent]:
    made: list[AIAgent] = []
    # A review after ten turns would take the next line of a script.
    (hermes_home / "config.yaml").write_text("auxiliary: {background_review: {enabled: false}}\n")

    def make(*script: Any, window: int | None = WINDOW, **keywords: Any) -> AIAgent:
        model = script[0] if isinstance(script[0], ScriptedModel) else scripted(*script, window=window)
        made.append(AIAgent(**{"model": model, "store": store, "cwd": str(tmp_path), "session_id": "s", **keywords}))
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()


@pytest.fixture
def dump_tool() -> Any:
    """A tool whose results are as long as they are asked to be."""

    def dump(args: dict[str, Any], **_: Any) -> str:
        return tool_result(dumped=f"{args['key']} " + "d" * args["size"])

    properties = {"key": {"type": "string"}, "size": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": ["key", "size"]}
    schema = {"name": "dump", "description": "Dump.", "parameters": parameters}
    registry.register(name="dump", toolset="testing", schema=schema, handler=dump)
    yield
    registry.deregister("dump")


def rows(tmp_path: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(tmp_path / "state.db") as conn:
        return conn.execute(sql).fetchall()


async def chat(agent: AIAgent, count: int) -> None:
    for number in range(count):
        await agent.arun_conversation(f"question {number} " + "w" * 600)


def answers(count: int) -> list[Reply]:
    return [says(f"answer {number} " + "v" * 600) for number in range(count)]


# -- the three moments --------------------------------------------------------------------------------------------


async def test_a_turn_over_the_threshold_goes_on_in_a_child_session(
    make_agent: MakeAgent, store: SqliteStore, tmp_path: Path
) -> None:
    sink = MemorySink()
    script = [*answers(7), says("eighth").with_usage(input_tokens=OVER, output_tokens=5), says("ninth")]
    agent = make_agent(*script, sink=sink)
    await chat(agent, 8)
    before = await store.load("s")
    result = await agent.arun_conversation("the ninth question")

    assert result["final_response"] == "ninth"
    assert result["session_id"] == agent.session_id != "s"
    model = agent._options.model.model
    assert isinstance(model, Talker)
    model.assert_finished()
    assert "question 3" in asked(model.summaries[0])
    texts = [text_of(message.content) for message in model.requests[8]]
    assert texts[-1] == "the ninth question"
    assert sum(text.startswith(PREFIX) for text in texts) == 1
    assert SYSTEM_NOTE in model.full_requests[8].system
    assert model.full_requests[8].tools == model.full_requests[0].tools

    parent, child = await store.load("s"), await store.load(agent.session_id)
    assert parent is not None
    assert child is not None
    assert before is not None
    assert parent.messages[:-1] == before.messages, "the transcript is never edited"
    assert text_of(parent.messages[-1].content) == "the ninth question"
    assert (parent.continued_by, child.earlier, child.ended) == (agent.session_id, ("s",), False)
    assert rows(tmp_path, "SELECT end_reason FROM sessions WHERE id = 's'") == [("compression",)]
    assert len(child.messages) == child.message_count == len(result["messages"]) < 12
    assert rows(tmp_path, "SELECT purpose, session_id, outcome FROM attempts ORDER BY id")[-2:] == [
        ("compression", "s", "ok"),
        ("turn", agent.session_id, "ok"),
    ]
    assert [event for event in sink.events if isinstance(event, PrefixBroken)] == [
        PrefixBroken("compression", sink_tokens(sink))
    ]
    assert SessionRotated(session_id=agent.session_id, previous="s") in sink.events
    assert any(isinstance(one, StatusChanged) and agent.session_id in one.message for one in sink.events)


def sink_tokens(sink: MemorySink) -> int | None:
    (broken,) = [event for event in sink.events if isinstance(event, PrefixBroken)]
    assert broken.tokens_lost is not None
    assert broken.tokens_lost >= 64_000
    return broken.tokens_lost


@pytest.mark.usefixtures("dump_tool")
async def test_two_hundred_calls_in_one_turn_never_pass_the_window(
    make_agent: MakeAgent, store: SqliteStore, tmp_path: Path
) -> None:
    seen: list[int] = []

    def step(request: ModelRequest) -> Reply:
        texts = [text_of(message.content) for unit in request.units for message in unit.messages]
        tokens = sum(map(len, texts)) // 4
        seen.append(tokens)
        assert "Dump two hundred." in texts
        if len(seen) > 200:
            return says("done")
        return calls("dump", key=f"k{len(seen)}", size=4_000).with_usage(input_tokens=tokens, output_tokens=5)

    model = scripted(*[step] * 300)
    agent = make_agent(model, max_iterations=250)
    result = await agent.arun_conversation("Dump two hundred.")

    assert result["final_response"] == "done"
    assert result["api_calls"] == 201
    assert len(seen) == 201
    assert max(seen) < WINDOW
    ((count,),) = rows(tmp_path, "SELECT count(*) FROM sessions WHERE end_reason = 'compression'")
    assert count >= 3
    ((kept,),) = rows(tmp_path, "SELECT count(DISTINCT tool_call_id) FROM messages WHERE role = 'tool'")
    assert kept == 200


@pytest.mark.parametrize("reason", ["context_overflow", "payload_too_large"])
async def test_a_refused_prompt_is_made_shorter_and_asked_again(make_agent: MakeAgent, reason: Any) -> None:
    refusal = ProviderError("no", reason=reason)
    agent = make_agent(*answers(6), refusal, says("now it fits"), window=None)
    await chat(agent, 6)
    result = await agent.arun_conversation("one more")
    assert (result["final_response"], result["api_calls"], result["completed"]) == ("now it fits", 1, True)
    assert agent.session_id != "s"


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("'gpt-3.5-turbo-1106' answered (HTTP 400): This model's maximum context length is 16385 tokens.", 16_385),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000),
        ("input token count (1200000) exceeds the maximum number of tokens allowed (1048576)", 1_048_576),
        ("'claude-x-20250514' answered: Input is too long for requested model.", None),
    ],
)
def test_the_window_is_read_from_a_refusal(words: str, window: int | None) -> None:
    assert named_window(ProviderError(words, reason="context_overflow")) == window
    assert named_window(ProviderError(words, reason="payload_too_large")) is None


async def test_a_window_that_a_refusal_names_is_kept_to_from_then_on(make_agent: MakeAgent) -> None:
    silent = [reply.without_usage() for reply in answers(40)]
    model = scripted(*silent[:6], TOO_LONG, *silent, window=None)
    agent = make_agent(model)
    await chat(agent, 6)
    await agent.arun_conversation("one more")
    first = agent.session_id
    assert len(model.summaries) >= 1
    await chat(agent, 26)
    assert agent.session_id != first, "without a second refusal"


async def test_a_prompt_that_stays_too_long_ends_the_turn_with_the_reason(make_agent: MakeAgent) -> None:
    script = [TOO_LONG] * 4
    agent = make_agent(*answers(12), *script, window=None)
    await chat(agent, 12)
    result = await agent.arun_conversation("one more")
    assert result["failed"]
    assert result["error_reason"] == "context_overflow"
    assert "start a new session" in result["error"]


async def test_where_it_is_switched_off_a_refusal_is_told(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("compression: {enabled: false}\n")
    agent = make_agent(
        *answers(5), says("sixth").with_usage(input_tokens=OVER, output_tokens=5), TOO_LONG, says("by hand, it works")
    )
    await chat(agent, 6)
    assert (await agent.arun_conversation("more"))["error_reason"] == "context_overflow"
    assert agent.session_id == "s"
    assert (await agent.acompress())["status"] == "compressed"
    assert (await agent.arun_conversation("more"))["final_response"] == "by hand, it works"


async def test_without_an_engine_nothing_is_compressed(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("context: {engine: none}\n")
    agent = make_agent(*answers(5), TOO_LONG)
    await chat(agent, 5)
    assert (await agent.arun_conversation("more"))["error_reason"] == "context_overflow"
    with pytest.raises(UserError, match=r"context\.engine is 'none'"):
        await agent.acompress()


# -- failures -----------------------------------------------------------------------------------------------------


async def test_a_failed_summary_changes_nothing_but_is_told(
    make_agent: MakeAgent, store: SqliteStore, tmp_path: Path
) -> None:
    down, sink = ProviderError("no route", reason="connection"), MemorySink()
    eighth = says("eighth").with_usage(input_tokens=OVER, output_tokens=5)
    agent = make_agent(scripted(*answers(7), eighth, says("as it was"), notes=[down, down]), sink=sink)
    await chat(agent, 8)
    model = agent._options.model.model
    assert isinstance(model, ScriptedModel)
    result = await agent.arun_conversation("the ninth")

    assert result["final_response"] == "as it was"
    assert agent.session_id == "s"
    sent, before = model.requests[-1], model.requests[7]
    assert sent[: len(before)] == before
    assert model.full_requests[-1].system == model.full_requests[0].system
    warned = [one.message for one in sink.events if isinstance(one, StatusChanged) and one.kind == "warning"]
    assert len([text for text in warned if "no summary could be had" in text]) == 1
    ((until, error),) = rows(
        tmp_path, "SELECT compression_failure_cooldown_until, compression_failure_error FROM sessions"
    )
    assert until > 0
    assert "no route" in error

    again = make_agent(scripted(says("another process waits, too")))
    record = await store.load("s")
    assert record is not None
    assert record.compress_after == until
    assert (await again.arun_conversation("x" * 4 * 70_000))["final_response"] == "another process waits, too"


async def test_an_interrupt_while_it_sums_up_leaves_the_session_as_it_was(
    make_agent: MakeAgent, store: SqliteStore
) -> None:
    model = scripted(*answers(7), says("eighth").with_usage(input_tokens=OVER, output_tokens=5), notes=[fault("stall")])
    agent = make_agent(model)
    await chat(agent, 8)
    running = asyncio.create_task(agent.arun_conversation("the ninth"))
    await asyncio.wait_for(model.stalled.wait(), 10)
    agent.interrupt()
    result = await asyncio.wait_for(running, 5)

    assert result["interrupted"]
    record = await store.load("s")
    assert record is not None
    assert (record.ended, record.continued_by, agent.session_id) == (False, None, "s")
    assert text_of(record.messages[-1].content) == "the ninth"


async def test_compressions_that_do_not_help_stop_by_themselves_and_say_what_to_do(
    make_agent: MakeAgent, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text("compression: {protect_last_n: 400}\n")
    sink = MemorySink()
    over = [says("v").with_usage(input_tokens=OVER, output_tokens=5) for _ in range(8)]
    agent = make_agent(scripted(*over, *over[:2], notes=[says("n" * 4_000)] * 2), sink=sink)
    for number in range(10):
        await agent.arun_conversation(f"q{number}")
    assert agent.session_id == "s"
    assert any(isinstance(one, StatusChanged) and "/compress TOPIC" in one.message for one in sink.events)


# -- what comes along ---------------------------------------------------------------------------------------------


async def test_tasks_shown_files_and_the_callers_words_survive(make_agent: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    (tmp_path / "AGENTS.md").write_text("Always use tabs.\n")
    (tmp_path / "elsewhere").mkdir()
    todos = [
        {"id": "1", "content": "port a", "status": "completed"},
        {"id": "2", "content": "port b", "status": "pending"},
    ]
    script = [
        *answers(2),
        calls("todo", todos=todos) + calls("read_file", path=str(tmp_path / "a.txt")),
        calls("terminal", command="cd elsewhere"),
        says("ready"),
        *answers(6),
        calls("read_file", path=str(tmp_path / "a.txt")),
        says("read"),
        calls("todo", todos=[{"id": "3", "content": "port c", "status": "pending"}], merge=True),
        says("done"),
    ]
    model = scripted(*script)
    agent = make_agent(model)
    await agent.arun_conversation("Hello", system_message="Speak like a sailor.")
    await agent.arun_conversation("Hello again")
    await agent.arun_conversation("Go")
    await chat(agent, 6)
    shown = await agent.acompress("the port")
    assert "above all this topic kept: 'the port'" in asked(model.summaries[0])
    assert f"{TASKS}\n- [ ] 2. port b (pending)" in shown["summary"]

    result = await agent.arun_conversation("Read it")
    assert "alpha" in result["messages"][-2]["content"], "a page that was summed up is shown again"
    fresh = make_agent(model, session_id=agent.session_id)
    result = await fresh.arun_conversation("Go on")
    assert [item["id"] for item in json.loads(result["messages"][-2]["content"])["todos"]] == ["1", "2", "3"]
    system = model.full_requests[-1].system
    assert "Speak like a sailor." in system
    assert "Always use tabs." in system


async def test_context_beside_the_question_is_replayed_after_a_compression(
    make_agent: MakeAgent, store: SqliteStore
) -> None:
    model = scripted(*answers(6), TOO_LONG, says("ok"))
    agent = make_agent(model)
    await chat(agent, 6)
    hooks = (await agent._assembled()).services.hooks
    assert isinstance(hooks, Hooks)
    hooks.add("pre_llm_call", lambda **_: "It is raining.", owner="test", kind="transform")
    await agent.arun_conversation("What weather is it?")
    last = model.full_requests[-1].units[-1]
    assert "It is raining." in last.context
    record = await store.load(agent.session_id)
    assert record is not None
    units = build_units(record.messages, record.contexts)
    assert any("It is raining." in unit.context for unit in units)


async def test_the_words_sent_stay_those_sent_and_the_stored_ones_stored(
    make_agent: MakeAgent, store: SqliteStore
) -> None:
    model = scripted(*answers(6), TOO_LONG, says("ok"))
    agent = make_agent(model)
    await chat(agent, 6)
    result = await agent.arun_conversation("[from Ada] hello", persist_user_message="hello")
    assert text_of(model.requests[-1][-1].content) == "[from Ada] hello"
    record = await store.load(agent.session_id)
    assert record is not None
    assert text_of(record.messages[-2].content) == "hello"
    assert result["messages"][-2]["content"] == "hello"


async def test_a_history_that_the_caller_brings_is_the_one_that_is_compressed(make_agent: MakeAgent) -> None:
    past: list[dict[str, Any]] = []
    for number in range(8):
        past += [{"role": "user", "content": f"told {number}"}, {"role": "assistant", "content": "v" * 900}]
    model = scripted(TOO_LONG, says("ok"))
    agent = make_agent(model)
    result = await agent.arun_conversation("now", conversation_history=past)
    assert result["final_response"] == "ok"
    assert "told 3" in asked(model.summaries[0])
    assert text_of(model.requests[1][-1].content) == "now"


async def test_large_results_open_by_their_handles_after_a_compression(
    make_agent: MakeAgent, dump_tool: Any, store: SqliteStore
) -> None:
    model = scripted(calls("dump", key="big", size=300_000), says("large"), *answers(6))
    agent = make_agent(model)
    result = await agent.arun_conversation("Dump it")
    handle = next(word for word in result["messages"][2]["content"].replace('"', " ").split() if "hermes://" in word)
    await chat(agent, 6)
    await agent.acompress()
    assert b"big" in await (await agent._assembled()).services.shelf.read(handle.rstrip(".,;"), 0, 100)
    fresh = make_agent(says("x"), session_id=agent.session_id)
    await fresh.arun_conversation("hi")
    assert b"big" in await (await fresh._assembled()).services.shelf.read(handle.rstrip(".,;"), 0, 100)


async def test_commands_see_the_id_of_the_session_that_goes_on(make_agent: MakeAgent) -> None:
    seen = calls("terminal", command="echo id=$HERMES_SESSION_ID")
    model = scripted(seen, says("ok"), *answers(6), seen, says("ok"))
    agent = make_agent(model, approval_callback=lambda *_a, **_k: "once")
    await agent.arun_conversation("Which?")
    await chat(agent, 6)
    await agent.acompress()
    result = await agent.arun_conversation("Which now?")
    told = [one["content"] for one in result["messages"] if one.get("tool_name") == "terminal"][-1]
    assert f"id={agent.session_id}" in told


async def test_what_was_taken_back_after_a_compression_stays_so_for_who_follows_it(make_agent: MakeAgent) -> None:
    grants = HomeGrants(paths.hermes_home())
    grants.keep(Grant(scope="session", key="recursive delete", session_id="s"))
    late = make_agent(says("hello"), says("late"))
    await late.arun_conversation("Hi")
    agent = make_agent(*answers(6))
    await chat(agent, 6)
    await agent.acompress()
    assert len(await grants.given(agent.session_id)) == 1
    grants.clear(agent.session_id)
    await late.arun_conversation("Where am I?")
    assert late.session_id == agent.session_id
    assert await grants.given(agent.session_id) == []


async def test_what_was_allowed_for_the_session_stays_allowed(make_agent: MakeAgent, tmp_path: Path) -> None:
    asked_of: list[str] = []

    def allow(command: str, *_: Any, **__: Any) -> str:
        asked_of.append(command)
        return "session"

    removing = calls("terminal", command="rm -rf ./build")
    model = scripted(removing, says("gone"), *answers(6), removing, says("gone again"))
    agent = make_agent(model, approval_callback=allow)
    (tmp_path / "build").mkdir()  # nobody is asked about what is not there
    await agent.arun_conversation("Clean up")
    assert len(asked_of) == 1
    (tmp_path / "build").mkdir()
    await chat(agent, 6)
    assert (await agent.acompress())["status"] == "compressed"
    await agent.arun_conversation("Clean up again")
    assert len(asked_of) == 1, "a yes for the session holds"


async def test_background_processes_are_still_the_sessions(make_agent: MakeAgent) -> None:
    begin = calls("terminal", command="sleep 0.2; echo finished-then", background=True, notify_on_complete=True)
    model = scripted(begin, says("it runs"), *answers(6), says("I heard"))
    agent = make_agent(model, approval_callback=lambda *_a, **_k: "once")
    await agent.arun_conversation("Begin")
    await chat(agent, 6)
    assert (await agent.acompress())["status"] == "compressed"
    await asyncio.sleep(0.5)
    await agent.arun_conversation("And?")
    assert any("finished-then" in unit.context for unit in model.full_requests[-1].units)


async def test_an_engine_of_ones_own_takes_over(make_agent: MakeAgent) -> None:
    engine = KeepLast(keep=3)
    agent = make_agent(
        *answers(7), says("eighth").with_usage(input_tokens=OVER, output_tokens=5), says("ninth"), context_engine=engine
    )
    await chat(agent, 8)
    result = await agent.arun_conversation("the ninth")
    assert result["messages"][0]["content"] == "[14 messages left out]"
    assert engine.sessions == ["s", "s ends", agent.session_id]


# -- the line of sessions -----------------------------------------------------------------------------------------


async def test_whoever_knows_the_old_id_finds_the_newest(
    make_agent: MakeAgent, store: SqliteStore, tmp_path: Path
) -> None:
    agent = make_agent(*answers(7), *answers(5))
    await chat(agent, 7)
    db = SessionDB(tmp_path / "state.db")
    db.set_session_title("s", "Porting")
    first = await agent.acompress()
    await chat(agent, 5)
    second = await agent.acompress()
    line = ["s", first["session_id"], second["session_id"]]

    assert db.get_compression_lineage("s") == line
    assert {db.resolve_resume_session_id(one) for one in line} == {line[-1]}
    assert [db.get_session_title(one) for one in line] == ["Porting", "Porting #2", "Porting #3"]
    assert db.resolve_session_by_title("Porting") == line[-1]
    assert [row["id"] for row in db.list_sessions_rich()] == [line[-1]]
    assert db.search_messages("question")
    old = make_agent(says("I went along"))
    result = await old.arun_conversation("hello again")
    assert (result["session_id"], old.session_id) == (line[-1], line[-1])
    assert rows(tmp_path, "SELECT end_reason FROM sessions WHERE id = 's'") == [("compression",)]
    db.close()


async def test_nothing_to_sum_up_is_said(make_agent: MakeAgent) -> None:
    agent = make_agent(says("hi"))
    assert "nothing was said" in (await agent.acompress())["reason"]
    await agent.arun_conversation("hello")
    answer = await agent.acompress()
    assert (answer["status"], answer["session_id"]) == ("unchanged", "s")
    assert "nothing in it that could be summed up" in answer["reason"]


async def test_the_summary_may_come_from_another_model(make_agent: MakeAgent, hermes_home: Path) -> None:
    async with ScriptedServer([NOTES]) as server:
        small = f"{{model: small, provider: custom, base_url: '{server.base_url}', api_key: k}}"
        (hermes_home / "config.yaml").write_text(f"auxiliary: {{compression: {small}}}\n")
        agent = make_agent(*answers(7))
        await chat(agent, 7)
        done = await agent.acompress()
        assert done["status"] == "compressed"
        assert server.requests[0].json["model"] == "small"


def test_a_plain_caller_can_compress_too(tmp_path: Path) -> None:
    agent = AIAgent(model=scripted(*answers(6)), store=SqliteStore(tmp_path / "s.db"), cwd=str(tmp_path))
    for number in range(6):
        agent.run_conversation(f"question {number} " + "w" * 900)
    before = agent.session_id
    done = agent.compress()
    assert (done["status"], done["previous_session_id"]) == ("compressed", before)
    assert done["after_tokens"] < done["before_tokens"]
    agent.close()


def test_a_turn_that_needs_no_room_loads_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import sys, asyncio\n"
        "from hermes import AIAgent\n"
        "from hermes.testing.model import ScriptedModel\n"
        "from hermes.testing.replies import says\n"
        "agent = AIAgent(model=ScriptedModel(says('hi'), says('ho')), cwd=sys.argv[1])\n"
        "for text in ('one', 'two'):\n"
        "    agent.run_conversation(text)\n"
        "agent.close()\n"
        "parts = ('context.compressor', 'context.summary', 'runtime.compression', 'runtime.carrying')\n"
        "print([name for name in sys.modules if name.endswith(parts)])\n"
    )
    environ = {**os.environ, "HERMES_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    args = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(args, capture_output=True, text=True, timeout=60, env=environ, check=True)
    assert done.stdout.strip() == "[]", done.stderr
