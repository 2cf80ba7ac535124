"""Answers that no provider would send on purpose: valid ones of each protocol, spoiled in many ways, from a seed."""

import copy
import json
import random
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from hermes.models.http.errors import HttpBodyError, HttpDisconnected, HttpError, HttpStatusError
from hermes.models.wires.eventstream import EventStreamParser
from hermes.testing.replies import Reply, ScriptedCall, says, thinks
from hermes.testing.server.wire import WireAnswer
from hermes.types import Usage
from tests.models.wire_cases import CASES, WireCase

ADDRESS = "http://127.0.0.1:9"
HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3.5,
    99999999999999999999999,
    -(10**40),
    "",
    "words",
    "\ud800 half",
    "a\0b",
    "🌲" * 20,
    "x" * 3000,
    [],
    {},
    [[]],
    [None, 7, "x"],
    {"type": "text", "text": {}},
    {"": {"": []}},
    {"message": ["no text"], "code": {"a": 1}},
    "[DONE]",
    "stop",
    "tool_calls",
)
HOSTILE_TEXTS = (
    "1e999",
    "-1e999",
    "9" * 5000,
    "NaN",
    "Infinity",
    "[" * 3000 + "]" * 3000,
    '{"a":' * 700 + "1" + "}" * 700,
    '{"a":' * 80 + "1" + "}" * 80,
)
HOSTILE_HEADERS = (
    "",
    "0",
    "-1",
    "999999999999",
    "9" * 400,
    "²",
    "١٢",
    "soon",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "1e5",
    "\x7f",
)
STATUSES = (400, 401, 404, 413, 429, 500, 529)
INSERTS = (b"\0", b"\xff\xfe", b"\r", b"\n\n", b"\xed\xa0\x80", b'"', b"{", b"\\ud83d")
REPLIES = (
    says("Grün 🌲 und 日本, and more words than fit into one piece."),
    thinks("Let me think about it for a while.") + says("Done."),
    thinks("Hm.") + says("Two:") + Reply(calls=(ScriptedCall("read", '{"path": "a"}'), ScriptedCall("list", "{}"))),
    Reply(calls=(ScriptedCall("read", '{"path": "a long path \\u00e4 with escapes"}'),)),
)


class HostileAnswer(NamedTuple):
    """What a server sends: a status with headers and a body, or the pieces of a body; and how it ends."""

    pieces: list[bytes]
    is_stream: bool
    status: int = 200
    retry_after: str = ""
    ending: HttpError | None = None

    def canned(self) -> Any:
        """For `CannedHttp`."""
        if self.status != 200:
            return HttpStatusError(ADDRESS, self.status, {"retry-after": self.retry_after}, b"".join(self.pieces))
        return [*self.pieces, self.ending] if self.ending is not None else self.pieces


def hostile_answer(case: WireCase, seed: int) -> HostileAnswer:
    """The answer of this number; the same in every run."""
    rng = random.Random(f"{case.name} {seed}")
    kind = rng.random()
    if kind < 0.06:
        error = case.server_wire.error(400, "rate_limit", "It went wrong: max_tokens 100 > 99999")
        body = _spoiled_bytes(rng, _spoiled_json(rng, error.body))
        return HostileAnswer([body], True, rng.choice(STATUSES), rng.choice(HOSTILE_HEADERS))
    if kind < 0.2:
        body = _spoiled_json(rng, json.dumps(case.server_wire.whole(_answer(rng))).encode())
        body = _spoiled_bytes(rng, body) if rng.random() < 0.5 else body
        return HostileAnswer(_cut(rng, body), is_stream=rng.random() < 0.3, ending=_ending(rng))
    frames = [_spoiled_frame(rng, frame) if rng.random() < 0.3 else frame for frame in _frames(rng, case)]
    body = b"".join(_reordered(rng, frames))
    if rng.random() < 0.35:
        body = _spoiled_bytes(rng, body)
    return HostileAnswer(_cut(rng, body), is_stream=True, ending=_ending(rng))


def _answer(rng: random.Random) -> WireAnswer:
    usage = Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5)
    reply = rng.choice(REPLIES).timed(chunk_size=rng.choice((1, 7, 16, 400)))
    return WireAnswer(reply=reply, number=1, model="scripted", usage=usage)


def _frames(rng: random.Random, case: WireCase) -> list[bytes]:
    wire = rng.choice(CASES).server_wire if rng.random() < 0.03 else case.server_wire
    frames = wire.frames(_answer(rng))
    return [*frames.content, *frames.ending]


def _reordered(rng: random.Random, frames: list[bytes]) -> list[bytes]:
    for _ in range(rng.choice((0, 0, 1, 3))):
        place, other = rng.randrange(len(frames)), rng.randrange(len(frames))
        change = rng.randrange(5)
        if change == 0 and len(frames) > 1:
            del frames[place]
        elif change == 1:
            frames.insert(other, frames[place])
        elif change == 2:
            frames[place], frames[other] = frames[other], frames[place]
        elif change == 3:
            frames = frames[: place + 1]
        else:
            frames[place] = frames[place][: rng.randrange(len(frames[place]) + 1)]
    return frames


# -- one event ---------------------------------------------------------------------------------------------------


def _spoiled_frame(rng: random.Random, frame: bytes) -> bytes:
    return _spoiled_sse(rng, frame) if frame.endswith(b"\n\n") else _spoiled_event(rng, frame)


def _spoiled_sse(rng: random.Random, frame: bytes) -> bytes:
    found = re.fullmatch(rb"(.*?data: )(.*)(\n\n)", frame, re.DOTALL)
    if found is None or found[2] == b"[DONE]":
        return rng.choice((frame, b"data: [DONE", b": ping\n\n", b"data\n\n", b"data: \xff\n\n", b"retry: 9\n\n"))
    return found[1] + _spoiled_json(rng, found[2]) + found[3]


def _spoiled_event(rng: random.Random, frame: bytes) -> bytes:
    """A message of the binary framing whose checksums are right, whatever else is not."""
    (message,) = EventStreamParser().feed(frame)
    headers = dict(message.headers)
    if rng.random() < 0.2:
        headers[rng.choice(list(headers))] = rng.choice(("exception", "", "metadata", "messageStop", "\0", "ü" * 40))
    payload = _spoiled_json(rng, message.payload)
    raw = b"".join(_header(name, value.encode()) for name, value in headers.items())
    if rng.random() < 0.05:
        raw = raw[: rng.randrange(len(raw) + 1)] + rng.randbytes(3)
    prelude = struct.pack("!II", 16 + len(raw) + len(payload), len(raw))
    made = prelude + struct.pack("!I", zlib.crc32(prelude)) + raw + payload
    return made + struct.pack("!I", zlib.crc32(made))


def _header(name: str, value: bytes) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value


def _spoiled_json(rng: random.Random, data: bytes) -> bytes:
    """The JSON in `data` with one or two of its values, keys or lists changed; some of it is no JSON any more."""
    tree = json.loads(data)
    for _ in range(rng.choice((1, 1, 2))):
        holders = _holders(tree)
        if not holders:
            break
        holder = rng.choice(holders)
        place = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        _CHANGES[rng.randrange(len(_CHANGES))](rng, holder, place)
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5).replace('"@@', "").replace('@@"', "")
    return text.encode("utf-8", "surrogatepass")


def _holders(tree: Any) -> list[Any]:
    """Every object and list of the tree that holds something."""
    found, rest = [], [tree]
    while rest:
        one = rest.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            rest += one.values() if isinstance(one, dict) else one
    return found


def _replace(rng: random.Random, holder: Any, place: Any) -> None:
    holder[place] = copy.deepcopy(rng.choice(HOSTILE_VALUES))


def _write_raw(rng: random.Random, holder: Any, place: Any) -> None:
    holder[place] = f"@@{rng.choice(HOSTILE_TEXTS)}@@"


def _delete(_: random.Random, holder: Any, place: Any) -> None:
    del holder[place]


def _wrap(rng: random.Random, holder: Any, place: Any) -> None:
    holder[place] = rng.choice(([holder[place]], {"type": "text", "text": holder[place]}, [holder[place]] * 3))


def _rename(_: random.Random, holder: Any, place: Any) -> None:
    if isinstance(holder, dict):
        holder[f"{place}x"] = holder.pop(place)


Change: TypeAlias = Callable[[random.Random, Any, Any], None]
_CHANGES: tuple[Change, ...] = (_replace, _replace, _replace, _write_raw, _delete, _wrap, _rename)


# -- bytes -------------------------------------------------------------------------------------------------------


def _spoiled_bytes(rng: random.Random, body: bytes) -> bytes:
    spoiled = bytearray(body)
    for _ in range(rng.choice((1, 1, 3, 10))):
        place = rng.randrange(len(spoiled) + 1)
        change = rng.randrange(6)
        if change == 0 and place < len(spoiled):
            spoiled[place] ^= 1 << rng.randrange(8)
        elif change == 1:
            spoiled[place:place] = rng.choice(INSERTS)
        elif change == 2:
            del spoiled[place : place + rng.randrange(1, 40)]
        elif change == 3:
            spoiled[place:place] = spoiled[place : place + rng.randrange(1, 60)]
        elif change == 4:
            del spoiled[place:]
        else:
            spoiled[place : place + 4] = rng.randbytes(4)
    return bytes(spoiled)


def _cut(rng: random.Random, body: bytes) -> list[bytes]:
    """The body in pieces: one, a few, or of few bytes each."""
    kind = rng.random()
    if kind < 0.5:
        return [body]
    if kind < 0.95:
        cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(1, 12)))
        return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True) if start < end]
    return [body[start : start + 3] for start in range(0, len(body), 3)]


def _ending(rng: random.Random) -> HttpError | None:
    if rng.random() < 0.75:
        return None
    return rng.choice((HttpDisconnected(ADDRESS, 100), HttpBodyError("it is damaged")))
