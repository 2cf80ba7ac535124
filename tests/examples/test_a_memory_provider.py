"""A memory provider as one part: what it knows stands in the prompt and beside the question, and a tool adds to it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.ops import SessionRecord
from hermes.runtime.parts import PARTS, Joining, Part, TurnFacts
from hermes.runtime.prompt import FixedText
from hermes.seams import PromptSource
from hermes.testing.fakes import KeepLast
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.registry import Registered, ToolEntry, tool_result

SCHEMA = {
    "name": "remember",
    "description": "Keep a fact for later.",
    "parameters": {"type": "object", "properties": {"fact": {"type": "string"}}, "required": ["fact"]},
}


class Memory(Part):
    """Keeps facts in a file of the home, by session."""

    def __init__(self, file: Path, session_id: str) -> None:
        self._file = file
        self._session_id = session_id

    @classmethod
    def join(cls, agent: Joining) -> "Memory":
        return cls(paths.made(agent.settings.home) / "facts.txt", agent.session_id)

    def prompt(self) -> Sequence[PromptSource]:
        return [FixedText("3-memory", "context", f"# Memory\n\n{len(self._facts())} facts are known.")]

    async def tools(self, session: SessionRecord | None) -> Sequence[Registered]:
        return [Registered(ToolEntry("remember", "memory", SCHEMA, self._remember))]

    async def context(self, turn: TurnFacts) -> str:
        known = [fact for fact in self._facts() if any(word in fact for word in turn.said.split())]
        return f"[You remember: {'; '.join(known)}]" if known else ""

    async def session_moved(self, old: str, new: str) -> None:
        assert old == self._session_id
        self._session_id = new

    def _remember(self, args: dict[str, Any], **_: Any) -> str:
        with self._file.open("a") as file:
            file.write(f"{args['fact']} ({self._session_id})\n")
        return tool_result(kept=args["fact"])

    def _facts(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    PARTS.add("remember", Memory)
    yield
    PARTS.remove("remember")


async def test_what_is_remembered_in_one_session_is_known_in_the_next(tmp_path: Path) -> None:
    model = ScriptedModel(calls("remember", fact="the cat is called Ada"), says("Kept."), says("Ada."))
    store = MemoryStore()
    first = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="one")
    await first.arun_conversation("Remember my cat.")
    await first.aclose()
    second = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="two")
    await second.arun_conversation("What is my cat called?")
    await second.aclose()

    assert "remember" in [tool.name for tool in model.full_requests[0].tools]
    assert "# Memory\n\n0 facts are known." in model.full_requests[0].system
    last = model.full_requests[-1]
    assert "# Memory\n\n1 facts are known." in last.system
    assert last.units[-1].context == "[You remember: the cat is called Ada (one)]"
    record = await store.load("two")
    assert record is not None
    assert "the cat is called Ada (one)" in "".join(record.contexts.values()), "it is replayed, and no message"


async def test_memory_follows_a_session_that_is_compressed(tmp_path: Path) -> None:
    model = ScriptedModel(*[says("ok") for _ in range(5)], calls("remember", fact="it moved"), says("Kept."))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(tmp_path), context_engine=KeepLast(), session_id="one")
    for number in range(5):
        await agent.arun_conversation(f"question {number}")
    moved = await agent.acompress()
    await agent.arun_conversation("Remember that.")
    known = (await agent._assembled()).services.parts.by_name["remember"]
    await agent.aclose()
    assert isinstance(known, Memory)
    assert known._facts() == [f"it moved ({moved['session_id']})"]
