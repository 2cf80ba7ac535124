"""Whether commands can be run where the settings say, and whether they are sandboxed there."""

import shutil
from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections import terminal
from hermes.host.doctor import Check, Finding, absent, ok, problem, settled, warning
from hermes.host.installation import Installation
from hermes.programs import split_path
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.sandbox import SandboxProbe, probed
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
    found = settled(_probe)
    if found.works:
        return ok("commands are sandboxed with bubblewrap")
    lack = problem if section.sandbox == "on" else warning
    return lack(f"commands are not sandboxed: {found.why}", SANDBOX_FIX)


async def _probe() -> SandboxProbe:
    supervisor = ProcessSupervisor()
    try:
        return await probed(supervisor, DaemonPool(1).run)
    finally:
        await supervisor.close()


CHECK = Check(title="Commands", run=run)
