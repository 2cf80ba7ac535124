"""The first words of a proxy's client: HTTP CONNECT, SOCKS4a and SOCKS5, told apart by their first byte."""

import socket
import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hermes.config.host_entry import plain_name

_MOST_HEAD = 16 * 1024
_NO_SIGN_IN, _CONNECT = 0, 1
_V4, _NAME, _V6 = 1, 3, 4
Read = Callable[[int], Awaitable[bytes]]
"""Exactly so many bytes, or `EOFError`."""


class ProxyRequest(NamedTuple):
    """Where the client wants to be led, and what it is told when it is, and when it is not."""

    host: str
    port: int
    led: bytes
    refused: bytes


class NotUnderstood(Exception):
    """These are no words of a proxy's client; `answer` is what it is told."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("not understood")
        self.answer = answer


async def read_request(read: Read, write: Callable[[bytes], Awaitable[None]]) -> ProxyRequest:
    """The request of a client that has just connected."""
    first = (await read(1))[0]
    if first == 5:
        return await _socks5(read, write)
    if first == 4:
        return await _socks4(read)
    return await _http(bytes([first]), read)


async def _socks5(read: Read, write: Callable[[bytes], Awaitable[None]]) -> ProxyRequest:
    ways = await read((await read(1))[0])
    if _NO_SIGN_IN not in ways:
        raise NotUnderstood(b"\x05\xff")
    await write(b"\x05\x00")
    _, command, _, kind = await read(4)
    if kind == _V4:
        host = socket.inet_ntop(socket.AF_INET, await read(4))
    elif kind == _V6:
        host = socket.inet_ntop(socket.AF_INET6, await read(16))
    elif kind == _NAME:
        host = (await read((await read(1))[0])).decode("ascii", "replace")
    else:
        raise NotUnderstood(_socks5_answer(8))
    (port,) = struct.unpack("!H", await read(2))
    if command != _CONNECT:
        raise NotUnderstood(_socks5_answer(7))
    return ProxyRequest(plain_name(host), port, _socks5_answer(0), _socks5_answer(2))


def _socks5_answer(code: int) -> bytes:
    return bytes((5, code, 0, _V4, 0, 0, 0, 0, 0, 0))


async def _socks4(read: Read) -> ProxyRequest:
    command, port, address = struct.unpack("!BH4s", await read(7))
    await _text(read)
    refused = b"\x00\x5b" + bytes(6)
    if command != _CONNECT:
        raise NotUnderstood(refused)
    is_name = address[:3] == b"\0\0\0" and address[3]
    host = await _text(read) if is_name else socket.inet_ntop(socket.AF_INET, address)
    return ProxyRequest(plain_name(host), port, b"\x00\x5a" + bytes(6), refused)


async def _text(read: Read) -> str:
    found = bytearray()
    while (one := await read(1)) != b"\0":
        found += one
        if len(found) > 255:
            raise NotUnderstood(b"\x00\x5b" + bytes(6))
    return found.decode("ascii", "replace")


async def _http(first: bytes, read: Read) -> ProxyRequest:
    head = bytearray(first)
    while not head.endswith(b"\r\n\r\n"):
        head += await read(1)
        if len(head) > _MOST_HEAD:
            raise NotUnderstood(_http_answer("431 Request Header Fields Too Large"))
    words = bytes(head).split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "CONNECT":
        raise NotUnderstood(_http_answer("405 Only CONNECT is carried here"))
    host, _, port = words[1].rpartition(":")
    if not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 65536:
        raise NotUnderstood(_http_answer("400 Bad Request"))
    led, refused = b"HTTP/1.1 200 Connection established\r\n\r\n", _http_answer("403 Refused by Hermes' border")
    return ProxyRequest(plain_name(host.strip("[]")), int(port), led, refused)


def _http_answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
