"""Secrets in files: hidden in what a model is shown, put back in what it writes."""

import re
from typing import NamedTuple

from hermes.errors import ToolError
from hermes.redact import MARKER, Redactor, UnknownMarker

# A private key whose end is missing, so that its beginning alone tells; only lines of base64 belong to it.
_UNENDED_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----\r?\n((?:[A-Za-z0-9+/=]{16,}\r?(?:\n|\Z))++)(?!-----END)"
)


class Numbered(NamedTuple):
    """Lines as they are shown, and a word on those that are not."""

    content: str
    note: str


class Veil:
    """One task's markers. A file that is shown and written back keeps its bytes, and no marker gets into a file."""

    def __init__(self, redactor: Redactor, *, is_on: bool = True) -> None:
        self._redactor = redactor
        self._is_on = is_on

    def hide(self, text: str) -> str:
        """`text` as it may be shown."""
        if not self._is_on:
            return text
        for unended in _UNENDED_KEY.finditer(text) if "PRIVATE KEY-----" in text else ():
            self._redactor.register(unended[1])
        return self._redactor.redact(text)

    def numbered(self, first_line: int, text: str, wanted: range) -> Numbered:
        """The `wanted` lines of `text`, whose first is `first_line`, with their numbers and secrets hidden.

        A secret of several lines takes up their numbers and stands where it begins; a page that begins inside one
        starts behind it.
        """
        shown, number, note = [], first_line, ""
        for line in self.hide(text).split("\n"):
            following = number + 1 + sum(self._original(found).count("\n") for found in MARKER.finditer(line))
            if number in wanted:
                shown.append(f"{number}|{line}")
            elif number < wanted.start < following:
                last = min(following, wanted.stop) - 1
                note = f"lines {wanted.start}-{last} belong to the secret that is shown at line {number}"
            number = following
        return Numbered("\n".join(shown), note)

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
