"""JSON-RPC 2.0, one object a line: requests, replies, errors and events, for the server and for its clients."""

from typing import Any, TypeAlias

from msgspec import UNSET, DecodeError, Struct, UnsetType, json

from hermes.types import JsonObject

MOST_LINE_BYTES = 16 << 20  # a longer line is refused, and its connection closed
PROTOCOL = 1  # clients of another one are told what to restart

NOT_JSON, NOT_A_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
NO_LIVE_SESSION = 4001
BAD_VALUE = 4002
EMPTY_INPUT = 4004
REFUSED = 4005
NO_SESSION_NAMED = 4006
NO_STORED_SESSION = 4007
NOTHING_TO_BRANCH = 4008
BUSY = 4009  # also: nothing is asked
OTHER_VERSION = 4010
NO_COMMAND = 4011
NO_TITLE = 4021
SESSION_OPEN = 4023
FAILED = 5000
COMPRESSION_FAILED = 5005

RequestId: TypeAlias = int | str | None


class WireError(Exception):
    """An error that goes to the other side as it is."""

    def __init__(self, code: int, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class WireRequest(Struct, frozen=True):
    """Something asked. Without an id nobody waits for the reply."""

    method: str
    params: JsonObject
    id: RequestId | UnsetType = UNSET

    @property
    def wants_reply(self) -> bool:
        return self.id is not UNSET


class WireReply(Struct, frozen=True):
    """An answer: a result, or an error."""

    id: RequestId
    result: Any = None
    error: WireError | None = None


class WireEvent(Struct, frozen=True, omit_defaults=True):
    """Something that happened. `number` is that of the stored event it tells of, for whoever comes back later."""

    type: str
    session_id: str = ""
    payload: JsonObject | None = None
    number: int = 0


def encode_request(request_id: int, method: str, params: JsonObject) -> bytes:
    return json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"


def encode_result(request_id: RequestId, result: Any) -> bytes:
    return json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def encode_error(request_id: RequestId, error: WireError) -> bytes:
    told: JsonObject = {"code": error.code, "message": error.message}
    if error.data:
        told["data"] = error.data
    return json.encode({"jsonrpc": "2.0", "id": request_id, "error": told}) + b"\n"


def encode_event(event: WireEvent) -> bytes:
    return json.encode({"jsonrpc": "2.0", "method": "event", "params": event}) + b"\n"


def read_request(line: bytes) -> WireRequest:
    """The request in a line; `WireError` when it is none. Its `data` holds the id, where there was one to read."""
    try:
        found = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(NOT_JSON, f"this line is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise WireError(NOT_A_REQUEST, "a request is a JSON object with jsonrpc, id, method and params")
    given = found.get("id", UNSET)
    if not (given is UNSET or given is None or type(given) in (int, str)):
        raise WireError(NOT_A_REQUEST, "the id of a request is a whole number or a text")
    request_id: RequestId | UnsetType = given
    known = {"id": request_id} if request_id is not UNSET else {}
    method, params = found.get("method"), found.get("params")
    if not isinstance(method, str) or not method:
        raise WireError(NOT_A_REQUEST, "a request names its method", known)
    if params is not None and not isinstance(params, dict):
        raise WireError(BAD_PARAMS, "params is an object", known)
    return WireRequest(method, params or {}, request_id)


def read_answer(line: bytes) -> WireReply | WireEvent | None:
    """What a server says; None for a line that this version knows nothing of."""
    try:
        found = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if found.get("method") == "event" and isinstance(params := found.get("params"), dict):
        number, payload = params.get("number"), params.get("payload")
        return WireEvent(
            str(params.get("type", "")),
            str(params.get("session_id", "")),
            payload if isinstance(payload, dict) else None,
            number if isinstance(number, int) else 0,
        )
    if "result" in found:
        return WireReply(found.get("id"), found["result"])
    if isinstance(error := found.get("error"), dict):
        code, message = error.get("code"), str(error.get("message", ""))
        return WireReply(found.get("id"), None, WireError(code if isinstance(code, int) else FAILED, message))
    return None
