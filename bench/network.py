"""What a session's own network costs, beside the same without it; medians and ratios of one run, on loopback alone.

Run: python bench/network.py [--rounds N] [--megabytes M] [--turns T]

Ends with 1 when a figure that must hold does not.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from msgspec import Struct, field, structs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from hermes.confinement.plan import PlanRequest
from hermes.scope import TurnScope
from hermes.seams import Decision
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.network.space import make_space
from hermes.tools.supervisor.supervisor import ProcessSupervisor

MOST_MORE_MS = 2.0  # of a new TLS connection
MOST_RATIO = 1.15  # of a large transfer over TLS
MOST_NAMESPACE_MS = 15.0
NAME = "served.test"
NETWORKS: tuple[Literal["open", "ask"], ...] = ("open", "ask")
_CLIENT = """
import json, resource, socket, ssl, sys, time
host, port, rounds, size, ca = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
context = ssl.create_default_context(cafile=ca)
def connect():
    return context.wrap_socket(socket.create_connection((host, port)), server_hostname="served.test")
connect().close()
times = []
for _ in range(rounds):
    began = time.perf_counter()
    with connect() as s:
        s.sendall(b"1 "); s.recv(1)
    times.append(time.perf_counter() - began)
room = bytearray(1 << 18)
with connect() as s:
    began = time.perf_counter()
    s.sendall(b"%d " % size)
    left = size
    while left:
        left -= s.recv_into(room)
    carried = time.perf_counter() - began
print(json.dumps([times, carried]))
"""
_SERVER = """
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
block = bytes(1 << 18)
def serve(raw):
    try:
        with context.wrap_socket(raw, server_side=True) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            word = b""
            while not word.endswith(b" "):
                part = s.recv(1)
                if not part:
                    return
                word += part
            left = int(word)
            while left:
                left -= s.send(block[:left])
            s.recv(1)
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--turns", type=int, default=20)
    wanted = parser.parse_args()
    if shutil.which("openssl") is None or shutil.which("bwrap") is None:
        print("openssl and bubblewrap are needed")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
        files = ["-keyout", str(folder / "key"), "-out", str(folder / "ca")]
        subprocess.run([*line.split(), *files], check=True, capture_output=True)
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, folder / "ca", folder / "key"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            held = asyncio.run(measured(folder, int(server.stdout.readline()), wanted))
        finally:
            server.kill()
            server.wait()
    return 0 if held else 1


async def measured(folder: Path, port: int, wanted: argparse.Namespace) -> bool:
    supervisor = ProcessSupervisor()
    work = folder / "work"
    work.mkdir()
    client = folder / "work" / "client.py"
    client.write_text(_CLIENT)
    shutil.copy(folder / "ca", work / "ca")
    environments = {
        network: LocalEnvironment(
            supervisor,
            str(work),
            LocalOptions(
                env={"PATH": os.environ["PATH"], "HOME": str(folder)},
                border=Border(
                    mode="on",
                    level="full",
                    request=PlanRequest(workspace=str(work), home=str(folder), network=network == "open"),
                    network=network,
                    network_hosts=(f"{NAME}:{port}",),
                ),
            ),
        )
        for network in NETWORKS
    }
    told = {network: Told() for network in NETWORKS}
    try:
        line = "python3 client.py {} {} {} {} ca"
        await environments["ask"].execute("true", Decision.own("bench"), TurnScope())
        made = environments["ask"].network
        assert made is not None
        made._wishes = structs.replace(made._wishes, lookup=lambda *_: ("127.0.0.1",))  # there is no such name
        for _ in range(wanted.turns):  # by turns, so that whatever else the machine does is in both
            for network, environment in environments.items():
                host = "127.0.0.1" if network == "open" else NAME
                words = host, port, max(1, wanted.rounds // wanted.turns), wanted.megabytes * 1_000_000
                began = time.process_time()
                result = await environment.execute(
                    line.format(*words), Decision.own("bench"), TurnScope(), timeout_s=300
                )
                told[network].own_s.append(time.process_time() - began)
                times, carried = json.loads(result.output)
                told[network].connects_s += times
                told[network].transfers_s.append(carried)
        return await verdict(told, supervisor)
    finally:
        for environment in environments.values():
            await environment.close()
        await supervisor.close()


class Told(Struct):
    """What was measured with one network, in seconds."""

    connects_s: list[float] = field(default_factory=list)
    transfers_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)  # processor time of the runtime, for all of a turn


async def verdict(told: dict[Literal["open", "ask"], Told], supervisor: ProcessSupervisor) -> bool:
    open_ms, ask_ms = (statistics.median(told[network].connects_s) * 1000 for network in NETWORKS)
    open_s, ask_s = (statistics.median(told[network].transfers_s) for network in NETWORKS)
    ratio = statistics.median(
        ask / open_ for open_, ask in zip(told["open"].transfers_s, told["ask"].transfers_s, strict=True)
    )
    more, own = ask_ms - open_ms, statistics.median(told["ask"].own_s) - statistics.median(told["open"].own_s)
    times = []
    for _ in range(200):
        began = time.perf_counter()
        space = await make_space(supervisor)
        times.append((time.perf_counter() - began) * 1000)
        space.close()
    namespace = statistics.median(times)
    print(
        f"a new TLS connection: {open_ms:.2f} ms open, {ask_ms:.2f} ms ask, {more:+.2f} ms (most {MOST_MORE_MS:+.1f})"
    )
    print(f"a large transfer over TLS: {open_s:.3f} s open, {ask_s:.3f} s ask, {ratio:.2f}x (most {MOST_RATIO}x)")
    print(f"processor time of the runtime for both, each turn: {own * 1000:+.0f} ms")
    print(f"the namespace and its sockets: {namespace:.1f} ms (most {MOST_NAMESPACE_MS})")
    return more <= MOST_MORE_MS and ratio <= MOST_RATIO and namespace <= MOST_NAMESPACE_MS


if __name__ == "__main__":
    sys.exit(main())
