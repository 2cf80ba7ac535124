"""What our side of a model call costs, against a raw exchange of the same bytes with the same HTTP client.

`python bench/models.py` measures every transport: one call after another at 20 and at 2,000 turns of history, and 32
agents side by side at 50 ms of model latency. The server is a process of its own; raw and ours take turns.
"""

import argparse
import asyncio
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SRC))

from hermes.models.attempts import ClientOptions  # noqa: E402
from hermes.models.client import CallPlan, ModelClient  # noqa: E402
from hermes.models.endpoint import ApiMode, Endpoint, Quirks  # noqa: E402
from hermes.models.http.client import HttpClient  # noqa: E402
from hermes.models.wires.transport import make_model  # noqa: E402
from hermes.ops import StoreOp  # noqa: E402
from hermes.runtime.requests import build_units  # noqa: E402
from hermes.runtime.setup.process import RandomIds, SystemClock  # noqa: E402
from hermes.scope import TurnScope  # noqa: E402
from hermes.seams import ModelRequest, UnitLog  # noqa: E402
from hermes.types import Message, ModelResponse, ToolCall, ToolDefinition  # noqa: E402

MODES: tuple[ApiMode, ...] = ("chat_completions", "anthropic_messages", "codex_responses", "bedrock_converse")
PATHS = {
    "chat_completions": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "codex_responses": "/v1/responses",
    "bedrock_converse": "/model/m/converse-stream",
}
ROUNDS = 5
WORDS = "A few words of an answer, as a model writes them, and some more. " * 6

SERVE = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from hermes.testing.replies import says
from hermes.testing.server.bedrock import BedrockWire
from hermes.testing.server.chat import ChatWire
from hermes.testing.server.messages import MessagesWire
from hermes.testing.server.responses import ResponsesWire
from hermes.testing.server.exchange import read_request
from hermes.testing.server.wire import Answer
from hermes.types import Usage
latency, words = float(sys.argv[2]), sys.argv[3]
def canned(wire):
    answer = Answer(reply=says(words), number=1, model="m", usage=Usage(100, 50))
    frames = wire.frames(answer)
    body = b"".join(b"%x\\r\\n%b\\r\\n" % (len(f), f) for f in (*frames.content, *frames.ending)) + b"0\\r\\n\\r\\n"
    head = f"HTTP/1.1 200 OK\\r\\ncontent-type: {wire.content_type}\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"
    return head.encode() + body
answers = {"/chat/completions": canned(ChatWire()), "/messages": canned(MessagesWire()),
           "/responses": canned(ResponsesWire()), "/converse-stream": canned(BedrockWire())}
async def serve(reader, writer):
    try:
        while (request := await read_request(reader)) is not None:
            if latency:
                await asyncio.sleep(latency)
            writer.write(next(body for end, body in answers.items() if request[1].endswith(end)))
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


class NoStore:
    """A store that takes everything: what the ledger costs is measured by bench/store.py."""

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        return (0,) * len(ops)

    async def load(self, session_id: str, after: int = 0) -> None:
        return None

    async def put_blob(self, data: bytes) -> str:
        raise NotImplementedError

    async def get_blob(self, digest: str) -> bytes:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    args = [sys.executable, "-c", SERVE, str(SRC), str(latency_s), WORDS]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def history(turns: int) -> list[Message]:
    messages: list[Message] = []
    for n in range(turns):
        messages += [
            Message(role="user", content=f"Question {n}: what does the file say about the matter at hand?"),
            Message(role="assistant", content="", tool_calls=(ToolCall(f"c{n}", "read", f'{{"path":"f{n}"}}'),)),
            Message(role="tool", content="some lines of a file\n" * 8, tool_call_id=f"c{n}", tool_name="read"),
            Message(role="assistant", content=WORDS),
        ]
    return messages


def client(mode: ApiMode, url: str, http: HttpClient) -> ModelClient:
    base = f"{url}/v1" if mode in ("chat_completions", "codex_responses") else url
    endpoint = Endpoint(base_url=base, model="m", api_mode=mode, api_key="k", quirks=Quirks(cache_markers=True))
    return ModelClient([make_model(endpoint, http)], NoStore(), SystemClock(), RandomIds(), ClientOptions())


class Conversation:
    """One agent's requests: each is the last one and an exchange more."""

    def __init__(self, mode: ApiMode, url: str, http: HttpClient, turns: int) -> None:
        self.client = client(mode, url, http)
        self._messages = history(turns)
        self._memo: dict[str, tuple[int, Any]] = {}
        self._tools = tuple(
            ToolDefinition(
                f"tool_{n}", "Does one thing well.", {"type": "object", "properties": {"path": {"type": "string"}}}
            )
            for n in range(20)
        )
        self._units = list(build_units(self._messages))

    def next_request(self) -> ModelRequest:
        more = [Message(role="user", content="And now?"), Message(role="assistant", content=WORDS)]
        self._units += build_units(more)
        return ModelRequest(
            system="You help. " * 200,
            tools=self._tools,
            units=UnitLog([*self._units, *build_units([Message(role="user", content="Go on.")])], self._memo),
            session_id="s",
        )

    def body(self, request: ModelRequest) -> bytes:
        model: Any = self.client.model
        made: bytes = model.body(request)
        return made

    async def ask(self, request: ModelRequest) -> None:
        plan = CallPlan(purpose="turn", session_id=None)
        answer = await self.client.call(request, plan, TurnScope())
        assert isinstance(answer.response, ModelResponse)
        assert answer.response.message.content == WORDS


async def raw(session: Any, url: str, body: bytes) -> None:
    """The same bytes with aiohttp alone."""
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    async with session.post(url, data=body, headers=headers) as answer:
        async for _ in answer.content.iter_any():
            pass


async def timed(work: Awaitable[None]) -> float:
    start = time.perf_counter()
    await work
    return (time.perf_counter() - start) * 1000


async def overhead(mode: ApiMode, url: str, turns: int, runs: int) -> tuple[float, float]:
    """Medians in ms: (ours, raw). Which of the two goes first changes every time."""
    import aiohttp

    http = HttpClient()
    ours: list[float] = []
    bare: list[float] = []
    async with aiohttp.ClientSession() as session:
        talk = Conversation(mode, url, http, turns)
        for number in range(-5, runs):
            request = talk.next_request()
            if number % 2:
                mine = await timed(talk.ask(request))
                theirs = await timed(raw(session, f"{url}{PATHS[mode]}", talk.body(request)))
            else:
                theirs = await timed(raw(session, f"{url}{PATHS[mode]}", talk.body(request)))
                mine = await timed(talk.ask(request))
            if number >= 0:
                ours.append(mine)
                bare.append(theirs)
        await http.close()
    return statistics.median(ours), statistics.median(bare)


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> float:
    """Seconds until all are done."""
    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)
    return time.perf_counter() - start


async def many(mode: ApiMode, url: str, agents: int, turns: int) -> tuple[float, float]:
    """Calls per second of all agents together: (ours, raw)."""
    import aiohttp

    http = HttpClient()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        talks = [Conversation(mode, url, http, 20) for _ in range(agents)]
        bodies = [talk.body(talk.next_request()) for talk in talks]

        async def bare(body: bytes) -> None:
            for _ in range(turns):
                await raw(session, f"{url}{PATHS[mode]}", body)

        async def mine(talk: Conversation) -> None:
            for _ in range(turns):
                await talk.ask(talk.next_request())

        theirs: list[float] = []
        ours: list[float] = []
        for _ in range(ROUNDS):
            theirs.append(agents * turns / await together(bare(body) for body in bodies))
            ours.append(agents * turns / await together(mine(talk) for talk in talks))
        await http.close()
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--modes", nargs="*", default=MODES)
    options = parser.parse_args()
    print("| transport | turns of history | ours, ms | raw aiohttp, ms | ratio (at most 1.5) |\n|---|---|---|---|---|")
    with server(0.0) as url:
        for mode, turns in itertools.product(options.modes, (20, 2000)):
            runs = options.runs if turns == 20 else max(15, options.runs // 4)
            ours, bare = asyncio.run(overhead(mode, url, turns, runs))
            print(f"| {mode} | {turns} | {ours:.2f} | {bare:.2f} | {ours / bare:.2f} |", flush=True)
    print("\n| transport | 32 agents x 20 turns, calls/s | raw, calls/s | ratio (at least 0.9) |\n|---|---|---|---|")
    with server(0.05) as url:
        for mode in options.modes:
            mine, theirs = asyncio.run(many(mode, url, 32, 20))
            print(f"| {mode} | {mine:.0f} | {theirs:.0f} | {mine / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
