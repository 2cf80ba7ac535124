"""What a background child prints, without the secrets in it: hidden before it is stored, wherever a read cut it."""

import re

from hermes.redact import Redactor

_LONGEST_LINE = 64 * 1024
_LONGEST_KEY = 16 * 1024
# The beginning of a value that tells by its shape what it is (`sk-…`, `ghp_…`), at the end of what was printed so far.
_OPEN_VALUE = re.compile(r"(?<!\w)(?:[A-Za-z]{2,11}[-_.]|AKIA|ASIA|AIza|eyJ)[\w.-]{0,500}\Z")
_LONGEST_VALUE = 600
_OPEN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----(?!.*-----END )", re.DOTALL)


class CleanText:
    """Takes what was printed as it comes, gives back what may be stored; the last, unfinished line waits."""

    def __init__(self, secrets: list[str]) -> None:
        self._redactor = Redactor(secrets)
        self._waiting = b""

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, data: bytes) -> bytes:
        """`data` up to its last whole line, after what waited before it."""
        self._waiting += data
        return self._give(is_quiet=False)

    def quiet(self) -> bytes:
        """The unfinished line, too: nothing more came, so it is a prompt. A secret that may have begun still waits."""
        return self._give(is_quiet=True)

    def rest(self) -> bytes:
        """All that waits: nothing follows."""
        given, self._waiting = self._redactor.redact_bytes(self._waiting), b""
        return given

    def _give(self, *, is_quiet: bool) -> bytes:
        text = self._waiting.decode("utf-8", "surrogateescape")
        cut = self._cut(text, is_whole=not is_quiet and len(text) <= _LONGEST_LINE)
        self._waiting = text[cut:].encode("utf-8", "surrogateescape")
        return self._redactor.redact_bytes(text[:cut].encode("utf-8", "surrogateescape"))

    def _cut(self, text: str, *, is_whole: bool) -> int:
        """How much of `text` can be judged: no secret begins in it and ends behind it."""
        cut = max(text.rfind("\n"), text.rfind("\r")) + 1 if is_whole else len(text)
        if not is_whole and (value := _OPEN_VALUE.search(text)):
            cut = value.start()
        if (key := _OPEN_KEY.search(text, max(0, cut - _LONGEST_KEY), cut)) is not None:
            cut = key.start()
        begun = self._redactor.open_from(text[:cut])
        if begun < cut:
            # Not within a value that tells by its shape what it is.
            word = begun - len(text[max(0, begun - _LONGEST_VALUE) : begun].rpartition(" ")[2])
            if self._redactor.holds_secret(text[word:cut]):
                begun = word
        return begun
