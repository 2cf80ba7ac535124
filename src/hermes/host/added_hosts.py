"""Hosts that a person grants for one run, beside those of the settings: `--allow-host`."""

from collections.abc import Sequence

from hermes.config.host_entry import read_grant
from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import ConfigError, UserError


def with_added_hosts(settings: Settings, hosts: Sequence[str]) -> Settings:
    """The settings of a run whose commands reach `hosts` unasked; `UserError` for what is no host, or cannot be had."""
    for host in hosts:
        try:
            read_grant(host)
        except ConfigError as error:
            raise UserError(f"--allow-host {error}") from error
    section = settings.of(terminal.Section)
    if section.reach == "off":
        raise UserError("--allow-host needs terminal.network: ask, and the settings say off")
    return settings.with_flags({"terminal.network_hosts": [*section.network_hosts, *hosts]})
