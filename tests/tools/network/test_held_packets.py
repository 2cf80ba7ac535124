"""The packet that begins a connection: read, given its sum, answered."""

import random
import socket
import struct

import pytest

from hermes.tools.network.held_packets import Begun, read_begun, reset_of, summed


def packet(flags: int = 0x02, options: bytes = b"", protocol: int = 6) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(options), 7, 0, 64, protocol, 0)
    head += socket.inet_aton("127.0.0.1") + socket.inet_aton("198.18.1.0")
    return (
        head
        + struct.pack("!HHIIBBHHH", 40000, 8088, 77, 0, (5 + len(options) // 4) << 4, flags, 512, 0xFE, 0)
        + options
    )


def is_right(whole: bytes) -> bool:
    pseudo = whole[12:20] + struct.pack("!HH", 6, len(whole) - 20) + whole[20:]
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return bool(total == 0xFFFF)


def test_a_first_packet_names_its_connection() -> None:
    assert read_begun(packet()) == Begun("198.18.1.0", 8088, 40000)


@pytest.mark.parametrize("other", [packet(0x12), packet(0x10), packet(0x04), packet(protocol=17), b"", packet()[:30]])
def test_any_other_packet_names_none(other: bytes) -> None:
    assert read_begun(other) is None


def test_whatever_the_bytes_nothing_is_raised() -> None:
    dice = random.Random(35)
    for _ in range(2000):
        text = dice.randbytes(dice.randrange(80))
        begun = read_begun(text)
        if begun is not None:
            summed(text)
            reset_of(text)


@pytest.mark.parametrize("options", [b"", bytes(range(20))])
def test_the_sum_is_that_of_the_protocol(options: bytes) -> None:
    assert not is_right(packet(options=options))
    assert is_right(summed(packet(options=options)))


def test_a_reset_answers_the_packet() -> None:
    reset = reset_of(packet())
    assert is_right(reset)
    assert (reset[12:16], reset[16:20]) == (socket.inet_aton("198.18.1.0"), socket.inet_aton("127.0.0.1"))
    assert struct.unpack_from("!HHIIBB", reset, 20) == (8088, 40000, 0, 78, 0x50, 0x14)
