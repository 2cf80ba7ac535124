"""`ServerThread`: the scripted server for tests that are not asynchronous."""

import asyncio
import threading
from types import TracebackType

from hermes.testing.server.core import Script, ScriptedServer


class ServerThread:
    """Runs a `ScriptedServer` in a thread with its own loop; the server stops when the block is left.

        with ServerThread([says("hi")]) as server:
            ...  # a client of server.base_url
        server.assert_finished()

    What is yielded is the server itself: read its lists and call `assert_finished`, but await nothing on it.
    """

    def __init__(
        self,
        replies: Script = (),
        *,
        port: int = 0,
        models: tuple[str, ...] = ("scripted",),
        window: int | None = 128_000,
    ) -> None:
        self._server = ScriptedServer(replies, port=port, models=models, window=window)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="scripted-server", daemon=True)
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave = asyncio.Event()

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._server

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with self._server:
                self._ready.set()
                await self._leave.wait()
        except OSError as error:  # the port is taken: raised again where the caller stands
            self._error = error
        finally:
            self._ready.set()
