"""Message fields as column values and back, losing nothing: lone surrogates, NULs, pictures, very long text."""

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

JSON_MARK = "\0json:"
BLOB_MARK = "\0blob:"
TEXT_MARK = "\0text:"

LARGE_TEXT_CHARS = 32_768  # longer text goes to a blob: stored once, and out of the way of scans
SMALL_URL_CHARS = 1_024  # a data URL shorter than this costs less in the row than as a file

_DATA_URL = re.compile(r"data:[^,;]*(?:;[^,;]*)*;base64,", re.ASCII)
_BLOB_IN_TEXT = re.compile(r"(?:hermes://result/|blob:)([0-9a-f]{64})\b")

Fetch = Callable[[str], bytes]
Column = str | bytes | None


def sha256(data: bytes) -> str:
    """The name of some bytes."""
    import hashlib  # loads a large library, and most commits have no blobs

    return hashlib.sha256(data).hexdigest()


class Blobs(msgspec.Struct, gc=False):
    """Bytes taken out of a row, by digest; whoever commits the row must write these first."""

    found: dict[str, bytes] = msgspec.field(default_factory=dict)
    refs: set[str] = msgspec.field(default_factory=set)

    def take(self, data: bytes) -> str:
        digest = sha256(data)
        self.found[digest] = data
        self.refs.add(digest)
        return digest


def bind_text(text: str) -> str | bytes:
    """`text` as SQLite can hold it: text that is not valid Unicode goes in as bytes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def read_text(value: Column) -> str | None:
    """The inverse of `bind_text`."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    return value


def encode_json(value: Any) -> str:
    """Compact JSON; lone surrogates are escaped rather than refused."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def decode_json(text: Column) -> Any:
    """The inverse of `encode_json`; text that is no JSON (a foreign row) comes back as text."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass  # lone surrogates, which only the standard decoder takes, or no JSON at all
    try:
        return json.loads(text)
    except ValueError:
        return read_text(text)


def encode_content(content: Any, blobs: Blobs) -> Column:
    """Text as it is; lists and dicts as JSON behind a mark; pictures and long text by digest."""
    if content is None:
        return None
    if isinstance(content, str):
        if "blob:" in content or "hermes://" in content:
            blobs.refs.update(_BLOB_IN_TEXT.findall(content))
        if len(content) > LARGE_TEXT_CHARS:
            return f"{BLOB_MARK}{blobs.take(content.encode('utf-8', 'surrogatepass'))}"
        if content.startswith("\0"):
            content = TEXT_MARK + content
        return content if content.isascii() else bind_text(content)
    packed = JSON_MARK + encode_json(_externalise(content, blobs))
    if len(packed) > LARGE_TEXT_CHARS:
        return f"{BLOB_MARK}json:{blobs.take(packed[len(JSON_MARK) :].encode())}"
    return bind_text(packed)


def decode_content(value: Column, fetch: Fetch) -> Any:
    """The inverse of `encode_content`; what `fetch` raises passes through."""
    text = read_text(value)
    if text is None or not text.startswith("\0"):
        return text
    if text.startswith(JSON_MARK):
        return _internalise(decode_json(text[len(JSON_MARK) :]), fetch)
    if text.startswith(TEXT_MARK):
        return text[len(TEXT_MARK) :]
    if text.startswith(f"{BLOB_MARK}json:"):
        return _internalise(decode_json(fetch(text[len(BLOB_MARK) + 5 :])), fetch)
    if text.startswith(BLOB_MARK):
        return fetch(text[len(BLOB_MARK) :]).decode("utf-8", "surrogatepass")
    return text  # written by something else that starts text with NUL


def _externalise(value: Any, blobs: Blobs) -> Any:
    if isinstance(value, str):
        blobs.refs.update(_BLOB_IN_TEXT.findall(value))
        if value.startswith("\0"):
            return TEXT_MARK + value
        return _take_data_url(value, blobs) if len(value) > SMALL_URL_CHARS else value
    if isinstance(value, dict):
        return {key: _externalise(item, blobs) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_externalise(item, blobs) for item in value]
    return value


def _take_data_url(url: str, blobs: Blobs) -> str:
    head = _DATA_URL.match(url)
    if head is None:
        return url
    body = url[head.end() :]
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return url
    if base64.b64encode(data).decode() != body:
        return url  # an unusual spelling of base64 would not come back byte for byte
    return f"{BLOB_MARK}{blobs.take(data)}:{head.group()}"


def _internalise(value: Any, fetch: Fetch) -> Any:
    if isinstance(value, str):
        if value.startswith(TEXT_MARK):
            return value[len(TEXT_MARK) :]
        if value.startswith(BLOB_MARK):
            digest, _, head = value[len(BLOB_MARK) :].partition(":")
            return head + base64.b64encode(fetch(digest)).decode()
        return value
    if isinstance(value, dict):
        return {key: _internalise(item, fetch) for key, item in value.items()}
    if isinstance(value, list):
        return [_internalise(item, fetch) for item in value]
    return value
