"""Where a key belongs: one address, or the hosts that a provider itself has. What joins the two asks here."""

import re

from msgspec import Struct

from hermes.models.providers.catalogue import find_provider, provider_of_host

# Only what every reader of addresses takes apart in the same way: `https://known.example\@other.example` is one host
# for one of them and another for the next.
_PLAIN = re.compile(
    r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?",
    re.ASCII | re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}


class Home(Struct, frozen=True):
    """Where a key may go: one address (its scheme, host and port), or the hosts that a provider itself has."""

    address: str = ""
    provider: str = ""  # an id of the catalogue

    def has(self, address: str) -> bool:
        """Whether `address` is here. A provider's own hosts are never spoken to in the clear or at another port."""
        place = origin(address)
        if not self.provider:
            return bool(self.address) and place == origin(self.address)
        entry = find_provider(self.provider)
        if entry is None:
            return False
        if entry.base_url and place == origin(entry.base_url):
            return True
        is_plain = _PLAIN.fullmatch(address) is not None
        is_safe = is_plain and place.startswith("https://") and place.endswith(":443")
        return is_safe and provider_of_host(place) == entry

    def __str__(self) -> str:
        entry = find_provider(self.provider)
        return host_of(self.address) if self.address else entry.name if entry is not None else repr(self.provider)


def origin(address: str) -> str:
    """Scheme, host and port, written in one way; an address that is odd in any way is like itself alone."""
    found = _PLAIN.fullmatch(address)
    if found is None:
        return address
    scheme, port = found[1].lower(), found[3]
    return f"{scheme}://{found[2].lower()}:{int(port) if port else _PORTS[scheme]}"


def host_of(address: str) -> str:
    """Host and port as a person writes them; never a password."""
    found = _PLAIN.fullmatch(address)
    if found is None:
        return address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return f"{found[2]}:{found[3]}" if found[3] else found[2]
