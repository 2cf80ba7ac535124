"""A client's connection whose server goes while something is asked."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from hermes.host.wire.connection import ServerConnection, ServerGone

MORE_THAN_A_SOCKET_HOLDS = "x" * 8_000_000
LIMIT_S = 60.0


async def test_a_request_that_cannot_be_sent_is_told_once_and_leaves_no_complaint(tmp_path: Path) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    knocked: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        knocked.set_result(writer)  # and nothing is read: the request stays on its way

    async with asyncio.timeout(LIMIT_S), await asyncio.start_unix_server(accept, tmp_path / "socket", limit=1024):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
        connection = ServerConnection(reader, writer)
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.listen())
            asked = group.create_task(_outcome(connection, MORE_THAN_A_SOCKET_HOLDS))
            given_up = group.create_task(_outcome(connection, MORE_THAN_A_SOCKET_HOLDS))
            (await knocked).transport.abort()
            await connection.is_gone.wait()
            given_up.cancel()  # in the round in which its answer is already there
    assert isinstance(asked.result(), ServerGone)
    del connection, asked, given_up
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_a_connection_that_is_gone_says_so_at_once(tmp_path: Path) -> None:
    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with asyncio.timeout(LIMIT_S), await asyncio.start_unix_server(accept, tmp_path / "socket"):
        connection = ServerConnection(*await asyncio.open_unix_connection(tmp_path / "socket"))
        await connection.listen()
        with pytest.raises(ServerGone):
            await connection.ask("server.status")


async def _outcome(connection: ServerConnection, words: str) -> BaseException | None:
    try:
        await connection.ask("prompt.submit", text=words)
    except ServerGone as error:
        return error.with_traceback(None)
    return None
