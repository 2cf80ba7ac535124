"""Who wants to reach a host, and whether it means to send something there: read from /proc when somebody is asked."""

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

_MOST_WORDS = 300
_MOST_PROCESSES = 5000
_MOST_ABOVE = 1000
# Programs that send a lot when they are called like this; the words are those of one process.
_SENDS = re.compile(
    r"\bgit(?:-remote-https?)?\b.*\b(?:push|send-pack|receive-pack)\b"
    r"|\bcurl\b.*\s(?:-T|--upload-file|-F|--form|-d|--data\S*|--json)\b"
    r"|\bwget\b.*\s--(?:post|body)-(?:data|file)\b|\b(?:rsync|scp|sftp|rclone)\b|\baws\b.*\bs3\b.*\b(?:cp|sync|mv)\b"
    r"|\b(?:twine|flit|poetry|uv|npm|cargo|gem)\b.*\b(?:upload|publish|push)\b|\bdocker\b.*\bpush\b"
)
_HTTP_SENDS = re.compile(rb"(POST|PUT|PATCH) \S+ HTTP/1\.[01]\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class HostWish(Struct, frozen=True, kw_only=True):
    """A connection that nobody has granted yet."""

    host: str
    port: int
    kind: Literal["host", "local"] = "host"  # somewhere else, or a port of this machine's own loopback
    who: str = ""  # the program, in its own words
    pid: int = 0  # its number; 0 where it could not be found
    sends: str = ""  # what it means to send, where that can be seen
    may_ask: bool = True  # else what was granted before counts, and nobody is disturbed

    @property
    def place(self) -> str:
        return place_of(self.host, self.port)


def place_of(host: str, port: int) -> str:
    """How a host and a port are written."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class ConnectingProgram(NamedTuple):
    """A process, and its command line."""

    pid: int
    words: str


NO_PROGRAM = ConnectingProgram(0, "")


def program_of(inode: int) -> ConnectingProgram:
    """The process that holds a socket, `NO_PROGRAM` when it cannot be found. Blocking."""
    if not inode:
        return NO_PROGRAM
    wanted = f"socket:[{inode}]"
    for pid in [name for name in os.listdir("/proc") if name.isdecimal()][:_MOST_PROCESSES]:  # noqa: PTH208
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                if os.readlink(f"/proc/{pid}/fd/{fd}") == wanted:  # noqa: PTH115
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                    return ConnectingProgram(int(pid), b" ".join(words).decode("utf-8", "replace")[:_MOST_WORDS])
        except OSError:
            continue  # another user's, or gone
    return NO_PROGRAM


def line_of(pid: int) -> list[int]:
    """A process and those above it, as far as they can be seen. Blocking."""
    found: list[int] = []
    while pid > 1 and len(found) < _MOST_ABOVE:
        found.append(pid)
        try:
            # Behind its name, which may hold anything: the state, and who is above it.
            pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            break
    return found


def meant_to_send(who: str, first: bytes) -> str:
    """What a program means to send, from its own words or from the head of an unencrypted request."""
    request = _HTTP_SENDS.match(first)
    if request:
        size = _LENGTH.search(first)
        return f"{request[1].decode()} of {int(size[1])} bytes" if size else request[1].decode()
    return "an upload or a push, by its own command line" if _SENDS.search(who) else ""
