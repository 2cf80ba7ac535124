"""What the settings say about the network, in the present words and the older one."""

from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.config.mistakes import every_mistake
from hermes.config.sections import terminal
from hermes.confinement.policy import Confinement
from hermes.errors import UserError
from hermes.host.added_hosts import with_added_hosts
from hermes.tools.supervisor.confine import bubblewrap


@pytest.mark.parametrize(
    ("text", "reach", "warnings"),
    [
        ("{}", "ask", 0),
        ("{network: open}", "open", 0),
        ("{network: ask}", "ask", 0),
        ("{network: 'off'}", "off", 0),
        ("{sandbox_network: false}", "off", 1),
        ("{sandbox_network: true}", "ask", 1),
        ("{sandbox_network: false, network: ask}", "ask", 1),
    ],
)
def test_one_key_decides_and_the_older_one_gives_one_line(
    hermes_home: Path, text: str, reach: str, warnings: int
) -> None:
    (hermes_home / "config.yaml").write_text(f"terminal: {text}\n")
    settings = load_settings(hermes_home, environ={})
    assert settings.of(terminal.Section).reach == reach
    assert len(settings.warnings) == warnings


@pytest.mark.parametrize(
    "entry", ["http://api.test/", "api.test:0x50", "300.1.1.1", "1::2::3", "a b", "api.test:70000"]
)
def test_what_is_no_host_is_refused_when_the_settings_are_read(hermes_home: Path, entry: str) -> None:
    text = f"terminal:\n  network_hosts: [good.test, {entry!r}]\n  timeout: soon\n"
    (hermes_home / "config.yaml").write_text(text)
    first, second = every_mistake(hermes_home, {})
    assert "terminal.timeout" in first
    assert "config.yaml, line 2: terminal.network_hosts" in second
    assert "is no host; write a name (example.org)" in second


@pytest.mark.parametrize(
    "entry", ["api.test", "*.api.test", "API.test.", "api.test:8443", "10.0.0.0/8", "[2001:db8::1]:443", "192.0.2.1:80"]
)
def test_what_is_a_host_is_taken(hermes_home: Path, entry: str) -> None:
    (hermes_home / "config.yaml").write_text(f"terminal: {{network_hosts: [{entry!r}]}}\n")
    assert every_mistake(hermes_home, {}) == []


def test_a_host_of_the_command_line_is_added_to_those_of_the_settings(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("terminal: {network_hosts: [one.test]}\n")
    settings = with_added_hosts(load_settings(hermes_home, environ={}), ["two.test:8443"])
    assert settings.of(terminal.Section).network_hosts == ("one.test", "two.test:8443")
    with pytest.raises(UserError, match=r"^--allow-host 'http://three.test/' is no host"):
        with_added_hosts(settings, ["http://three.test/"])
    with pytest.raises(UserError, match=r"^--allow-host '0.0.0.0/0' is a large part of all addresses; to let"):
        with_added_hosts(settings, ["0.0.0.0/0"])


def test_a_host_of_the_command_line_is_refused_where_there_is_no_network(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("terminal: {network: off}\n")
    with pytest.raises(UserError, match=r"needs terminal.network: ask"):
        with_added_hosts(load_settings(hermes_home, environ={}), ["two.test"])


@pytest.mark.parametrize("port", [53, 1080])
def test_a_port_that_the_sessions_network_needs_itself_is_refused(hermes_home: Path, port: int) -> None:
    (hermes_home / "config.yaml").write_text(f"terminal: {{network_local: [5432, {port}]}}\n")
    (mistake,) = every_mistake(hermes_home, {})
    assert f"terminal.network_local: port {port} is the" in mistake


def test_what_would_be_every_host_is_refused_when_the_settings_are_read(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("terminal:\n  network_hosts: ['0.0.0.0/0']\n")
    (mistake,) = every_mistake(hermes_home, {})
    assert "config.yaml, line 2: terminal.network_hosts" in mistake
    assert "set terminal.network: open" in mistake


@pytest.mark.parametrize(
    ("network", "namespaces", "cut_off"), [(True, (), False), (False, (), True), (False, (7,), False)]
)
def test_without_a_network_of_its_own_there_is_none(network: bool, namespaces: tuple[int, ...], cut_off: bool) -> None:
    confined = Confinement(level="full", workspace="/tmp", bwrap="bwrap", network=network, namespaces=namespaces)
    words = bubblewrap.command_line(confined, bubblewrap.mount_plan(confined), -1)
    assert ("--unshare-net" in words) == cut_off
