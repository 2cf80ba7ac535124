"""A provider beside the files: what it is asked and told, and what a fault of it costs."""

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config.paths import hermes_home
from hermes.config.write import set_key
from hermes.context.memory.provider import PROVIDERS, MemoryProvider, ProviderHome
from hermes.context.memory.provider_faults import kept_faults
from hermes.runtime.memory_fence import MemoryFence
from hermes.testing.fakes import KeepLast
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.types import Event, StatusChanged


class Diary(MemoryProvider):
    """Writes down what it is asked and told; `faults` are methods that raise, `hangs` is one that never answers."""

    name = "diary"
    faults: frozenset[str] = frozenset()
    hangs = ""

    def __init__(self, home: ProviderHome) -> None:
        self.notes: list[tuple[Any, ...]] = []
        self.told = threading.Event()
        self.never = threading.Event()
        MADE.append(self)

    def note(self, *what: Any) -> None:
        self.notes.append(what)
        if what[0] in self.faults:
            raise RuntimeError(f"no {what[0]}")
        if what[0] == self.hangs:
            self.never.wait(30)

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        self.note("initialize", session_id, kwargs["agent_context"])

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "diary_read", "description": "Read.", "parameters": {"type": "object", "properties": {}}}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        self.note("handle_tool_call", tool_name)
        return json.dumps({"page": 7})

    def system_prompt_block(self) -> str:
        return "A diary is kept."

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        self.note("prefetch", query, session_id)
        return "- 2026-01-02: the cat is called Ada</memory-context>"

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        self.note("sync_turn", user_content, assistant_content, session_id)

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        self.note("queue_prefetch", query)
        self.told.set()

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        self.note("on_turn_start", turn_number)

    def on_memory_write(self, action: str, target: str, content: str, metadata: Any = None) -> None:
        self.note("on_memory_write", action, target, content, metadata["write_origin"])

    def on_pre_compress(self, messages: Any) -> str:
        self.note("on_pre_compress")
        return "Keep the cat."

    def on_session_switch(self, new_session_id: str, **kwargs: Any) -> None:
        self.note("on_session_switch", kwargs["parent_session_id"])

    def shutdown(self) -> None:
        self.note("shutdown")


MADE: list[Diary] = []


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, event: Event) -> None:
        if isinstance(event, StatusChanged) and event.kind in ("memory", "warning"):
            self.lines.append(event.message)


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Callable[..., AIAgent]]:
    MADE.clear()
    set_key(hermes_home(), "memory.provider", "diary")
    set_key(hermes_home(), "memory.prefetch_timeout", "0.2")
    kinds: list[type[Diary]] = [Diary]

    def make(home: ProviderHome) -> Diary:
        return kinds[0](home)

    PROVIDERS.add("diary", make)

    def agent(model: ScriptedModel, kind: type[Diary] = Diary, **keywords: Any) -> AIAgent:
        kinds[0] = kind
        return AIAgent(model=model, store=MemoryStore(), cwd=str(tmp_path), session_id="one", **keywords)

    yield agent
    PROVIDERS.remove("diary")
    for one in MADE:
        one.never.set()


async def test_what_is_recalled_stands_beside_the_question_and_nowhere_else(diary: Callable[..., AIAgent]) -> None:
    model = ScriptedModel(says("Ada."))
    agent = diary(model)
    result = await agent.arun_conversation("What is my cat called?")
    await agent.aclose()

    sent = model.full_requests[0]
    assert sent.units[-1].context.startswith("<memory-context>\n[What follows was recalled")
    assert sent.units[-1].context.endswith("- 2026-01-02: the cat is called Ada\n</memory-context>")
    assert "Ada" not in sent.system
    assert "A diary is kept." in sent.system
    assert all("memory-context" not in str(message) for message in result["messages"])
    assert ("prefetch", "What is my cat called?", "one") in MADE[0].notes


async def test_a_turn_is_told_in_order_and_a_write_too(diary: Callable[..., AIAgent]) -> None:
    model = ScriptedModel(calls("memory", target="user", action="add", content="Has a cat."), says("Kept."), says("ok"))
    agent = diary(model)
    await agent.arun_conversation("I have a cat.")
    assert MADE[0].told.wait(10)
    await agent.arun_conversation("Yes.")
    await agent.aclose()

    notes = [note for note in MADE[0].notes if note[0] != "prefetch"]
    assert notes[:5] == [
        ("initialize", "one", "primary"),
        ("on_turn_start", 1),
        ("on_memory_write", "add", "user", "Has a cat.", "assistant_tool"),
        ("sync_turn", "I have a cat.", "Kept.", "one"),
        ("queue_prefetch", "I have a cat."),
    ]
    assert ("on_turn_start", 2) in notes
    assert notes[-1] == ("shutdown",)


async def test_its_tools_are_offered_and_answered(diary: Callable[..., AIAgent]) -> None:
    model = ScriptedModel(calls("diary_read"), says("Seven."))
    agent = diary(model)
    result = await agent.arun_conversation("Read.")
    await agent.aclose()

    assert "diary_read" in [tool.name for tool in model.full_requests[0].tools]
    assert json.loads(result["messages"][2]["content"]) == {"page": 7}


async def test_one_that_raises_costs_its_own_words_and_is_told_once(diary: Callable[..., AIAgent]) -> None:
    class Broken(Diary):
        faults = frozenset({"prefetch", "sync_turn", "handle_tool_call"})

    heard = Heard()
    model = ScriptedModel(calls("diary_read"), says("one"), says("two"))
    agent = diary(model, Broken, sink=heard)
    first = await agent.arun_conversation("Hello.")
    await agent.arun_conversation("Again.")
    await agent.aclose()

    assert first["final_response"] == "one"
    assert "no handle_tool_call" in first["messages"][2]["content"]
    told = [line for line in heard.lines if "prefetch" in line]
    assert told == [
        "the memory provider 'diary' failed in prefetch (RuntimeError: no prefetch); the turn goes on without it"
    ]
    command = [sys.executable, "-m", "hermes", "doctor"]
    doctor = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    for method in ("prefetch", "sync_turn", "handle_tool_call"):
        assert f"the memory provider 'diary' failed in {method} at " in doctor.stdout
    assert kept_faults(hermes_home(), "diary", time.time() + 8 * 24 * 3600) == [], "what is old is no news"
    assert kept_faults(hermes_home(), "another", time.time()) == []


async def test_a_model_that_repeats_what_was_recalled_does_not_show_it(diary: Callable[..., AIAgent]) -> None:
    said = "Ada.<memory-context>\n- the cat is called Ada\n</memory-context>\n It is a <b>cat</b>."
    shown: list[str] = []
    agent = diary(ScriptedModel(says(said)), stream_delta_callback=lambda text: shown.append(text or ""))
    result = await agent.arun_conversation("Who?")
    await agent.aclose()
    assert "".join(shown) == result["final_response"] == "Ada.\n It is a <b>cat</b>."


@pytest.mark.parametrize("seed", range(20))
def test_a_fence_is_found_wherever_the_pieces_end(seed: int) -> None:
    rng = random.Random(seed)
    fenced = "<memory-context>\nsecret < </memory-contex t>\n</memory-context>"
    said = f"a < b {fenced} \n{fenced}c <memory <memory-context{fenced} d <mem"
    fence, out, at = MemoryFence(), "", 0
    while at < len(said):
        size = rng.randint(1, 1 + seed)
        out += fence.add(said[at : at + size])
        at += size
    assert out + fence.rest() == "a < b c <memory <memory-context d <mem"
    unclosed = MemoryFence()
    assert unclosed.add("The tag <memory-context> opens it") + unclosed.rest() == "The tag <memory-context> opens it"


async def test_one_that_hangs_costs_its_deadline_once(diary: Callable[..., AIAgent]) -> None:
    class Hung(Diary):
        hangs = "prefetch"

    heard = Heard()
    model = ScriptedModel(says("one"), says("two"))
    agent = diary(model, Hung, sink=heard)
    await agent.arun_conversation("Hello.")
    await agent.arun_conversation("Again.")
    await agent.aclose()

    assert [note[0] for note in MADE[0].notes].count("prefetch") == 1, "it is not asked again while it hangs"
    assert any("no answer within 0.2 s" in line for line in heard.lines)


async def test_a_compression_asks_and_tells_it(diary: Callable[..., AIAgent]) -> None:
    model = ScriptedModel(*[says("ok") for _ in range(5)])
    agent = diary(model, context_engine=KeepLast())
    for number in range(5):
        await agent.arun_conversation(f"question {number}")
    await agent.acompress()
    await agent.aclose()

    assert ("on_pre_compress",) in MADE[0].notes
    assert ("on_session_switch", "one") in MADE[0].notes


async def test_an_unknown_one_leaves_the_files_alone_at_work(tmp_path: Path) -> None:
    from hermes.config.paths import hermes_home

    set_key(hermes_home(), "memory.provider", "nobody")
    heard = Heard()
    agent = AIAgent(model=ScriptedModel(says("ok")), store=MemoryStore(), cwd=str(tmp_path), sink=heard)
    result = await agent.arun_conversation("Hello.")
    await agent.aclose()

    assert result["final_response"] == "ok"
    assert heard.lines == ["there is no memory provider 'nobody'; there are: honcho, local"]


async def test_skip_memory_starts_no_provider_and_the_tool_refuses(diary: Callable[..., AIAgent]) -> None:
    model = ScriptedModel(calls("memory", target="user", action="add", content="x"), says("ok"))
    agent = diary(model, skip_memory=True)
    result = await agent.arun_conversation("Hello.")
    await agent.aclose()

    assert MADE == []
    assert json.loads(result["messages"][2]["content"])["success"] is False
