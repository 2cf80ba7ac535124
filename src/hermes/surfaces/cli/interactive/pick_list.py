"""A list to choose from above the input line: what is typed filters it, arrows move, Enter takes one."""

from collections.abc import Sequence

from hermes.surfaces.cli.output import cut


class PickList:
    """Entries of a label and the command that it stands for."""

    def __init__(self, title: str, entries: Sequence[tuple[str, str]]) -> None:
        self.title = title
        self._all = list(entries)
        self._marked = 0
        self.typed = ""

    @property
    def shown(self) -> list[tuple[str, str]]:
        words = self.typed.lower().split()
        return [one for one in self._all if all(word in one[0].lower() for word in words)]

    def move(self, step: int) -> None:
        self._marked = max(0, min(len(self.shown) - 1, self._marked + step))

    @property
    def chosen(self) -> str | None:
        """The command of the marked entry; None when nothing matches."""
        shown = self.shown
        return shown[min(self._marked, len(shown) - 1)][1] if shown else None

    def rows(self, width: int, height: int) -> list[tuple[str, str]]:
        """(style, row), the marked one among them."""
        shown = self.shown
        marked = min(self._marked, max(0, len(shown) - 1))
        room = max(1, height - 2)
        first = max(0, min(marked - room // 2, len(shown) - room))
        rows = [
            ("class:chosen" if place == marked else "", cut(f"{'>' if place == marked else ' '} {label}", width))
            for place, (label, _) in enumerate(shown[first : first + room], first)
        ]
        how = f"{len(shown)} of {len(self._all)} · type to filter, Enter takes one, Esc leaves"
        return [
            ("bold", cut(self.title, width)),
            *(rows or [("", "  nothing matches")]),
            ("class:status", cut(how, width)),
        ]
