"""The recorded model, and the project that it works on."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, load_script
from hermes.types import ModelEvent, TextDelta, text_of

_HERE = Path(__file__).parent
_SUFFIX = ".txt"  # so that no tool takes the files of the scratch project for ours
_SLASH = "__"  # a folder of the project is part of the name: one called build would not be packaged
PAUSE_S = 0.12  # after each piece of text, where somebody watches


class RecordedModel(ScriptedModel):
    """Words written beforehand, by hand, in the shape of a model's answers. It decides nothing.

    `children` are the recordings of children, each by the goal that it is given.
    """

    name = "recording"
    provider = "demo"

    def __init__(self, *script: Reply, pause_s: float, children: Mapping[str, ScriptedModel]) -> None:
        super().__init__(*script)
        self._pause_s = pause_s
        self._children = children

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        child = next((one for goal, one in self._children.items() if goal in _first_words(request)), None)
        source = child.stream(request, scope) if child is not None else super().stream(request, scope)
        async with aclosing(source) as events:  # type: ignore[type-var]  # a generator
            async for event in events:
                yield event
                if self._pause_s and isinstance(event, TextDelta):
                    await asyncio.sleep(self._pause_s)


def recorded_model(name: str, children: Mapping[str, str], *, is_slow: bool) -> RecordedModel:
    """The model of a scene; slow, it takes the time that a real one takes."""
    of_children = {goal: ScriptedModel(*_replies(file, is_slow=is_slow)) for goal, file in children.items()}
    return RecordedModel(*_replies(name, is_slow=is_slow), pause_s=PAUSE_S if is_slow else 0.0, children=of_children)


def own_python() -> str:
    """The Python that the project's programs are run with."""
    return "python3" if shutil.which("python3") else sys.executable


def make_project(folder: Path) -> None:
    """Write the scratch project to `folder`, which must not exist."""
    source = _HERE / "project"
    for file in sorted(source.glob(f"*{_SUFFIX}")):
        target = folder / file.name.removesuffix(_SUFFIX).replace(_SLASH, "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())


def _replies(name: str, *, is_slow: bool) -> list[Reply]:
    replies = [_with_python(reply) for reply in load_script(_HERE / "recordings" / f"{name}.json")]
    return replies if is_slow else [reply.timed() for reply in replies]


def _first_words(request: ModelRequest) -> str:
    messages = (message for unit in request.units for message in unit.messages)
    return next((text_of(message.content) for message in messages if message.role == "user"), "")


def _with_python(reply: Reply) -> Reply:
    calls = tuple(replace(call, arguments=call.arguments.replace("PYTHON", own_python())) for call in reply.calls)
    return replace(reply, calls=calls)
