"""Secrets in files: hidden in what a model is shown, put back in what it writes."""

import re

from hermes.errors import ToolError
from hermes.redact import MARKER, Redactor, UnknownMarker


class Veil:
    """One task's markers. A file that is shown and written back keeps its bytes, and no marker gets into a file."""

    def __init__(self, redactor: Redactor, *, is_on: bool = True) -> None:
        self._redactor = redactor
        self._is_on = is_on

    def hide(self, text: str) -> str:
        """`text` as it may be shown."""
        return self._redactor.redact(text) if self._is_on else text

    def numbered(self, first_line: int, text: str) -> str:
        """The lines of `text` with their numbers, secrets hidden. A secret of several lines takes up their numbers."""
        shown, number = [], first_line
        for line in self.hide(text).split("\n"):
            shown.append(f"{number}|{line}")
            number += 1 + sum(self._original(found).count("\n") for found in MARKER.finditer(line))
        return "\n".join(shown)

    def reveal(self, text: str, current: str | None) -> str:
        """`text` as it is to be written into a file that holds `current`.

        Raises `ToolError` for a marker that stands for nothing known; one that the file itself holds is just text.
        """
        if not self._is_on or not MARKER.search(text):
            return text
        if current is not None:
            # What the file holds is known again, also after a restart; as it is shown, so with plain line ends.
            self._redactor.redact(current.replace("\r\n", "\n"))

        def original(found: re.Match[str]) -> str:
            is_text = current is not None and found.group() in current
            return found.group() if is_text else self._redactor.restore(found.group())

        try:
            return MARKER.sub(original, text)
        except UnknownMarker as error:
            raise ToolError(f"nothing was written: {error}") from error

    def _original(self, found: re.Match[str]) -> str:
        try:
            return self._redactor.restore(found.group())
        except UnknownMarker:
            return found.group()  # the file holds the marker as text
