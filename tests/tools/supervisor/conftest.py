"""A supervisor per test, closed at its end, and a look into the process table."""

import os
from collections.abc import AsyncIterator

import psutil
import pytest

from hermes.confinement.policy import Outside
from hermes.seams import Decision, SpawnSpec
from hermes.tools.supervisor.child import CallChild
from hermes.tools.supervisor.supervisor import ProcessSupervisor


@pytest.fixture
async def supervisor() -> AsyncIterator[ProcessSupervisor]:
    one = ProcessSupervisor()
    yield one
    await one.close()


class Runner:
    """Start bash under a supervisor, and read it to its end."""

    def __init__(self, supervisor: ProcessSupervisor) -> None:
        self.supervisor = supervisor

    async def start(self, script: str, **options: object) -> CallChild:
        spec = SpawnSpec(
            argv=("bash", "-c", script),
            cwd="/",
            env={"PATH": os.environ["PATH"]},
            confinement=Outside("terminal program"),
        )
        for name, value in options.items():
            spec = _with(spec, name, value)
        return await self.supervisor.spawn(Decision.own("test"), spec)

    async def run(self, script: str, **options: object) -> tuple[int, bytes]:
        child = await self.start(script, **options)
        try:
            output = b"".join([chunk async for chunk in child.output()])
            return await child.wait(), output
        finally:
            child.release()


def _with(spec: SpawnSpec, name: str, value: object) -> SpawnSpec:
    fields = {field: getattr(spec, field) for field in spec.__struct_fields__}
    return SpawnSpec(**{**fields, name: value})


@pytest.fixture
def runner(supervisor: ProcessSupervisor) -> Runner:
    return Runner(supervisor)


def processes_with(word: str) -> list[psutil.Process]:
    """Every live process whose command line holds `word`."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(word in each for each in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
