"""The program of another agent: started on first use, spoken to in lines of JSON-RPC, stopped with its owner."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from msgspec import DecodeError, Struct, json

from hermes.confinement.outside import outside
from hermes.errors import ProviderError, ToolError
from hermes.seams import Child, Decision, SpawnSpec, Supervisor
from hermes.types import JsonObject

START_S = 60.0
MOST_LINE_BYTES = 16 << 20
NOT_OFFERED = {"code": -32601, "message": "this client does not offer that"}


class AgentProgram(Struct, frozen=True):
    """What is started. `cwd` is where it works."""

    argv: tuple[str, ...]
    cwd: str


class AgentReply(Struct, frozen=True):
    """What a request came to."""

    result: Any


class AgentProcess:
    """One program that is asked one thing at a time. Whatever it asks of us is refused: it has no hands here."""

    def __init__(self, program: AgentProgram, supervisor: Supervisor) -> None:
        self._program = program
        self._supervisor = supervisor
        self._child: Child | None = None
        self._frames: AsyncIterator[JsonObject] | None = None
        self._number = 0

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_gone

    async def start(self) -> None:
        """Have it run, and introduced; `ProviderError` when it cannot be started or does not speak the protocol."""
        await self.stop()
        try:
            self._child = await self._supervisor.spawn(Decision.own("another agent as the model"), self._spec())
        except ToolError as error:
            raise ProviderError(f"{self._name} cannot be started: {error}", reason="model_not_found") from error
        self._frames = _frames(self._child)
        hello = {"protocolVersion": 1, "clientCapabilities": {"fs": {}, "terminal": False}}
        try:
            async with asyncio.timeout(START_S):
                await self.ask("initialize", hello)
        except TimeoutError as error:
            await self.stop()
            raise ProviderError(f"{self._name} did not answer within {START_S:.0f} s", reason="timeout") from error
        except BaseException:
            await self.stop()
            raise

    async def ask(self, method: str, params: JsonObject) -> Any:
        """The result of a request; `ProviderError` when it is refused or the program ends."""
        async for said in self.exchange(method, params):
            if isinstance(said, AgentReply):
                return said.result
        raise self._ended()

    async def exchange(self, method: str, params: JsonObject) -> AsyncIterator[JsonObject | AgentReply]:
        """The updates that come of a request, and last its `AgentReply`."""
        self._number += 1
        number = self._number
        await self._send({"id": number, "method": method, "params": params})
        assert self._frames is not None
        async for frame in self._frames:
            if "method" in frame:
                update = await self._hear(frame)
                if update is not None:
                    yield update
            elif frame.get("id") == number:
                yield self._reply(frame)
                return
        raise self._ended()

    async def tell(self, method: str, params: JsonObject) -> None:
        """Say something that nobody answers; a program that has ended does not hear it."""
        with suppress(ProviderError):
            await self._send({"method": method, "params": params})

    async def stop(self) -> None:
        child, self._child, self._frames = self._child, None, None
        if child is not None:
            try:
                await child.stop()
            finally:
                child.release()

    @property
    def _name(self) -> str:
        return repr(" ".join(self._program.argv))

    def _spec(self) -> SpawnSpec:
        return SpawnSpec(
            argv=self._program.argv,
            cwd=self._program.cwd,
            env=dict(os.environ),  # it signs in with what is the person's own
            owner="external agent",
            merge_stderr=False,
            keep_stdin=True,
            confinement=outside("external agent"),
        )

    async def _send(self, frame: JsonObject) -> None:
        child = self._child
        if child is None or child.is_gone:
            raise self._ended()
        try:
            await child.write(json.encode({"jsonrpc": "2.0", **frame}) + b"\n")
        except ConnectionError as error:
            raise self._ended() from error

    async def _hear(self, frame: JsonObject) -> JsonObject | None:
        """The update in a frame; what it asks for is refused."""
        params = frame.get("params")
        if frame["method"] == "session/update":
            update = params.get("update") if isinstance(params, dict) else None
            return update if isinstance(update, dict) else None
        if "id" in frame:
            is_permission = frame["method"] == "session/request_permission"
            reply = {"result": {"outcome": {"outcome": "cancelled"}}} if is_permission else {"error": NOT_OFFERED}
            with suppress(ProviderError):
                await self._send({"id": frame["id"], **reply})
        return None

    def _reply(self, frame: JsonObject) -> AgentReply:
        if "result" in frame:
            return AgentReply(frame["result"])
        error = frame.get("error")
        said = str(error.get("message", "")) if isinstance(error, dict) else ""
        raise ProviderError(f"{self._name}: {said or 'it refused'}", reason="unknown")

    def _ended(self) -> ProviderError:
        tail = self._child.stderr_tail().decode("utf-8", "replace").strip() if self._child is not None else ""
        why = f": {tail.splitlines()[-1]}" if tail else ""
        return ProviderError(f"{self._name} has ended{why}", reason="overloaded", retryable=True)


async def _frames(child: Child) -> AsyncIterator[JsonObject]:
    """The objects that a program writes, a line each; words that some print beside them are passed over."""
    held = bytearray()
    async for data in child.output():
        *whole, rest = data.split(b"\n")
        for line in whole:
            with suppress(DecodeError, UnicodeDecodeError, RecursionError):
                frame = json.decode(bytes(held + line))
                if isinstance(frame, dict):
                    held.clear()
                    yield frame
            held.clear()
        held += rest
        if len(held) > MOST_LINE_BYTES:
            held.clear()
