"""What functions of Python make of a constant text: encodings and the like are no hiding place."""

import base64
import binascii
import codecs
import html
from collections.abc import Callable
from urllib.parse import unquote

_CODECS = frozenset({"rot13", "rot_13", "hex", "hex_codec", "base64", "base64_codec", "base_64", "utf-8", "utf8"})


def fold(function: str, *texts: str) -> str | None:
    """The text that `function` makes of `texts`, or None where it would fail."""
    try:
        return FOLDS[function](*texts)
    except (ValueError, TypeError, LookupError, binascii.Error):
        return None


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _decode(text: str, codec: str = "utf-8", *_errors: str) -> str:
    if codec.lower() not in _CODECS:
        raise LookupError(codec)
    if codec.startswith("rot"):
        return codecs.encode(text, "rot13")
    if codec.lower().startswith("utf"):
        return text
    return _text(bytes.fromhex(text) if codec.startswith("hex") else base64.b64decode(text))


FOLDS: dict[str, Callable[..., str]] = {  # a method by its last name, with the text it belongs to first
    "base64.b64decode": lambda text: _text(base64.b64decode(text)),
    "base64.urlsafe_b64decode": lambda text: _text(base64.urlsafe_b64decode(text)),
    "base64.decodebytes": lambda text: _text(base64.decodebytes(text.encode())),
    "base64.b32decode": lambda text: _text(base64.b32decode(text)),
    "base64.b16decode": lambda text: _text(base64.b16decode(text)),
    "base64.b85decode": lambda text: _text(base64.b85decode(text)),
    "base64.a85decode": lambda text: _text(base64.a85decode(text)),
    "binascii.a2b_base64": lambda text: _text(binascii.a2b_base64(text)),
    "binascii.unhexlify": lambda text: _text(bytes.fromhex(text)),
    "binascii.a2b_hex": lambda text: _text(bytes.fromhex(text)),
    "bytes.fromhex": lambda text: _text(bytes.fromhex(text)),
    "bytearray.fromhex": lambda text: _text(bytes.fromhex(text)),
    "codecs.decode": _decode,
    "codecs.encode": _decode,
    "urllib.parse.unquote": unquote,
    "html.unescape": html.unescape,
    ".lower": str.lower,
    ".upper": str.upper,
    ".title": str.title,
    ".swapcase": str.swapcase,
    ".casefold": str.casefold,
    ".capitalize": str.capitalize,
    ".removeprefix": str.removeprefix,
    ".removesuffix": str.removesuffix,
    "reversed": lambda text: text[::-1],
}
