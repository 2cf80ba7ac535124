"""A unified diff as people read one: line numbers, colours for what changed, everything else dim."""

import re
from collections.abc import Callable, Iterator

from hermes.surfaces.cli.output import cut

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
Paint = Callable[..., str]


def diff_rows(lines: list[str], width: int, paint: Paint) -> Iterator[str]:
    """Each line with its number in the new text, or in the old one where it is gone."""
    old = new = 0
    inside = False
    for line in lines:
        if found := _HUNK.match(line):
            old, new, inside = int(found[1]), int(found[2]), True
            yield paint(cut(line, width), "dim")
        elif not inside or (line.startswith(("--- ", "+++ ")) and old == new == 0):
            yield paint(cut(line, width), "dim")
        elif line.startswith("-"):
            yield paint(cut(f"{old:>5} {line}", width), "red")
            old += 1
        elif line.startswith("+"):
            yield paint(cut(f"{new:>5} {line}", width), "green")
            new += 1
        elif line.startswith(("diff ", "… ", "\\")):
            inside = not line.startswith("diff ")
            yield paint(cut(line, width), "dim")
        else:
            yield paint(cut(f"{new:>5} {line}", width), "dim")
            old, new = old + 1, new + 1


def created_in(diff: str) -> set[str]:
    """The files that a diff makes."""
    return set(re.findall(r"^--- /dev/null\n\+\+\+ b/(.+)$", diff, re.MULTILINE))
