"""The contracts of hooks, views and contexts, held against what the kernel uses and what tests use."""

from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.seams import Effects, HookBus, ToolContext
from hermes.testing.fakes import OpenHooks
from hermes.testing.workplace import FakeContext
from hermes.tools.hooks import Hooks
from hermes.tools.registry import ToolRegistry, tool_result
from hermes.tools.traits import Traits
from hermes.tools.view import SessionView


@pytest.mark.parametrize("hooks", [Hooks(), OpenHooks()])
async def test_without_hooks_everything_passes_unchanged(hooks: HookBus) -> None:
    assert await hooks.allow("pre_tool_call", {"tool_name": "x"}) is None
    await hooks.observe("post_tool_call", {"tool_name": "x"})
    assert await hooks.transform("transform_tool_result", "text", {}) == "text"


async def test_a_policy_that_fails_denies_and_an_observer_that_fails_is_not_felt() -> None:
    def broken(**_: Any) -> None:
        raise ValueError("broken guard")

    hooks = Hooks()
    hooks.add("pre_tool_call", broken, owner="guard", kind="policy")
    hooks.add("post_tool_call", broken, owner="watcher", kind="observer")
    reason = await hooks.allow("pre_tool_call", {"tool_name": "x"})
    assert reason is not None
    assert "guard" in reason
    await hooks.observe("post_tool_call", {"tool_name": "x"})


def view_of_echo() -> SessionView:
    registry = ToolRegistry()
    schema = {
        "name": "echo",
        "description": "Give it back.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }

    async def echo(args: dict[str, Any], *, ctx: ToolContext, **_: Any) -> str:
        await ctx.note("echoed", args["text"])
        return tool_result(text=args["text"])

    traits = Traits(effects=lambda _args, _ctx: Effects())
    registry.register(name="echo", toolset="t", schema=schema, handler=echo, is_async=True, traits=traits)
    found = registry.get("echo")
    assert found is not None
    return SessionView.of(found)


async def test_a_view_offers_checks_and_calls_what_it_was_frozen_with() -> None:
    view, ctx = view_of_echo(), FakeContext()
    assert view.names() == {"echo"}
    assert [one.name for one in view.definitions()] == ["echo"]
    assert view.check("echo", {"text": "hi"}) == {"text": "hi"}
    with pytest.raises(ToolError):
        view.check("echo", {})
    with pytest.raises(ToolError):
        view.check("other", {})
    assert await view.call("echo", {"text": "hi"}, ctx) == '{"text": "hi"}'
    assert ctx.details == {"echoed": "hi"}
    assert view.effects("unknown", {}, ctx).barrier


def test_a_view_comes_back_from_its_stored_form_to_the_byte() -> None:
    view = view_of_echo()
    again = SessionView.from_json(view.to_json(), {})
    assert again.to_json() == view.to_json()
    assert again.definitions() == view.definitions()
