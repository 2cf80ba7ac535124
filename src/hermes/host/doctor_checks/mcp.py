"""Whether MCP servers can be used: the package, their entries, their programs, their sign-ins."""

import os
import shutil
from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections.top import Section as Top
from hermes.host.doctor import Check, Finding, absent, ok, problem, warning
from hermes.host.installation import Installation


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    if not settings.of(Top).mcp_servers:
        yield absent("no MCP server is configured")
        return
    from hermes.host.mcp_care import McpCare  # paid by who has servers
    from hermes.tools.mcp.sdk import INSTALL, is_installed
    from hermes.tools.mcp.server_config import child_environment

    if not is_installed():
        yield problem(INSTALL, "pip install 'hermes-runtime[mcp]'")
        return
    care = McpCare(settings)
    configs = [config for config in care.configs() if config.entry.enabled]
    yield ok("1 MCP server is on" if len(configs) == 1 else f"{len(configs)} MCP servers are on")
    for config in configs:
        name, facts = config.name, care.facts(config)
        if config.trouble:
            yield problem(f"the MCP server {name!r} cannot be used: {config.trouble}", "hermes config edit")
            continue
        search = child_environment(config, settings.environ).get("PATH", os.defpath)
        if config.is_local and shutil.which(config.entry.command, path=search) is None:
            yield problem(f"the program {config.entry.command!r} of the MCP server {name!r} is not there")
        elif facts["signed_in"] is False:
            yield warning(f"nobody is signed in at the MCP server {name!r}", f"hermes mcp login {name}")
        elif facts["state"] == "never seen":
            yield warning(f"the MCP server {name!r} was never reached", f"hermes mcp test {name}")
        elif facts["changed"]:
            yield warning(
                f"the MCP server {name!r} describes tools in other words than before: {', '.join(facts['changed'])}",
                f"hermes mcp show {name}",
            )


CHECK = Check(title="MCP servers", run=run)
