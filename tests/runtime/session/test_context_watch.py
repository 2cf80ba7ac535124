"""Whether the next request is too long: asked anew before every one, whoever answers and whoever decides."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.context import ContextEngine
from hermes.context.summary import ROLE
from hermes.state.sqlite.store import SqliteStore
from hermes.testing.fakes import MemorySink
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, fault, says
from hermes.testing.server import RecordedRequest, ScriptedServer
from hermes.tools.registry import registry, tool_result
from hermes.types import StatusChanged

MakeAgent = Callable[..., AIAgent]


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    store, made = SqliteStore(tmp_path / "state.db"), list[AIAgent]()

    def make(**keywords: Any) -> AIAgent:
        made.append(AIAgent(**{"store": store, "cwd": str(tmp_path), "enabled_toolsets": ["testing"], **keywords}))
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()
    await store.close()


@pytest.fixture(autouse=True)
def dump_tool() -> Iterator[None]:
    def dump(args: dict[str, Any], **_: Any) -> str:
        return tool_result(dumped="d" * args["size"])

    parameters = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    schema = {"name": "dump", "description": "Dump.", "parameters": parameters}
    registry.register(name="dump", toolset="testing", schema=schema, handler=dump)
    yield
    registry.deregister("dump")


# -- the window that a server tells -----------------------------------------------------------------------------------


class Looping:
    """A provider that asks for `rounds` dumps and then answers; requests for a summary are answered with one."""

    def __init__(self, rounds: int, size: int) -> None:
        self._left = rounds
        self._size = size
        self.summaries = 0
        self.sizes: list[int] = []  # of the requests of turns, in bytes

    def __call__(self, request: RecordedRequest) -> Reply:
        if request.json["messages"][0]["content"] == ROLE:
            self.summaries += 1
            return says("## Active Task\ndump on")
        self.sizes.append(len(request.raw))
        self._left -= 1
        return calls("dump", size=self._size + self._left) if self._left >= 0 else says("Done.")


async def test_a_long_turn_with_a_server_of_ones_own_is_compressed_in_the_middle(make_agent: MakeAgent) -> None:
    """Nobody has set a window: the server tells it, beside the first request of the first turn."""
    window = 16_000
    script, sink = Looping(rounds=40, size=4_000), MemorySink()
    async with ScriptedServer(script, window=window) as server:
        agent = make_agent(model="scripted", provider="custom", base_url=server.base_url, session_id="s", sink=sink)
        result = await agent.arun_conversation("Dump.")
    assert (result["final_response"], len(script.sizes)) == ("Done.", 41)
    assert script.summaries >= 2
    assert result["session_id"] != "s"
    assert max(script.sizes) // 4 < window
    assert len(server.looked_up) == 1
    assert agent.model_in_use == ("scripted", (window, False))
    warnings = [event.message for event in sink.events if isinstance(event, StatusChanged) and event.kind == "warning"]
    assert len(warnings) == 1, "that it reads little, once"


async def test_the_window_is_asked_for_before_a_long_past_is_sent(make_agent: MakeAgent) -> None:
    past = [{"role": role, "content": f"{role} " + "w" * 3_000} for _ in range(8) for role in ("user", "assistant")]
    script = Looping(rounds=0, size=0)
    async with ScriptedServer(script, window=8_000) as server:
        agent = make_agent(model="scripted", base_url=server.base_url)
        await agent.arun_conversation("And now?", conversation_history=past)
    assert (script.summaries > 0, len(script.sizes)) == (True, 1)
    assert script.sizes[0] // 4 < 8_000


async def test_a_server_that_tells_nothing_is_taken_to_read_what_the_setting_says(
    make_agent: MakeAgent, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text("context: {assumed_window: 16000}\n", encoding="utf-8")
    script, sink = Looping(rounds=30, size=4_000), MemorySink()
    async with ScriptedServer(script, window=None) as server:
        agent = make_agent(model="scripted", base_url=server.base_url, sink=sink)
        await agent.arun_conversation("Dump.")
    assert script.summaries >= 1
    assert max(script.sizes) // 4 < 16_000
    told = [event.message for event in sink.events if isinstance(event, StatusChanged) and "assumed" in event.message]
    assert len(told) == 1
    assert "16,000 tokens are assumed" in told[0]


async def test_words_of_other_scripts_are_not_taken_for_few(make_agent: MakeAgent, hermes_home: Path) -> None:
    """Where no provider counts, the estimate decides; a character of Chinese is about a token."""
    (hermes_home / "config.yaml").write_text("context: {assumed_window: 16000}\n", encoding="utf-8")
    past = [{"role": role, "content": "話" * 1_500} for _ in range(6) for role in ("user", "assistant")]
    model = ScriptedModel(says("## Active Task\n話"), says("好"))
    await make_agent(model=model).arun_conversation("然後呢", conversation_history=past)
    assert model.full_requests[0].system == ROLE


# -- an engine of one's own -----------------------------------------------------------------------------------------


class Diary(ContextEngine):
    """An engine that writes down what it is told and asked. `compress_at` makes it compress."""

    name = "diary"

    def __init__(self, compress_at: int = 1 << 60, faults: Mapping[str, Exception] | None = None) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self._compress_at = compress_at
        self._faults = faults or {}

    def _note(self, name: str, *told: Any) -> None:
        self.lines.append((name, *told))
        if name in self._faults:
            raise self._faults[name]

    def update_model(self, *told: Any, **more: Any) -> None:
        self._note("update_model", *told, *more.values())

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        self._note("update_from_response", dict(usage))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        self._note("should_compress", prompt_tokens)
        return (prompt_tokens or 0) >= self._compress_at

    def should_compress_preflight(self, messages: list[dict[str, Any]]) -> bool:
        self._note("should_compress_preflight", len(messages))
        return False

    def has_content_to_compress(self, messages: list[dict[str, Any]]) -> bool:
        self._note("has_content_to_compress", len(messages))
        return True

    def compress(
        self, messages: list[dict[str, Any]], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[dict[str, Any]]:
        self._note("compress", len(messages), focus_topic)
        return [{"role": "user", "content": "(earlier messages)"}, *messages[-2:]]

    def on_session_start(self, session_id: str, **more: Any) -> None:
        self._note("on_session_start", session_id, more)

    def on_session_end(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        self._note("on_session_end", session_id, len(messages))

    def on_session_reset(self) -> None:
        self._note("on_session_reset")

    def names(self) -> list[str]:
        return [line[0] for line in self.lines]


def told_usage(prompt: int, written: int) -> dict[str, int]:
    other = dict.fromkeys(("cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), 0)
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written, **other}


async def test_an_engine_is_told_every_usage_and_asked_before_every_call(make_agent: MakeAgent) -> None:
    replies = [
        calls("dump", size=1).with_usage(input_tokens=1_000, output_tokens=10),
        calls("dump", size=400).with_usage(input_tokens=2_000, output_tokens=20),
        says("Done.").with_usage(input_tokens=3_000, output_tokens=30),
        says("Again.").with_usage(input_tokens=4_000, output_tokens=40),
    ]
    engine = Diary()
    agent = make_agent(model=ScriptedModel(*replies), context_engine=engine, session_id="s")
    await agent.arun_conversation("Dump.")
    await agent.arun_conversation("Again?")
    await agent.aclose()

    began = engine.names()[:3]
    assert began == ["update_model", "on_session_reset", "on_session_start"]
    assert engine.lines[0] == ("update_model", "scripted", 128_000, "", "", "testing")
    assert engine.lines[2] == ("on_session_start", "s", {"model": "scripted", "context_length": 128_000})
    loop = [line for line in engine.lines[3:] if line[0] in ("should_compress", "update_from_response")]
    assert [line[0] for line in loop] == ["should_compress", "update_from_response"] * 4
    assert [line[1] for line in loop[1::2]] == [told_usage(n * 1_000, n * 10) for n in (1, 2, 3, 4)]
    asked = [line[1] for line in loop[::2]]
    assert 1_000 < asked[1] < 1_100, "what was counted, and what came since"
    assert 2_100 < asked[2] < 2_300
    assert 3_000 <= asked[3] < 3_100
    preflights = [line for line in engine.lines if line[0] == "should_compress_preflight"]
    assert preflights == [("should_compress_preflight", 1), ("should_compress_preflight", 7)], "once a turn"
    assert engine.lines[-1] == ("on_session_end", "s", 8)


async def test_an_engine_that_says_so_compresses_in_the_middle_of_a_turn(make_agent: MakeAgent) -> None:
    engine = Diary(compress_at=3_000)
    replies = [calls("dump", size=1).with_usage(input_tokens=n, output_tokens=5) for n in (1_000, 3_100, 1_500)]
    agent = make_agent(model=ScriptedModel(*replies, says("Done.")), context_engine=engine, session_id="s")
    result = await agent.arun_conversation("Dump.")
    assert result["completed"]
    place = engine.names().index("compress")
    assert engine.names()[place - 2 : place] == ["should_compress", "has_content_to_compress"]
    assert engine.lines[place + 1 : place + 3] == [
        ("on_session_end", "s", 5),
        ("on_session_start", agent.session_id, {"previous": "s"}),
    ]
    assert engine.names().count("compress") == 1


async def test_a_compression_in_vain_is_tried_again_when_there_is_more_to_shorten(make_agent: MakeAgent) -> None:
    class Late(Diary):
        def compress(self, messages: list[dict[str, Any]], *more: Any) -> list[dict[str, Any]]:
            shorter = super().compress(messages, *more)
            return shorter if len(messages) > 8 else messages

    engine = Late(compress_at=1_000)
    sizes = (100, 1_000, 1_050, 1_300, 200)
    replies = [calls("dump", size=n).with_usage(input_tokens=n, output_tokens=1) for n in sizes]
    agent = make_agent(model=ScriptedModel(*replies, says("Done.")), context_engine=engine, session_id="s")
    assert (await agent.arun_conversation("Dump."))["completed"]
    tried = [line[1] for line in engine.lines if line[0] == "compress"]
    assert tried == [5, 9], "not between, when hardly anything was added"
    assert agent.session_id != "s"


async def test_a_preflight_may_be_left_to_the_real_count(make_agent: MakeAgent) -> None:
    class Patient(Diary):
        def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
            self._note("should_defer_preflight_to_real_usage", rough_tokens > 3_000)
            return True

    past = [{"role": role, "content": "w" * 2_000} for _ in range(4) for role in ("user", "assistant")]
    engine = Patient(compress_at=3_000)
    replies = [calls("dump", size=1).with_usage(input_tokens=3_500, output_tokens=5), says("Done.")]
    agent = make_agent(model=ScriptedModel(*replies), context_engine=engine)
    await agent.arun_conversation("Dump.", conversation_history=past)
    assert ("should_defer_preflight_to_real_usage", True) in engine.lines
    assert engine.names().count("should_defer_preflight_to_real_usage") == 1
    assert engine.names().index("compress") > engine.names().index("update_from_response")


@pytest.mark.parametrize(
    "name",
    ["update_model", "update_from_response", "should_compress", "should_compress_preflight", "has_content_to_compress",
     "compress", "on_session_start", "on_session_end", "on_session_reset"],
)  # fmt: skip
async def test_an_engine_that_raises_costs_no_turn(make_agent: MakeAgent, name: str) -> None:
    engine, sink = Diary(compress_at=3_000, faults={name: ValueError("mine")}), MemorySink()
    replies = [calls("dump", size=1).with_usage(input_tokens=n, output_tokens=5) for n in (1_000, 3_100, 1_500)]
    agent = make_agent(model=ScriptedModel(*replies, says("Done.")), context_engine=engine, sink=sink)
    result = await agent.arun_conversation("Dump.")
    assert (result["final_response"], result["completed"]) == ("Done.", True)
    assert name == "on_session_end" or name in engine.names()
    if name in ("should_compress", "compress", "update_from_response"):
        warnings = [e.message for e in sink.events if isinstance(e, StatusChanged) and e.kind == "warning"]
        assert sum("ValueError: mine" in text for text in warnings) == 1


async def test_an_engine_is_told_when_another_model_takes_over(make_agent: MakeAgent) -> None:
    engine = Diary()
    async with (
        ScriptedServer([fault("unauthorized")]) as broken,
        ScriptedServer(
            [calls("dump", size=1), calls("dump", size=2), says("Done.")], models=("second",), window=32_000
        ) as server,
    ):
        agent = make_agent(
            model="scripted", base_url=broken.base_url, api_key="k1", context_engine=engine,
            fallback_model={"model": "second", "provider": "custom", "base_url": server.base_url, "api_key": "k2"},
        )  # fmt: skip
        await agent.arun_conversation("Dump.")
        told = [line[1:] for line in engine.lines if line[0] == "update_model"]
        assert told[0] == ("scripted", 128_000, broken.base_url, "k1", "custom")
        assert told[-1] == ("second", 32_000, server.base_url, "k2", "custom")


async def test_the_tools_of_an_engine_are_offered_and_answered_by_it(make_agent: MakeAgent) -> None:
    class Recalling(Diary):
        def get_tool_schemas(self) -> list[dict[str, Any]]:
            parameters = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
            taken = {"name": "dump", "description": "Mine.", "parameters": {}}
            return [{"name": "recall", "description": "Recall.", "parameters": parameters}, taken, {}]

        def handle_tool_call(self, name: str, args: dict[str, Any], **more: Any) -> str:
            return tool_result(name=name, recalled=args["what"], session=more["session_id"])

    model = ScriptedModel(calls("recall", what="all"), says("Done."), says("Still here."))
    agent = make_agent(model=model, context_engine=Recalling(), session_id="s", enabled_toolsets=["testing"])
    await agent.arun_conversation("Recall.")
    await agent.arun_conversation("And?")
    assert [[tool.name for tool in request.tools] for request in model.full_requests] == [["dump", "recall"]] * 3
    assert '"recalled": "all", "session": "s"' in str(model.requests[1][-1].content)
    assert model.full_requests[0].tools[0].description == "Dump."
