"""Whether skills can be read, and whether hooks may run."""

from collections.abc import Iterable
from pathlib import Path

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.extensions.shell_hooks import configured, not_accepted
from hermes.extensions.skills import Skills, read
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    files = Skills(settings).files()
    broken = [text for file in files.values() if (text := _trouble(file))]
    yield ok(f"{len(files) - len(broken)} skills")
    for text in broken:
        yield warning(text)
    try:
        hooks, idle = configured(settings), not_accepted(settings)
    except UserError as error:
        yield problem(str(error), "hermes config edit")
        return
    if hooks:
        yield ok(f"{len(hooks) - len(idle)} of {len(hooks)} hooks may run")
    for one in idle:
        yield warning(f"the hook {one.hook.command!r} ({one.event}) does not run: nobody has allowed it", "hermes")


def _trouble(file: Path) -> str:
    """What is wrong with a skill; empty when nothing is."""
    try:
        read(file)
    except UserError as error:
        return str(error)
    return ""


CHECK = Check(title="Skills and hooks", run=run)
