"""`application/vnd.amazon.eventstream`: binary messages, parsed as the bytes arrive."""

import struct
import zlib
from functools import lru_cache

from msgspec import Struct

from hermes.models.http.errors import HttpBodyError

MAX_MESSAGE_BYTES = 24 * 1024 * 1024
MAX_HEADER_BYTES = 128 * 1024  # as AWS says
_PRELUDE = 12
_STRING = 7
_read_prelude = struct.Struct("!III").unpack_from  # size of all, size of the headers, checksum of the two
_read_checksum = struct.Struct("!I").unpack_from
# Bytes of a header value by its type; 6 and 7 carry their own length.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class EventMessage(Struct, frozen=True, gc=False):
    """One message: its string headers and its payload."""

    headers: dict[str, str]
    payload: bytes


class EventStreamParser:
    """Feed it chunks, cut anywhere; it gives back the messages that are complete.

    A checksum that does not fit is an `HttpBodyError`: nothing after it can be trusted.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = min(max_message_bytes, MAX_MESSAGE_BYTES)
        self._held = b""
        self._pieces: list[bytes] = []  # after `_held`, as long as the message that it begins is not complete
        self._missing = 0  # bytes of that message

    def feed(self, chunk: bytes) -> list[EventMessage]:
        """The messages that `chunk` completes, in order."""
        if self._missing > len(chunk):
            self._pieces.append(chunk)
            self._missing -= len(chunk)
            return []
        held = self.rest() + chunk if self._held else chunk
        self._pieces, self._missing = [], 0
        view, size = memoryview(held), len(held)
        found: list[EventMessage] = []
        at = 0
        while size - at >= _PRELUDE:
            total, header_bytes, expected = _read_prelude(held, at)
            crc = zlib.crc32(view[at : at + 8])
            if crc != expected or header_bytes > MAX_HEADER_BYTES or total < _PRELUDE + 4 + header_bytes:
                raise HttpBodyError("the server sent something that is not an AWS event stream")
            if total > self._limit:
                raise HttpBodyError(f"the server sent a message of {total} bytes; the most is {self._limit}")
            end, body = at + total - 4, at + _PRELUDE + header_bytes
            if size < end + 4:
                self._missing = end + 4 - size
                break
            if zlib.crc32(view[at + 8 : end], crc) != _read_checksum(held, end)[0]:
                raise HttpBodyError("a message of the event stream is damaged")
            found.append(EventMessage(_headers(held[at + _PRELUDE : body]), held[body:end]))
            at = end + 4
        self._held = held[at:]
        return found

    def rest(self) -> bytes:
        """What is left of a message that was cut off."""
        return b"".join((self._held, *self._pieces)) if self._pieces else self._held


@lru_cache(maxsize=256)
def _headers(data: bytes) -> dict[str, str]:
    """The string headers of a message. Messages of one kind have the same ones, to the byte; nobody changes them."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            name, kind = data[at + 1 : name_end].decode(), data[name_end]
            at = name_end + 1
            if kind in _SIZES:
                at += _SIZES[kind]
                continue
            (size,) = struct.unpack_from("!H", data, at)
            value = data[at + 2 : at + 2 + size]
            at += 2 + size
            if kind == _STRING:
                found[name] = value.decode()
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise HttpBodyError("a header of the event stream is damaged") from error
    return found
