"""Whether tool files load, and what a new session here would not get."""

from collections.abc import Iterable
from pathlib import Path

from hermes.config.load import load_settings
from hermes.host.tool_report import report
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, absent, ok, warning


def run(cli: Cli) -> Iterable[Finding]:
    settings = load_settings(cli.home, environ=cli.environ)
    found = report(cli.home, settings.mapping, Path.cwd())
    offered = sum(tool.state == "offered" for tool in found.tools)
    yield ok(f"{offered} tools are offered to a new session here")
    for text in found.problems:
        yield warning(text, "hermes tools list")
    for tool in found.tools:
        if tool.state == "unavailable":
            yield absent(f"{tool.name} is not available: {tool.why}")


CHECK = Check(title="Tools", run=run)
