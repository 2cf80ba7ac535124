"""`BoxServer`: the process that serves one model file, started on first use and stopped with its owner."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.confinement.policy import Outside
from hermes.errors import MissingPart, ProviderError, ToolError
from hermes.seams import Child, Decision, SpawnSpec, Supervisor

LOAD_TIMEOUT_S = 300.0
MAX_THREADS = 8
# The first error in the engine's log says what is wrong; those after it say that something is.
_ENGINE_ERROR = re.compile(r"^\S+ E \S+ +(?:error loading model: )?(.+)$", re.MULTILINE)
_INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


class ServedFile(Struct, frozen=True, kw_only=True):
    """What is served, and how."""

    file: Path
    window: int
    template: str = ""  # empty: the one in the file


class BoxServer:
    """One server process at a time; `start` brings up a new one when the last is gone."""

    def __init__(self, served: ServedFile, supervisor: Supervisor) -> None:
        self._served = served
        self._supervisor = supervisor
        self._child: Child | None = None
        self._starting = asyncio.Lock()  # guards `_child` and `url` while a start is under way
        self.url = ""

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_gone and bool(self.url)

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    async def start(self) -> str:
        """The address, once the weights are loaded. Left early, nothing of it goes on."""
        async with self._starting:
            if self.is_running:
                return self.url
            await self.stop()
            self._child = await self._supervisor.spawn(Decision.own("serve the model in the box"), self._spec())
            try:
                async with asyncio.timeout(LOAD_TIMEOUT_S):
                    facts = await _first_line(self._child)
            except TimeoutError as error:
                await self.stop()
                raise ProviderError(
                    f"{self._served.file.name} was not loaded after {LOAD_TIMEOUT_S:.0f} s", reason="timeout"
                ) from error
            except BaseException:
                await self.stop()
                raise
            if "url" not in facts:
                raise await self._failure(facts)
            self.url = str(facts["url"])
            return self.url

    async def stop(self) -> None:
        """End the process, if there is one; returns when it is gone."""
        child, self._child, self.url = self._child, None, ""
        if child is None:
            return
        try:
            if not child.is_gone:
                await child.stop(grace_s=0.5)
        finally:
            child.release()

    async def _failure(self, facts: dict[str, Any]) -> Exception:
        child, name = self._child, self._served.file.name
        assert child is not None
        said = str(facts.get("error") or "its server ended at once")
        engine = _ENGINE_ERROR.search(child.stderr_tail().decode("utf-8", "replace"))
        await self.stop()
        if said.startswith(("ImportError", "ModuleNotFoundError")):
            return MissingPart(f"the library that runs models cannot be loaded ({said}); run: {INSTALL}")
        why = engine[1] if engine else said
        return ProviderError(
            f"{name} could not be loaded: {why}; fetch the file again, or choose another model: hermes model",
            reason="model_not_found",
        )

    def _spec(self) -> SpawnSpec:
        served = self._served
        options = {
            "window": served.window,
            # Threads wait for each other at every layer: with as many as cores, a busy machine can be ten times slower.
            "threads": max(1, min((os.cpu_count() or 1) // 2, MAX_THREADS)),
            "template": served.template,
        }
        script = str(Path(__file__).with_name("serve.py"))
        return SpawnSpec(
            argv=(sys.executable, "-P", script, str(served.file), json.dumps(options)),
            cwd="/",
            env={name: os.environ[name] for name in _INHERITED if name in os.environ},
            owner="box",
            merge_stderr=False,
            confinement=Outside("box model"),
        )


INSTALL = "./hermes --install-extra local"


async def _first_line(child: Child) -> dict[str, Any]:
    """What the child says first, decoded; empty when it ends without a word."""
    line = b""
    try:
        async for chunk in child.output():
            line += chunk
            if b"\n" in line:
                break
    except ToolError as error:
        return {"error": str(error)}
    try:
        facts = json.loads(line.partition(b"\n")[0])
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
