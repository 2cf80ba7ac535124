"""A provider with two answers: a call to `todo` when a person spoke last, "done" when a tool did.

    python bench/canned.py LATENCY_S [--arrivals | --marks] [--text]

Prints its port and, if asked to, the monotonic time at which each request was complete (with --marks: which message it
was about, `#7#` in its words, once each). With --text it calls no tool. Ends with its standard input.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Mapping

CHUNKS = 8
MARK = re.compile(rb"#(\d+)#")


def sse(*deltas: Mapping[str, object], finish: str) -> bytes:
    events: list[object] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    events.append({"choices": [], "usage": usage})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return body.encode()


def call_answer(number: int) -> bytes:
    start = {"tool_calls": [{"index": 0, "id": f"call_{number}", "function": {"name": "todo", "arguments": ""}}]}
    rest = {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    return sse(start, rest, finish="tool_calls")


TEXT = sse(*({"content": f"word {n} "} for n in range(CHUNKS)), finish="stop")


class Canned(asyncio.Protocol):
    """One connection; requests one after another."""

    requests = 0

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._buffer = bytearray()
        self._size = 0  # of the request that is arriving, once its head is there
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._size:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            if head.startswith(b"get "):  # it lists no models
                self._buffer.clear()
                assert self._transport is not None
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            self._size = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self._buffer) < self._size:
            return
        last = self._buffer.rfind(b'"role":"')
        is_result = self._buffer.startswith(b'"role":"tool"', last) or "--text" in sys.argv
        if "--marks" in sys.argv and (marks := MARK.findall(bytes(self._buffer[last:]))):
            print(time.monotonic(), marks[-1].decode(), flush=True)
        self._buffer.clear()
        self._size = 0
        Canned.requests += 1
        if "--arrivals" in sys.argv:
            print(time.monotonic(), flush=True)
        answer = TEXT if is_result else call_answer(Canned.requests)
        asyncio.get_running_loop().call_later(self._latency_s, self._answer, answer)

    def _answer(self, body: bytes) -> None:
        assert self._transport is not None
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        half = len(body) // 2
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]))
        self._transport.write(head + pieces + b"0\r\n\r\n")


async def main() -> None:
    loop = asyncio.get_running_loop()
    latency_s = float(sys.argv[1])
    server = await loop.create_server(lambda: Canned(latency_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, lambda: ended.set() if not os.read(0, 1024) else None)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
