"""Pictures as bytes: which kind they are, out of a data URL, and into one that a model takes."""

import base64
import binascii
import io
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from hermes.errors import ToolError
from hermes.types import ImagePart

if TYPE_CHECKING:
    from PIL import Image

MB = 1024 * 1024
MAX_BYTES = 50_000_000
MAX_BASE64 = 20 * MB
EASY_BASE64 = 5 * MB  # what every provider takes; they look at no more pixels than fit in it
KINDS = "PNG, JPEG, GIF and WebP"
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_EDGES = (4096, 2048, 1024)  # pixels of the longer side; a JPEG with the last one always fits
_JPEG_QUALITY = 88
_DATA_URL = r"data:[^,]{0,200};base64,(?P<body>.*)"


def media_type(data: bytes) -> str | None:
    """The kind of picture that the bytes are, whatever they are called; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def from_data_url(url: str) -> bytes:
    """What a data URL holds; `ToolError` when it is damaged."""
    found = re.fullmatch(_DATA_URL, url, re.IGNORECASE | re.DOTALL)
    if found is None:
        raise ToolError("the data URL is not of the form data:image/png;base64,...")
    try:
        data = base64.b64decode(b"".join(unquote_to_bytes(found["body"]).split()), validate=True)
    except binascii.Error as error:
        raise ToolError(f"the data URL is damaged: {error}") from error
    if not data:
        raise ToolError("the data URL holds nothing")
    return data


def refuse_large(size_bytes: int, name: str) -> None:
    """Raise `ToolError` for more bytes than a picture may have."""
    if size_bytes > MAX_BYTES:
        size, most = size_bytes / 1e6, MAX_BYTES / 1e6
        raise ToolError(f"{name} has {size:.1f} MB; pictures of at most {most:g} MB are looked at")


def to_show(data: bytes, name: str) -> ImagePart:
    """The picture as a model takes it, made smaller where that is needed and can be done; blocking.

    `ToolError` when the bytes are no picture, or too many. `name` is what they are called in it.
    """
    kind = media_type(data)
    if kind is None:
        raise ToolError(f"{name} is no picture that can be looked at; {KINDS} can")
    refuse_large(len(data), name)
    if _base64_size(data) > EASY_BASE64:
        data = _smaller(data, name)
        kind = media_type(data)
    return ImagePart(f"data:{kind};base64,{base64.b64encode(data).decode()}", media_type=kind or "")


def _smaller(data: bytes, name: str) -> bytes:
    try:
        from PIL import Image, ImageOps  # an extra, for large pictures only
    except ImportError as error:
        if _base64_size(data) <= MAX_BASE64:
            return data
        raise ToolError(
            f"{name} has {_base64_size(data) / MB:.1f} MB as base64, over {MAX_BASE64 // MB} MB, and making it smaller "
            "needs Pillow; the user can install it with: pip install 'hermes-runtime[vision]'"
        ) from error
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            opened.draft("RGB", (_EDGES[0], _EDGES[0]))  # a JPEG need not be unpacked whole
            picture = ImageOps.exif_transpose(opened).convert("RGBA")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ToolError(f"{name} cannot be made smaller: {error}") from error
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.getchannel("A"))
    return _packed(flat)


def _packed(picture: "Image.Image") -> bytes:
    body = b""
    for edge in _EDGES:
        picture.thumbnail((edge, edge))
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=_JPEG_QUALITY)
        body = out.getvalue()
        if _base64_size(body) <= EASY_BASE64:
            break
    return body


def _base64_size(data: bytes) -> int:
    return (len(data) + 2) // 3 * 4
