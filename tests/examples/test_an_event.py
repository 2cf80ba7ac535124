"""A new event with a text field: one struct, and nothing else. It is shown without secrets."""

from collections.abc import Iterator

import pytest

from hermes import AIAgent
from hermes.seams import ToolContext
from hermes.testing import ScriptedModel, calls, says
from hermes.tools.decorator import tool
from hermes.tools.registry import registry
from hermes.types import Event, MinorEvent

SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9


class MoodChanged(MinorEvent, frozen=True, gc=False, tag="mood_changed"):
    """What a capability tells whoever listens."""

    session_id: str
    words: str


class Heard:
    """A listener."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def moods() -> Iterator[None]:
    @tool(toolset="moods")
    def change_mood(ctx: ToolContext) -> str:
        """Change the mood."""
        ctx.emit(MoodChanged(ctx.session_id, f"glad, and in possession of {SECRET}"))  # type: ignore[arg-type]
        return "done"

    yield
    registry.deregister("change_mood")


def test_an_event_of_ones_own_is_shown_without_secrets(moods: None) -> None:
    heard = Heard()
    agent = AIAgent(model=ScriptedModel(calls("change_mood"), says("Done.")), sink=heard)
    assert agent.chat("Cheer up") == "Done."
    agent.close()
    told = next(event for event in heard.events if isinstance(event, MoodChanged))
    assert told.words.startswith("glad, and in possession of ")
    assert SECRET not in told.words
    assert told.session_id == agent.session_id
