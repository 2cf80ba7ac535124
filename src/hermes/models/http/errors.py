"""What can go wrong under a transport, before any provider's words are understood.

HttpError
├── HttpConnectError      nothing reached the server: name, port, certificate, proxy or address are wrong
├── HttpTimeoutError      a limit passed; `kind` says which
├── HttpDisconnected      the server ended the connection before the answer was complete
├── HttpStatusError       an answer with a status outside 2xx, with its headers and the start of its body
└── HttpBodyError         an answer that is not what was asked for (not JSON, too long)
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from hermes.errors import HermesError

TimeoutKind: TypeAlias = Literal["connect", "first_byte", "idle", "total"]

_WAITED_FOR: dict[TimeoutKind, str] = {
    "connect": "a connection",
    "first_byte": "the first byte of the answer",
    "idle": "more of the answer",
    "total": "the end of the answer, until the deadline",
}


class HttpError(HermesError):
    """Base of what the byte seam raises. The text names the address, never a header or a query."""


class HttpConnectError(HttpError):
    """Nothing was sent: the request may be repeated, here once the cause is gone or elsewhere at once."""

    nobody_listens = False  # the machine is there, and has no server at this port


class HttpTimeoutError(HttpError):
    """A limit of the request passed. After `connect` nothing had been sent."""

    def __init__(self, address: str, kind: TimeoutKind, limit_s: float) -> None:
        super().__init__(f"{address}: waited {limit_s:g} s for {_WAITED_FOR[kind]}")
        self.kind: TimeoutKind = kind
        self.limit_s = limit_s


class HttpDisconnected(HttpError):
    """The connection ended early. With `received_bytes` 0 the server may not have seen the request at all."""

    def __init__(self, address: str, received_bytes: int) -> None:
        when = f"after {received_bytes} bytes of the answer" if received_bytes else "before any answer"
        super().__init__(f"{address}: the server closed the connection {when}")
        self.received_bytes = received_bytes


class HttpStatusError(HttpError):
    """The server answered with a status outside 2xx. `headers` has lower-case names; `body` is cut at 64 kB."""

    def __init__(self, address: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"{address}: HTTP status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class HttpBodyError(HttpError):
    """The server answered, but not with what was asked for."""
