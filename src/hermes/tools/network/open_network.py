"""Open the network of a session: its namespace, what its programs find in /etc, and who serves it."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from msgspec import structs

from hermes.config.host_entry import LOOPBACK
from hermes.confinement.policy import Bind, Confinement
from hermes.tools.network.denied_hosts import DeniesHost, denies_here, denies_nothing
from hermes.tools.network.host_rules import HostRules, read_rules
from hermes.tools.network.session_network import NetworkWishes, SessionNetwork
from hermes.tools.network.space import MakesNetworks, make_space
from hermes.tools.network.start_hosts import index_hosts, remote_hosts
from hermes.tools.network.wish import place_of
from hermes.tools.supervisor.threads import RunBlocking

_RESOLVER = "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n"


class GrantsHosts(Protocol):
    """What the settings say about a session's border."""

    @property
    def network_hosts(self) -> tuple[str, ...]: ...
    @property
    def network_local(self) -> tuple[int, ...]: ...


def wishes_of(
    granted: GrantsHosts, confined: Confinement, environ: Mapping[str, str], denies: DeniesHost = denies_nothing
) -> NetworkWishes:
    """What passes in this session. Blocking; do it before the first command."""
    remotes, indexes = remote_hosts(confined.workspace), index_hosts(confined.home, environ)
    named = read_rules(granted.network_hosts)
    # A remote on this machine is the word of whoever made the workspace, and opens no port.
    here = tuple(rule.port for rule in (*named, *indexes) if rule.host in LOOPBACK and rule.port)
    rules = HostRules(named=named, known=tuple(dict.fromkeys((*remotes, *indexes))))
    return NetworkWishes(rules=rules, local_ports=(*granted.network_local, *here), denies=denies)


def granted_places(wishes: NetworkWishes) -> list[str]:
    """What these let pass, for a person."""
    rules = [rule for rule in (*wishes.rules.named, *wishes.rules.known) if rule.host not in LOOPBACK]
    found = [place_of(rule.host, rule.port) if rule.port else rule.host for rule in rules]
    denied = {place for place, rule in zip(found, rules, strict=True) if wishes.denies(rule.host, rule.port)}
    found += [place_of(LOOPBACK[1], port) for port in wishes.local_ports if not denies_here(wishes.denies, port)]
    return [place for place in dict.fromkeys(found) if place not in denied]


async def open_network(
    supervisor: MakesNetworks, confined: Confinement, wishes: NetworkWishes, folder: Path, run_blocking: RunBlocking
) -> tuple[SessionNetwork, Confinement]:
    """The network, served, and the confinement of programs that are to have it; `ToolError` where none can be had.

    `folder` is one that the session's programs may read and not write.
    """
    binds = await run_blocking(_etc, folder)
    space = await make_space(supervisor)
    network = SessionNetwork(space, supervisor, wishes)
    await run_blocking(network.start)
    return network, structs.replace(confined.with_binds(*binds), namespaces=space.namespaces)


def _etc(folder: Path) -> list[Bind]:
    """How names are found inside: here, and never in a list of the machine's."""
    name = socket.gethostname()
    texts = {
        "/etc/resolv.conf": _RESOLVER,
        "/etc/hosts": f"127.0.0.1 localhost {name}\n::1 localhost ip6-localhost ip6-loopback\n",
    }
    binds = []
    for place, text in texts.items():
        real = os.path.realpath(place)
        if os.path.isfile(real):  # noqa: PTH113 - without the file, a program asks 127.0.0.1 by itself
            source = folder / Path(place).name
            source.write_text(text)
            binds.append(Bind(str(source), real))
    return binds
