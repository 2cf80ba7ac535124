"""What a server offered when it was last seen: a file each, so that no request has to wait for a server.

A tool is pinned by a hash of what it says about itself. What is pinned is what a person was shown or told; a change is
told before the tool is used again, and pinned then.
"""

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hermes.config.paths import write_private
from hermes.tools.mcp.server_config import ServerConfig
from hermes.typed import from_json
from hermes.types import JsonObject

MAX_BYTES = 64 * 1024 * 1024
log = logging.getLogger(__name__)


class ToolRecord(Struct, frozen=True, kw_only=True):
    """A tool as its server described it."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)
    annotations: JsonObject = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of all that it says about itself."""
        text = msgspec.json.encode([self.name, self.description, self.parameters, self.annotations], order="sorted")
        return hashlib.sha256(text).hexdigest()[:16]


class ServerManifest(Struct, frozen=True, kw_only=True):
    """What a server offered."""

    name: str
    identity: str
    seen_at: float = 0.0
    title: str = ""  # what it calls itself, and its version
    protocol: str = ""
    instructions: str = ""
    has_resources: bool = False
    has_prompts: bool = False
    tools: tuple[ToolRecord, ...] = ()
    left_out: dict[str, str] = {}  # tools that cannot be offered, and why
    pinned: dict[str, str] = {}  # digests by tool

    def changed(self) -> list[str]:
        """The tools that say something else about themselves than what is pinned."""
        return [tool.name for tool in self.tools if self.is_changed(tool)]

    def is_changed(self, tool: ToolRecord) -> bool:
        """Whether this one does."""
        pinned = self.pinned.get(tool.name)
        return pinned is not None and pinned != tool.digest

    def with_pins(self, *names: str) -> "ServerManifest":
        """The same with these tools, or all, pinned as they are."""
        fresh = {tool.name: tool.digest for tool in self.tools if not names or tool.name in names}
        kept = {name: digest for name, digest in self.pinned.items() if name in {tool.name for tool in self.tools}}
        return replace(self, pinned={**kept, **fresh})

    def after(self, before: "ServerManifest | None") -> "ServerManifest":
        """The same as the successor of what was known: old pins stay, tools that are new are pinned as they are."""
        if before is None or before.identity != self.identity:
            return self.with_pins()
        fresh = {tool.name: tool.digest for tool in self.tools}
        return replace(self, pinned={name: before.pinned.get(name, digest) for name, digest in fresh.items()})


class ManifestShelf:
    """The manifests of a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "mcp"

    def file(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe='')[:120] or '_'}.json"

    def offers_file(self, name: str) -> Path:
        """Where what is offered of a server is kept."""
        return self.file(name).with_suffix(".offers")

    def read(self, config: ServerConfig) -> ServerManifest | None:
        """What the server offered, if it is still the same one; a damaged file is none."""
        found = self.find(config.name)
        return found if found is not None and found.identity == config.identity else None

    def find(self, name: str) -> ServerManifest | None:
        """What a server of this name offered, whatever it is now."""
        file = self.file(name)
        try:
            if file.stat().st_size > MAX_BYTES:
                return None
            found = from_json(file.read_bytes(), ServerManifest)
        except (OSError, msgspec.MsgspecError) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("what the MCP server %r offered cannot be read, and is asked for again: %s", name, error)
            return None
        return found if found.name == name else None

    def stamp(self, name: str) -> int:
        """A number that changes with the file."""
        try:
            return self.file(name).stat().st_mtime_ns
        except OSError:
            return 0

    def write(self, manifest: ServerManifest) -> None:
        """Keep it, atomically; `UserError` when that cannot be."""
        write_private(self.file(manifest.name), msgspec.json.encode(manifest).decode())

    def remove(self, name: str) -> None:
        self.file(name).unlink(missing_ok=True)
        self.offers_file(name).unlink(missing_ok=True)


def is_hint(annotations: Mapping[str, Any], name: str) -> bool:
    """Whether a server says so of a tool. A hint, never a permission."""
    return annotations.get(name) is True
