"""Whether memory can be read, what waits in it, and whether the chosen provider works."""

import time
from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections.memory import Section
from hermes.context.memory.entries import TARGETS, odd, size_of
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.proposals import Proposals
from hermes.context.memory.provider_faults import kept_faults
from hermes.context.memory.provider_state import provider_trouble
from hermes.errors import UserError
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    section = settings.of(Section)
    files = MemoryFiles(installation.home, {"memory": section.memory_char_limit, "user": section.user_char_limit})
    for target in TARGETS:
        entries, limit = files.entries(target), files.limits[target]
        why = odd("\n§\n".join(entries), limit)
        if why or size_of(entries) > limit:
            told = why or f"it has {size_of(entries):,} characters, and its limit is {limit:,}"
            yield warning(f"{files.path(target)}: {told}", f"hermes memory edit {target}")
    try:
        waiting = len(Proposals(files).waiting())
    except UserError as error:
        yield problem(str(error))
        return
    yield ok(", ".join(f"{len(files.entries(target))} entries in {files.path(target).name}" for target in TARGETS))
    if waiting:
        yield warning(f"{waiting} entries wait for a yes", "hermes memory review")
    name, trouble = provider_trouble(settings)
    if trouble:
        yield problem(f"the memory provider {name!r} does not work: {trouble}", "hermes memory status")
    faults = kept_faults(installation.home, name, time.time()) if name else []
    for fault in faults:
        yield warning(fault.sentence(), "hermes memory status")
    if name and not trouble and not faults:
        yield ok(f"{name} recalls from earlier sessions")


CHECK = Check(title="Memory", run=run)
