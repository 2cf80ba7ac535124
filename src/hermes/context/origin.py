"""Where words come from: what an agent wants to keep may be the person's, its own, or come from outside.

Whatever lasts beyond a session (memory, skills, scheduled jobs, settings) asks here first. Words that came in from
outside, and that the person did not write, wait for a yes. The comparison is by runs of words: case, punctuation,
accents, invisible characters and line breaks do not count, and an address counts by itself, since a sentence around it
is easily turned. It is a rule about where words come from, not about what they say, so a friendly tone does not help.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from msgspec import Struct

MIN_RUN = 3  # words in a row that are no accident
LONG_RUN = 6  # words in a row that are a quotation, however much stands around them
SHARE = 0.4  # of the words of a text that a source has to hold for the text to be taken from it
_COMMON = frozenset(
    re.findall(
        r"\S+",
        "a an and are as at be but by can do for from has have he her his i if in into is it its not of on or s she so "
        "that the then there they this to use user uses was we were what when which will with you your",
    )
)
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("([\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff])")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'`)\]]+|[\w.+-]+@[\w-]+\.[\w.-]+|\b(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s<>\"'`)\]]*)?",
    re.IGNORECASE,
)
_FILE_ENDS = re.compile(
    r"(?:py|js|ts|md|txt|toml|json|yaml|yml|cfg|ini|sh|rs|go|java|kt|c|h|cpp|rb|lock|log|html|css|sql)\Z", re.IGNORECASE
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class ForeignText(Struct, frozen=True):
    """Text that came in from outside, and where from, in a few words for a person."""

    source: str
    text: str


class Origin(Struct, frozen=True):
    """Why words are taken for somebody else's."""

    source: str
    words: str  # the longest run that is the source's


class OutsideWords:
    """What came in from outside in one session; texts are folded once, however often they are asked about."""

    def __init__(self) -> None:
        self._folded: dict[ForeignText, str] = {}

    def origin(self, text: str, outside: Iterable[ForeignText], own: Iterable[str]) -> Origin | None:
        """The source that `text` was taken from; None when its words are the person's or nobody's in particular.

        `own` is what the person wrote, and what was kept before with their knowledge.
        """
        words = folded_words(text)
        if not words:
            return None
        ours = [f" {' '.join(folded_words(each))} " for each in own]
        excused = _covered(words, ours, 2)
        addresses = _addresses(text) - {one for each in ours for one in _addresses_in_folded(each, text)}
        best: tuple[float, Origin] | None = None
        for foreign in outside:
            found = self._judge(words, excused, addresses, foreign)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
        return best[1] if best else None

    def _judge(
        self, words: Sequence[str], excused: Sequence[bool], addresses: set[str], foreign: ForeignText
    ) -> tuple[float, Origin] | None:
        folded = self._folded.get(foreign)
        if folded is None:
            folded = self._folded[foreign] = f" {' '.join(folded_words(foreign.text))} "
        run = min(MIN_RUN, len(words))
        taken = [hit and not mine for hit, mine in zip(_covered(words, [folded], run), excused, strict=True)]
        longest = _longest(words, taken)
        meant = [word not in _COMMON for word in words]
        telling = sum(meant) or len(words)
        share = sum(hit and (tells or not any(meant)) for hit, tells in zip(taken, meant, strict=True)) / telling
        is_address = any(f" {' '.join(folded_words(address))} " in folded for address in addresses)
        if share >= SHARE or len(longest) >= LONG_RUN or is_address:
            return max(share, float(is_address)), Origin(
                foreign.source, " ".join(longest) or min(addresses, default="")
            )
        return None


def folded_words(text: str) -> list[str]:
    """The words of a text in one spelling; each Chinese, Japanese or Korean character is one."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKD", text)).casefold()
    bare = "".join(char for char in plain if not unicodedata.combining(char)) if not plain.isascii() else plain
    return _WORD.findall(_CJK.sub(r" \1 ", bare))


def _covered(words: Sequence[str], texts: Sequence[str], run: int) -> list[bool]:
    """Which words stand in a run of at least so many that one of the texts has, too."""
    hit = [False] * len(words)
    for start in range(len(words) - run + 1):
        if all(hit[start : start + run]):
            continue
        piece = f" {' '.join(words[start : start + run])} "
        if any(piece in text for text in texts):
            hit[start : start + run] = [True] * run
    return hit


def _longest(words: Sequence[str], taken: Sequence[bool]) -> list[str]:
    best: list[str] = []
    current: list[str] = []
    for word, hit in zip(words, taken, strict=True):
        current = [*current, word] if hit else []
        if len(current) > len(best):
            best = current
    return best


def _addresses(text: str) -> set[str]:
    """Addresses that somebody could be sent to; names of files look like them, and are none."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", text))
    found = {match.group().rstrip(".,;:!?") for match in _ADDRESS.finditer(plain)}
    return {one for one in found if "/" in one or "@" in one or not _FILE_ENDS.match(one.rpartition(".")[2])}


def _addresses_in_folded(folded: str, text: str) -> set[str]:
    return {one for one in _addresses(text) if f" {' '.join(folded_words(one))} " in folded}
