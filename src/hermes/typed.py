"""Untyped values and bytes as instances of a type, in any thread.

msgspec learns a type when it is first used, and a second thread that comes while it does (the types inside it are
asked for in Python) is handed a half-learned one, which ends the process. So each type is learned here, under a lock.
"""

from threading import RLock
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_learned: set[Any] = set()
_learning = RLock()


@overload
def convert(value: object, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def convert(value: object, kind: Any, *, strict: bool = True) -> Any: ...
def convert(value: object, kind: Any, *, strict: bool = True) -> Any:
    """`value`, made of plain containers and scalars, as `kind`; `msgspec.ValidationError` when it does not fit."""
    if kind not in _learned:
        _learn(kind)
    return msgspec.convert(value, kind, strict=strict)


@overload
def from_json(data: bytes | str, kind: type[T]) -> T: ...
@overload
def from_json(data: bytes | str, kind: Any) -> Any: ...
def from_json(data: bytes | str, kind: Any) -> Any:
    """The JSON in `data` as `kind`; `msgspec.DecodeError` when it is none or does not fit."""
    if kind not in _learned:
        _learn(kind)
    try:
        return msgspec.json.decode(data, type=kind)
    except UnicodeDecodeError as error:  # msgspec reports bytes that are no text apart from all else
        raise msgspec.DecodeError(f"not UTF-8: {error}") from error


def from_msgpack(data: bytes, kind: type[T]) -> T:
    """The MessagePack in `data` as `kind`; `msgspec.DecodeError` when it is none or does not fit."""
    if kind not in _learned:
        _learn(kind)
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"not UTF-8: {error}") from error


def json_decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """A decoder to keep, for JSON that is read often."""
    with _learning:
        return msgspec.json.Decoder(kind)


def _learn(kind: Any) -> None:
    with _learning:
        msgspec.json.Decoder(kind)
        _learned.add(kind)
