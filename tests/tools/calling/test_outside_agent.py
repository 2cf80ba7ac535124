"""Calls from outside an agent: from plain code, from inside a loop, from threads, nested, and with every hook."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import model_tools
from hermes.model_tools import coerce_tool_args, handle_function_call
from hermes.seams import ToolContext
from hermes.state import SessionDB
from hermes.tools.calling.outside_agent import outside
from hermes.tools.decorator import tool
from hermes.tools.registry import registry
from hermes.tools.traits import Traits

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = set(model_tools.get_all_tool_names())
    yield
    for name in set(registry.get_all_tool_names()) - before:
        registry.deregister(name)
    outside.hooks.remove("test")


def add(name: str, handler: Any, parameters: dict[str, Any] | None = None, **more: Any) -> None:
    schema = {"name": name, "description": name, "parameters": parameters or {"type": "object", "properties": {}}}
    registry.register(name=name, toolset="direct", schema=schema, handler=handler, **more)


def test_a_sync_handler_runs_in_the_callers_own_thread() -> None:
    add("where", lambda args, **kw: json.dumps({"thread": threading.get_ident(), "task": kw["task_id"]}))
    found = json.loads(handle_function_call("where", {}, task_id="t"))
    assert found == {"thread": threading.get_ident(), "task": "t"}


def test_async_handlers_work_from_plain_code_from_a_loop_and_from_threads() -> None:
    async def handler(args: dict[str, Any], **_: object) -> str:
        await asyncio.sleep(0)
        return json.dumps({"n": args["n"]})

    add("later", handler, NUMBER, is_async=True)
    assert json.loads(handle_function_call("later", {"n": "3"})) == {"n": 3}

    async def inside() -> str:
        return handle_function_call("later", {"n": 4})

    assert json.loads(asyncio.run(inside())) == {"n": 4}
    box: list[str] = []
    threads = [
        threading.Thread(target=lambda number=number: box.append(handle_function_call("later", {"n": number})))
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(json.loads(text)["n"] for text in box) == list(range(16))


def test_a_client_made_on_the_first_call_is_usable_on_every_later_one() -> None:
    kept: list[asyncio.Queue[int]] = []

    async def handler(args: dict[str, Any], **_: object) -> str:
        if not kept:
            kept.append(asyncio.Queue(maxsize=1))
        await kept[0].put(1)
        return json.dumps(await kept[0].get())

    add("client", handler, is_async=True)
    assert handle_function_call("client", {}) == "1"
    assert asyncio.run(_in_loop("client")) == "1"
    assert handle_function_call("client", {}) == "1"


async def _in_loop(name: str) -> str:
    return handle_function_call(name, {})


def test_nested_calls_of_both_kinds_never_wait_for_themselves() -> None:
    def down(args: dict[str, Any]) -> str:
        n = args["n"]
        return json.dumps(1) if n == 0 else json.dumps(1 + json.loads(handle_function_call("up", {"n": n - 1})))

    async def up(args: dict[str, Any]) -> str:
        n = args["n"]
        return json.dumps(1) if n == 0 else json.dumps(1 + json.loads(handle_function_call("down", {"n": n - 1})))

    add("down", down, NUMBER)
    add("up", up, NUMBER, is_async=True)
    assert handle_function_call("down", {"n": 8}) == "9"
    assert asyncio.run(_nested()) == "9"


async def _nested() -> str:
    return handle_function_call("up", {"n": 8})


def test_a_handler_past_its_limit_is_cancelled_and_told() -> None:
    ended = threading.Event()

    async def slow(args: dict[str, Any]) -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return "{}"

    add("slow", slow, is_async=True, traits=Traits(timeout_s=0.05))
    assert "TimeoutError" in json.loads(handle_function_call("slow", {}))["error"]
    assert ended.wait(10)


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("nothing_like_it", {}, "Unknown tool: nothing_like_it"),
        ("todo", {}, "todo must be handled by the agent loop"),
        ("memory", {}, "memory must be handled by the agent loop"),
        ("count", [], "must be a JSON object"),
        ("count", {"n": "many"}, "do not fit the schema"),
        ("bad", {}, "Tool execution failed: ValueError: boom"),
        ("none", {}, "returned NoneType"),
        ("leaves", {}, "tried to leave"),
    ],
)
def test_errors_are_json_text(name: str, args: Any, words: str) -> None:
    def bad(args: dict[str, Any], **_: object) -> str:
        raise ValueError("boom")

    def leaves(args: dict[str, Any]) -> str:
        raise SystemExit(2)

    add("count", lambda args: "{}", NUMBER)
    add("bad", bad)
    add("none", lambda args: None)
    add("leaves", leaves)
    assert words in json.loads(handle_function_call(name, args))["error"]


def test_hooks_of_the_process_are_asked_once_and_may_be_skipped() -> None:
    asked: list[str] = []

    def policy(**facts: Any) -> Any:
        asked.append(facts["tool_name"])
        return {"action": "block", "message": "no"}

    add("plain", lambda args: '{"ok": 1}')
    hooks = outside.hooks
    hooks.add("pre_tool_call", policy, owner="test", kind="policy")
    hooks.add("transform_tool_result", lambda result: result + " ", owner="test", kind="transform")
    assert handle_function_call("plain", {}) == '{"error": "no"}'
    assert handle_function_call("plain", {}, skip_pre_tool_call_hook=True) == '{"ok": 1} '
    assert asked == ["plain"]


def test_execute_code_is_told_which_tools_there_are() -> None:
    ours = registry.get("execute_code")
    registry.deregister("execute_code")
    try:
        add("execute_code", lambda args, **kw: json.dumps(kw["enabled_tools"]))
        assert json.loads(handle_function_call("execute_code", {}, enabled_tools=["a"])) == ["a"]
    finally:
        registry.deregister("execute_code")
        if ours is not None:
            registry.add(ours)


def test_coercion_under_the_contracts_name() -> None:
    add("count", lambda args: "{}", NUMBER)
    assert coerce_tool_args("count", {"n": "4", "m": "4"}) == {"n": 4, "m": "4"}
    assert coerce_tool_args("nothing_like_it", {"n": "4"}) == {"n": "4"}
    assert coerce_tool_args("count", "text") == "text"


def test_built_ins_share_a_working_directory_per_task(tmp_path: Path, hermes_home: Path) -> None:
    # Without the sandbox: what is tested is what calls of one task share, wherever their commands run.
    (hermes_home / "config.yaml").write_text("terminal:\n  sandbox: 'off'\n", encoding="utf-8")
    target = tmp_path / "sub"
    target.mkdir()
    moved = json.loads(handle_function_call("terminal", {"command": f"cd {target} && export WORD=kept"}, task_id="one"))
    assert moved["exit_code"] == 0, moved
    here = json.loads(handle_function_call("terminal", {"command": "pwd; echo $WORD"}, task_id="one"))
    assert here["output"].split() == [str(target), "kept"]
    there = json.loads(handle_function_call("terminal", {"command": "pwd; echo $WORD"}, task_id="two"))
    assert str(target) not in there["output"]
    written = json.loads(handle_function_call("write_file", {"path": "x.txt", "content": "hi\n"}, task_id="one"))
    assert not written.get("error"), written
    assert (target / "x.txt").read_text(encoding="utf-8") == "hi\n"
    denied = json.loads(handle_function_call("terminal", {"command": f"rm -rf {tmp_path.parent}"}, task_id="one"))
    assert tmp_path.exists()
    assert denied.get("error") or denied.get("status") == "blocked"
    started = json.loads(
        handle_function_call("terminal", {"command": "echo up; read x; echo got $x", "background": True}, task_id="one")
    )
    ident = started["session_id"]
    handle_function_call("process", {"action": "submit", "session_id": ident, "data": "tea"}, task_id="one")
    ended = json.loads(
        handle_function_call("process", {"action": "wait", "session_id": ident, "timeout": 30}, task_id="one")
    )
    assert "got tea" in ended["output"], ended
    model_tools.close_task("one")
    model_tools.close_task("two")


# -- the decorator -----------------------------------------------------------------------------------------------


def test_a_function_is_a_whole_tool() -> None:
    @tool(toolset="direct", emoji="🎲")
    def roll(sides: int, times: int = 1, *, task_id: str | None = None) -> dict[str, Any]:
        """Roll dice.

        As often as you like.

        Args:
            sides: Sides of each die,
                at least 2.
            times (int): How often.

        Returns:
            The rolls.
        """
        return {"rolls": [sides] * times, "task": task_id}

    assert registry.get_schema("roll") == {
        "name": "roll",
        "description": "Roll dice.\n\nAs often as you like.",
        "parameters": {
            "type": "object",
            "properties": {
                "sides": {"type": "integer", "description": "Sides of each die, at least 2."},
                "times": {"type": "integer", "default": 1, "description": "How often."},
            },
            "required": ["sides"],
            "additionalProperties": False,
        },
    }
    assert json.loads(handle_function_call("roll", {"sides": "6", "times": 2}, task_id="t")) == {
        "rolls": [6, 6],
        "task": "t",
    }
    assert "'size' was unexpected" in json.loads(handle_function_call("roll", {"sides": 6, "size": 1}))["error"]
    assert roll(2) == {"rolls": [2], "task": None}


def test_an_async_function_is_one_too() -> None:
    @tool(toolset="direct", name="wait_a_bit")
    async def wait(reason: str) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return reason

    assert handle_function_call("wait_a_bit", {"reason": "tea"}) == "tea"
    entry = registry.get_entry("wait_a_bit")
    assert entry is not None
    assert entry.is_async


def test_a_function_that_cannot_be_offered_says_why() -> None:
    with pytest.raises(TypeError, match="needs a docstring"):

        @tool(toolset="direct")
        def silent(a: int) -> str:
            return ""

    with pytest.raises(TypeError, match="needs a type hint"):

        @tool(toolset="direct")
        def untyped(a) -> str:  # type: ignore[no-untyped-def]  # what the test is about
            """Words."""
            return ""

    with pytest.raises(TypeError, match="must have names"):

        @tool(toolset="direct")
        def many(*a: int) -> str:
            """Words."""
            return ""


def test_a_handler_of_the_users_is_handed_every_keyword_it_names() -> None:
    @tool(toolset="direct")
    async def size_of(path: str, ctx: ToolContext) -> dict[str, int]:
        """Tell how long a file is."""
        return {"bytes": len(await ctx.environment.read(path))}

    @tool(toolset="direct")
    def asked_by(ctx: ToolContext, user_task: str, enabled_tools: list[str]) -> dict[str, object]:
        """Tell who asks."""
        return {"task": ctx.task_id, "call": ctx.call_id, "words": [user_task, ctx.user_task], "tools": enabled_tools}

    assert json.loads(handle_function_call("size_of", {"path": __file__})) == {"bytes": Path(__file__).stat().st_size}
    asked: dict[str, Any] = {"task_id": "t", "tool_call_id": "c", "user_task": "count", "enabled_tools": ["x"]}
    told = json.loads(handle_function_call("asked_by", {}, **asked))
    assert told == {"task": "t", "call": "c", "words": ["count", "count"], "tools": ["x"]}
    model_tools.close_task("t")


def test_arguments_are_held_against_the_schema_as_it_is_offered() -> None:
    modes = ["old"]

    def echo(args: dict[str, Any], **_: object) -> str:
        return json.dumps(args)

    def offered() -> dict[str, Any]:
        properties = {"mode": {"enum": list(modes)}, "n": {"type": "integer"}}
        return {"parameters": {"type": "object", "properties": properties}}

    add("by_mode", echo, dynamic_schema_overrides=offered)
    assert json.loads(handle_function_call("by_mode", {"mode": "old", "n": "1"})) == {"mode": "old", "n": 1}
    modes[:] = ["new"]
    assert "not one of" in json.loads(handle_function_call("by_mode", {"mode": "old"}))["error"]
    assert coerce_tool_args("by_mode", {"n": "2"}) == {"n": 2}

    add("loose", echo, {"type": "object", "properties": {"n": "integer"}, "required": ["gone"]})
    assert json.loads(handle_function_call("loose", {"n": "3"})) == {"n": 3}


def test_a_function_may_have_a_list_as_default_and_is_told_what_it_cannot_take() -> None:
    @tool(toolset="direct")
    def join(words: list[str] = ["a", "b"]) -> str:  # noqa: B006 - what an author writes
        """Join words."""
        words.append("c")
        return " ".join(words)

    assert [handle_function_call("join", {}), handle_function_call("join", {})] == ["a b c", "a b c"]
    with pytest.raises(TypeError, match=r"size\(\) takes something that a model cannot write: .*Path.*; use str"):

        @tool(toolset="direct")
        def size(path: Path) -> int:
            """Tell how long a file is."""
            return path.stat().st_size


def test_dispatch_hands_every_keyword_to_a_handler_that_takes_any() -> None:
    def any_of_them(args: dict[str, Any], **kw: Any) -> str:
        return json.dumps(kw)

    def named(args: dict[str, Any], *, store: str, **kw: Any) -> str:
        return json.dumps({"store": store, **kw})

    def plain(args: dict[str, Any], task_id: str | None = None) -> str:
        return json.dumps({"task_id": task_id})

    for handler in (any_of_them, named, plain):
        add(handler.__name__, handler)
    given = {"task_id": "t", "session_id": "s", "store": "here", "depth": 3}
    assert json.loads(registry.dispatch("any_of_them", {}, **given)) == given
    assert json.loads(registry.dispatch("named", {}, **given)) == given
    assert json.loads(registry.dispatch("plain", {}, **given)) == {"task_id": "t"}


def test_dispatch_hands_every_keyword_to_an_async_handler() -> None:
    async def later(args: dict[str, Any], **kw: Any) -> str:
        await asyncio.sleep(0)
        return json.dumps(kw)

    add("later_still", later, is_async=True)
    assert json.loads(registry.dispatch("later_still", {}, parent="p")) == {"parent": "p"}


def test_dispatch_of_a_tool_of_the_agent_loop_is_refused_in_one_sentence() -> None:
    assert json.loads(registry.dispatch("todo", {})) == {"error": "todo must be handled by the agent loop"}


def test_dispatch_runs_a_built_in_that_works_with_a_context(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first line\n")
    found = json.loads(registry.dispatch("read_file", {"path": str(tmp_path / "a.txt")}, task_id="dispatched"))
    model_tools.close_task("dispatched")
    assert "first line" in found["content"]


def test_the_row_of_a_decision_holds_no_secret(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (hermes_home / "config.yaml").write_text("terminal:\n  sandbox: 'off'\n", encoding="utf-8")
    monkeypatch.setenv("DEPLOY_API_KEY", "s3cr3t-value-4242")
    try:
        handle_function_call("terminal", {"command": "echo s3cr3t-value-4242"}, task_id="secret")
    finally:
        outside.close_task("secret")
    db = SessionDB()
    (row,) = db.list_approvals("secret")
    db.close()
    assert row["action"].startswith("echo ")
    assert "s3cr3t" not in str(row)
