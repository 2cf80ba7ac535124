"""A picture beside the words of a message."""

import base64
from pathlib import Path
from typing import Any

from hermes.errors import UserError

MAX_IMAGE_BYTES = 20_000_000
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def with_image(question: str, image: Path | None) -> Any:
    """The question alone, or as parts with the picture."""
    if image is None:
        return question
    try:
        data = image.expanduser().read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the image {str(image)!r}: {error.strerror}") from error
    kind = kind_of(data)
    if kind is None:
        raise UserError(f"{str(image)!r} is no PNG, JPEG, GIF or WebP picture")
    if len(data) > MAX_IMAGE_BYTES:
        raise UserError(f"{str(image)!r} has {len(data) / 1e6:.0f} MB; pictures may have 20 MB")
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": url}}]


def kind_of(data: bytes) -> str | None:
    """The media type of a picture; None when it is none that models read."""
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)
