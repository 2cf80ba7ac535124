"""A call shown whole above the input line: its arguments, all of its output, its diff; keys move in it."""

from collections.abc import Sequence

import msgspec

from hermes.surfaces.cli.interactive.markup import clean, folded
from hermes.surfaces.cli.interactive.view import ShownCall

HOW = "Ctrl-O folds · PgUp, PgDn move · Alt-Left, Alt-Right: other calls"


class UnfoldedCall:
    """One of `calls`, at first the last one, from its beginning."""

    def __init__(self, calls: Sequence[ShownCall]) -> None:
        self._calls = calls
        self._place = len(calls) - 1
        self._top = 0
        self._page = 10

    def other(self, step: int) -> None:
        """Show the call before or after."""
        self._place = max(0, min(len(self._calls) - 1, self._place + step))
        self._top = 0

    def scroll(self, pages: int) -> None:
        self._top = max(0, self._top + pages * self._page)

    def rows(self, width: int, height: int) -> list[tuple[str, str]]:
        """(style, row), at most `height` of them."""
        call = self._calls[self._place]
        body = [(style, row) for style, line in _lines(call) for row in folded(line, max(8, width))]
        self._page = max(1, height - 2)
        self._top = min(self._top, max(0, len(body) - self._page))
        shown = body[self._top : self._top + self._page]
        where = (
            f"{self._place + 1} of {len(self._calls)}, lines {self._top + 1} to {self._top + len(shown)} of {len(body)}"
        )
        return [("bold", _cut(call.head, width)), *shown, ("class:status", _cut(f"{where} · {HOW}", width))]


def _lines(call: ShownCall) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, value in call.args.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        first, *more = clean(text).split("\n")
        lines += [("class:thought", f"{name}: {first}"), *(("class:thought", f"  {line}") for line in more)]
    if call.diff:
        colours = {"+": "class:added", "-": "class:gone"}
        return lines + [(colours.get(line[:1], ""), line) for line in clean(call.diff).splitlines()]
    return lines + [("", line) for line in clean(call.output).splitlines()]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(1, width - 1)]}…"
