"""Which hosts pass without a question: what the person wrote, and what the machine was set up for. Pure."""

import contextlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, ip_address, ip_network

from msgspec import Struct

from hermes.config.host_entry import read_host
from hermes.tools.web.addresses import Address, is_metadata, is_public, real_address


class HostRule(Struct, frozen=True):
    """One entry of `terminal.network_hosts`: a name (`*` for any part), an address or a network; 0 is every port."""

    host: str
    port: int = 0

    def covers(self, host: str, port: int) -> bool:
        return self.port in (0, port) and (host == self.host or ("*" in self.host and fnmatchcase(host, self.host)))

    def covers_address(self, address: Address, port: int) -> bool:
        """Whether it names an address itself, or a network around it."""
        if self.port not in (0, port):
            return False
        try:
            return address in ip_network(self.host, strict=False)
        except ValueError:
            return False

    def is_address(self, address: Address, port: int) -> bool:
        """Whether it names this very address."""
        return self.covers_address(address, port) and ip_network(self.host, strict=False).num_addresses == 1


class HostRules(Struct, frozen=True):
    """`named` are the person's own words, which also open what is private; `known` opens public hosts alone."""

    named: tuple[HostRule, ...] = ()
    known: tuple[HostRule, ...] = ()

    def passes(self, host: str, port: int) -> bool:
        """Whether nobody needs to be asked about this host."""
        if any(rule.covers(host, port) for rule in (*self.named, *self.known)):
            return True
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return any(rule.covers_address(address, port) for rule in self.named)

    def networks(self) -> list[IPv4Network]:
        """The addresses that the person's own words open; programs reach them without a name."""
        found = []
        for rule in self.named:
            with contextlib.suppress(ValueError):
                found.append(IPv4Network(rule.host, strict=False))
        return found

    def usable(self, host: str, port: int, found: Sequence[str]) -> list[str]:
        """The addresses of a granted host that may be connected to: public ones, and private ones that a rule names.

        One that is neither spoils all: a name that leads to both is not what it seems. What serves a machine's own
        credentials opens by its address alone, never by a name that leads there or a network around it.
        """
        is_named = any(rule.covers(host, port) and "*" not in rule.host for rule in self.named)
        for text in found:
            address = real_address(ip_address(text.partition("%")[0]))
            if is_metadata(address):
                may = any(rule.is_address(address, port) for rule in self.named)
            else:
                may = is_named or is_public(address) or any(rule.covers_address(address, port) for rule in self.named)
            if not may:
                return []
        return list(found)


def read_rules(entries: Iterable[str]) -> tuple[HostRule, ...]:
    """The rules of a setting; `ConfigError` for what is no host."""
    return tuple(read_rule(entry) for entry in entries)


def read_rule(entry: str) -> HostRule:
    """`host`, `*.host`, `host:port`, `192.0.2.1`, `[2001:db8::1]:443` or `10.0.0.0/8`."""
    return HostRule(*read_host(entry))
