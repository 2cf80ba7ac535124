"""Middleware changes arguments and requests, stands around calls, and whatever it does a tool runs at most once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hermes.model_tools import handle_function_call
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.types import PrefixBroken
from tests.extensions.plugins.conftest import Room
from tests.extensions.plugins.samples import write_plugin

Results = Callable[[dict[str, Any]], list[str]]
COUNTER = """
from hermes.tools.registry import tool_result

RAN = []


def count(args, **kw):
    RAN.append(args["n"])
    return tool_result(ran=list(RAN))


{middleware}


def register(ctx):
    ctx.register_tool("count", "counter", {{"name": "count", "description": "Count.", "parameters": {{"type": "object",
        "properties": {{"n": {{"type": "integer"}}}}, "required": ["n"]}}}}, count)
{registrations}
"""


def plugin(room: Room, middleware: str, *registered: tuple[str, str], name: str = "counter") -> None:
    lines = "\n".join(f"    ctx.register_middleware({kind!r}, {function})" for kind, function in registered)
    write_plugin(room.home / "plugins" / name, COUNTER.format(middleware=middleware, registrations=lines))
    room.config(f"plugins: {{enabled: [{name}], entries: {{{name}: {{hook_timeout: 0.5}}}}}}\n")


def test_requests_compose_and_a_change_that_does_not_fit_the_schema_is_none(room: Room, results: Results) -> None:
    code = """
def add(args, **kw): return {"args": {"n": args["n"] + 1}}
async def double(args, original_args, **kw): return {"args": {"n": args["n"] * 2 + original_args["n"]}}
def break_it(args, **kw): return {"args": {"n": "many"}}
def fail(**kw): raise RuntimeError("no")
"""
    plugin(room, code, *[("tool_request", one) for one in ("add", "double", "break_it", "fail")])
    answer = room.run(calls("count", n=10), says("Done."))
    assert json.loads(results(answer)[0]) == {"ran": [32]}
    assert any("tool_request of 'counter' failed" in line for line in room.warnings)
    assert json.loads(handle_function_call("count", {"n": 1}))["ran"][-1] == 5


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def around(next_call, **kw): return next_call()", {"ran": [1]}),
        ("async def around(next_call, **kw): return await next_call()", {"ran": [1]}),
        ("def around(next_call, **kw): return next_call({'n': 7})", {"ran": [7]}),
        ('def around(next_call, **kw): return \'{"in": "its place"}\'', {"in": "its place"}),
        ("def around(next_call, **kw): raise RuntimeError('early')", {"ran": [1]}),
        ("def around(next_call, **kw):\n    next_call()\n    raise RuntimeError('late')", {"ran": [1]}),
        ("def around(next_call, **kw):\n    next_call()\n    return next_call()", {"ran": [1]}),
        ("def around(next_call, **kw): return next_call({'n': 'no number'})", {"ran": [1]}),
        ("def around(next_call, **kw): pass", {"ran": [1]}),
        ("import asyncio\nasync def around(next_call, **kw): await asyncio.Event().wait()", {"ran": [1]}),
    ],
)
def test_a_tool_runs_at_most_once_whatever_is_around_it(
    room: Room, results: Results, code: str, told: dict[str, Any]
) -> None:
    plugin(room, code, ("tool_execution", "around"))
    answer = room.run(calls("count", n=1), says("Done."))
    assert json.loads(results(answer)[0]) == told


def test_the_first_is_outermost(room: Room, results: Results) -> None:
    code = """
def outer(next_call, **kw): return "[" + next_call() + "]"
async def inner(next_call, **kw): return "(" + await next_call() + ")"
"""
    plugin(room, code, ("tool_execution", "outer"), ("tool_execution", "inner"))
    answer = room.run(calls("count", n=1), says("Done."))
    assert results(answer) == ['[({"ran": [1]})]']
    assert handle_function_call("count", {"n": 2}) == '[({"ran": [1, 2]})]'


def test_a_request_takes_along_what_middleware_adds_and_says_when_the_prefix_moves(room: Room) -> None:
    code = """
def cooler(request, **kw): return {"request": {**request, "temperature": 0.1, "max_tokens": 77}}
def other(request, original_request, **kw): return {"request": {**request, "model": "another"}}
def say_more(request, **kw):
    return {"request": {**request, "messages": [*request["messages"], {"role": "user", "content": "Be brief."}]}}
"""
    plugin(room, code, ("llm_request", "cooler"), ("llm_request", "other"))
    model = ScriptedModel(says("Done."))
    room.run(model)
    options = model.full_requests[0].options
    assert (options.extra_body, options.max_tokens) == ({"temperature": 0.1}, 77)
    assert any("cannot change the model" in line for line in room.warnings)
    assert not [one for one in room.sink.events if isinstance(one, PrefixBroken)]
    plugin(room, code, ("llm_request", "say_more"), name="more")
    model = ScriptedModel(says("Done."))
    room.run(model)
    assert "Be brief." in str(model.requests[0][-1].content)
    assert [one.reason for one in room.sink.events if isinstance(one, PrefixBroken)] == ["plugin"]


def test_a_middleware_around_requests_may_change_the_answers_words(room: Room) -> None:
    code = """
async def loud(request, next_call, **kw):
    answer = await next_call()
    return {"content": answer["content"].upper()}
def lazy(next_call, **kw): return {"content": "invented"}
"""
    plugin(room, code, ("llm_execution", "loud"), ("llm_execution", "lazy"))
    assert room.run(says("Done."))["final_response"] == "DONE."
