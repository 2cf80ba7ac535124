"""Whether this Python and platform are supported."""

import platform
import sys
from collections.abc import Iterable

from hermes import __version__
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, warning


def run(_: Cli) -> Iterable[Finding]:
    yield ok(f"hermes {__version__} on Python {platform.python_version()} ({sys.executable})")
    if sys.platform not in ("linux", "darwin"):
        yield warning(f"on {platform.system()} the terminal tool does not work; chat, files and sessions do")


CHECK = Check(title="Python", run=run)
