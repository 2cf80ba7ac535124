"""A client's connection to the server of a home: requests and their replies, and the events in between."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from hermes import __version__
from hermes.config import paths
from hermes.errors import HermesError, SessionNotFound, UserError
from hermes.host.host_errors import RequestRefused, SessionBusy
from hermes.host.installation import Installation
from hermes.host.wire import frames
from hermes.host.wire.frames import MOST_LINE_BYTES, WireError, WireEvent, WireReply, encode_request, read_answer
from hermes.host.wire.serve_folder import ServeFolder
from hermes.types import JsonObject

START_S = 30.0
AGAIN_S = 3.0
LOOK_S = 0.05


class ServerGone(UserError):
    """The server does not answer any more; whoever wants to go on connects again."""


class ServerConnection:
    """One connection. `hears` is called with each event, on the loop and in order; it must not wait."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.hears: Callable[[WireEvent], None] = lambda _event: None
        self.is_gone = asyncio.Event()

    @classmethod
    async def made(cls, home: Path) -> "ServerConnection":
        """Connect to the server of a home; `OSError` when none listens."""
        reader, writer = await asyncio.open_unix_connection(sock=ServeFolder(home).connected(), limit=MOST_LINE_BYTES)
        return cls(reader, writer)

    async def __aenter__(self) -> "ServerConnection":
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    async def listen(self) -> None:
        """Read what the server says, until it is gone. Requests are answered only while somebody listens."""
        try:
            while line := await self._reader.readline():
                self._heard(read_answer(line))
        except (ConnectionError, ValueError):
            pass  # gone, or no server of ours
        finally:
            self.close()

    async def ask(self, method: str, **params: Any) -> Any:
        """The result of a request; a host's own error where it was refused, `ServerGone` when nobody answers."""
        if self.is_gone.is_set():
            raise ServerGone("the server is gone")
        self._numbers += 1
        number, waits = self._numbers, asyncio.get_running_loop().create_future()
        self._waiting[number] = waits
        try:
            self._writer.write(encode_request(number, method, params))
            await self._writer.drain()
            return await waits
        except ConnectionError as error:
            # The server may have said why before it went; what was said to this request is the better word.
            told = waits.exception() if waits.done() else None
            raise told or ServerGone("the server is gone") from error
        finally:
            self._waiting.pop(number, None)
            if not waits.cancel() and not waits.cancelled():
                waits.exception()  # heard, also where whoever asked has gone before: asyncio complains otherwise

    async def hello(self, name: str, environ: Mapping[str, str], cwd: str) -> JsonObject:
        """Say who this is; `UserError` names what to restart when the versions differ."""
        told: JsonObject = await self.ask(
            "client.hello",
            version=__version__,
            protocol=frames.PROTOCOL,
            name=name,
            cwd=cwd,
            environ=surroundings(environ),
        )
        return told

    def close(self) -> None:
        self.is_gone.set()
        self._writer.close()
        for waits in self._waiting.values():
            if not waits.done():
                waits.set_exception(ServerGone("the server is gone"))

    def _heard(self, answer: WireReply | WireEvent | None) -> None:
        match answer:
            case WireEvent():
                self.hears(answer)
            case WireReply(id=int(number)) if number in self._waiting:
                waits = self._waiting[number]
                if waits.done():
                    return
                if answer.error is not None:
                    waits.set_exception(host_error(answer.error))
                else:
                    waits.set_result(answer.result)
            case WireReply(error=WireError() as error):  # about no request: this connection is refused
                for waits in self._waiting.values():
                    if not waits.done():
                        waits.set_exception(host_error(error))


def host_error(error: WireError) -> HermesError:
    """An error of the protocol as the one that the host has for it."""
    match error.code:
        case frames.NO_LIVE_SESSION | frames.NO_STORED_SESSION:
            return SessionNotFound(error.message)
        case frames.BUSY:
            return SessionBusy(error.message)
        case frames.REFUSED:
            return RequestRefused(error.message)
        case _:
            return UserError(error.message)


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a session has from the client that makes it."""
    names = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ")
    return {name: value for name, value in environ.items() if name in names or name.startswith("LC_")}


async def connected(installation: Installation) -> ServerConnection:
    """A connection to the server of a home, which is started when none runs."""
    place = ServeFolder(installation.home)
    loop = asyncio.get_running_loop()
    until, started_at = loop.time() + START_S, float("-inf")
    while True:
        try:
            return await ServerConnection.made(installation.home)
        except OSError:
            # Again after a while: the one that was started may have been killed, or lost to another that was.
            if loop.time() - started_at > AGAIN_S and not place.is_held:
                started_at = loop.time()
                start_server(installation)
        if loop.time() > until:
            log = paths.logs_dir(installation.home) / "serve.log"
            raise UserError(f"the server of this home did not start within {START_S:.0f} s; see {log}")
        await asyncio.sleep(LOOK_S)


def start_server(installation: Installation) -> None:
    """Start a server that goes on when this process has ended. Of two that start at once one stays."""
    from hermes.tools.supervisor.start_detached import start_detached  # most clients find one

    folder = paths.made(paths.logs_dir(installation.home))
    env = {**installation.environ, "HERMES_HOME": str(installation.root)}
    argv = [sys.executable, "-m", "hermes", "-p", installation.profile, "serve"]
    start_detached(argv, env, str(Path(os.sep)), folder / "serve.log")
