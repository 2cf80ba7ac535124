"""Questions to the session's resolver: read, answered, and refused when they are none."""

import random
import socket
import struct

from hermes.tools.network import dns_message


def asked(name: str, kind: int = dns_message.A) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    return struct.pack("!HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!HH", kind, 1)


def test_a_question_is_read_and_answered_with_one_address() -> None:
    question = dns_message.read_question(asked("Example.ORG"))
    assert question is not None
    assert (question.name, question.kind) == ("example.org", dns_message.A)
    answer = dns_message.answer(question, socket.inet_aton("198.18.1.0"))
    assert answer[:8] == struct.pack("!HHHH", 77, 0x8180, 1, 1)
    assert answer.endswith(socket.inet_aton("198.18.1.0"))


def test_what_is_no_question_is_never_one() -> None:
    whole = asked("a.b.example.org")
    for size in range(len(whole)):
        assert dns_message.read_question(whole[:size]) is None
    dice = random.Random(35)
    for _ in range(2000):
        text = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            text[dice.randrange(len(text))] = dice.randrange(256)
        found = dns_message.read_question(bytes(text))
        assert found is None or len(dns_message.answer(found, b"\1\2\3\4")) > 12
    assert dns_message.refusal(b"x") == b""
