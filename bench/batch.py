"""Batch runs: samples a second against agents that are driven by hand, memory, and how long a resume takes.

python bench/batch.py [--samples 500]   the provider is a process of its own; both sides take turns in this run
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SRC))

AT_ONCE, TOOL_TURNS, LATENCY_S = 32, 4, 0.05
RESUMED = 10_000

SERVE = """
import asyncio, json, sys
LATENCY, TURNS = float(sys.argv[1]), int(sys.argv[2])
def sse(delta, finish):
    chunk = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    usage = {"model": "m", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 20}}
    body = b"".join(b"data: %s\\n\\n" % json.dumps(one).encode() for one in (chunk, usage)) + b"data: [DONE]\\n\\n"
    head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)
    return head + body
CALLS = [sse({"reasoning": "Hm.", "tool_calls": [{"index": 0, "id": f"call_{n}", "function": {"name": "todo",
         "arguments": "{}"}}]}, "tool_calls") for n in range(TURNS)]
DONE = sse({"content": "Done."}, "stop")
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            named = [line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length")]
            size = int(named[0].split(b":")[1]) if named else 0
            body = await reader.readexactly(size)
            await asyncio.sleep(LATENCY)
            n = body.count(b'"role":"tool"')
            writer.write(CALLS[n] if n < TURNS else DONE)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


@contextmanager
def served() -> Iterator[str]:
    args = [sys.executable, "-c", SERVE, str(LATENCY_S), str(TOOL_TURNS)]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


async def by_hand(url: str, many: int) -> float:
    """Tasks a second of agents side by side, with a new session for each task."""
    from hermes import AIAgent
    from hermes.runtime.setup.process import shared

    tasks = iter(range(many))

    async def drive() -> None:
        for number in tasks:
            agent = AIAgent(
                model="m",
                base_url=url,
                api_key="k",
                enabled_toolsets=["todo"],
                skip_memory=True,
                skip_context_files=True,
                max_iterations=10,
                platform="batch",
            )
            assert (await agent.arun_conversation(f"Task {number}."))["completed"]
            await agent.aclose()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(drive())
    rate = many / (time.perf_counter() - began)
    await shared.close()
    return rate


async def by_batch(url: str, folder: Path, name: str, many: int) -> float:
    """Samples a second of a run, its files included."""
    from hermes.batch import RunSpec, run_batch
    from hermes.runtime.setup.process import shared

    dataset = folder / f"{name}.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": f"Task {n}."}) + "\n" for n in range(many)))
    spec = RunSpec(
        dataset=str(dataset),
        run_name=name,
        model="m",
        base_url=url,
        api_key="k",
        distribution="todo",
        num_workers=AT_ONCE,
        folder=str(folder / name),
    )
    began = time.perf_counter()
    report = await run_batch(spec)
    rate = many / (time.perf_counter() - began)
    assert report.progress.done == many, report
    await shared.close()
    return rate


async def resumed(url: str, folder: Path) -> tuple[float, float]:
    """Seconds until the first sample of a run with so many that have ended is begun, and until its files are there."""
    from hermes.batch import RunSpec, run_batch
    from hermes.batch.dataset import read_dataset
    from hermes.batch.run_spec import RunProgress
    from hermes.config.load import load_settings
    from hermes.runtime.setup.process import shared
    from hermes.state.batch_rows import BatchRun, SampleRow

    dataset = folder / "many.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": f"Task {n}."}) + "\n" for n in range(RESUMED)))
    spec = RunSpec(
        dataset=str(dataset),
        run_name="many",
        model="m",
        base_url=url,
        api_key="k",
        distribution="todo",
        folder=str(folder / "many"),
    ).checked()
    rows = shared.store(load_settings()).batch_rows
    old = next(one for one in rows.runs() if one.name == "b0")
    (_, _, body), *_ = rows.bodies(old.run_id)
    keys = list(read_dataset(dataset).keys())
    rows.begin(BatchRun(run_id=spec.run_id, name="many", folder=spec.folder, spec=spec.stored()), keys)
    for key in keys[:-1]:
        ended = SampleRow(
            index=key.index, digest=key.digest, state="done", attempt=1, session_id="s", facts={"tokens": 1}
        )
        rows.finish(spec.run_id, (ended, body))
    first: list[float] = []

    def watch(_: RunProgress) -> None:
        first.append(time.perf_counter())

    began = time.perf_counter()
    report = await run_batch(spec, resume=True, on_progress=watch)
    assert report.progress.done == RESUMED
    took = time.perf_counter() - began
    await shared.close()
    return first[0] - began, took


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, served() as url:
        folder = Path(name)
        os.environ["HERMES_HOME"] = str(folder / "home")
        (folder / "home").mkdir()
        (folder / "home" / "distributions.yaml").write_text("todo: {todo: 100}\n")
        asyncio.run(by_batch(url, folder, "warm", AT_ONCE))
        hand, batch, sizes = list[float](), list[float](), list[float]()
        for number in range(asked.rounds):
            hand.append(asyncio.run(by_hand(url, asked.samples)))
            batch.append(asyncio.run(by_batch(url, folder, f"b{number}", asked.samples)))
            sizes.append(memory_mb())
        ideal = AT_ONCE / (LATENCY_S * (TOOL_TURNS + 1))
        ratio = max(batch) / max(hand)
        print(f"{asked.samples} samples, {TOOL_TURNS} tool turns, {LATENCY_S * 1000:g} ms a call, {AT_ONCE} at once:")
        print(f"  by hand {max(hand):.1f}/s, batch {max(batch):.1f}/s, ratio {ratio:.2f} (at least 0.9)")
        print(f"  share of the ideal {ideal:g}/s: {max(batch) / ideal:.0%}")
        print(f"  memory after each round of {2 * asked.samples}: {', '.join(f'{one:.0f} MB' for one in sizes)}")
        first, whole = asyncio.run(resumed(url, folder))
        print(
            f"  {RESUMED:,} samples resume: {first:.1f} s to the first sample (at most 5), {whole:.1f} s with all files"
        )


if __name__ == "__main__":
    main()
