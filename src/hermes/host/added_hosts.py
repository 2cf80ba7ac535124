"""Hosts that a person grants for one run, beside those of the settings: `--allow-host`."""

from collections.abc import Sequence

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.tools.network.host_rules import read_rules


def with_added_hosts(settings: Settings, hosts: Sequence[str]) -> Settings:
    """The settings of a run whose commands reach `hosts` unasked; `ConfigError` for what is no host."""
    read_rules(hosts)
    known = settings.of(terminal.Section).network_hosts
    return settings.with_flags({"terminal.network_hosts": [*known, *hosts]})
