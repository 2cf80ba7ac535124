"""A request body of any size in one write; imported with aiohttp, by the first large request."""

import aiohttp
from aiohttp.payload import Payload


class WholeBody(aiohttp.BytesPayload):
    """Bytes as they are. aiohttp warns about more than a megabyte of them, and would read a file piece by piece in a
    thread, which costs more than all the rest of a request."""

    def __init__(self, body: bytes) -> None:
        Payload.__init__(self, body, content_type="application/octet-stream")
        self._size = len(body)
