"""Whether commands can be run where the settings say, and whether they are sandboxed there."""

import shutil
from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections import terminal
from hermes.confinement.plan import Enforcement
from hermes.host.doctor import Check, Finding, absent, ok, problem, settled, warning
from hermes.host.installation import Installation
from hermes.programs import split_path
from hermes.tools.supervisor.confine.probe import enforcement
from hermes.tools.supervisor.supervisor import ProcessSupervisor

SANDBOX_FIX = "install bubblewrap, or: hermes config set terminal.sandbox off"


def run(installation: Installation) -> Iterable[Finding]:
    section = load_settings(installation.home, environ=installation.environ).of(terminal.Section)
    yield ok(f"commands run in the {section.backend} backend")
    if section.backend == "local":
        yield _sandbox(section)
    if section.backend == "ssh" and not section.ssh_host:
        yield problem("the ssh backend has no host", "hermes config set terminal.ssh_host HOST")
    search = split_path(installation.environ).own
    for backend, names in terminal.PROGRAMS.items():
        given = (section.docker_binary,) if backend == "docker" and section.docker_binary else names
        found = next((path for name in given if (path := shutil.which(name, path=search))), None)
        if found:
            yield ok(f"{backend}: {found}")
        elif backend == section.backend:
            lack = f"terminal.backend is {backend!r}, and {' or '.join(given)} is missing"
            yield problem(lack, f"install {given[0]}")
        else:
            yield absent(f"{backend}: not installed, and not in use")


def _sandbox(section: terminal.Section) -> Finding:
    if section.sandbox == "off":
        return warning("commands are not sandboxed (terminal.sandbox is off)", "hermes config unset terminal.sandbox")
    found = settled(lambda: _probe(section))
    if found.level == "full":
        return ok("commands are sandboxed with bubblewrap, at level full")
    if found.level == "files":
        return warning(f"commands are sandboxed at level files, not full: {found.why}", "install bubblewrap")
    lack = warning if section.sandbox == "auto" else problem
    return lack(f"commands are not sandboxed, level none: {found.why}", SANDBOX_FIX)


async def _probe(section: terminal.Section) -> Enforcement:
    supervisor = ProcessSupervisor()
    try:
        return await enforcement(supervisor, section.sandbox_level)
    finally:
        await supervisor.close()


CHECK = Check(title="Commands", run=run)
