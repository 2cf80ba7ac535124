"""Server-sent events, parsed as the bytes arrive; shared by every transport that streams text."""

from msgspec import Struct

from hermes.config.sections.agent import AnswerLimits
from hermes.models.http.errors import HttpBodyError

_BOM = b"\xef\xbb\xbf"


class SseEvent(Struct, frozen=True, gc=False):
    """One event. `data` stays bytes, ready for a JSON decoder; its lines are joined by a line feed."""

    data: bytes
    event: str = "message"
    id: str = ""

    @property
    def is_done(self) -> bool:
        """Whether this is the `[DONE]` that ends an OpenAI-style stream."""
        return self.data == b"[DONE]"


class SseParser:
    """Feed it chunks, cut anywhere; it gives back the events that are complete.

    Lines end in LF, CRLF or CR. Comments and `retry` are passed over. An event above `max_event_bytes` raises
    `HttpBodyError`, after the events before it have been handed out. One parser reads one stream.
    """

    _pending_bytes = 0  # in `_pieces`
    _data_bytes = 0
    _event = ""
    _id = ""
    _at_start = True
    _after_cr = False
    _is_stream: bool | None = None  # None until the first line that is not blank
    _overflow = False
    _is_clean = True  # nothing of what has come is waiting for the rest of it

    def __init__(self, max_event_bytes: int = AnswerLimits().max_event_bytes) -> None:
        self._limit = max_event_bytes
        self._pieces: list[bytes] = []  # of the line that is not complete yet, or of a body that is no event stream
        self._data: list[bytes] = []

    def datas(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes, for a reader that asks for nothing else of them."""
        if self._is_clean and len(chunk) < self._limit:
            whole = _whole_datas(chunk)
            if whole is not None:
                self._is_stream, self._at_start = True, False
                return whole
        return [event.data for event in self.feed(chunk)]

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes, in order."""
        self._check()
        self._is_clean = False
        chunk = self._normalise(chunk)
        if self._is_stream is False or b"\n" not in chunk:
            self._pieces.append(chunk)
            self._pending_bytes += len(chunk)
            self._overflow = self._data_bytes + self._pending_bytes > self._limit
            self._check()
            return []
        self._pieces.append(chunk)
        lines = b"".join(self._pieces).split(b"\n")
        self._pieces = [lines.pop()]
        events: list[SseEvent] = []
        self._take_lines(lines, events)
        self._pending_bytes = len(self._pieces[0])
        self._overflow = self._overflow or self._data_bytes + self._pending_bytes > self._limit
        self._is_clean = not (self._pending_bytes or self._data or self._event or self._after_cr or self._overflow)
        if not events:
            self._check()
        return events

    def rest(self) -> bytes:
        """What is left at the end: data of an event that was cut off, or the whole body if it was no event stream.

        Some servers answer a streaming request with plain JSON or an HTML page; this is where it is found.
        """
        self._check()
        line = b"".join(self._pieces)
        if self._is_stream is False or (self._is_stream is None and not line.startswith(b"data:")):
            return line
        data = [*self._data, _value(line)] if line.startswith(b"data:") else self._data
        return b"\n".join(data)

    def _take_lines(self, lines: list[bytes], events: list[SseEvent]) -> None:
        for number, line in enumerate(lines):
            if line.startswith(b"data:"):
                self._is_stream = True
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._data.append(value)
                self._data_bytes += len(value) + 1
                if self._data_bytes > self._limit:
                    self._overflow = True
                    return
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(SseEvent(data, self._event or "message", self._id))
                    self._data = []
                    self._data_bytes = 0
                self._event = ""
            elif self._is_stream is None and line.lstrip()[:1] in (b"{", b"[", b"<"):
                self._is_stream = False
                self._pieces = [b"\n".join([*lines[number:], *self._pieces])]
                return
            else:
                self._take_field(line)

    def _take_field(self, line: bytes) -> None:
        if not line.isspace():
            self._is_stream = True
        name = line.partition(b":")[0]
        if name == b"event":
            self._event = _value(line).decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in line:
            self._id = _value(line).decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(_value(line))
            self._data_bytes += 1
            self._overflow = self._overflow or self._data_bytes > self._limit

    def _normalise(self, chunk: bytes) -> bytes:
        """`chunk` with every line end as LF, without the byte-order mark."""
        if self._at_start and chunk:
            chunk = b"".join(self._pieces) + chunk
            self._pieces, self._pending_bytes = [], 0
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._pieces, self._pending_bytes = [chunk], len(chunk)
                return b""
            self._at_start = False
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            # Not held back until the next chunk: in a stream of bare CRs that would delay every event.
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _check(self) -> None:
        if self._overflow:
            raise HttpBodyError(f"the server sent an event of more than {self._limit} bytes")


def _whole_datas(chunk: bytes) -> list[bytes] | None:
    """The data of a chunk that holds only whole events of one of the usual two forms; None for any other chunk.

    Nearly all chunks are of this kind, and taking lines apart one by one costs many times as much.
    """
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
        if b"\r" in chunk:
            return None
    if not chunk.endswith(b"\n\n"):
        return None
    if chunk.startswith(b"data: "):
        datas = chunk[6:-2].split(b"\n\ndata: ")
        return datas if chunk.count(b"\n") == 2 * len(datas) else None
    lines = chunk[:-1].split(b"\n")
    names, datas, blanks = lines[::3], lines[1::3], lines[2::3]
    is_usual = len(names) == len(datas) == len(blanks) and not any(blanks)
    if is_usual and {name[:7] for name in names} == {b"event: "} and {data[:6] for data in datas} == {b"data: "}:
        return [data[6:] for data in datas]
    return None


def _value(line: bytes) -> bytes:
    value = line.partition(b":")[2]
    return value.removeprefix(b" ")
