"""Questions and answers of the domain name system, as far as a resolver needs them that asks nobody. Pure."""

import struct
from typing import NamedTuple

A, PTR, AAAA, ANY = 1, 12, 28, 255
_INTERNET = 1
_RESPONSE, _RECURSION_WANTED, _RECURSION_OFFERED, _OPCODE = 0x8000, 0x0100, 0x0080, 0x7800
FORMAT_ERROR, SERVER_FAILED, NO_SUCH_NAME, NOT_IMPLEMENTED = 1, 2, 3, 4
LIFE_S = 60
_HEADER = struct.Struct("!HHHHHH")
_MOST_LABEL = 63


class DnsQuestion(NamedTuple):
    """One question: what to answer with, the name in plain form, and the kind of record that is wanted."""

    ident: int
    flags: int
    name: str
    kind: int
    asked: bytes  # as it came, to be repeated in the answer


def read_question(message: bytes) -> DnsQuestion | None:
    """The question in a message; None for what is none, or holds anything but one in plain form."""
    if len(message) < _HEADER.size:
        return None
    ident, flags, questions, _, _, _ = _HEADER.unpack_from(message)
    if flags & (_RESPONSE | _OPCODE) or questions != 1:
        return None
    labels, place = [], _HEADER.size
    while place < len(message) and (size := message[place]):
        if size > _MOST_LABEL or place + 1 + size > len(message):
            return None
        labels.append(message[place + 1 : place + 1 + size])
        place += 1 + size
    if place + 5 > len(message):
        return None
    kind, family = struct.unpack_from("!HH", message, place + 1)
    if family not in (_INTERNET, ANY):
        return None
    name = b".".join(labels).decode("ascii", "replace").lower()
    return DnsQuestion(ident, flags, name, kind, message[_HEADER.size : place + 5])


def answer(question: DnsQuestion, address: bytes | None = None, error: int = 0) -> bytes:
    """The answer: one address, nothing of that kind (without `address`), or an error."""
    flags = _RESPONSE | _RECURSION_OFFERED | (question.flags & _RECURSION_WANTED) | error
    head = _HEADER.pack(question.ident, flags, 1, int(address is not None), 0, 0)
    if address is None:
        return head + question.asked
    # The name of the record is a pointer to that of the question.
    return head + question.asked + struct.pack("!HHHIH", 0xC00C, A, _INTERNET, LIFE_S, len(address)) + address


def refusal(message: bytes) -> bytes:
    """The answer to what cannot be read; empty when not even that can be said."""
    if len(message) < 2:
        return b""
    return _HEADER.pack(int.from_bytes(message[:2], "big"), _RESPONSE | FORMAT_ERROR, 0, 0, 0, 0)
