"""Tell from what a command said that the sandbox was in its way."""

import re

from msgspec import Struct

_READ_ONLY = (
    re.compile(r"read-only file system[^\n'\"]{0,40}['\"](/[^'\"\n]+)['\"]", re.IGNORECASE),
    re.compile(r"['\"\u2018](/[^'\"\u2019\n]+)['\"\u2019]:? ?[^\n]{0,60}read-only file system", re.IGNORECASE),
    re.compile(r"(?:^|[\s(])(/[^\s:'\"]+): [^\n]{0,60}read-only file system", re.IGNORECASE | re.MULTILINE),
)
_NO_PRIVILEGE = re.compile(r"no new privileges|bwrap: |must be setuid root|Operation not permitted", re.IGNORECASE)
_NO_NETWORK = re.compile(r"Network is unreachable|Could not resolve host|Temporary failure in name resolution")


class Denial(Struct, frozen=True):
    """The sandbox was in the way: of writing at `path`, or of something that only the outside allows."""

    path: str | None
    why: str


def denial_in(output: str, exit_code: int, *, network: bool) -> Denial | None:
    """What the sandbox refused, read from what the command said; None when it was not the sandbox."""
    if exit_code == 0:
        return None
    for pattern in _READ_ONLY:
        found = pattern.search(output)
        if found:
            return Denial(found[1], f"the sandbox keeps {found[1]} read-only")
    if "read-only file system" in output.lower():
        return Denial(None, "the sandbox keeps a folder read-only that the command writes to")
    if not network and _NO_NETWORK.search(output):
        return Denial(None, "the sandbox has no network (terminal.sandbox_network: false)")
    if _NO_PRIVILEGE.search(output):
        return Denial(None, "the command needs a privilege that the sandbox does not give")
    return None
