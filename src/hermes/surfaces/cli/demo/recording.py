"""The recorded model, and the project that it works on."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, load_script
from hermes.types import ModelEvent, TextDelta

QUESTION = "The tests of this project fail. Find out why, fix it, and tell me what else is missing."
_HERE = Path(__file__).parent
_SUFFIX = ".txt"  # so that no tool takes the files of the scratch project for ours
_SLASH = "__"  # a folder of the project is part of the name: one called build would not be packaged


class RecordedModel(ScriptedModel):
    """Words written beforehand, by hand, in the shape of a model's answers. It decides nothing."""

    name = "recording"
    provider = "demo"

    def __init__(self, *script: Reply, pause_s: float) -> None:
        super().__init__(*script)
        self._pause_s = pause_s  # after each piece of text

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        async for event in super().stream(request, scope):
            yield event
            if self._pause_s and isinstance(event, TextDelta):
                await asyncio.sleep(self._pause_s)


def recorded_model(*, is_slow: bool) -> RecordedModel:
    """The model of the demo; slow, it takes the time that a real one takes."""
    python = "python3" if shutil.which("python3") else sys.executable
    replies = [_with_python(reply, python) for reply in load_script(_HERE / "recording.json")]
    return RecordedModel(*(reply if is_slow else reply.timed() for reply in replies), pause_s=0.15 if is_slow else 0.0)


def make_project(folder: Path) -> None:
    """Write the scratch project to `folder`, which must not exist."""
    source = _HERE / "project"
    for file in sorted(source.glob(f"*{_SUFFIX}")):
        target = folder / file.name.removesuffix(_SUFFIX).replace(_SLASH, "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())


def _with_python(reply: Reply, python: str) -> Reply:
    calls = tuple(replace(call, arguments=call.arguments.replace("PYTHON", python)) for call in reply.calls)
    return replace(reply, calls=calls)
