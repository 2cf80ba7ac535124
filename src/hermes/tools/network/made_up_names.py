"""Made-up addresses: each name that a program asks for gets one of its own, which means nothing anywhere else."""

from ipaddress import IPv4Address, IPv4Network

from hermes.config.host_entry import is_host_name

RANGE = IPv4Network("198.18.0.0/15")  # for tests of network equipment: no host of anybody's has one of these
_FIRST = 256  # so that no address looks like that of a network
MOST_NAMES = 16_384


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
        if not is_host_name(name) or self.is_full:
            return None
        address = str(IPv4Address(int(RANGE.network_address) + _FIRST + len(self._by_name)))
        self._by_name[name] = address
        self._by_address[address] = name
        return address, True

    @property
    def is_full(self) -> bool:
        """Whether no further name gets an address."""
        return len(self._by_name) >= MOST_NAMES

    def name_of(self, address: str) -> str | None:
        """The name that an address was made up for."""
        return self._by_address.get(address)
