"""The question: the words of the command line, what was piped in, and a picture."""

import base64
import os
import select
import stat
import sys
from pathlib import Path
from typing import Any

from hermes.errors import UserError
from hermes.surfaces.cli.output import Output

WAIT_NOTE_S = 2.0
MAX_IMAGE_BYTES = 20_000_000
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def asked_words(words: str | None) -> str:
    """The words of the command line, as text that can be stored."""
    return (words or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


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


def piped_in(out: Output) -> str:
    """All of stdin when it is a pipe or a file; nothing when it is a terminal or closed."""
    try:
        number = sys.stdin.fileno() if sys.stdin is not None else None
        kind = os.fstat(number).st_mode if number is not None else 0
    except (OSError, ValueError):
        return ""
    if number is None or not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not select.select([number], [], [], WAIT_NOTE_S)[0]:
        out.note("Waiting for the end of what is piped in; to ask without it, add: </dev/null")
    chunks: list[bytes] = []
    while chunk := os.read(number, 1 << 16):
        chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", "replace").strip("\n")
