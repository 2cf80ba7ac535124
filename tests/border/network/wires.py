"""The network of a room: public addresses of its own on loopback, and a witness of every packet that is sent."""

import contextlib
import http.server
import os
import shutil
import socket
import struct
import subprocess
import threading
from ipaddress import ip_address
from pathlib import Path

from tests.border import room

PUBLIC = "93.184.216"  # public by its number, and local to the room: nothing of it is ever routed elsewhere
SERVER = f"{PUBLIC}.12"
NAMES = {
    "ok.granted.test": [SERVER],
    "rebind.granted.test": ["10.0.0.5"],
    "both.granted.test": [f"{PUBLIC}.20", "10.0.0.6"],
    "meta.granted.test": ["169.254.169.254"],
    "loop.granted.test": ["127.0.0.1"],
    "exact-meta.test": ["169.254.169.254"],
    "asked.test": [SERVER],
    "index.test": [SERVER],
    "api.test": [SERVER],
    "git.test": [SERVER],
}
PERSONS_PORTS = (5432, 8000)
_TCP, _UDP = 6, 17


def lay() -> str:
    """Make the room's network, while this process may; why not, where it cannot."""
    program = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return "the program ip is not installed"
    lines = [
        f"route add local {PUBLIC}.0/24 dev lo",
        f"addr add {PUBLIC}.1/32 dev lo",
        "route add default dev lo",
        "-6 route add default dev lo",
    ]
    for line in lines:
        done = subprocess.run([program, *line.split()], capture_output=True, text=True, check=False)
        if done.returncode and "-6" not in line:
            return f"ip {line}: {done.stderr.strip()}"
    names = {**NAMES, **{way_name(place): [way_address(place)] for place in range(150)}}
    text = "".join(f"{address} {name}\n" for name, found in names.items() for address in found)
    hosts = Path("/run/accounts/hosts")
    hosts.write_text(f"127.0.0.1 localhost\n{text}")
    fd = os.open(hosts, os.O_PATH)
    room._bind(fd, "/etc/hosts")
    os.close(fd)
    return ""


def way_name(place: int) -> str:
    return f"w{place}.evil.test"


def way_address(place: int) -> str:
    return f"{PUBLIC}.{100 + place}"


class Witness:
    """Sees every packet on the room's only wire. Opened by root; it goes on when root is given up."""

    def __init__(self) -> None:
        self._wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._wire.settimeout(0.2)
        self._seen: set[tuple[str, int]] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(TimeoutError):
                packet, sender = self._wire.recvfrom(256)
                place = _destination(packet, sender[1])
                if place is not None:
                    self._seen.add(place)

    def seen(self) -> set[tuple[str, int]]:
        """Where packets went so far: address and port, 0 where the protocol has none."""
        return set(self._seen)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(5)
        self._wire.close()


def _destination(packet: bytes, kind: int) -> tuple[str, int] | None:
    """Where a packet that begins something goes; what answers is left out."""
    if kind == 0x0800 and len(packet) >= 20:
        head, protocol = (packet[0] & 0xF) * 4, packet[9]
        host = socket.inet_ntop(socket.AF_INET, packet[16:20])
    elif kind == 0x86DD and len(packet) >= 40:
        head, protocol = 40, packet[6]
        host = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    else:
        return None
    rest = packet[head:]
    if protocol == _TCP and len(rest) >= 14:
        is_first = rest[13] & 0x12 == 0x02
        return (host, struct.unpack_from("!H", rest, 2)[0]) if is_first else None
    if protocol == _UDP and len(rest) >= 4:
        port = struct.unpack_from("!H", rest, 2)[0]
        return (f"asked {_asked_name(rest[20:])}", port) if port == 53 and _is_plain(rest) else (host, port)
    return (host, 0) if not ip_address(host).is_loopback else None


def _is_plain(datagram: bytes) -> bool:
    return len(datagram) > 20 and datagram[12:14] == b"\0\1"


def _asked_name(question: bytes) -> str:
    """The name in a question to a resolver: it leaves, too."""
    labels = []
    while question and question[0]:
        size = question[0]
        labels.append(question[1 : 1 + size].decode("ascii", "replace"))
        question = question[1 + size :]
    return ".".join(labels)


def _is_granted(host: str, port: int) -> bool:
    if host.startswith("asked "):  # the machine looks up what was granted, and the remote that the workspace had
        return host.endswith((".granted.test", "asked example.invalid"))
    return (host, port) == (SERVER, 80) or (ip_address(host).is_loopback and port not in PERSONS_PORTS)


def escaped(seen: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """What may never be seen: anything that leaves, and the ports of the person's own servers."""
    return {(host, port) for host, port in seen if not _is_granted(host, port)}


class PersonsServers:
    """What runs on the person's machine: servers on loopback, and a public one that sends its visitors on."""

    def __init__(self, onward: str) -> None:
        self._servers: list[socket.socket] = []
        for host in ("127.0.0.1", "::1"):
            for port in PERSONS_PORTS:
                server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                server.bind((host, port))
                server.listen(64)
                self._servers.append(server)

        class Onward(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", onward)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
                """Say nothing."""

        self._web = http.server.ThreadingHTTPServer((SERVER, 80), Onward)
        threading.Thread(target=self._web.serve_forever, daemon=True).start()
