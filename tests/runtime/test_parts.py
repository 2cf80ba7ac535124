"""Parts join an agent by name; what one raises or never answers costs that part, and the turn goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.errors import UserError
from hermes.ops import SessionRecord
from hermes.runtime.context import CallContext
from hermes.runtime.parts import PARTS, Joining, Part, TurnFacts
from hermes.runtime.prompt import FixedText
from hermes.seams import Effects, PromptSource
from hermes.testing.fakes import KeepLast, MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.hooks import Hooks
from hermes.tools.registry import Registered, ToolEntry, registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import Content, JsonObject, Message, StatusChanged, TurnFinished, TurnStarted, text_of

MakeAgent = Callable[..., AIAgent]
LIMIT_S = 0.05
RAN: list[str] = []  # by the tool below


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    made: list[AIAgent] = []

    def make(*script: Any, **keywords: Any) -> AIAgent:
        given = {"store": MemoryStore(), "cwd": str(tmp_path), **keywords}
        made.append(
            AIAgent(model=script[0] if isinstance(script[0], ScriptedModel) else ScriptedModel(*script), **given)
        )
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()


@pytest.fixture
def join() -> Iterator[Callable[[str, type[Part]], None]]:
    """Parts from elsewhere, as a plugin adds them; gone after the test."""
    added: list[str] = []

    def add(name: str, part: type[Part]) -> None:
        PARTS.add(name, part)
        added.append(name)

    yield add
    for name in added:
        PARTS.remove(name)


@pytest.fixture(autouse=True)
def _note_tool() -> Iterator[None]:
    def note(args: dict[str, Any], **_: Any) -> str:
        RAN.append(args["text"])
        return tool_result(noted=args["text"])

    RAN.clear()
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    schema = {"name": "note", "description": "Note it.", "parameters": parameters}
    registry.register(
        name="note", toolset="testing", schema=schema, handler=note, traits=Traits(effects=lambda _a, _c: Effects())
    )
    yield
    registry.deregister("note")


async def wrong(how: str) -> Any:
    """What a broken part does."""
    if how == "raises":
        raise ValueError("boom")
    if how == "cancels itself":
        raise asyncio.CancelledError
    await asyncio.Event().wait()


class Source:
    """A prompt source that is broken."""

    name, tier = "7-broken", "volatile"

    def __init__(self, how: str) -> None:
        self.how = how

    async def text(self, session: JsonObject) -> str:
        return str(await wrong(self.how))


class Broken(Part):
    """Each method fails; a test takes one of them."""

    limit_s = LIMIT_S
    how = "raises"

    def prompt(self) -> Sequence[PromptSource]:
        return [Source(self.how)]  # type: ignore[list-item]  # `tier` is one of the allowed words

    async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
        return [await wrong(self.how)]

    async def context(self, turn: TurnFacts) -> str:
        return str(await wrong(self.how))

    async def news(self, *session_ids: str) -> str:
        return str(await wrong(self.how))

    async def refusal(self, call: CallContext) -> str | None:
        return str(await wrong(self.how))

    @asynccontextmanager
    async def around(self, call: CallContext) -> AsyncIterator[None]:
        await wrong(self.how)
        yield

    async def result(self, call: CallContext, content: Content, duration_ms: float) -> Content:
        return str(await wrong(self.how))

    @asynccontextmanager
    async def around_move(self, old: str, new: str) -> AsyncIterator[None]:
        await wrong(self.how)
        yield

    async def session_moved(self, old: str, new: str) -> None:
        await wrong(self.how)

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        await wrong(self.how)

    async def close(self, *ended: str) -> None:
        await wrong(self.how)


class LeavesBadly(Part):
    """Fails when the call is over."""

    limit_s = LIMIT_S
    how = "raises"

    @asynccontextmanager
    async def around(self, call: CallContext) -> AsyncIterator[None]:
        yield
        await wrong(self.how)


def broken(method: str, how: str) -> type[Part]:
    """A part of which one method is broken, and no other is there."""
    if method == "around, afterwards":
        return type("Late", (LeavesBadly,), {"how": how})
    return type("One", (Part,), {"limit_s": LIMIT_S, "how": how, method: vars(Broken)[method]})


def warnings(sink: MemorySink) -> list[str]:
    found = [one.message for one in sink.events if isinstance(one, StatusChanged) and one.kind == "warning"]
    return [text for text in found if "'brittle'" in text]


WRONG = ["raises", "hangs", "cancels itself"]


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize(
    "method", ["prompt", "tools", "context", "news", "around", "around, afterwards", "result", "turn_ended"]
)
async def test_a_broken_part_is_told_once_and_the_turn_goes_on(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], method: str, how: str
) -> None:
    join("brittle", broken(method, how))
    sink = MemorySink()
    model = ScriptedModel(calls("note", text="a"), calls("note", text="b"), says("Done."), says("Again."))
    agent = make_agent(model, sink=sink)
    result = await agent.arun_conversation("Go")
    assert (result["final_response"], result["completed"], RAN) == ("Done.", True, ["a", "b"])
    assert (await agent.arun_conversation("And?"))["final_response"] == "Again."
    (told,) = warnings(sink)
    assert told.startswith(f"the part 'brittle' failed in {method.replace('afterwards', 'on leaving')} (")
    assert {"raises": "ValueError: boom", "hangs": "no answer within 0.05 s"}.get(how, "it was cancelled") in told
    assert next(type(one) for one in sink.events if isinstance(one, TurnStarted | StatusChanged)) is TurnStarted
    model.assert_finished()


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("method", ["around_move", "session_moved"])
async def test_a_session_moves_whatever_a_part_makes_of_it(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], method: str, how: str
) -> None:
    join("brittle", broken(method, how))
    sink = MemorySink()
    agent = make_agent(
        *[says(f"{number}") for number in range(6)], sink=sink, context_engine=KeepLast(), session_id="s"
    )
    for number in range(5):
        await agent.arun_conversation(f"question {number}")
    done = await agent.acompress()
    assert done["status"] == "compressed", done
    assert agent.session_id != "s"
    assert (await agent.arun_conversation("Still there?"))["final_response"] == "5"
    assert len(warnings(sink)) == 1


@pytest.mark.parametrize("how", WRONG)
async def test_an_agent_closes_whatever_a_part_makes_of_it(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], how: str, caplog: pytest.LogCaptureFixture
) -> None:
    join("brittle", broken("close", how))
    agent = make_agent(says("Hi."))
    await agent.arun_conversation("Hi")
    await agent.aclose()
    assert "the part 'brittle' failed in close" in caplog.text


def fails(*_: Any, **__: Any) -> Any:
    raise ValueError("boom")


@pytest.mark.parametrize("method", ["prompt", "history_read", "context", "news", "around", "result", "turn_ended"])
async def test_a_part_that_fails_before_it_is_awaited_costs_no_more(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], method: str
) -> None:
    join("brittle", type("AtOnce", (Part,), {method: fails}))
    sink = MemorySink()
    result = await make_agent(calls("note", text="a"), says("Done."), sink=sink).arun_conversation("Go")
    assert (result["final_response"], RAN, len(warnings(sink))) == ("Done.", ["a"], 1)


async def test_a_part_that_cannot_keep_anything_leaves_a_compression_as_it_is(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    join("brittle", type("AtOnce", (Part,), {"keep": fails}))
    agent = make_agent(*[says("ok") for _ in range(5)], context_engine=KeepLast(), session_id="s")
    for number in range(5):
        await agent.arun_conversation(f"question {number}")
    assert (await agent.acompress())["status"] == "compressed"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("context", 5),
        ("news", b"x"),
        ("result", {"a": 1}),
        ("result", ("no part of a message",)),
        ("around", "no context manager"),
        ("tools", 5),
        ("tools", ["no tool"]),
        ("tools", [Registered(ToolEntry("extra", "test", {"name": "extra"}, str), traits=5)]),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_of_the_wrong_kind_is_the_parts_own_fault(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], method: str, answer: Any
) -> None:
    async def says_wrong(*_: Any) -> Any:
        return answer

    join("brittle", type("Wrong", (Part,), {method: (lambda *_: answer) if method == "around" else says_wrong}))
    sink = MemorySink()
    result = await make_agent(calls("note", text="a"), says("Done."), sink=sink).arun_conversation("Go")
    assert (result["final_response"], RAN, len(warnings(sink))) == ("Done.", ["a"], 1)


@pytest.mark.parametrize("has_a_say", [False, True])
async def test_what_joins_and_is_no_part_is_left_out_or_denies_every_call(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], has_a_say: bool
) -> None:
    say = {"refusal": lambda *_: None} if has_a_say else {}
    join("brittle", type("Wrong", (Part,), {"join": classmethod(lambda *_: "no part"), **say}))
    sink = MemorySink()
    result = await make_agent(calls("note", text="a"), says("Done."), sink=sink).arun_conversation("Go")
    assert (result["final_response"], RAN, len(warnings(sink))) == ("Done.", [] if has_a_say else ["a"], 1)


async def test_a_session_moves_although_a_part_puts_nothing_sensible_around_it(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    join("brittle", type("Wrong", (Part,), {"around_move": lambda *_: "no context manager"}))
    agent = make_agent(*[says("ok") for _ in range(5)], context_engine=KeepLast(), session_id="s")
    for number in range(5):
        await agent.arun_conversation(f"question {number}")
    assert (await agent.acompress())["status"] == "compressed"


# -- a say in whether a call runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WRONG)
async def test_a_part_with_a_say_that_does_not_answer_denies_the_call_by_its_name(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], how: str
) -> None:
    join("brittle", broken("refusal", how))
    sink = MemorySink()
    model = ScriptedModel(calls("note", text="a"), calls("note", text="b"), says("Denied."))
    result = await make_agent(model, sink=sink).arun_conversation("Go")
    assert (result["final_response"], RAN) == ("Denied.", [])
    answers = [text_of(one.content) for one in model.requests[2] if one.role == "tool"]
    assert len(answers) == 2
    assert all("the part 'brittle' failed in refusal" in one for one in answers)
    (told,) = warnings(sink)
    assert told.endswith("the call is denied")


async def test_a_part_with_a_say_that_could_not_be_made_denies_every_call(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    class Guard(Part):
        @classmethod
        def join(cls, agent: Joining) -> "Guard":
            raise ValueError("no such list")

        async def refusal(self, call: CallContext) -> str | None:
            return None

    join("brittle", Guard)
    sink = MemorySink()
    model = ScriptedModel(calls("note", text="a"), says("Denied."))
    await make_agent(model, sink=sink).arun_conversation("Go")
    assert RAN == []
    assert "the part 'brittle' failed in join (ValueError: no such list)" in text_of(model.requests[1][-1].content)
    assert len(warnings(sink)) == 1


async def test_a_part_without_a_say_that_could_not_be_made_is_left_out(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    join("brittle", type("Unmade", (Part,), {"join": classmethod(fails)}))
    sink = MemorySink()
    result = await make_agent(calls("note", text="a"), says("Done."), sink=sink).arun_conversation("Go")
    assert (result["final_response"], RAN, len(warnings(sink))) == ("Done.", ["a"], 1)


async def test_a_setting_that_is_wrong_is_told_as_such(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    def refuse(_agent: Joining) -> None:
        raise UserError("memory.url is no address; see: hermes config edit")

    join("picky", type("Picky", (Part,), {"join": staticmethod(refuse)}))
    with pytest.raises(UserError, match=r"memory\.url"):
        await make_agent(says("Hi.")).arun_conversation("Hi")


@pytest.mark.parametrize("how", ["raises", "hangs"])
@pytest.mark.parametrize("hook", ["pre_tool_call", "edit_approval"])
async def test_a_policy_hook_that_does_not_answer_denies_the_call_by_its_owner(
    make_agent: MakeAgent, tmp_path: Path, hook: str, how: str
) -> None:
    async def policy(**_: Any) -> Any:
        await wrong(how)

    model = ScriptedModel(calls("write_file", path="a.txt", content="x"), says("Denied."))
    agent = make_agent(model)
    hooks = (await agent._assembled()).services.hooks
    assert isinstance(hooks, Hooks)
    hooks.add(hook, policy, owner="the guard", kind="policy", timeout_s=LIMIT_S)
    await agent.arun_conversation("Go")
    assert "the policy of 'the guard' failed" in text_of(model.requests[1][-1].content)
    assert not (tmp_path / "a.txt").exists()


async def test_grants_that_cannot_be_read_deny_the_call_and_are_named(make_agent: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (paths.made(paths.hermes_home()) / "approvals.json").write_text("{broken")
    model = ScriptedModel(calls("terminal", command="rm -rf build"), says("Denied."))
    await make_agent(model, approval_callback=lambda *_: "once").arun_conversation("Go")
    assert "approvals.json" in text_of(model.requests[1][-1].content)
    assert (tmp_path / "build").is_dir()


# -- cancellation ----------------------------------------------------------------------------------------------------


class Stubborn(Part):
    """Keeps a cancellation to itself."""

    limit_s = 30.0

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def context(self, turn: TurnFacts) -> str:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "never mind"
        return ""


@pytest.mark.parametrize("method", ["context", "refusal", "around", "result"])
async def test_an_interrupt_passes_through_a_part_that_is_asked(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None], method: str
) -> None:
    asked = asyncio.Event()

    class Slow(Part):
        async def waits(self, *_: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        @asynccontextmanager
        async def enters(self, _call: CallContext) -> AsyncIterator[None]:
            await self.waits()
            yield

    join("slow", type("Slow", (Slow,), {method: Slow.enters if method == "around" else Slow.waits}))
    sink = MemorySink()
    agent = make_agent(calls("note", text="a"), says("Never."), sink=sink)
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("Go"))
        await asyncio.wait_for(asked.wait(), 10)
        agent.interrupt()
        result = await asyncio.wait_for(turn, 5)
    assert (result["interrupted"], result["turn_exit_reason"]) == (True, "interrupted_by_user")
    assert [one for one in sink.events if isinstance(one, StatusChanged) and "'slow'" in one.message] == []


async def test_a_part_cannot_keep_an_interrupt_to_itself(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    join("stubborn", Stubborn)
    agent = make_agent(ScriptedModel(says("Never.")))
    part = (await agent._assembled()).services.parts.by_name["stubborn"]
    assert isinstance(part, Stubborn)
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(agent.arun_conversation("Go"))
        await asyncio.wait_for(part.asked.wait(), 10)
        agent.interrupt()
        result = await asyncio.wait_for(turn, 5)
    assert (result["interrupted"], result["api_calls"]) == (True, 0)


# -- what they are for -----------------------------------------------------------------------------------------------


async def test_parts_are_asked_in_the_order_of_their_names_and_only_for_what_they_override(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    def speaker(name: str) -> type[Part]:
        async def context(_self: Part, turn: TurnFacts) -> str:
            return f"{name} heard {turn.said!r}"

        def prompt(_self: Part) -> Sequence[PromptSource]:
            return [FixedText(f"7-{name}", "volatile", f"I am {name}.")]

        return type(name, (Part,), {"context": context, "prompt": prompt})

    join("zoe", speaker("zoe"))
    join("ada", speaker("ada"))
    model = ScriptedModel(says("Hi."))
    agent = make_agent(model)
    await agent.arun_conversation("Hello")
    request = model.full_requests[0]
    assert request.units[-1].context == "ada heard 'Hello'\n\nzoe heard 'Hello'"
    assert "I am ada.\n\nI am zoe.\n\nConversation started:" in request.system
    parts = (await agent._assembled()).services.parts
    assert [name for name, _ in parts._overriding["context"]] == [
        "ada",
        "background",
        "checkpoints",
        "hooks",
        "nested-rules",
        "skills",
        "work-mode",
        "zoe",
    ]
    assert [name for name, _ in parts._overriding["around"]] == ["checkpoints"]


async def test_a_part_around_a_call_sees_it_begin_and_end_and_cannot_hide_what_it_raised(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    seen: list[str] = []

    class Hiding(AbstractAsyncContextManager[None]):
        async def __aenter__(self) -> None:
            seen.append("before")

        async def __aexit__(self, kind: Any, error: Any, trace: Any) -> bool:
            seen.append(kind.__name__ if kind else "after")
            return True

    class Around(Part):
        def around(self, call: CallContext) -> AbstractAsyncContextManager[None] | None:
            return Hiding() if call.asked.name == "note" else None

    join("around", Around)
    model = ScriptedModel(calls("note", text="a"), calls("read_file", path="gone.txt"), says("Done."))
    await make_agent(model).arun_conversation("Go")
    assert (seen, RAN) == (["before", "after"], ["a"])


async def test_tools_that_could_not_be_had_are_asked_for_again_in_the_next_turn(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    class Server(Part):
        asked = 0

        async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
            self.asked += 1
            if self.asked == 1:
                raise OSError("not up yet")
            return []

    join("brittle", Server)
    agent = make_agent(says("a"), says("b"), says("c"))
    for _ in range(3):
        await agent.arun_conversation("Hi")
    server = (await agent._assembled()).services.parts.by_name["brittle"]
    assert isinstance(server, Server)
    assert server.asked == 2


async def test_a_part_leaves_every_call_that_it_entered_also_when_it_was_late_once(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    left: list[str] = []
    noted = asyncio.Event()

    class Uneven(Part):
        limit_s = LIMIT_S

        @asynccontextmanager
        async def around(self, call: CallContext) -> AsyncIterator[None]:
            if call.asked.name == "second":
                await asyncio.Event().wait()
            yield
            left.append(call.asked.name)

    async def first(_args: dict[str, Any], **_: Any) -> str:
        await asyncio.wait_for(noted.wait(), 10)
        return "{}"

    async def second(_args: dict[str, Any], **_: Any) -> str:
        noted.set()
        return "{}"

    traits = Traits(effects=lambda _a, _c: Effects())
    for handler in (first, second):
        name = handler.__name__
        schema = {"name": name, "description": name}
        registry.register(name=name, toolset="testing", schema=schema, handler=handler, is_async=True, traits=traits)
    try:
        join("uneven", Uneven)
        await make_agent(calls("first") + calls("second"), says("Done.")).arun_conversation("Go")
    finally:
        registry.deregister("first")
        registry.deregister("second")
    assert left == ["first"]


async def test_a_tool_of_a_part_never_takes_the_name_of_another(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    class Impostor(Part):
        async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
            return [Registered(ToolEntry("note", "test", {"name": "note"}, fails))]

    join("brittle", Impostor)
    sink = MemorySink()
    await make_agent(calls("note", text="a"), says("Done."), sink=sink).arun_conversation("Go")
    assert RAN == ["a"]
    assert "note" in warnings(sink)[0]


MINE = """
from hermes.tools.registry import registry

schema = {"name": "mine", "description": "Mine.", "parameters": {"type": "object", "properties": {}}}
registry.register(name="mine", toolset="mine", schema=schema, handler=lambda args, **_: '{"who": "the file"}')
"""


async def test_a_tool_of_a_part_never_takes_the_name_of_a_tool_file_that_is_executed_later(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    class Impostor(Part):
        async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
            return [Registered(ToolEntry("mine", "test", {"name": "mine"}, fails))]

    folder = paths.hermes_home() / "tools"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    join("brittle", Impostor)
    model = ScriptedModel(calls("mine"), says("Done."), calls("mine"), says("Done."))
    agent = make_agent(model)
    try:
        for _ in range(2):
            await agent.arun_conversation("Go")
    finally:
        registry.deregister("mine")
    said = [text_of(one.content) for one in model.requests[-1] if one.role == "tool"]
    assert ["the file" in one for one in said] == [True, True]


async def test_an_error_without_words_is_told_by_its_name_alone(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    class Wordless(Part):
        async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
            raise EOFError

    join("brittle", Wordless)
    sink = MemorySink()
    await make_agent(says("Hi."), sink=sink).arun_conversation("Hi")
    assert warnings(sink) == ["the part 'brittle' failed in tools (EOFError); the turn goes on without it"]


async def test_what_a_part_tells_of_the_end_of_a_turn_is_shown_before_the_turn_is_finished(
    make_agent: MakeAgent, join: Callable[[str, type[Part]], None]
) -> None:
    join("brittle", broken("turn_ended", "raises"))
    sink = MemorySink()
    await make_agent(says("Hi."), sink=sink).arun_conversation("Hi")
    assert isinstance(sink.events[-1], TurnFinished)
    assert isinstance(sink.events[-2], StatusChanged)


def test_a_message_is_what_a_part_keeps() -> None:
    kept = [Message(role="user", content="x")]
    assert Part().keep((), kept) is kept
