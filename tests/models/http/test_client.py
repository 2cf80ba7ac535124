"""`HttpClient` against real sockets: bytes arrive as sent, limits hold, and leaving closes exactly that request."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import psutil
import pytest

from hermes.models.http.client import ERROR_BODY_BYTES, HttpClient
from hermes.models.http.errors import (
    HttpBodyError,
    HttpConnectError,
    HttpDisconnected,
    HttpStatusError,
    HttpTimeoutError,
)
from hermes.scope import TurnScope
from hermes.seams import HttpLimits

Handler = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BOUND_S = 20.0  # a test that waits longer has failed
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def served(handle: Handler) -> AsyncIterator[str]:
    """A server that gives each request's head to `handle`; yields its address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await handle(await reader.readuntil(b"\r\n\r\n"), reader, writer)
                    await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


async def collect(client: HttpClient, url: str, *, body: bytes = b"{}", limits: HttpLimits | None = None) -> bytes:
    stream = client.post_stream(url, {"x-test": "yes"}, body, TurnScope(), limits or HttpLimits())
    async with asyncio.timeout(BOUND_S):
        return b"".join([chunk async for chunk in stream])


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def test_body_and_headers_reach_the_server_and_the_answer_arrives_whole(client: HttpClient) -> None:
    seen: list[bytes] = []

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend([head, await reader.readexactly(11)])
        writer.write(CHUNKED + chunk(b"one ") + chunk("zwölf".encode()) + b"0\r\n\r\n")

    async with served(handle) as url:
        assert await collect(client, url + "/v1/x?key=1", body=b'{"a": true}') == "one zwölf".encode()
    assert seen[0].startswith(b"POST /v1/x?key=1 HTTP/1.1\r\n")
    assert b"x-test: yes\r\n" in seen[0]
    assert b"accept-encoding: identity\r\n" in seen[0].lower()
    assert seen[1] == b'{"a": true}'


@pytest.mark.parametrize("sizes", [(3,), (10, 100_000, 5), (2_500_000,), (7, 1 << 20, 0, 3_000_000)])
async def test_a_body_in_pieces_arrives_in_one(client: HttpClient, sizes: tuple[int, ...]) -> None:
    pieces = tuple(bytes([65 + place]) * size for place, size in enumerate(sizes))

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert f"content-length: {sum(sizes)}\r\n".encode() in head.lower()
        assert await reader.readexactly(sum(sizes)) == b"".join(pieces)
        writer.write(OK + b"content-length: 2\r\n\r\nok")

    async with served(handle) as url, asyncio.timeout(BOUND_S):
        stream = client.post_stream(url, {}, pieces, TurnScope())
        assert b"".join([chunk async for chunk in stream]) == b"ok"


async def test_each_piece_is_handed_over_before_the_next_is_sent(client: HttpClient) -> None:
    wanted: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(CHUNKED)
        while piece := await wanted.get():
            writer.write(chunk(piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    got = []
    async with served(handle) as url, asyncio.timeout(BOUND_S):
        wanted.put_nowait(b"piece 0")
        async for piece in client.post_stream(url, {}, b"{}", TurnScope()):
            got.append(piece)
            wanted.put_nowait(b"piece %d" % len(got) if len(got) < 5 else b"")
    assert got == [b"piece %d" % number for number in range(5)]


async def test_a_connection_read_to_the_end_is_used_again(client: HttpClient) -> None:
    peers: set[object] = set()

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        peers.add(writer.get_extra_info("peername"))
        writer.write(OK + b"content-length: 2\r\n\r\nok")

    async with served(handle) as url:
        for _ in range(3):
            assert await collect(client, url) == b"ok"
        await client.close()
    assert len(peers) == 1


@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1, 5_000_000])
async def test_large_bodies_arrive_byte_for_byte(client: HttpClient, size: int) -> None:
    body = os.urandom(1000) * (size // 1000) + b"x" * (size % 1000)
    received: list[bytes] = []

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"content-length: %d\r\n" % size in head.lower()
        received.append(await reader.readexactly(size))
        writer.write(OK + b"content-length: 0\r\n\r\n")

    async with served(handle) as url:
        assert await collect(client, url, body=body) == b""
    assert received == [body]


async def test_a_status_outside_2xx_carries_headers_and_the_start_of_the_body(client: HttpClient) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\ncontent-length: 100000\r\n\r\n" + b"e" * 100_000)

    async with served(handle) as url:
        with pytest.raises(HttpStatusError) as caught:
            await collect(client, url + "/v1?key=secret")
    assert (caught.value.status, caught.value.headers["retry-after"]) == (429, "7")
    assert caught.value.body == b"e" * ERROR_BODY_BYTES
    assert str(caught.value) == f"{url}/v1: HTTP status 429"


async def test_an_error_body_cut_off_by_the_server_is_still_a_status_error(client: HttpClient) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf")
        writer.close()

    async with served(handle) as url:
        with pytest.raises(HttpStatusError) as caught:
            await collect(client, url)
    assert (caught.value.status, caught.value.body) == (500, b"half")


async def test_redirects_are_not_followed(client: HttpClient) -> None:
    paths: list[bytes] = []

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        paths.append(head.split(b" ")[1])
        writer.write(b"HTTP/1.1 307 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    async with served(handle) as url:
        with pytest.raises(HttpStatusError) as caught:
            await collect(client, url + "/here")
    assert (caught.value.status, paths) == (307, [b"/here"])


async def test_nothing_listening_is_a_connect_error(client: HttpClient) -> None:
    async with served(lambda *_: asyncio.sleep(0)) as url:
        pass
    with pytest.raises(HttpConnectError, match=f"^{url}/: no connection: Connection refused$"):
        await collect(client, url + "/")


@pytest.mark.parametrize("url", ["not a url", "ftp://127.0.0.1/x", "http://", "127.0.0.1:80", "http://[::1"])
async def test_an_address_that_is_none_is_a_connect_error(client: HttpClient, url: str) -> None:
    with pytest.raises(HttpConnectError):
        await collect(client, url)


async def test_a_key_with_a_line_break_is_refused_without_showing_it(client: HttpClient) -> None:
    stream = client.post_stream("http://127.0.0.1:9/", {"authorization": "Bearer s3cret\n"}, b"", TurnScope())
    with pytest.raises(HttpConnectError) as caught:
        await anext(stream)
    assert "s3cret" not in str(caught.value)


async def test_a_host_name_that_cannot_exist_is_a_connect_error(client: HttpClient) -> None:
    with pytest.raises(HttpConnectError):
        await collect(client, f"http://{'long' * 20}.example/")


async def test_a_name_server_that_never_answers_is_a_connect_timeout(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer.wait(BOUND_S) and [])
    try:
        with pytest.raises(HttpTimeoutError) as caught:
            await collect(client, "http://host.invalid/", limits=HttpLimits(connect_s=0.05))
    finally:
        answer.set()
    assert caught.value.kind == "connect"


async def test_a_host_name_is_looked_up(client: HttpClient) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(OK + b"content-length: 2\r\n\r\nok")

    async with served(handle) as url:
        assert await collect(client, url.replace("127.0.0.1", "localhost")) == b"ok"


@pytest.mark.parametrize(
    ("sent", "received"),
    [(b"", 0), (OK, 0), (CHUNKED + chunk(b"half a"), 6), (OK + b"content-length: 50\r\n\r\nhalf", 4)],
)
async def test_a_connection_that_ends_early_says_how_much_had_come(
    client: HttpClient, sent: bytes, received: int
) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(sent)
        await writer.drain()
        writer.close()

    got: list[bytes] = []

    async def read(url: str) -> None:
        async for piece in client.post_stream(url, {}, b"{}", TurnScope()):
            got.append(piece)  # noqa: PERF401 - what came before the error must be kept

    async with served(handle) as url, asyncio.timeout(BOUND_S):
        with pytest.raises(HttpDisconnected) as caught:
            await read(url)
    assert caught.value.received_bytes == received == len(b"".join(got))


async def silent(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    raise ConnectionResetError


async def stalling(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED + chunk(b"start"))
    await silent(head, reader, writer)


async def headers_only(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED)
    await silent(head, reader, writer)


@pytest.mark.parametrize(
    ("handle", "limits", "kind"),
    [
        (silent, HttpLimits(30, 0.05, 30), "first_byte"),
        (headers_only, HttpLimits(30, 0.05, 30), "first_byte"),
        (stalling, HttpLimits(30, 30, 0.05), "idle"),
    ],
)
async def test_a_passed_limit_is_named(client: HttpClient, handle: Handler, limits: HttpLimits, kind: str) -> None:
    async with served(handle) as url:
        with pytest.raises(HttpTimeoutError) as caught:
            await collect(client, url, limits=limits)
    assert (caught.value.kind, caught.value.limit_s) == (kind, 0.05)


async def test_a_server_that_accepts_nobody_is_a_connect_timeout(client: HttpClient) -> None:
    with socket.socket() as listener, contextlib.ExitStack() as fillers:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        with pytest.raises(HttpTimeoutError) as caught:
            await collect(client, f"http://127.0.0.1:{listener.getsockname()[1]}/", limits=HttpLimits(connect_s=0.1))
    assert caught.value.kind == "connect"


async def test_the_scope_ends_a_request_that_its_own_limits_would_let_run(client: HttpClient) -> None:
    async with served(stalling) as url, asyncio.timeout(BOUND_S):
        async with TurnScope(timeout_s=0.05) as scope:
            async for _ in client.post_stream(url, {}, b"{}", scope):
                pass
        assert scope.expired


async def test_a_scope_of_another_task_is_the_total_limit(client: HttpClient) -> None:
    async with served(silent) as url, asyncio.timeout(BOUND_S):
        stream = client.post_stream(url, {}, b"{}", TurnScope(timeout_s=0.05))
        with pytest.raises(HttpTimeoutError) as caught:
            await anext(stream)
    assert caught.value.kind == "total"


@pytest.mark.parametrize("path", ["/silent", "/stalling", "/uploading", "/uploading/stuck"])
async def test_cancelling_closes_that_request_at_once_and_no_other(client: HttpClient, path: str) -> None:
    reached, closed, finish = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST /other"):
            await reader.readexactly(2)
            writer.write(CHUNKED + chunk(b"first"))
            await finish.wait()
            writer.write(chunk(b" second") + b"0\r\n\r\n")
            return
        if b"/stalling" in head:
            writer.write(CHUNKED + chunk(b"start"))
            await writer.drain()
        reached.set()
        if b"/uploading" in head:
            # Nothing is read: what the client still has to send must not keep its socket open.
            transport = writer.transport
            transport.pause_reading()  # type: ignore[attr-defined]  # a read transport, which the stubs do not say
            await closed.wait()
            transport.abort()
            return
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    body = b"x" * 50_000_000 if "/uploading" in path else b"{}"

    async def reading(url: str) -> None:
        async for _ in client.post_stream(url + path, {}, body, TurnScope()):
            pass

    async with served(handle) as url, asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        other = client.post_stream(url + "/other", {}, b"{}", TurnScope())
        assert await anext(other) == b"first"
        task = group.create_task(reading(url))
        await reached.wait()
        await asyncio.sleep(0.5 if path.endswith("stuck") else 0)  # until every buffer is full
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        if "/uploading" in path:
            port = int(url.rpartition(":")[2])
            await until(lambda: len(sockets_to(port)) == 1)
            closed.set()
        await closed.wait()
        finish.set()
        assert [piece async for piece in other] == [b" second"]


async def test_closing_the_iterator_closes_the_socket(client: HttpClient) -> None:
    closed = asyncio.Event()

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + chunk(b"start"))
        await writer.drain()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    async with served(handle) as url, asyncio.timeout(BOUND_S):
        stream = client.post_stream(url, {}, b"{}", TurnScope())
        assert await anext(stream) == b"start"
        await stream.aclose()
        await closed.wait()


async def test_get_json_decodes_and_says_what_is_not_json(client: HttpClient) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b'{"data": []}' if b"/models" in head else b"<html>"
        writer.write(OK + b"content-length: %d\r\n\r\n" % len(body) + body)

    async with served(handle) as url:
        assert await client.get_json(url + "/models", {}, 5) == {"data": []}
        with pytest.raises(HttpBodyError, match="not JSON"):
            await client.get_json(url + "/", {}, 5)


async def test_get_json_has_one_time_limit(client: HttpClient) -> None:
    async with served(headers_only) as url:
        with pytest.raises(HttpTimeoutError):
            await client.get_json(url, {}, 0.05)


@pytest.mark.parametrize(("no_proxy", "through"), [("", True), ("other.test,model.test", False)])
async def test_the_environment_names_the_proxy(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, no_proxy: str, through: bool
) -> None:
    seen: list[bytes] = []

    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        seen.append(head.split(b" ")[1])
        writer.write(OK + b"content-length: 2\r\n\r\nok")

    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    async with served(handle) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", no_proxy)
        monkeypatch.setattr(socket, "getaddrinfo", nowhere)
        if through:
            assert await collect(client, "http://model.test/v1") == b"ok"
        else:
            with pytest.raises(HttpConnectError):
                await collect(client, "http://model.test/v1")
        await client.close()
    assert seen == ([b"http://model.test/v1"] if through else [])


async def test_a_closed_client_opens_again(client: HttpClient) -> None:
    async def handle(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(OK + b"content-length: 2\r\n\r\nok")

    async with served(handle) as url:
        assert await collect(client, url) == b"ok"
        await client.close()
        assert await collect(client, url) == b"ok"


def test_a_second_loop_is_refused() -> None:
    client = HttpClient()

    async def use(url: str = "http://127.0.0.1:9/") -> None:
        with contextlib.suppress(HttpConnectError):
            await collect(client, url)

    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(use())
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(use())
        first.run_until_complete(client.close())
    finally:
        first.close()


def test_importing_the_module_does_not_import_the_library() -> None:
    code = "import sys, hermes.models.http.client; sys.exit('aiohttp' in sys.modules)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False, timeout=60).returncode == 0


def sockets_to(port: int) -> list[object]:
    """This process's open client sockets to `port`."""
    return [
        found
        for found in psutil.Process().net_connections("tcp")
        if getattr(found.raddr, "port", None) == port and found.status == psutil.CONN_ESTABLISHED
    ]


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until `holds`; the caller bounds the time."""
    while not holds():  # noqa: ASYNC110 - the kernel's list of sockets raises no event
        await asyncio.sleep(0.001)
