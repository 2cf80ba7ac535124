"""Where pip took this installation from, and so where it can take more, or a newer one."""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import unquote, urlsplit

import msgspec

from hermes.typed import from_json

PACKAGE = "hermes-runtime"


class _Vcs(msgspec.Struct):
    vcs: str = ""


class _DirectUrl(msgspec.Struct):
    """`direct_url.json`, which pip writes beside a package that did not come from an index."""

    url: str = ""
    vcs_info: _Vcs | None = None


class PackageSource(msgspec.Struct, frozen=True):
    """`place` is what pip is given for it: the name on an index, a folder, a file, an address."""

    place: str

    def requirement(self, extra: str = "") -> str:
        """The requirement, with an extra."""
        inner = f"[{extra}]" if extra else ""
        return f"{PACKAGE}{inner} @ {self.place}" if "://" in self.place else f"{self.place}{inner}"

    def update_command(self) -> str:
        """What to type for the newest one."""
        pip = f"{shlex.quote(sys.executable)} -m pip install --upgrade"
        return f"{pip} {shlex.quote(self.requirement())}"


def package_source() -> PackageSource:
    """As pip has written it down; by name where it has not."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    if not text:
        return PackageSource(PACKAGE)
    try:
        found = from_json(text, _DirectUrl)
    except msgspec.DecodeError:
        return PackageSource(PACKAGE)
    if found.vcs_info is not None:
        return PackageSource(f"{found.vcs_info.vcs}+{found.url}")
    parts = urlsplit(found.url)
    return PackageSource(unquote(parts.path) if parts.scheme == "file" else found.url or PACKAGE)
