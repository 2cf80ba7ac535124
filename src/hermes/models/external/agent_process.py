"""The program of another agent: started on first use, spoken to in lines of JSON-RPC, stopped with its owner.

It is trusted with nothing: it may flood, fall silent, or read nothing of what it is told. So what is sent goes out
while its words are read, neither is kept without a bound, and every wait has an end; who passes one is stopped.
"""

import asyncio
import os
import select
from collections.abc import AsyncIterator
from typing import Any

from msgspec import DecodeError, Struct, json

from hermes.confinement.outside import outside
from hermes.errors import ProviderError, ProviderReason, ToolError
from hermes.models.endpoint import Endpoint
from hermes.programs import split_path
from hermes.seams import Child, Decision, SpawnSpec, Supervisor
from hermes.types import JsonObject

START_S = 60.0
MOST_UNREAD_BYTES = 1 << 20  # of answers to what it asked, beside the request that it is to read
NOT_OFFERED = {"code": -32601, "message": "this client does not offer that"}


class AgentProgram(Struct, frozen=True):
    """What is started. `cwd` is where it works; a program that a model named is started by the gate's word on it."""

    argv: tuple[str, ...]
    cwd: str
    decision: Decision = Decision.own("another agent as the model")


class AgentReply(Struct, frozen=True):
    """What a request came to."""

    result: Any


class AgentProcess:
    """One program that is asked one thing at a time. Whatever it asks of us is refused: it has no hands here."""

    def __init__(self, program: AgentProgram, supervisor: Supervisor, endpoint: Endpoint) -> None:
        self._program = program
        self._supervisor = supervisor
        self._limits = endpoint.limits
        self._most_frame_bytes = endpoint.answer.max_event_bytes
        self._child: Child | None = None
        self._frames: AsyncIterator[JsonObject] | None = None
        self._number = 0
        self._unsent = bytearray()
        self._request_bytes = 0  # of the request that is under way
        self._wait_s = 0.0  # for its next bytes

    @property
    def is_running(self) -> bool:
        return self._child is not None and not self._child.is_gone

    async def start(self) -> None:
        """Have it run, and introduced; `ProviderError` when it cannot be started or does not speak the protocol."""
        await self.stop()
        try:
            self._child = await self._supervisor.spawn(self._program.decision, self._spec())
        except ToolError as error:
            raise ProviderError(f"{self._name} cannot be started: {error}", reason="model_not_found") from error
        self._frames = self._read_frames(self._child)
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
        """The updates that come of a request, and last its `AgentReply`. The scope of the call is its deadline."""
        if self._frames is None:
            raise self._ended()
        self._number += 1
        number = self._number
        self._request_bytes = self._put({"id": number, "method": method, "params": params})
        self._wait_s = self._limits.first_byte_s
        async for frame in self._frames:
            if "method" in frame:
                update = await self._hear(frame)
                if update is not None:
                    yield update
            elif frame.get("id") == number:
                yield self._reply(frame)
                return
        raise await self._given_up("has ended", is_over=True)

    async def stop(self) -> None:
        child, self._child, self._frames = self._child, None, None
        self._unsent.clear()
        if child is not None:
            try:
                await child.stop()
            finally:
                child.release()

    async def _given_up(self, why: str, *, is_over: bool = False) -> ProviderError:
        """The error of a program that is stopped because of `why`; one that is over by itself may be tried again."""
        error = self._ended(why, is_over=is_over)
        await self.stop()
        return error

    def _ended(self, why: str = "has ended", *, is_over: bool = True) -> ProviderError:
        tail = self._child.stderr_tail().decode("utf-8", "replace").strip() if self._child is not None else ""
        last = f": {tail.splitlines()[-1]}" if tail and is_over else ""
        reason: ProviderReason = "overloaded" if is_over else "server_error"
        return ProviderError(f"{self._name} {why}{last}", reason=reason, retryable=is_over)

    @property
    def _name(self) -> str:
        return repr(" ".join(self._program.argv))

    def _spec(self) -> SpawnSpec:
        is_own = self._program.decision.is_own
        environ = dict(os.environ)  # it signs in with what is the person's own
        if not is_own:  # the name is a model's, and so may be a program of that name in the workspace
            environ["PATH"] = split_path(environ, self._program.cwd).own
        return SpawnSpec(
            argv=self._program.argv,
            cwd=self._program.cwd,
            env=environ,
            owner="external agent",
            merge_stderr=False,
            keep_stdin=True,
            confinement=outside("external agent" if is_own else "allowed outside"),
        )

    # -- what it is told -------------------------------------------------------------------------------------------

    def _put(self, frame: JsonObject) -> int:
        """Have a frame sent; its size."""
        data = json.encode({"jsonrpc": "2.0", **frame}) + b"\n"
        self._unsent += data
        return len(data)

    async def _send(self, child: Child) -> None:
        """Write what is unsent as the program reads it.

        May be cancelled at any point: a pipe takes so small a piece whole or not at all.
        """
        while self._unsent:
            piece = bytes(self._unsent[: select.PIPE_BUF])
            try:
                await child.write(piece)
            except ConnectionError:  # it reads no more; that it says no more is found on the other pipe
                self._unsent.clear()
                return
            del self._unsent[: len(piece)]

    # -- what it says ----------------------------------------------------------------------------------------------

    async def _hear(self, frame: JsonObject) -> JsonObject | None:
        """The update in a frame; what it asks for is refused."""
        params = frame.get("params")
        if frame["method"] == "session/update":
            update = params.get("update") if isinstance(params, dict) else None
            return update if isinstance(update, dict) else None
        if "id" in frame:
            is_permission = frame["method"] == "session/request_permission"
            reply = {"result": {"outcome": {"outcome": "cancelled"}}} if is_permission else {"error": NOT_OFFERED}
            self._put({"id": frame["id"], **reply})
            if len(self._unsent) > self._request_bytes + MOST_UNREAD_BYTES:
                raise await self._given_up("asks and does not read the answers; it was stopped")
        return None

    def _reply(self, frame: JsonObject) -> AgentReply:
        if "result" in frame:
            return AgentReply(frame["result"])
        error = frame.get("error")
        said = str(error.get("message", "")) if isinstance(error, dict) else ""
        raise ProviderError(f"{self._name}: {said or 'it refused'}", reason="unknown")

    async def _read_frames(self, child: Child) -> AsyncIterator[JsonObject]:
        """The objects that it writes, a line each; words that some print beside them are passed over."""
        output, held = child.output(), bytearray()
        while data := await self._next_bytes(child, output):
            *whole, rest = data.split(b"\n")
            for line in whole:
                held += line
                if len(held) > self._most_frame_bytes:
                    break
                frame = _object_in(bytes(held))
                held.clear()
                if frame is not None:
                    yield frame
            else:
                held += rest
            if len(held) > self._most_frame_bytes:
                most = f"{self._most_frame_bytes:,} bytes (agent.answer.max_event_bytes)"
                raise await self._given_up(f"sent a line of more than {most}; it was stopped")

    async def _next_bytes(self, child: Child, output: AsyncIterator[bytes]) -> bytes:
        """What it writes next, empty at its end. Meanwhile it is sent what it has not read yet: a program that reads
        only when its own words are read would else wait for us as we wait for it.
        """
        try:
            async with asyncio.timeout(self._wait_s), asyncio.TaskGroup() as group:
                sending = group.create_task(self._send(child))
                data = await anext(output, b"")
                sending.cancel()
        except TimeoutError:
            said = f"has said nothing for {self._wait_s:g} s; it was stopped"
            raise await self._given_up(said) from None
        self._wait_s = self._limits.idle_s
        return data


def _object_in(line: bytes) -> JsonObject | None:
    try:
        found = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
