"""What the terminal tools need around them: a context with a real environment, an obedient gate, a shelf."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hermes.scope import TurnScope
from hermes.seams import Action, Decision, Environment, ResultShelf, Route, Supervisor
from hermes.tools.results.shelf import FileShelf
from hermes.types import Event, JsonObject

Result = TypeVar("Result")


class ToldGate:
    """Allows, unless the command holds a word it was told to deny; remembers what it was asked."""

    def __init__(self, *denied: str) -> None:
        self.asked: list[Action] = []
        self._denied = denied
        self.decided_by = "test"

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        self.asked.append(action)
        if any(word in action.text for word in self._denied):
            return Decision(allowed=False, reason="that is not done here; choose another way")
        return Decision(allowed=True, decided_by=self.decided_by)


class Room:
    """A `ToolContext` for tests of the terminal tools."""

    def __init__(
        self, environment: Environment, supervisor: Supervisor, folder: Path, gate: ToldGate | None = None
    ) -> None:
        self.session_id = "s1"
        self.task_id = "default"
        self.call_id = "call_1"
        self.user_task: str | None = None
        self.scope = TurnScope()
        self.environment = environment
        self.gate = gate or ToldGate()
        self.supervisor = supervisor
        self.shelf: ResultShelf = FileShelf(folder / "results")
        self.settings: Mapping[str, Any] = {"terminal": {"timeout": 60}}
        self.memo: dict[str, Any] = {}
        self.route: Route = "foreground"
        self.notes: JsonObject = {}
        self.events: list[Event] = []

    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        return await asyncio.to_thread(function, *args, **kwargs)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def note(self, key: str, value: Any) -> None:
        self.notes[key] = value


def told(result: str) -> dict[str, Any]:
    """A tool's JSON answer."""
    answer: dict[str, Any] = json.loads(result)
    return answer
