"""Cut streamed Markdown into blocks that can be shown for good, at a cost that does not grow with the answer."""

import re
from collections.abc import Iterator

from msgspec import Struct

CODE_LINES = 30  # a longer code block is shown piece by piece
TAIL_CHARS = 2_000
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")


class Prose(Struct, frozen=True):
    """Markdown that stands by itself: paragraphs, a list, a table."""

    text: str


class Code(Struct, frozen=True):
    """Lines of a fenced block, or some of them."""

    text: str
    language: str


Block = Prose | Code


class Blocks:
    """Feed it text as it comes; it gives back what is complete, and knows what is not yet."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial: list[str] = []
        self._fence = ""
        self._language = ""

    def feed(self, text: str) -> Iterator[Block]:
        """The blocks that `text` completes."""
        *whole, rest = text.split("\n")
        for line in whole:
            self._partial.append(line)
            yield from self._line("".join(self._partial))
            self._partial = []
        if rest:
            self._partial.append(rest)

    def finish(self) -> Iterator[Block]:
        """What is left at the end of the text."""
        if self._partial:
            yield from self._line("".join(self._partial))
            self._partial = []
        yield from self._close()
        self._fence = ""

    def tail(self, lines: int) -> list[str]:
        """The last lines that are not shown for good yet."""
        partial = "".join(self._partial)
        return [*self._lines, partial[-TAIL_CHARS:]][-lines:] if partial else self._lines[-lines:]

    def _line(self, line: str) -> Iterator[Block]:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence.group(1).startswith(self._fence) and not fence.group(2):
                yield from self._close()
                self._fence = ""
                return
            self._lines.append(line)
            if len(self._lines) >= CODE_LINES:
                yield from self._close()
            return
        if fence:
            yield from self._close()
            self._fence, self._language = fence.group(1), fence.group(2)
            return
        if line.strip():
            self._lines.append(line)
        else:
            yield from self._close()

    def _close(self) -> Iterator[Block]:
        text, self._lines = "\n".join(self._lines), []
        if self._fence:
            if text:
                yield Code(text, self._language)
        elif text.strip():
            yield Prose(text)
