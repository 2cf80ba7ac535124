"""`execute_code` where a user meets it: offered by an agent, called in a turn, refunded, interrupted, recovered."""

import asyncio
import json
import socket
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.model_tools import close_task, get_tool_definitions, handle_function_call
from hermes.ops import CallClosed, CallJournalled, MessageAppended, SessionCreated
from hermes.runtime.requests import OUTCOME_UNKNOWN
from hermes.runtime.session.history import from_record
from hermes.runtime.setup.process import shared
from hermes.seams import Effects, ToolContext
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.builtin.execute_code import execute_code
from hermes.tools.code_execution.interpreter import BadScript, compiled
from hermes.tools.code_execution.result_json import INTERRUPTED, ScriptOutput, running_line
from hermes.tools.code_execution.stubs import callable_among, described, import_example, stub_module
from hermes.tools.code_execution.tool_text import has_unix_sockets, refined
from hermes.tools.registry import registry
from hermes.tools.traits import Traits
from hermes.types import Message, ToolCall, text_of

MakeAgent = Callable[..., AIAgent]
SCHEMA = {
    "name": "execute_code",
    "description": "",
    "parameters": {"type": "object", "properties": {}, "required": ["code"]},
}


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    """Agents in a scratch workspace whose user says yes to everything."""
    made: list[AIAgent] = []
    (tmp_path / "work").mkdir()

    def make(model: ScriptedModel, store: MemoryStore, **keywords: Any) -> AIAgent:
        given = {"approval_callback": lambda action: True, "enabled_toolsets": ["code_execution", "file", "terminal"]}
        agent = AIAgent(model=model, store=store, cwd=str(tmp_path / "work"), **{**given, **keywords})
        made.append(agent)
        return agent

    yield make
    for agent in made:
        await agent.aclose()
    await shared.close()  # the keeper of the children


def offered(model: ScriptedModel) -> dict[str, str]:
    return {tool.name: tool.description for tool in model.full_requests[0].tools}


async def test_intermediate_results_never_reach_the_model_or_the_transcript(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    (tmp_path / "work" / "big.txt").write_text("needle\n" + "hay\n" * 400)
    code = "from hermes_tools import read_file\nprint('needle' in read_file('big.txt')['content'])"
    model = ScriptedModel(calls("execute_code", code=code), says("It is there."))
    store = MemoryStore()
    result = await make_agent(model, store, session_id="s1").arun_conversation("Is there a needle?")
    assert result["final_response"] == "It is there."
    seen = [text_of(message.content) for message in model.requests[1]]
    assert not any("hay" in text for text in seen)
    assert json.loads(seen[-1])["output"] == "True\n"
    messages = [op.message for commit in store.commits for op in commit if isinstance(op, MessageAppended)]
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    rows = [op for commit in store.commits for op in commit if isinstance(op, CallJournalled | CallClosed)]
    ids = [op.call.id if isinstance(op, CallJournalled) else op.call_id for op in rows]
    assert ids == ["call_1_0", "call_1_0/1", "call_1_0/1", "call_1_0"]
    model.assert_finished()


async def test_an_iteration_of_scripts_alone_is_given_back(make_agent: MakeAgent) -> None:
    script = calls("execute_code", code="print(1)")
    other = calls("execute_code", code="print(2)")
    mixed = calls("execute_code", code="print(3)") + calls("read_file", path="x")
    model = ScriptedModel(script, other + calls("execute_code", code="print(4)"), mixed, says("Done."))
    agent = make_agent(model, MemoryStore(), max_iterations=10)
    result = await agent.arun_conversation("go")
    assert (result["final_response"], result["api_calls"]) == ("Done.", 4)
    assert agent.iteration_budget.used == 2, "the mixed iteration and the answer"


async def test_max_iterations_still_caps_the_model_calls(make_agent: MakeAgent) -> None:
    script = [calls("execute_code", code=f"print({n})") for n in range(3)]
    model = ScriptedModel(*script, says("Summed up."))
    result = await make_agent(model, MemoryStore(), max_iterations=3).arun_conversation("go")
    assert result["turn_exit_reason"] == "max_iterations_reached(3/3)"
    model.assert_finished()


async def test_an_interrupted_script_is_told_as_the_contract_says(make_agent: MakeAgent, tmp_path: Path) -> None:
    mark = tmp_path / "work" / "began"
    code = f"import time\nprint('half', flush=True)\nopen({str(mark)!r}, 'w').close()\ntime.sleep(600)"
    model = ScriptedModel(calls("execute_code", code=code), says("never asked"))
    store = MemoryStore()
    agent = make_agent(model, store, session_id="s1")
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("go"))
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(mark.exists):  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
        agent.interrupt()
        result = await turn
    assert result["interrupted"]
    record = await store.load("s1")
    assert record is not None
    last = record.messages[-1]
    answer = json.loads(text_of(last.content))
    assert (last.role, answer["status"]) == ("tool", "interrupted")
    assert answer["output"] == f"half\n{INTERRUPTED}"
    assert record.open_calls == ()


async def test_a_crash_inside_a_script_is_one_unknown_outcome_that_names_its_open_calls() -> None:
    store = MemoryStore()
    outer = ToolCall("c1", "execute_code", '{"code": "…"}')
    inner = ToolCall("c1/2", "terminal", '{"command": "make"}')
    await store.commit(
        SessionCreated(session_id="s1"),
        MessageAppended("s1", Message(role="user", content="go")),
        MessageAppended("s1", Message(role="assistant", tool_calls=(outer,))),
        CallJournalled("s1", outer),
        CallJournalled("s1", inner),
    )
    record = await store.load("s1")
    assert record is not None
    history, repairs = from_record(record)
    told = [op.message for op in repairs if isinstance(op, MessageAppended)]
    assert [message.tool_call_id for message in told] == ["c1"]
    assert text_of(told[0].content).startswith(OUTCOME_UNKNOWN)
    assert 'terminal({"command": "make"})' in text_of(told[0].content)
    await store.commit(*repairs)
    after = await store.load("s1")
    assert after is not None
    assert after.open_calls == ()
    assert len(history.dicts) == 3


async def test_the_schema_names_only_the_tools_that_are_offered_beside(make_agent: MakeAgent) -> None:
    model = ScriptedModel(says("Hi."))
    await make_agent(model, MemoryStore(), enabled_toolsets=["code_execution", "terminal"]).arun_conversation("Hi")
    text = offered(model)["execute_code"]
    assert "- terminal(command, timeout=None, workdir=None)" in text
    assert not any(name in text for name in ("read_file", "web_search", "patch("))


def test_definitions_follow_the_toolsets() -> None:
    found = {
        one["function"]["name"]: one["function"]
        for one in get_tool_definitions(["code_execution", "file"], quiet_mode=True)
    }
    text = found["execute_code"]["description"]
    assert all(f"- {name}(" in text for name in ("read_file", "write_file", "search_files", "patch"))
    assert "- terminal(" not in text
    assert "foreground only" not in text
    assert (
        "from hermes_tools import read_file, write_file"
        in found["execute_code"]["parameters"]["properties"]["code"]["description"]
    )


def test_the_words_of_the_schema() -> None:
    everything = frozenset(callable_among(["terminal", "web_search", "read_file", "nothing", "execute_code"]))
    text = refined(SCHEMA, everything)["description"]
    for word in ("300 s", "50 tool calls", "50 KB", "10 KB", "foreground only", "working directory", "Print the final"):
        assert word in text
    for helper in ("json_parse", "shell_quote", "retry"):
        assert helper in text
    assert '{"data": {"web": [{"title", "url", "description"}, …]}}' in text
    assert import_example(callable_among(everything)) == "from hermes_tools import web_search, terminal"
    assert import_example(("read_file", "patch", "write_file")) == "from hermes_tools import read_file, patch"
    assert "plain Python" in refined(SCHEMA, frozenset())["description"]


def test_the_module_is_valid_and_documented_for_every_set_of_tools() -> None:
    names = callable_among(
        ["web_search", "web_extract", "read_file", "write_file", "search_files", "patch", "terminal"]
    )
    for count in range(len(names) + 1):
        text = stub_module(names[:count])
        space: dict[str, Any] = {}
        exec(compile(text, "hermes_tools.py", "exec"), space)
        assert space["__all__"] == [*names[:count], "json_parse", "shell_quote", "retry"]
        for name in names[:count]:
            assert "Returns" in space[name].__doc__
            assert space[name].__annotations__["return"] is dict
    assert described(names).count("\n") == 6


def test_where_there_are_no_unix_sockets_it_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_unix_sockets()
    monkeypatch.delattr(socket, "AF_UNIX")
    assert not has_unix_sockets()
    entry = registry.get_entry("execute_code")
    assert entry is not None
    assert entry.check_fn is not None
    registry.checks.forget()
    names = [one["function"]["name"] for one in registry.get_definitions({"execute_code"}, True)]
    registry.checks.forget()
    assert names == []


def outside(code: str, *tools: str) -> dict[str, Any]:
    """What `handle_function_call` makes of a script that may call `tools`."""
    names = [*tools, "execute_code"]
    answer: dict[str, Any] = json.loads(
        handle_function_call("execute_code", {"code": code}, task_id="scripts", enabled_tools=names)
    )
    return answer


def test_from_outside_an_agent_scripts_run_and_dangerous_ones_are_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    use_two = "from hermes_tools import write_file, terminal\nwrite_file('a', 'b')\nprint(terminal('cat a')['output'])"
    good = outside(use_two, "write_file", "terminal")
    limited = outside("import hermes_tools\nprint(hermes_tools.__all__)", "read_file")
    every = outside("import hermes_tools\nprint('patch' in hermes_tools.__all__)")
    bad = outside("import subprocess\nsubprocess.run(['git', 'push', '--force'])", "read_file")
    inner = outside("from hermes_tools import terminal\nprint(terminal('git push --force')['status'])", "terminal")
    close_task("scripts")
    assert (good["status"], good["output"], good["tool_calls_made"]) == ("success", "b\n", 2)
    assert limited["output"] == "['read_file', 'json_parse', 'shell_quote', 'retry']\n"
    assert every["output"] == "True\n", "none of the seven among the names means all of them"
    assert (bad["status"], "approval" in bad["error"]) == ("error", True)
    assert inner["output"] == "blocked\n"


@pytest.mark.parametrize("code", ["", "   \n\t", None, 7])
async def test_no_code_is_an_error_without_a_status(code: Any) -> None:
    answer = json.loads(await execute_code({"code": code}, ctx=None))  # type: ignore[arg-type]  # refused before it is used
    assert set(answer) == {"error"}


def test_faults_are_shown_with_a_caret_under_them() -> None:
    with pytest.raises(BadScript) as bad:
        compiled("x = 1\n    y = 2 +* 3\n")
    first, text, caret = str(bad.value).splitlines()
    assert first.startswith("IndentationError at line 2")
    assert (text, caret.strip("^ ")) == ("    y = 2 +* 3", "")
    assert compiled("print(1)").co_filename == "script.py"
    with pytest.raises(BadScript, match="1000001 characters"):
        compiled("#" * 1_000_001)


def test_a_scripts_warnings_are_not_printed_by_the_runtime(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        compiled("print(1 is 1, '\\d')")
    assert capfd.readouterr() == ("", "")


def test_the_running_line_is_that_of_the_main_thread() -> None:
    stack = (
        b"Timeout (0:00:01)!\nThread 0x01 (most recent call first):\n"
        b'  File "/usr/lib/threading.py", line 9 in wait\n  File "/tmp/x/script.py", line 2 in other\n\n'
        b"Thread 0x02 (most recent call first):\n"
        b'  File "/usr/lib/socket.py", line 5 in recv\n  File "/tmp/x/script.py", line 3 in <module>\n'
    )
    assert running_line(stack, "a\nb\n  c()  \n") == "line 3: c()"
    assert running_line(b"", "a") == ""


def test_output_is_the_same_however_it_arrives() -> None:
    whole = bytes(range(256)) * 1000
    for step in (1000, 7777, len(whole)):
        output = ScriptOutput(limit=1000, kept=50_000)
        for at in range(0, len(whole), step):
            output.add(whole[at : at + step])
        assert output.total == len(whole)
        assert (output.is_cut, output.omitted, output.whole()) == (True, len(whole) - 1000, None)
        assert output.shown().encode()[:100] == whole[:400].decode("utf-8", "ignore").encode()[:100]
        assert f"{len(whole) - 1000} of {len(whole)} bytes" in output.shown()


def test_from_outside_a_tool_that_cannot_say_what_it_touches_runs_alone() -> None:
    before = registry.get("web_search")
    assert before is not None

    def untold(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
        raise KeyError("query")

    schema = {"name": "web_search", "description": "d", "parameters": {"type": "object"}}
    registry.register("web_search", "web", schema, lambda args, **_: '{"data": 1}', traits=Traits(effects=untold))
    try:
        answer = outside("from hermes_tools import web_search\nprint(web_search('x'))", "web_search")
    finally:
        registry.add(before)
        close_task("scripts")
    assert (answer["status"], answer["output"]) == ("success", "{'data': 1}\n")
