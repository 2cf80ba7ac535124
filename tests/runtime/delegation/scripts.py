"""A model for a whole family: each conversation plays the script of whoever it belongs to."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from hermes import types
from hermes.errors import ProviderError
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.model import Line, ScriptedModel

PARENT = "parent"


class FamilyModel:
    """`Model` that tells conversations apart by their first words: a child's are its goal."""

    name = "scripted"
    provider = "testing"
    base_url = ""

    def __init__(self, parent: Sequence[Line], children: Mapping[str, Sequence[Line]]) -> None:
        self.parts = {
            PARENT: ScriptedModel(*parent),
            **{goal: ScriptedModel(*lines) for goal, lines in children.items()},
        }
        self.asked = asyncio.Event()  # by a child, at least once

    def part_of(self, request: ModelRequest) -> ScriptedModel:
        first = types.text_of(request.units[0].messages[0].content)
        return self.parts.get(first, self.parts[PARENT])

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[types.ModelEvent]:
        part = self.part_of(request)
        if part is not self.parts[PARENT]:
            self.asked.set()
        async for event in part.stream(request, scope):
            yield event


def results(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the first call of delegate_task came to, child by child."""
    return list(answer(result)["results"])


def answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """The first result of a tool."""
    found: dict[str, Any] = json.loads(next(one["content"] for one in result["messages"] if one["role"] == "tool"))
    return found


def breaks(reason: str = "server_error") -> ProviderError:
    return ProviderError("the model is broken", reason=reason, retryable=False)  # type: ignore[arg-type]
