"""The table in docs/security.md of what the level *files* does not hold: read, and made anew.

`python -m tests.border.held_table` tries every attack at that level, as root and as an ordinary user, and writes it.
"""

import sys

from tests.border import rooms
from tests.border.attacks import ATTACKS
from tests.border.record import Attack

PAGE = rooms.ROOT / "docs" / "security.md"
BEGIN = "<!-- what the level files does not hold: made by tests/border/held_table.py -->"
END = "<!-- end of what the level files does not hold -->"
_HEAD = "| attack | as root | as an ordinary user |\n|---|---|---|\n"
_YES, _NO = "gets through", "held"


def not_held(*, is_root: bool) -> set[str]:
    """The attacks that the page says get through at *files*, for one of the two."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(BEGIN)[2].partition(END)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {row[0] for row in rows[2:] if row[1 if is_root else 2] == _YES}


def applies(attack: Attack, *, is_root: bool) -> bool:
    """Whether the attack can be tried by that one at all."""
    return attack.as_ == "anybody" or (attack.as_ == "root") is is_root


def table(as_root: set[str], as_ordinary: set[str]) -> str:
    """The rows, in the order of the suite."""
    lines = [
        f"| {attack.id} | {_YES if attack.id in as_root else _NO} | {_YES if attack.id in as_ordinary else _NO} |\n"
        for attack in ATTACKS
        if attack.id in as_root | as_ordinary
    ]
    return f"{BEGIN}\n{_HEAD}{''.join(lines)}{END}"


def got_through(*, is_root: bool) -> set[str]:
    """Try every attack that the border itself has to hold, at *files*."""
    names = [each.id for each in ATTACKS if each.held_by == "border" and applies(each, is_root=is_root)]
    return {verdict.name for verdict in rooms.attack(names, level="files", is_root=is_root) if verdict.breaches}


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    if not found:
        sys.exit(f"{PAGE.name} has no place for the table: {BEGIN}")
    made = table(got_through(is_root=True), got_through(is_root=False))
    PAGE.write_text(f"{before}{made}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
