"""Real pictures, made here."""

import random
import struct
import zlib


def png(width: int = 2, height: int = 2, *, noisy: bool = False) -> bytes:
    """A picture that is red, or of noise, which no packing makes smaller."""
    noise = random.Random(7)
    rows = (noise.randbytes(3 * width) if noisy else b"\xff\0\0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
