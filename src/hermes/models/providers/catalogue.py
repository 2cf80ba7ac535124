"""The providers that are known by name. Data: `providers.json` beside this file."""

import re
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct, field

from hermes.errors import UserError
from hermes.models.endpoint import ApiMode, Quirks
from hermes.typed import from_json

LOOPBACK = ("127.0.0.1", "localhost", "::1", "0.0.0.0")  # noqa: S104 - a host to compare with, nothing is bound
# Not all of amazonaws.com: anybody can have a name there, such as that of a bucket.
_BEDROCK = re.compile(
    r"bedrock-runtime(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?"
    r"|vpce-[a-z0-9-]+\.bedrock-runtime\.[a-z0-9-]+\.vpce\.amazonaws\.com(\.cn)?"
)


class ProviderEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One provider: where it is, how it is spoken to, which variables hold its key."""

    id: str
    name: str
    kind: Literal["key", "local", "box", "aws", "any", "oauth", "external", "program"] = "key"
    base_url: str = ""
    base_url_env: str = ""
    key_url_env: str = ""  # an address variable that does not move the provider, but takes a key set beside it
    api_mode: ApiMode = "chat_completions"
    env: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    key_header: str = ""  # the key goes here instead of `authorization`
    quirks: Quirks = Quirks()
    signup: str = ""


@cache
def providers() -> dict[str, ProviderEntry]:
    """Every provider by id, in the order in which keys are looked for."""
    raw = Path(__file__).with_name("providers.json").read_bytes()
    return {entry.id: entry for entry in from_json(raw, list[ProviderEntry])}


def add_provider(entry: ProviderEntry) -> None:
    """Have a provider known that is not in the file, such as a plugin's; for the whole process."""
    providers()[entry.id] = entry


def find_provider(name: str) -> ProviderEntry | None:
    """The provider with this id or alias."""
    wanted = name.strip().lower()
    known = providers()
    return known.get(wanted) or next((entry for entry in known.values() if wanted in entry.aliases), None)


def provider_of_host(base_url: str) -> ProviderEntry | None:
    """The provider whose address this is; the nearest, where the host of one lies within that of another."""
    host = (_parts(base_url).hostname or "").lower()
    if _BEDROCK.fullmatch(host):
        return providers()["bedrock"]
    near = [
        (len(own), entry)
        for entry in providers().values()
        for own in entry.hosts
        if host == own or host.endswith(f".{own}")
    ]
    return max(near, key=lambda one: one[0])[1] if near else None


def is_loopback(base_url: str) -> bool:
    """Whether the address is on this machine."""
    return (_parts(base_url).hostname or "").lower() in LOOPBACK


def api_mode_for(base_url: str, entry: ProviderEntry) -> ApiMode:
    """The wire protocol, when nobody has chosen one."""
    parts = _parts(base_url)
    host, path = (parts.hostname or "").lower(), parts.path.rstrip("/")
    if entry.kind == "aws" or host.startswith("bedrock-runtime."):
        return "bedrock_converse"
    if path.endswith("/anthropic") or host == "api.anthropic.com":
        return "anthropic_messages"
    if host in ("api.openai.com", "api.x.ai"):
        return "codex_responses"
    return entry.api_mode if entry.kind != "any" else "chat_completions"


def _parts(base_url: str) -> SplitResult:
    try:
        return urlsplit(base_url)
    except ValueError as error:
        raise UserError(
            f"{base_url!r} is no address ({error}); set base_url to one like http://127.0.0.1:8000/v1"
        ) from error
