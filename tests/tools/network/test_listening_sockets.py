"""Who listens here: the kernel's answer and its table say the same."""

import socket

from hermes.tools.network.listening_sockets import _by_tables, listening_here
from hermes.tools.network.local_ports import served_here


def test_a_listener_is_found_by_its_port_and_gone_when_it_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        port, silent = one.getsockname()[1], bound.getsockname()[1]
        asked = {each for each in listening_here() if each.port in (port, silent)}
        assert [(each.host, each.port) for each in asked] == [("127.0.0.1", port)]
        assert asked == {each for each in _by_tables() if each.port in (port, silent)}
        assert port in served_here()
    assert port not in served_here()


def test_a_listener_of_ipv6_is_found() -> None:
    if not socket.has_dualstack_ipv6():
        return
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as one:
        assert ("::1", one.getsockname()[1]) in [(each.host, each.port) for each in listening_here()]
