"""A confinement as Landlock grants. Landlock knows grants alone, so what is hidden is what is left out of them."""

import os
import posixpath
from collections.abc import Iterator

from hermes.confinement.policy import Confinement, is_below, outermost

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
_MOST_ENTRIES = 20_000  # of the folders around hidden ones


def grants(confined: Confinement) -> list[tuple[str, str]]:
    """(path, right) for every folder and file that programs may use; it looks at the file system, so do it once.

    Names are not hidden, contents are: a grant covers all below it, so the right to list cannot leave a folder out.
    """
    found = [("/", "list"), *((f"/dev/{name}", "device") for name in DEVICES)]
    hidden = [rule.path for rule in confined.rules if not confined.may_see(rule.path) and os.path.lexists(rule.path)]
    found += [(path, "read") for path in _readable("/", outermost(hidden), [_MOST_ENTRIES])]
    for rule in confined.rules:
        if rule.access == "write" and rule.path != "/" and confined.may_write(rule.path):
            found.append((rule.path, "write"))
        elif rule.access == "read" and confined.may_see(rule.path):
            found.append((rule.path, "read"))
    if confined.may_write("/"):
        found += [(path, "write") for path in _readable("/", outermost(hidden), [_MOST_ENTRIES]) if _is_open(path)]
    return found


def _is_open(path: str) -> bool:
    return not any(is_below(path, each) for each in ("/dev", "/proc", "/sys"))


def _readable(folder: str, hidden: list[str], left: list[int]) -> Iterator[str]:
    """`folder`, or as much of it as lies beside what is hidden."""
    inner = [path for path in hidden if is_below(path, folder)]
    if folder in inner:
        return
    if not inner:
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return
    for name in names:
        left[0] -= 1
        if left[0] < 0:
            return
        yield from _readable(posixpath.join(folder, name), inner, left)
