"""Long pasted text stands in the input line as `[pasted N lines]`, and is itself again when it is sent."""

import re

FROM_LINES = 6
FROM_CHARS = 1_000
_MARK = re.compile(r"\[pasted \d+ lines(?: #\d+)?\]")


class Pastes:
    """What the marks in the input line stand for."""

    def __init__(self) -> None:
        self._by_mark: dict[str, str] = {}

    def shortened(self, text: str) -> str:
        """`text`, or the mark that stands for it when it is long."""
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = plain.count("\n") + 1
        if lines < FROM_LINES and len(plain) < FROM_CHARS:
            return plain
        mark = f"[pasted {lines} lines]"
        number = 2
        while self._by_mark.get(mark, plain) != plain:
            mark = f"[pasted {lines} lines #{number}]"
            number += 1
        self._by_mark[mark] = plain
        return mark

    def expanded(self, text: str) -> str:
        """`text` with every mark replaced by what it stands for; a mark that somebody typed stays."""
        return _MARK.sub(lambda found: self._by_mark.get(found.group(), found.group()), text)
