"""Undo a body's compression piece by piece, counting what comes out, so that a bomb stops at the limit."""

import zlib

from hermes.errors import ToolError

_STEP = 1 << 20


class TooLarge(ToolError):
    """A body grew past its limit."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"it is larger than {limit_bytes / 1e6:g} MB; download it with the terminal if you need it")


class Unpacker:
    """Collects a body of at most `limit_bytes`, whatever it was packed with."""

    def __init__(self, encoding: str, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._body = bytearray()
        self._inflate: list[zlib._Decompress] = []
        self._maybe_raw = False
        for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
            if name in ("gzip", "x-gzip"):
                self._inflate.append(zlib.decompressobj(wbits=31))
            elif name == "deflate":
                self._inflate.append(zlib.decompressobj())
                self._maybe_raw = True
            elif name != "identity":
                raise ToolError(f"it is packed with {name!r}, which was not asked for")
        if len(self._inflate) > 1:
            raise ToolError("it is packed more than once")

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the wire. Raises `TooLarge`, or `ToolError` for a damaged stream."""
        if not self._inflate:
            self._keep(data)
            return
        while data:
            inflate = self._inflate[0]
            try:
                piece = inflate.decompress(data, _STEP)
            except zlib.error as error:
                if self._maybe_raw and not self._body:  # some servers send deflate without its header
                    self._maybe_raw, self._inflate[0] = False, zlib.decompressobj(wbits=-15)
                    continue
                raise ToolError(f"its compression is damaged: {error}") from error
            self._maybe_raw = False
            self._keep(piece)
            if inflate.eof:
                return  # what follows the end of the stream is not part of the page
            data = inflate.unconsumed_tail

    def body(self) -> bytes:
        """What has come so far."""
        return bytes(self._body)

    def _keep(self, data: bytes) -> None:
        if len(self._body) + len(data) > self._limit:
            raise TooLarge(self._limit)
        self._body += data
