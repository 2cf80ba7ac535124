"""Run a program for the person at the terminal, through the one place that starts processes."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from hermes.confinement.outside import outside
from hermes.runtime.setup.process import shared
from hermes.seams import Decision, SpawnSpec


class Ran(Struct, frozen=True):
    """What a program left: its output, cut at `Program.most_bytes`, and its exit code."""

    raw: bytes
    exit_code: int
    is_cut: bool = False

    @property
    def output(self) -> str:
        return self.raw.decode("utf-8", "replace")


class Program(Struct, frozen=True, kw_only=True):
    """A program to run: no model chose it, a person or Hermes itself did."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    purpose: str
    timeout_s: float = 30.0
    most_bytes: int = 200_000


async def run_program(program: Program) -> Ran:
    """Run it to its end; `ToolError` when it cannot start, `TimeoutError` when it takes too long."""
    spec = SpawnSpec(
        argv=program.argv,
        cwd=program.cwd,
        env=dict(program.env),
        owner="terminal",
        confinement=outside("terminal program"),
    )
    child = await shared.supervisor.spawn(Decision.own(program.purpose), spec)
    kept = bytearray()
    is_cut = False
    try:
        async with asyncio.timeout(program.timeout_s):
            async for chunk in child.output():
                room = program.most_bytes - len(kept)
                kept += chunk[:room]
                is_cut = is_cut or len(chunk) > room
            code = await child.wait()
    except TimeoutError:
        await child.stop()
        raise
    finally:
        child.release()
    return Ran(bytes(kept), code, is_cut)
