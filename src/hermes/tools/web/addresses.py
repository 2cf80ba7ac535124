"""Which addresses a page may be fetched from: public ones, and those of the user's own that the settings name.

A host is judged by the addresses it leads to, never by how it is spelled: `127.1`, `0x7f000001`, `2130706433`,
`[::ffff:127.0.0.1]` and a name that resolves to loopback are all the same machine.
"""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from hermes.config.section import is_secret
from hermes.errors import ToolError
from hermes.redact import Redactor

Address: TypeAlias = IPv4Address | IPv6Address
Lookup: TypeAlias = Callable[[str, int], Sequence[str]]

MAX_URL_CHARS = 8000
_METADATA = frozenset(
    ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "fd00:ec2::254")
)
_METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "instance-data.ec2.internal")
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_V6 = IPv6Network("2000::/3")  # all that was ever given out; Python counts what it does not know as public
_RELAYS = IPv4Network("192.88.99.0/24")
_PIECES = re.compile(r"[/?&=#;,\s]+")
_MIN_SECRET = 8


class Refused(Exception):
    """A URL may not be fetched; the text is for the model. `by_policy` when it is a site the user has listed."""

    def __init__(self, reason: str, *, by_policy: bool = False) -> None:
        super().__init__(reason)
        self.by_policy = by_policy


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """A URL that passed every check, and the addresses to connect to: these and no others."""

    url: str
    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]
    is_private: bool


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What the settings say about hosts."""

    private_hosts: tuple[str, ...] = ()
    allow_private: bool = False
    blocked: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "AddressRules":
        """The rules of a merged configuration."""
        web, security = settings.get("web") or {}, settings.get("security") or {}
        listed = security.get("website_blocklist") or {}
        return cls(
            private_hosts=tuple(str(host).lower() for host in web.get("private_hosts") or ()),
            allow_private=bool(security.get("allow_private_urls", False)),
            blocked=_blocked(listed) if listed.get("enabled") else (),
        )

    def names(self, host: str, port: int, address: Address) -> bool:
        """Whether the user has named this host, with or without its port, or a network that the address is in."""
        for each in self.private_hosts:
            if each in (host, f"{host}:{port}", str(address), f"{address}:{port}", f"[{address}]:{port}"):
                return True
            if "/" in each and _in_network(address, each):
                return True
        return False


def check_url(url: str, rules: AddressRules, secrets: Sequence[str] = ()) -> tuple[str, str, int]:
    """Scheme, host and port of a URL that is fit to be fetched as far as its text says; else `Refused`."""
    if len(url) > MAX_URL_CHARS:
        raise Refused(f"the URL has {len(url)} characters; at most {MAX_URL_CHARS} are fetched")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise Refused(f"this is no URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise Refused("only http and https URLs are fetched")
    if not host:
        raise Refused("the URL names no host")
    if parts.username is not None or parts.password is not None:
        raise Refused("the URL holds a user name or password; those are not sent")
    if holds_secret(url, secrets):
        raise Refused("the URL holds what looks like a key or token; it is not sent anywhere")
    if host in _METADATA_NAMES:
        raise Refused("the host serves a machine's own credentials; it is never fetched")
    blocked = next((each for each in rules.blocked if host == each or host.endswith(f".{each}")), None)
    if blocked:
        raise Refused(f"the user's list of websites excludes {blocked!r}", by_policy=True)
    return parts.scheme, host, port or (443 if parts.scheme == "https" else 80)


def check_addresses(url: str, place: tuple[str, str, int], found: Sequence[str], rules: AddressRules) -> FetchTarget:
    """The target, when every address that the host leads to may be reached; else `Refused`."""
    scheme, host, port = place
    if not found:
        raise Refused(f"the host {host!r} has no address")
    is_private = False
    for text in found:
        address = ip_address(text.partition("%")[0])
        meant = real_address(address)
        if is_public(meant):
            continue
        is_private = True
        if rules.names(host, port, meant):
            continue
        if not rules.allow_private or meant in _METADATA or meant.is_link_local or meant.is_multicast:
            raise Refused(f"the host {host!r} leads to an address that is not public; only public ones are fetched")
    return FetchTarget(url, scheme, host, port, tuple(found), is_private)


def is_public(address: Address) -> bool:
    """Whether it is one that anybody may be sent to."""
    if address in _METADATA or address.is_multicast or not address.is_global:
        return False
    return address not in _RELAYS if isinstance(address, IPv4Address) else address in _GLOBAL_V6


def is_metadata(address: Address) -> bool:
    """Whether a machine's own credentials may be served there, or it is no address of one host at all."""
    return address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified


def numeric(host: str) -> str | None:
    """The address that a host of digits means, in any spelling a C library takes; None for a name."""
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name as this machine sees them; blocking. Empty when there are none."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos))


def real_address(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one that only wraps it."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address.sixtofour:
        return address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
        return address if int(address) <= 1 else inner
    return address


def holds_secret(url: str, secrets: Sequence[str] = ()) -> bool:
    """Whether the URL, escapes undone, carries a value that has the shape of a key or is one of `secrets`."""
    once = unquote(url)
    texts = {url, once, unquote(once)}
    if any(secret in text for secret in secrets for text in texts):
        return True
    redactor = Redactor()
    # Piece by piece: a value tells by its shape, while a name such as `page_token` says nothing.
    return any(redactor.redact(piece) != piece for text in texts for piece in _PIECES.split(text))


def own_secrets(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The values of this process's variables that are named like secrets."""
    return tuple({value for name, value in environ.items() if is_secret(name) and len(value) >= _MIN_SECRET})


def _in_network(address: Address, text: str) -> bool:
    try:
        return address in ip_network(text, strict=False)
    except ValueError:
        return False


def _blocked(listed: Mapping[str, Any]) -> tuple[str, ...]:
    lines = [str(each) for each in listed.get("domains") or ()]
    for file in listed.get("shared_files") or ():
        try:
            lines += Path(str(file)).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:  # a list that cannot be read blocks everything, and says so
            raise ToolError(f"the user's list of websites {str(file)!r} cannot be read: {error}") from error
    cleaned = (line.partition("#")[0].strip().lower().removeprefix("*.").strip(".") for line in lines)
    return tuple(dict.fromkeys(each for each in cleaned if each))
