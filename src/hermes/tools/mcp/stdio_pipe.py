"""A server on this machine: a child of the supervisor inside the session's border, its pipes as an SDK transport.

The SDK would start the process by itself; here it gets memory streams, and the child stays ours: one line is one
message, whatever is no message is passed over, an answer that is too long or cannot be read becomes an error of its
call, and the end of the child ends the connection at once.
"""

import asyncio
import json
import logging
import math
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from hermes.confinement.policy import AnyConfinement, Confinement
from hermes.errors import ToolError
from hermes.seams import Child, Decision, SpawnSpec, Supervisor
from hermes.tools.mcp.server_config import ServerConfig, child_environment
from hermes.tools.mcp.unread_answer import refusal, unreadable

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_LINE = 80 * 1024 * 1024
STOP_S = 0.5  # between the end of its stdin and TERM
LAST_WORDS_S = 0.2
LOG_BYTES = 5_000_000
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
log = logging.getLogger(__name__)


@runtime_checkable
class TellsStderr(Protocol):
    """A child whose stderr can be heard as it comes."""

    def hear_stderr(self, listener: Callable[[bytes], None]) -> None: ...


class LinkSignals:
    """What becomes of a connection: it has ended, or its owner should look at it."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.stirred = asyncio.Event()
        self.is_relist_due = False

    def end(self) -> None:
        self.ended.set()
        self.stirred.set()


class StdioPlace(Struct, frozen=True, kw_only=True):
    """Where servers are started, and with what."""

    supervisor: Callable[[], Supervisor]
    confinement: Callable[[], Awaitable[AnyConfinement]]
    environ: Mapping[str, str]
    cwd: Callable[[], str]
    owner: str
    stderr_log: Path
    redact: Callable[[str], str] = str


async def start_server(config: ServerConfig, place: StdioPlace) -> Child:
    """The child of a stdio server; `ToolError` when it cannot be started."""
    confinement = await place.confinement()
    env = child_environment(config, place.environ)
    if isinstance(confinement, Confinement):
        own = config.entry.env
        env = {name: value for name, value in env.items() if name in own or name not in confinement.without}
        env |= {name: value for name, value in confinement.env.items() if name not in own}
    command, cwd = config.entry.command, config.entry.cwd or place.cwd()
    program = _program(command, env.get("PATH"), cwd)
    spec = SpawnSpec(
        argv=(program, *config.entry.args),
        cwd=cwd,
        env=env,
        owner=place.owner,
        merge_stderr=False,
        keep_stdin=True,
        confinement=confinement,
    )
    child = await place.supervisor().spawn(Decision.own(f"the MCP server {config.name!r} of the settings"), spec)
    if isinstance(child, TellsStderr):
        child.hear_stderr(StderrLog(place.stderr_log, config.name, place.redact).add)
    return child


def _program(command: str, path: str | None, cwd: str) -> str:
    """What `command` names; `ToolError` when it is not there, which else bwrap would say in its own words."""
    program = command if "/" in command else shutil.which(command, path=path)
    if program is None:
        raise ToolError(f"there is no program {command!r} on PATH")
    if not Path(cwd, program).is_file():
        raise ToolError(f"there is no program {command!r}" + ("" if Path(program).is_absolute() else f" in {cwd!r}"))
    return program


@asynccontextmanager
async def stdio_streams(child: Child, signals: LinkSignals) -> AsyncIterator["TransportStreams"]:
    """The child's pipes as streams of messages; `signals` is told when no more will come."""
    import anyio  # with the SDK
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    def message_of(line: bytes) -> SessionMessage | None:
        """The message of a line; None for what is none, which a server may print by mistake."""
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            whole = _without_halves(line)
            if whole is not None and whole != line:  # the second time it is the same
                return message_of(whole)
            if (refused := refusal(line, line, unreadable(str(error)))) is not None:
                return SessionMessage(jsonrpc_message_adapter.validate_json(refused))
            log.debug("an MCP server printed a line that is no message: %r", line[:200])
            return None

    inbox, heard = anyio.create_memory_object_stream[SessionMessage | Exception](8)
    # Without a limit: a server that reads nothing must not hold up whoever gives up a call and says so.
    said, outbox = anyio.create_memory_object_stream[SessionMessage](math.inf)

    async def read() -> None:
        async with inbox:
            try:
                async for line in message_lines(child):
                    if line.strip() and (message := message_of(line)) is not None:
                        await inbox.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the session is over
        signals.end()

    async def write() -> None:
        async with outbox:
            try:
                async for message in outbox:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await child.write(f"{text}\n".encode())
            except (BrokenPipeError, OSError):
                inbox.close()
        signals.end()

    async def watch() -> None:
        """The end of the program is the end, also when a child of its own holds the pipe open."""
        await child.exited()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await signals.ended.wait()
        inbox.close()
        signals.end()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work()) for work in (read, write, watch)]
        try:
            yield heard, said
        finally:
            signals.end()
            for task in tasks:
                task.cancel()
            for stream in (inbox, heard, said, outbox):
                stream.close()


async def stop_server(child: Child) -> None:
    """End the child as the protocol wants it: its stdin closes, then TERM, then KILL. Bounded."""
    try:
        child.close_stdin()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await child.exited()
        if not child.is_gone:
            async with asyncio.timeout(STOP_S * 4):
                await child.stop(grace_s=STOP_S)
    except TimeoutError:
        log.warning("an MCP server did not end in time; the keeper ends it")
    finally:
        child.release()


async def last_words(child: Child) -> str:
    """Why a child has ended, as far as it told."""
    code: int | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS_S * 5):
            code = await child.exited()
    lines = [line.strip() for line in child.stderr_tail().decode("utf-8", "replace").splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "rror" in line), lines[-1] if lines else "")
    how = "it closed its output" if code is None else f"it ended with exit code {code}"
    return f"{how}: {said[:300]}" if said else f"{how} and said nothing"


async def message_lines(child: Child, most: int = MAX_LINE) -> AsyncIterator[bytes]:
    """The lines of a child's output. One longer than `most` is given by its two ends, and nothing of it is kept."""
    parts: list[bytes] = []
    size = 0
    async for chunk in child.output():
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            parts.append(piece)
            yield _joined(parts, size + len(piece), most)
            parts, size = [], 0
        if rest:
            parts.append(rest)
            size += len(rest)
            if size > most and len(parts) > 2:
                parts[1:-1] = []  # what is in the middle of such a line is of no use to anybody


def _without_halves(line: bytes) -> bytes | None:
    """JSON with a mark in place of half a character, as programs write that cut a text anywhere; None for a line
    without. The SDK takes no such line, and a call would wait for its answer until it is late."""
    if not _HALF.search(line):
        return None
    try:
        return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def _joined(parts: list[bytes], size: int, most: int) -> bytes:
    if size <= most:
        return b"".join(parts)
    why = f"the answer has {size / 1e6:.0f} MB, more than the {most / 1e6:.0f} MB that are read"
    refused = refusal(parts[0], b"".join(parts[-2:]), why)
    if refused is None:
        log.warning("a line of %s bytes of an MCP server was passed over: it answers no call that can be told", size)
    return refused or b""


class StderrLog:
    """What servers write to stderr, in a file with an end: at its full size it begins anew, and one before is kept."""

    def __init__(self, file: Path, server: str, redact: Callable[[str], str]) -> None:
        self._file = file
        self._prefix = f"[{server}] "
        self._redact = redact
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Write the whole lines of `data`; empty is the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._rest and (not data or len(self._rest) > 8192):
            lines, self._rest = [*lines, self._rest], b""
        if not lines:
            return
        text = "".join(f"{self._prefix}{line.decode('utf-8', 'replace')}\n" for line in lines)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._file.exists() and self._file.stat().st_size > LOG_BYTES:
                self._file.replace(self._file.with_suffix(".log.1"))
            with self._file.open("a", encoding="utf-8") as out:
                out.write(self._redact(text))
        except OSError as error:
            log.warning("stderr of an MCP server could not be written: %s", error)
