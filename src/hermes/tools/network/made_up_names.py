"""Made-up addresses: each name that a program asks for gets one of its own, which means nothing anywhere else."""

import re
from ipaddress import IPv4Address, IPv4Network

RANGE = IPv4Network("198.18.0.0/15")  # for tests of network equipment: no host of anybody's has one of these
_FIRST = 256  # so that no address looks like that of a network
MOST_NAMES = 16_384
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST = 253


class MadeUpNames:
    """Names and their addresses, for the life of a session. A name keeps its address."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}
        self._by_address: dict[str, str] = {}

    def address_of(self, name: str) -> tuple[str, bool] | None:
        """The address of a plain name, and whether it is new; None for what is no name, or when there are too many."""
        known = self._by_name.get(name)
        if known is not None:
            return known, False
        if not is_host_name(name) or len(self._by_name) >= MOST_NAMES:
            return None
        address = str(IPv4Address(int(RANGE.network_address) + _FIRST + len(self._by_name)))
        self._by_name[name] = address
        self._by_address[address] = name
        return address, True

    def name_of(self, address: str) -> str | None:
        """The name that an address was made up for."""
        return self._by_address.get(address)


def plain_name(text: str) -> str:
    """A host name as it is compared: in lower case, without the last dot."""
    return text.lower().removesuffix(".")


def is_host_name(name: str) -> bool:
    """Whether `name` may be that of a host: labels of letters and digits, and not an address in digits."""
    labels = name.split(".")
    return len(name) <= _LONGEST and all(_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdecimal()
