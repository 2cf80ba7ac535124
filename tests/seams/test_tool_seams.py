"""The contracts of hooks, views and contexts, held against what the kernel uses and what tests use."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hermes.config.load import load_settings
from hermes.errors import ProviderError, ToolError
from hermes.model_tools import handle_function_call
from hermes.models.attempts import ClientOptions
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryParts
from hermes.ops import SessionCreated
from hermes.runtime.context import Prepared
from hermes.runtime.joined_parts import JoinedParts
from hermes.runtime.parts.vision import Vision
from hermes.seams import Effects, HookBus, Sees, ToolContext, ToolRules, ToolView
from hermes.testing.fakes import CannedHttp, CountedIds, FakeTool, FakeTools, HandClock, OpenHooks
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says
from hermes.testing.workplace import FakeContext
from hermes.tools.hooks import Hooks
from hermes.tools.registry import ToolRegistry, tool_result
from hermes.tools.traits import Traits
from hermes.tools.view import SessionView
from hermes.types import ImagePart, StatusChanged, ToolCall
from tests.runtime.rooms import room


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


def fake_view_of_echo() -> FakeTools:
    async def echo(args: dict[str, Any], ctx: ToolContext) -> str:
        await ctx.note("echoed", args["text"])
        return tool_result(text=args["text"])

    return FakeTools(FakeTool("echo", echo, required=("text",)))


@pytest.mark.parametrize("make", [view_of_echo, fake_view_of_echo])
async def test_a_view_offers_checks_and_calls_what_it_was_frozen_with(make: Callable[[], ToolView]) -> None:
    view, ctx = make(), FakeContext()
    assert view.names() == {"echo"}
    assert [one.name for one in view.definitions()] == ["echo"]
    assert view.definitions() == view.definitions()
    assert view.definitions()[0].parameters["required"] == ["text"]
    assert view.unwrap("echo", {"text": "hi"}) == ("echo", {"text": "hi"})
    assert view.check("echo", {"text": "hi"}) == {"text": "hi"}
    with pytest.raises(ToolError):
        view.check("echo", {})
    with pytest.raises(ToolError):
        view.check("other", {})
    assert await view.call("echo", {"text": "hi"}, ctx) == '{"text": "hi"}'
    assert ctx.details == {"echoed": "hi"}
    with pytest.raises(ToolError):
        await view.call("other", {}, ctx)
    assert not view.effects("echo", {"text": "hi"}, ctx).barrier
    assert view.effects("other", {}, ctx).barrier
    assert view.rules("other") == ToolRules()


async def test_the_kernel_runs_the_calls_of_any_view(tmp_path: Path) -> None:
    view = fake_view_of_echo()
    calls = [ToolCall("c1", "echo", '{"text": "hi"}'), ToolCall("c2", "echo", "{}"), ToolCall("c3", "other", "{}")]
    async with room(tmp_path) as here:
        results = await here.over(view).run(*calls)
    assert [(one.call_id, one.status) for one in results] == [("c1", "ok"), ("c2", "failed"), ("c3", "failed")]
    assert view.called == [("echo", {"text": "hi"})]


def test_a_view_comes_back_from_its_stored_form_to_the_byte() -> None:
    view = view_of_echo()
    again = SessionView.from_json(view.to_json(), {})
    assert again.to_json() == view.to_json()
    assert again.definitions() == view.definitions()


def asked(name: str) -> Prepared:
    return Prepared(ToolCall("c1", name, "{}"), name, {}, ToolRules())


@pytest.mark.parametrize("kind", ["fake", "kernel"])
async def test_a_context_gives_a_handler_what_it_works_with(tmp_path: Path, kind: str) -> None:
    def fail() -> None:
        raise ToolError("not today")

    async with room(tmp_path) as here:
        turn = here.ctx
        ctx: ToolContext = FakeContext() if kind == "fake" else turn.for_call(asked("t"), turn.scope)
        assert all((ctx.session_id, ctx.task_id, ctx.call_id, ctx.environment.cwd))
        assert (ctx.route, ctx.scope.reason) == ("foreground", None)
        assert await ctx.in_thread(sorted, "ba", reverse=True) == ["b", "a"]
        with pytest.raises(ToolError, match="not today"):
            await ctx.in_thread(fail)
        assert isinstance(ctx.settings, Mapping)
        ctx.memo["seen"] = 1
        assert ctx.memo["seen"] == 1
        ctx.emit(StatusChanged("warning", "half done"))
        seen = ctx.events if isinstance(ctx, FakeContext) else here.events.seen
        assert StatusChanged("warning", "half done") in seen
        await ctx.note("files", ["a"])
        assert ctx.details == {"files": ["a"]}  # type: ignore[attr-defined]  # where they end up is each one's own


# -- looking ---------------------------------------------------------------------------------------------------------

DOT = ImagePart("data:image/png;base64,iVBORw0KGgo=", media_type="image/png")


@asynccontextmanager
async def kernel_context(folder: Path, *script: Any) -> AsyncIterator[Sees]:
    """The context of a call in a turn; without a script there is no model."""
    async with room(folder) as here:
        turn = here.ctx
        if script:
            model, store = ScriptedModel(*script), MemoryStore()
            await store.commit(SessionCreated(session_id=turn.session_id))
            parts = AuxiliaryParts(
                settings=load_settings(),
                http=CannedHttp(),
                store=store,
                clock=HandClock(),
                ids=CountedIds(),
                options=ClientOptions(),
                main=lambda: model,
            )
            eyes = JoinedParts({"vision": Vision(AuxiliaryClient(parts))})
            turn = structs.replace(turn, services=structs.replace(turn.services, parts=eyes))
        yield turn.for_call(asked("vision_analyze"), turn.scope)


async def test_a_look_gives_what_the_model_says(tmp_path: Path) -> None:
    async with kernel_context(tmp_path, says(" A red dot. ")) as kernel:
        for ctx in (kernel, FakeContext(sight="A red dot.")):
            assert await ctx.look(DOT, "What is it?") == "A red dot."


async def test_a_look_without_an_answer_is_an_error_for_the_model(tmp_path: Path) -> None:
    refused = ProviderError("this model takes no pictures", reason="image_rejected")
    with pytest.raises(ToolError, match="no model"):
        await FakeContext().look(DOT, "What is it?")
    async with kernel_context(tmp_path) as kernel:
        with pytest.raises(ToolError, match="there is none to ask"):
            await kernel.look(DOT, "What is it?")
    async with kernel_context(tmp_path, refused, says("")) as kernel:
        with pytest.raises(ToolError, match=r"takes no pictures; the user can name .* auxiliary.vision"):
            await kernel.look(DOT, "What is it?")
        with pytest.raises(ToolError, match="said nothing"):
            await kernel.look(DOT, "What is it?")


def test_outside_an_agent_there_is_nobody_who_looks() -> None:
    answer = handle_function_call("vision_analyze", {"image_url": DOT.url, "question": "What is it?"})
    assert json.loads(answer) == {
        "error": "looking at a picture takes a model, and outside an agent there is none; call it in a turn"
    }
