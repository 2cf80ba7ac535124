"""Answers the calls of one script over a Unix socket: who may ask, for what, and how often."""

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
from typing import Any

import msgspec

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import NestedCalls
from hermes.tools.calling.validation import CallRefused
from hermes.tools.code_execution.stubs import FOREGROUND_ONLY
from hermes.tools.registry import tool_error
from hermes.tools.results.tool_result import sanitise_error
from hermes.types import text_of

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 8 << 20


class CallServer:
    """One script's calls, in whatever order and however many at once they come. `made` counts those that ran."""

    def __init__(self, calls: NestedCalls, tools: tuple[str, ...], limit: int, scope: TurnScope) -> None:
        self.token = secrets.token_urlsafe(32)
        self.made = 0
        self.used: set[str] = set()
        self._calls = calls
        self._tools = tools
        self._limit = limit
        self._scope = scope  # the script's own: its calls have what it has left

    async def answer(self, request: bytes) -> bytes:
        """The result as one line: the text that the tool gave, as a JSON string. Bad requests get an error object."""
        return msgspec.json.encode(await self._answer(request))

    async def _answer(self, request: bytes) -> str:
        try:
            asked = msgspec.json.decode(request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return tool_error(f"the request is not JSON: {error}")
        if not isinstance(asked, dict):
            return tool_error("a request is an object with tool and args")
        if not hmac.compare_digest(str(asked.get("token", "")).encode("utf-8", "replace"), self.token.encode()):
            return tool_error("the request does not carry this run's token")
        name, args = asked.get("tool"), asked.get("args", {})
        if not isinstance(name, str) or name not in self._tools:
            known = ", ".join(self._tools) or "none"
            return tool_error(f"tool {name!r} cannot be called from a script; available: {known}")
        if not isinstance(args, dict):
            return tool_error("args must be an object")
        return await self._call(name, args)

    async def _call(self, name: str, args: dict[str, Any]) -> str:
        if name == "terminal":
            args = {key: value for key, value in args.items() if key not in FOREGROUND_ONLY}
        try:
            checked = self._calls.check(name, args)
        except CallRefused as refused:
            return refused.as_json()
        except ToolError as error:
            return tool_error(sanitise_error(str(error)))
        if self.made >= self._limit:
            return tool_error(
                f"the limit of {self._limit} tool calls per script is reached; print what you have, "
                "and go on in another script"
            )
        self.made += 1
        self.used.add(name)
        return text_of(await self._calls.call(name, checked, self._scope))


def too_large() -> bytes:
    """The answer to a request beyond `MAX_REQUEST_BYTES`."""
    return msgspec.json.encode(
        tool_error(f"the request is larger than {MAX_REQUEST_BYTES} bytes; write large content in parts")
    )


MAX_CONNECTIONS = 256
_READ_BYTES = 1 << 18


def listen(path: str) -> socket.socket:
    """A listening socket that only its owner can reach."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.bind(path)
        os.chmod(path, 0o600)  # noqa: PTH101 - one call, on the way of every script
        line.listen(64)
        line.setblocking(False)
    except BaseException:
        line.close()
        raise
    return line


async def serve(listener: socket.socket, desk: CallServer) -> None:
    """Answer until cancelled. Whatever one connection does costs at most that connection."""
    loop = asyncio.get_running_loop()
    open_now: set[socket.socket] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            line, _ = await loop.sock_accept(listener)
            if len(open_now) >= MAX_CONNECTIONS:
                line.close()
                continue
            line.setblocking(False)
            open_now.add(line)
            group.create_task(_served(line, desk, open_now))


async def serve_passed(mother: socket.socket, desk: CallServer) -> None:
    """The same for connections whose ends the script hands over, where it can make no socket."""
    loop = asyncio.get_running_loop()
    open_now: set[socket.socket] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            await _readable(mother, loop)
            try:
                data, fds, _, _ = socket.recv_fds(mother, 1, 1)
            except BlockingIOError:
                continue
            if not data:
                return
            for fd in fds:
                line = socket.socket(fileno=fd)
                line.setblocking(False)
                if len(open_now) >= MAX_CONNECTIONS:
                    line.close()
                    continue
                open_now.add(line)
                group.create_task(_served(line, desk, open_now))


async def _readable(line: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    ready = asyncio.Event()
    loop.add_reader(line.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(line.fileno())


async def _served(line: socket.socket, desk: CallServer, open_now: set[socket.socket]) -> None:
    try:
        with contextlib.suppress(ConnectionError, BrokenPipeError):  # the script's end is the script's business
            await _converse(line, desk)
    finally:
        open_now.discard(line)
        line.close()


async def _converse(line: socket.socket, desk: CallServer) -> None:
    loop = asyncio.get_running_loop()
    held = bytearray()
    while True:
        data = await loop.sock_recv(line, _READ_BYTES)
        if not data:
            return
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            request = bytes(held[:end])
            del held[: end + 1]
            searched = 0
            await loop.sock_sendall(line, await desk.answer(request) + b"\n")
        if len(held) > MAX_REQUEST_BYTES:
            await loop.sock_sendall(line, too_large() + b"\n")
            return
