"""Decide the HTTP client: interrupt-then-exit runs, import time, size, latency and throughput of each candidate.

`python bench/http_gate.py` prints one Markdown table per question; `--interrupts 0` leaves the slow part out.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

CANDIDATES = {"pyreqwest": "pyreqwest.client", "aiohttp": "aiohttp"}
HOW = ("mid-stream", "before-first-byte", "leave-client-open", "deadline", "ctrl-c", "thread-loop")
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"some words of text"}}]}\n\n'

CHILD = """
import asyncio, os, signal, sys, threading
library, how, url = sys.argv[1:]
if library == "pyreqwest":
    from pyreqwest.client import ClientBuilder
    def build(): return ClientBuilder().build()
    async def read(client, seen):
        async with client.post(url).body_bytes(b"{}").build_streamed() as answer:
            while await answer.body_reader.read_chunk() is not None:
                seen()
else:
    import aiohttp
    def build(): return aiohttp.ClientSession()
    async def read(client, seen):
        async with client.post(url, data=b"{}") as answer:
            async for _ in answer.content.iter_any():
                seen()

async def main():
    client = build()
    reading = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(read(client, reading.set))
        if how == "before-first-byte":
            await asyncio.sleep(0.05)
        else:
            await reading.wait()
        if how == "ctrl-c":
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)
        task.cancel()
    if how != "leave-client-open":
        await (client.close())

async def deadline():
    client = build()
    try:
        async with asyncio.timeout(0.1):
            await read(client, lambda: None)
    except TimeoutError:
        pass
    await client.close()

try:
    if how == "thread-loop":
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        reading = threading.Event()
        async def in_thread():
            await read(build(), reading.set)
        future = asyncio.run_coroutine_threadsafe(in_thread(), loop)
        reading.wait(20)
        future.cancel()
    else:
        asyncio.run(deadline() if how == "deadline" else main())
except KeyboardInterrupt:
    pass
"""

COLD = """
import sys
library, url = sys.argv[1:]
import asyncio
async def main():
    if library == "pyreqwest":
        from pyreqwest.client import ClientBuilder
        client = ClientBuilder().build()
        async with client.post(url).body_bytes(b"{}").build_streamed() as answer:
            while await answer.body_reader.read_chunk() is not None:
                pass
    else:
        import aiohttp
        client = aiohttp.ClientSession()
        async with client.post(url, data=b"{}") as answer:
            await answer.read()
    await client.close()
asyncio.run(main())
"""


class Loopback:
    """A raw asyncio HTTP/1.1 server. `/endless` streams until the peer leaves, `/silent` never answers,
    `/turn?events=N&latency_ms=M` waits, then streams N events."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.url = ""

    async def __aenter__(self) -> "Loopback":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            # Cancelled when the server process ends while clients are still connected.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._exchange(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))
        path = head.split(b" ", 2)[1].decode()
        if path.startswith("/silent"):
            await reader.read()
            raise ConnectionResetError
        start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        chunk = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
        if path.startswith("/endless"):
            writer.write(start)
            while not reader.at_eof():
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0.005)
            raise ConnectionResetError
        query = dict(pair.split("=") for pair in path.partition("?")[2].split("&"))
        if query["latency_ms"] != "0":
            await asyncio.sleep(int(query["latency_ms"]) / 1000)
        writer.write(start + chunk)
        for _ in range(int(query["events"]) - 1):
            writer.write(chunk)
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def interrupt_runs(library: str, url: str, runs: int, side_by_side: int) -> Counter[str]:
    """Outcomes of `runs` children, spread over the ways to interrupt; anything but exit 0 and silence is named."""
    outcomes: Counter[str] = Counter()
    queue = iter(range(runs))

    async def worker() -> None:
        for number in queue:
            how = HOW[number % len(HOW)]
            path = "/silent" if how == "before-first-byte" else "/endless"
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CHILD, library, how, url + path,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                async with asyncio.timeout(60):
                    _, stderr = await child.communicate()
            except TimeoutError:
                child.kill()
                await child.wait()
                outcomes[f"{how}: hung"] += 1
                continue
            if child.returncode:
                last = stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
                outcomes[f"{how}: exit {child.returncode} {last[0][:160]}"] += 1
            else:
                outcomes[f"{how}: clean"] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(side_by_side):
            group.create_task(worker())
    return outcomes


@contextlib.asynccontextmanager
async def exchange_with(library: str) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """One shared client of `library`, as a function that posts and reads the stream to its end."""
    if library == "pyreqwest":
        from pyreqwest.client import ClientBuilder

        async with ClientBuilder().build() as client:

            async def post(url: str) -> None:
                async with client.post(url).body_bytes(b"{}").build_streamed() as answer:
                    while await answer.body_reader.read_chunk() is not None:
                        continue

            yield post
    elif library == "hermes":
        from hermes.models.http.client import HttpClient
        from hermes.scope import TurnScope

        seam = HttpClient()

        async def post(url: str) -> None:
            async for _ in seam.post_stream(url, {}, b"{}", TurnScope()):
                continue

        yield post
        await seam.close()
    else:
        import aiohttp

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def post(url: str) -> None:
                async with session.post(url, data=b"{}") as answer:
                    async for _ in answer.content.iter_any():
                        continue

            yield post


async def latency_ms(library: str, url: str, events: int, rounds: int) -> float:
    """Median milliseconds of one streamed exchange on a warm connection."""
    async with exchange_with(library) as post:
        samples = []
        for _ in range(rounds):
            start = time.perf_counter()
            await post(f"{url}/turn?events={events}&latency_ms=0")
            samples.append(time.perf_counter() - start)
    return statistics.median(samples[rounds // 5 :]) * 1000


async def share_of_ideal(library: str, url: str) -> float:
    """32 side by side, 20 exchanges each at 50 ms: the ideal second divided by what it took."""
    async with exchange_with(library) as post:

        async def one() -> None:
            for _ in range(20):
                await post(f"{url}/turn?events=20&latency_ms=50")

        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(32):
                group.create_task(one())
        return 20 * 0.05 / (time.perf_counter() - start)


async def child_ms(rounds: int, cache: str, *argv: str) -> float:
    """Median wall milliseconds of a fresh interpreter with these arguments, its imports compiled beforehand."""
    samples = []
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(rounds + 1):
        start = time.perf_counter()
        child = await asyncio.create_subprocess_exec(sys.executable, *argv, env={**env, "PYTHONPYCACHEPREFIX": cache})
        if code := await child.wait():
            print(f"note: a child that was not interrupted ended with {code}")
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[1:]) * 1000


def footprint(name: str) -> tuple[int, float]:
    """How many distributions `name` brings, itself included, and their size in MB."""
    wanted, seen, size = [name], set[str](), 0
    while wanted:
        dist = importlib.metadata.distribution(wanted.pop())
        if dist.name.lower() in seen:
            continue
        seen.add(dist.name.lower())
        size += sum(path.stat().st_size for file in dist.files or () if (path := Path(str(file.locate()))).is_file())
        for line in dist.requires or ():
            required, _, marker = line.partition(";")
            if "extra" in marker or ("python_version <" in marker and "3.13" not in marker):
                continue
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                bare = required.split("[")[0].translate(str.maketrans("<>=!~(", "      ")).split()[0]
                wanted.append(importlib.metadata.distribution(bare).name)
    return len(seen), size / 1e6


async def figures(url: str, rounds: int, cache: str) -> None:
    """Print the table of costs."""
    bare = await child_ms(rounds, cache, "-c", "pass")
    loop = await child_ms(rounds, cache, "-c", "import asyncio")
    print(f"\nbare Python {bare:.1f} ms, with asyncio {loop:.1f} ms, medians of {rounds}\n")
    print("| client | version | import after asyncio | cold first request | of bare | exchange, 20 events |"
          " exchange, 500 events | 32 x 20 at 50 ms, of ideal | distributions | MB |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for library, module in CANDIDATES.items():
        imported = await child_ms(rounds, cache, "-c", f"import asyncio, {module}")
        cold = await child_ms(rounds, cache, "-c", COLD, library, f"{url}/turn?events=1&latency_ms=0")
        short, long = await latency_ms(library, url, 20, 300), await latency_ms(library, url, 500, 60)
        ideal = statistics.median([await share_of_ideal(library, url) for _ in range(3)])
        count, size = footprint(library)
        version = importlib.metadata.version(library)
        print(f"| {library} | {version} | {imported - loop:.0f} ms | {cold:.0f} ms |"
              f" {cold / bare:.1f} x | {short:.2f} ms | {long:.2f} ms | {ideal:.2f} | {count} |"
              f" {size:.1f} |")  # fmt: skip


async def seam_figures(url: str) -> None:
    """Print what our own seam adds to the library under it, both measured in turns."""
    for events in (20, 500):
        ours, raw = [], []
        for _ in range(5):
            raw.append(await latency_ms("aiohttp", url, events, 60))
            ours.append(await latency_ms("hermes", url, events, 60))
        ratio = statistics.median(ours) / statistics.median(raw)
        print(f"hermes.models.http.client, exchange of {events} events: {ratio:.2f} x raw aiohttp")
    shares = [(await share_of_ideal("hermes", url)) / (await share_of_ideal("aiohttp", url)) for _ in range(3)]
    print(f"hermes.models.http.client, 32 x 20 at 50 ms: {statistics.median(shares):.2f} x raw aiohttp")


async def main(interrupts: int, side_by_side: int, rounds: int, only: str | None) -> int:
    """Print everything; the number of unclean interrupt runs is the exit code, at most 1."""
    unclean = 0
    # In a process of its own: the server's work must not count as the client's.
    server = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert server.stdout is not None
    assert server.stdin is not None
    try:
        url = (await server.stdout.readline()).decode().strip()
        for library in CANDIDATES if interrupts else ():
            if only not in {None, library}:
                continue
            outcomes = await interrupt_runs(library, url, interrupts, side_by_side)
            print(f"{library}: {interrupts} interrupt-then-exit runs")
            for outcome, count in sorted(outcomes.items()):
                print(f"  {count:5} {outcome}")
                unclean += 0 if outcome.endswith(": clean") else count
        if rounds:
            with tempfile.TemporaryDirectory() as cache:
                await figures(url, rounds, cache)
            await seam_figures(url)
    finally:
        server.stdin.close()
        await server.wait()
    return min(unclean, 1)


async def serve() -> None:
    """Serve until stdin ends."""
    async with Loopback() as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=1000, help="interrupt-then-exit runs per client")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15, help="fresh interpreters per timing; 0 leaves timings out")
    parser.add_argument("--only", choices=CANDIDATES)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
    else:
        sys.exit(asyncio.run(main(given.interrupts, given.side_by_side, given.rounds, given.only)))
