"""What an editor puts into a prompt, as the content of a message."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hermes.host.pictures import kind_of
from hermes.types import Content, ImagePart, JsonObject, Part, TextPart

MOST_FILE_BYTES = 512 << 10
MOST_IMAGE_BYTES = 20_000_000


def content_of(blocks: list[JsonObject]) -> Content:
    """Words alone are a string; with pictures, parts. Blocking: links to files are read."""
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if any(isinstance(part, ImagePart) for part in parts):
        return tuple(parts)
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))


def text_alone(blocks: list[JsonObject]) -> str | None:
    """The words of a prompt that is nothing but words; None for any other."""
    if any(block.get("type") != "text" for block in blocks):
        return None
    return "\n\n".join(str(block.get("text") or "") for block in blocks)


def _part(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text":
            text = str(block.get("text") or "")
            return TextPart(text) if text else None
        case "image":
            return _picture(block)
        case "resource":
            return _embedded(block.get("resource"))
        case "resource_link":
            return _linked(str(block.get("uri") or ""), str(block.get("name") or ""))
        case _:
            return None  # sound, and what later versions may have


def _picture(block: JsonObject) -> Part:
    data, kind = str(block.get("data") or ""), str(block.get("mimeType") or "image/png")
    if data:
        return ImagePart(f"data:{kind};base64,{data}", media_type=kind)
    return TextPart(f"[a picture: {block.get('uri') or 'without data'}]")


def _embedded(resource: Any) -> Part | None:
    if not isinstance(resource, dict):
        return None
    uri = str(resource.get("uri") or "")
    if isinstance(text := resource.get("text"), str):
        return TextPart(f"{_header(uri, _name(uri))}\n{text}")
    blob, kind = str(resource.get("blob") or ""), str(resource.get("mimeType") or "")
    if blob and kind.startswith("image/"):
        return ImagePart(f"data:{kind};base64,{blob}", media_type=kind)
    return TextPart(f"[attached: {uri or kind or 'data'}; it is no text]")


def _linked(uri: str, name: str) -> Part:
    split = urlsplit(uri)
    if split.scheme != "file":
        return TextPart(f"[link: {name or uri}] {uri}")
    path = Path(unquote(split.path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_IMAGE_BYTES + 1)
    except OSError as error:
        return TextPart(f"[attached file {str(path)!r} cannot be read: {error.strerror}]")
    kind = kind_of(data)
    if kind is not None and len(data) <= MOST_IMAGE_BYTES:
        return ImagePart(f"data:{kind};base64,{base64.b64encode(data).decode()}", media_type=kind)
    if b"\0" in data[:8192]:
        return TextPart(f"[attached file {str(path)!r} is no text]")
    text = data[:MOST_FILE_BYTES].decode("utf-8", "replace")
    cut = f"\n[cut here: read the rest from {str(path)!r}]" if len(data) > MOST_FILE_BYTES else ""
    return TextPart(f"{_header(uri, name or path.name)}\n{text}{cut}")


def _header(uri: str, name: str) -> str:
    return f"[attached: {name}] {uri}" if name else f"[attached] {uri}"


def _name(uri: str) -> str:
    return unquote(urlsplit(uri).path).rpartition("/")[2]
