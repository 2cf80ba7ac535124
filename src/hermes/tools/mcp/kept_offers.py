"""What is offered of a server, kept as it was made: a start reads it and need not look through every word again."""

import hashlib
import logging

import msgspec
from msgspec import Struct

from hermes.config.paths import write_private
from hermes.errors import UserError
from hermes.tools.mcp.manifest import ManifestShelf, ServerManifest
from hermes.tools.mcp.offered_tools import OfferedTool, Scan, offered_tools
from hermes.tools.mcp.server_config import ServerConfig
from hermes.typed import from_json

log = logging.getLogger(__name__)


class KeptOffers(Struct, frozen=True):
    """`key` is a hash of all that `tools` were made from."""

    key: str
    tools: list[OfferedTool]


def kept_offers(
    config: ServerConfig, manifest: ServerManifest, scan: Scan, shelf: ManifestShelf, version: str
) -> list[OfferedTool]:
    """`offered_tools`, from the file beside the manifest where that was made of the same by the same version."""
    file, key = shelf.offers_file(config.name), _key(config, manifest, version)
    try:
        kept = from_json(file.read_bytes(), KeptOffers)
        if kept.key == key:
            return kept.tools
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        log.info("what is kept of the MCP server %r cannot be read, and is made anew: %s", config.name, error)
    made = offered_tools(config, manifest, scan)
    try:
        write_private(file, msgspec.json.encode(KeptOffers(key, made)).decode())
    except (OSError, UserError) as error:
        log.info("what is offered of the MCP server %r was not kept: %s", config.name, error)
    return made


def _key(config: ServerConfig, manifest: ServerManifest, version: str) -> str:
    said = (manifest.name, manifest.tools, manifest.has_resources, manifest.has_prompts)
    return hashlib.sha256(msgspec.json.encode((version, config.name, config.entry.tools, said))).hexdigest()
