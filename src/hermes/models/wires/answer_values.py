"""Values in the answers of servers: each is read as what it should be, or as nothing, and never raises anything else.

A server may send whatever it likes. What all readers of answers need to stand that is here, once per kind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

Read = TypeVar("Read")

MAX_TOKENS = 1_000_000_000  # of one answer; a larger count is a mistake, and its sum may not fit into the ledger
MAX_DEPTH = 64  # of JSON that is kept or shown: others who walk through it have less stack left than its reader had
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # all that msgspec raises about bytes

_MAX_DIGITS = 300
_any_json = msgspec.json.Decoder()
encode = msgspec.json.Encoder().encode


def read_json(decode: Callable[[bytes | msgspec.Raw], Read], data: bytes | msgspec.Raw) -> Read:
    """`data` as the msgspec decoder `decode` reads it; `msgspec.DecodeError`, and nothing else, when it cannot.

    Faults that leave no doubt about the rest are forgiven: bytes that are no UTF-8 and halves of characters (some
    servers cut text between the two) stand as U+FFFD, numbers that no machine holds as null, and control characters
    in strings as they are.
    """
    try:
        return decode(data)
    except UNREADABLE as error:
        mended = _mended(bytes(data), error)
    try:
        return decode(mended)
    except UNREADABLE as error:
        raise _unreadable(error) from error


def any_json(data: bytes | msgspec.Raw) -> Any:
    """The plain values in `data`, read like `read_json`."""
    return read_json(_any_json.decode, data)


def _mended(data: bytes, error: Exception) -> bytes:
    if isinstance(error, RecursionError):
        raise _unreadable(error) from error
    import json  # paid by the first answer that needs mending

    try:
        found = json.loads(
            data.decode("utf-8", "replace"),
            strict=False,
            parse_int=_whole_number,
            parse_float=_number,
            parse_constant=lambda _: None,
        )
        text = json.dumps(found, ensure_ascii=False)
    except (ValueError, RecursionError):
        raise _unreadable(error) from error  # as the first reader put it
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _unreadable(error: Exception) -> msgspec.DecodeError:
    if isinstance(error, msgspec.DecodeError):
        return error
    return msgspec.DecodeError("it is nested too deep" if isinstance(error, RecursionError) else str(error))


def _whole_number(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _number(digits: str) -> float | None:
    found = float(digits)
    return found if abs(found) != float("inf") else None


def words(value: object) -> str:
    """`value` if it is a text, else none."""
    return value if type(value) is str else ""


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one: what a provider left out reads like what it sent wrong."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}  # nearly all are: asking the ABC is slow


def listing(value: object) -> Sequence[Any]:
    """`value` if it is a list, else an empty one."""
    return value if type(value) is list else ()


def count(value: object) -> int | None:
    """A number of tokens; None, which is "unknown", for anything that cannot be one."""
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None  # a bool is none


def window(value: object) -> int | None:
    """A number of tokens that a model can read; None for anything that cannot be one."""
    return count(value) or None


def arguments_text(value: object) -> str:
    """The arguments of a call as JSON text, from servers that send the text and from those that send the object."""
    if type(value) is str:
        return value
    return "" if not isinstance(value, Mapping) or is_deep(value) else encode(value).decode()


def is_deep(value: object) -> bool:
    """Whether lists and objects stand in each other deeper than anyone needs."""
    try:
        text = encode(value)
    except RecursionError:
        return True
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:  # quicker than a walk, and so it is for nearly all
        return False
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, list | dict)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return False
    return True
