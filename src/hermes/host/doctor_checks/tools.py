"""Whether tool files load, and what a new session here would not get."""

from collections.abc import Iterable
from pathlib import Path

from hermes.config.load import load_settings
from hermes.host.doctor import Check, Finding, absent, ok, warning
from hermes.host.installation import Installation
from hermes.host.tool_report import report


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    found = report(installation.home, settings.mapping, Path.cwd())
    offered = sum(tool.state == "offered" for tool in found.tools)
    yield ok(f"{offered} tools are offered to a new session here")
    for text in found.problems:
        yield warning(text, "hermes tools list")
    for tool in found.tools:
        if tool.state == "unavailable":
            yield absent(f"{tool.name} is not available: {tool.why}")


CHECK = Check(title="Tools", run=run)
