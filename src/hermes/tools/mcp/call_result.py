"""What a server answered, as the model reads it."""

import base64
import binascii
import hashlib
import json
import mimetypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config.paths import cache_dir, made
from hermes.dicts import storable
from hermes.tools.registry import tool_error, tool_result

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_SAVED = 50_000_000
NO_WORDS = "MCP tool returned an error"
_SECRETS = re.compile(
    r"(?i)\b(bearer\s+)\S+|\b((?:password|passwd|token|secret|api[_-]?key)\s*[=:]\s*)\S+|\bsk-[A-Za-z0-9_-]{8,}"
)
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def masked_error(text: str) -> str:
    """An error's words without keys, tokens and passwords."""
    return _SECRETS.sub(lambda found: f"{found[1] or found[2] or ''}[REDACTED]", text)


def call_failed(kind: str, message: str) -> str:
    """The error of a call that came to nothing."""
    return tool_error(storable(masked_error(f"MCP call failed: {kind}: {message}")))


class MediaFolder:
    """Where pictures, sounds and files of results are kept."""

    def __init__(self, home: Path) -> None:
        self._folder = cache_dir(home) / "mcp-media"

    def save(self, data: str, media_type: str) -> str:
        """Keep what is base64 here; where it is, or why it is not kept, in brackets."""
        if len(data) > MAX_SAVED * 4 // 3 + 4:
            return f"[{media_type or 'data'} of more than {MAX_SAVED // 1_000_000} MB was left out]"
        try:
            body = base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError):
            return f"[{media_type or 'data'} was damaged and is left out]"
        ending = mimetypes.guess_extension(media_type.partition(";")[0].strip()) or ".bin"
        file = made(self._folder) / f"{hashlib.sha256(body).hexdigest()[:24]}{ending}"
        if not file.exists():
            half = file.with_name(f".{file.name}.{os.getpid()}")
            half.write_bytes(body)
            half.chmod(0o600)
            half.replace(file)
        return str(file)


def told_result(result: "CallToolResult", media: MediaFolder, reader: str) -> str:
    """The result as JSON; `reader` is the tool that opens resources. Blocking: what is no text is saved."""
    blocks = result.content
    if len(blocks) == 1 and blocks[0].type == "text":
        text = blocks[0].text
    else:
        text = "\n".join(filter(None, [_block(block, media, reader) for block in blocks]))
    if result.is_error:
        return tool_error(masked_error(text or NO_WORDS))
    structured = result.structured_content
    if structured is None:
        return f'{{"result": {_quoted(text)}}}'  # as `tool_result` writes it, whose encoder is slow to start
    return tool_result(result=text, structuredContent=structured) if text else tool_result(result=structured)


def is_plain(result: "CallToolResult") -> bool:
    """Whether there is nothing to save in it."""
    for block in result.content:  # noqa: SIM110 - a generator costs more than the loop
        if block.type != "text":
            return False
    return True


def _block(block: Any, media: MediaFolder, reader: str) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            saved = media.save(block.data, str(block.mime_type or ""))
            return saved if saved.startswith("[") else f"MEDIA:{saved}"
        case "resource":
            return resource_text(block.resource, media)
        case "resource_link":
            return f"[resource {block.uri}; read it with {reader}]" if reader else f"[resource {block.uri}]"
        case kind:
            return f"[a part of kind {kind!r} is left out]"


def resource_text(resource: Any, media: MediaFolder) -> str:
    """An embedded resource: its text, or where its bytes are."""
    if (text := getattr(resource, "text", None)) is not None:
        return str(text)
    kind, data = str(resource.mime_type or ""), str(getattr(resource, "blob", "") or "")
    saved = media.save(data, kind)
    return saved if saved.startswith("[") else f"[{kind or 'data'}, {len(data) * 3 // 4} bytes: {saved}]"


Tell = Callable[[str], None]
