"""Whether the sessions can be read, how they are kept, and what earlier repairs left."""

from collections.abc import Iterable

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.sections import state as state_section
from hermes.errors import ConfigError
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation
from hermes.state import schema
from hermes.state.sqlite.connection import NETWORK_FILE_SYSTEMS, file_system_of
from hermes.state.sqlite.examine import report_of

LARGE_BYTES = 2_000_000_000


def run(installation: Installation) -> Iterable[Finding]:
    file = paths.state_file(installation.home)
    if not file.exists():
        yield ok("no sessions yet")
        return
    # Read only, and not through the store: opening that would mend what is to be looked at.
    found = report_of(file)
    if found.faults:
        yield problem(f"{file} is damaged: {'; '.join(found.faults)}", "hermes sessions repair")
        return
    yield ok(f"{found.sessions} sessions, {found.messages} messages in {file}")
    if found.schema > schema.SCHEMA_VERSION:
        yield problem(f"{file} was written by a newer Hermes (schema {found.schema})", "update Hermes")
    yield from _kept(installation)


def _kept(installation: Installation) -> Iterable[Finding]:
    """How durable it is, and what lies beside it."""
    file = paths.state_file(installation.home)
    try:
        durability = load_settings(installation.home, environ=installation.environ).of(state_section.Section).durability
    except ConfigError:
        durability = "power"  # the settings have a check of their own
    kind = file_system_of(file.parent)
    yield ok(f"every step survives the loss of {'power' if durability == 'power' else 'the process'}")
    if kind in NETWORK_FILE_SYSTEMS:
        yield warning(f"{kind} is a network file system: reading and writing wait for each other there")
    if file.stat().st_size > LARGE_BYTES:
        yield warning(f"the store has {file.stat().st_size / 1e9:.1f} GB", "hermes sessions prune --dry-run")
    aside = sorted(file.parent.glob(f"{file.name}.damaged-*"))
    if aside:
        yield warning(f"{len(aside)} damaged files were kept aside, the newest as {aside[-1]}", "hermes sessions list")


CHECK = Check(title="Sessions", run=run)
