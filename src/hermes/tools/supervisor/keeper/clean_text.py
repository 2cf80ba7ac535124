"""What a child prints, without the secrets in it: hidden before it is stored, wherever a read cut it."""

import codecs
from collections.abc import Iterable

from hermes.redact import Redactor, StreamedText


class CleanText:
    """Takes what was printed as it comes, gives back what may be stored; what may be half a secret waits."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._text = StreamedText(Redactor(secrets))
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    @property
    def is_waiting(self) -> bool:
        return self._text.is_waiting

    def add(self, data: bytes) -> bytes:
        """What may be stored now that `data` was printed."""
        return _encoded(self._text.add(self._decoder.decode(data)))

    def quiet(self) -> bytes:
        """The unfinished word, too: nothing more came, so it is a prompt."""
        return _encoded(self._text.pause())

    def rest(self) -> bytes:
        """All that waits: nothing follows."""
        return _encoded(self._text.add(self._decoder.decode(b"", final=True)) + self._text.rest())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
