"""Whether the programs that tools use are there."""

import shutil
from collections.abc import Iterable

from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, problem, warning


def run(cli: Cli) -> Iterable[Finding]:
    path = cli.environ.get("PATH")
    bash = shutil.which("bash", path=path)
    yield ok(f"bash: {bash}") if bash else problem("bash is missing; the terminal tool needs it", "install bash")
    git = shutil.which("git", path=path)
    yield ok(f"git: {git}") if git else warning("git is missing; worktrees and checkpoints need it", "install git")


CHECK = Check(title="Programs", run=run)
