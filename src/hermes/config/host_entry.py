"""How settings write a host: a name, all below one, an address or a network, each with or without a port. Pure."""

import re
from ipaddress import ip_network

from hermes.errors import ConfigError

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST = 253
_MOST_PORT = 65535
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_WIDEST = {4: 8, 6: 7}  # the widest networks that are anybody's own
_TO_OPEN = "to let commands reach all that this machine does, set terminal.network: open"
LOOPBACK = ("localhost", "127.0.0.1")


def read_host(entry: str) -> tuple[str, int]:
    """Host and port of `host`, `*.host`, `host:port`, `192.0.2.1`, `[2001:db8::1]:443`, `10.0.0.0/8`; 0 is every port.

    `ConfigError` for what is none of these.
    """
    host, port = _split(plain_name(entry.strip()))
    is_any = "*" in host.rpartition(".")[2]  # names of all kinds end so
    if not 0 <= port <= _MOST_PORT or not (_is_network(host) or is_host_name(host.replace("*", "x"))) or is_any:
        raise ConfigError(
            f"{entry!r} is no host; write a name (example.org), all below one (*.example.org), an address or a "
            "network, each with or without :PORT"
        )
    return host, port


def read_grant(entry: str) -> tuple[str, int]:
    """`read_host` for what a person lets commands reach; `ConfigError` also for what would be more than some hosts."""
    if set(entry.strip()) <= {"*", "."} and "*" in entry:
        raise ConfigError(f"{entry!r} is every host; {_TO_OPEN}")
    host, port = read_host(entry)
    if not _is_network(host):
        is_here = host == "localhost" or host.endswith(".localhost")
    else:
        network = ip_network(host, strict=False)
        if network.prefixlen < _WIDEST[network.version] and network.num_addresses > 1:
            raise ConfigError(f"{entry!r} is a large part of all addresses; {_TO_OPEN}")
        is_here = network.is_loopback or network.network_address.is_unspecified
    # With a port it is one service of this machine, as `terminal.network_local` names it.
    if is_here and (not port or host not in LOOPBACK):
        raise ConfigError(f"{entry!r} is this machine itself; name one of its ports, as in localhost:5432")
    return host, port


def plain_name(text: str) -> str:
    """A host name as it is compared: in lower case, without the last dot."""
    return text.lower().removesuffix(".")


def is_host_name(name: str) -> bool:
    """Whether `name` may be that of a host: labels of letters and digits, and not an address in digits."""
    labels = name.split(".")
    return len(name) <= _LONGEST and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])


def _split(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, _port(rest.removeprefix(":")) if rest else 0
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, _port(port)
    return text, 0


def _port(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 5 and int(text) else -1


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
