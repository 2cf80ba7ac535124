"""Whether this Python, this platform and the installed packages are right."""

import platform
import re
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

from hermes import __version__
from hermes.host.doctor import Check, Finding, absent, ok, problem, warning
from hermes.host.installation import Installation

DISTRIBUTION = "hermes-runtime"
LEAST = (3, 11)
OPTIONAL = {"web pages and PDFs": ("web", ("trafilatura", "pypdf")), "a model in the box": ("local", ("xllamacpp",))}
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def run(_: Installation) -> Iterable[Finding]:
    yield ok(f"hermes {__version__} on Python {platform.python_version()} ({sys.executable})")
    if sys.version_info < LEAST:
        yield problem("Python 3.11 or newer is needed", "install Python 3.11")
    if sys.platform not in ("linux", "darwin"):
        yield warning(f"on {platform.system()} the terminal tool does not work; chat, files and sessions do")
    missing = _missing()
    if missing:
        yield problem(f"packages are missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    for what, (extra, modules) in OPTIONAL.items():
        lacks = [name for name in modules if find_spec(name) is None]
        if lacks:
            yield absent(f"{what}: not installed (extra {extra!r}, needs {', '.join(lacks)})")
        else:
            yield ok(f"{what}: installed")


def _missing() -> list[str]:
    """Packages the installed distribution asks for that are not there; none when this runs from a checkout."""
    try:
        wanted = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []
    names = [found[0] for each in wanted if "extra ==" not in each and (found := _NAME.match(each))]
    return [name for name in names if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


CHECK = Check(title="Python", run=run)
