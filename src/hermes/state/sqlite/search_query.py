"""What a person types as the index's own query language: words, "phrases", prefix*, AND, OR, NOT.

The index splits at everything that is no letter or digit, folds case and drops accents. A run of Chinese, Japanese or
Korean characters is written as overlapping pairs, each a word of its own: 数据库 becomes 数据 据库 库. The last
character stands alone as well, so that a single character is found as the beginning of some word.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.state.queries import SearchFilter

_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\ud7b0-\ud7fb\uf900-\ufaff\U00020000-\U000323af"
)


@cache
def cjk_run() -> re.Pattern[str]:
    """Finds characters that stand together without spaces. Compiled by who searches: it takes milliseconds."""
    return re.compile(f"[{_CJK}]+")


def normal(text: str) -> str:
    """One spelling for full-width, half-width and composed forms; surrogates and NULs become spaces."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    folded = unicodedata.normalize("NFKC", text)
    return re.sub("[\0\ud800-\udfff]", " ", folded)


def index_text(text: str) -> str:
    """`text` in the form that goes into the index."""
    text = normal(text)
    if text.isascii():
        return text
    return cjk_run().sub(_spread, text)


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a run; a run of one character is that character."""
    if len(run) == 1:
        return [run]
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _spread(match: re.Match[str]) -> str:
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return f" {' '.join(pairs(run))} {run[-1]} "


_TOKEN = re.compile(r'"([^"]*)"?(\*?)|(\S+)')
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_NOISE = re.compile(r"[+{}()\"^:]")
_WORD = re.compile(r"[^\W_]+")


ROLE_LETTERS = {"user": "u", "assistant": "a", "tool": "t", "system": "s"}


@dataclass(frozen=True, slots=True)
class Word:
    """A plain word of a query, for counting and marking it in text."""

    text: str
    prefix: bool


@dataclass(frozen=True, slots=True)
class Query:
    """Alternatives joined by OR, each in the index's language, and the words that make a text better or worse."""

    branches: tuple[str, ...]
    words: tuple[Word, ...]

    @property
    def match(self) -> str:
        return " OR ".join(self.branches)


def parse(text: str) -> Query | None:
    """The query, or None when nothing is left to look for. Rubbish is dropped, never an error."""
    branches: list[list[str]] = []
    words: dict[str, Word] = {}
    pending = "OR"
    for found in _TOKEN.finditer(normal(text)):
        phrase, star, word = found.groups()
        if word in _OPERATORS:
            pending = word  # of "AND NOT" and of "AND OR" the later one counts
            continue
        term = _phrase(phrase, prefix=bool(star)) if word is None else _word(word)
        if term is None:
            continue
        if not branches or pending == "OR":
            branches.append([term])
        else:
            branches[-1] += [pending, term]
        if pending != "NOT" or len(branches[-1]) == 1:
            plain, prefix = (phrase, bool(star)) if word is None else (word, word.endswith("*"))
            words |= {one: Word(one, prefix) for one in _words(plain)}
        pending = "AND"
    if not branches:
        return None
    return Query(tuple(f"({' '.join(terms)})" for terms in branches), tuple(words.values()))


def filtered(match: str, only: "SearchFilter") -> str:
    """The match expression for messages that also pass `only`, as far as the index can tell at no cost.

    Roles alone are no part of it: half of all messages have the commonest one, and to merge their lists takes longer
    than to look at the rows that were found.
    """
    expression = f"{{content}} : ({match})"
    letters = "".join(ROLE_LETTERS.values()) + "o"
    wanted = "".join({ROLE_LETTERS.get(role, "o") for role in only.roles}) or letters
    if only.sources:
        tags = [_quoted(letter + _hex(source)) for letter in wanted for source in only.sources]
        expression = f"({expression}) AND {{tags}} : ({' OR '.join(tags)})"
    if only.not_sources:
        tags = [_quoted(letter + _hex(source)) for letter in letters for source in only.not_sources]
        expression = f"({expression}) NOT {{tags}} : ({' OR '.join(tags)})"
    return expression


def tag_of(role: str, source: str) -> str:
    """The one word that stands for role and source in the column of tags."""
    return ROLE_LETTERS.get(role, "o") + _hex(source)


def _hex(source: str) -> str:
    return source.encode("utf-8", "surrogatepass").hex()


def _word(word: str) -> str | None:
    prefix = word.endswith("*")
    return _phrase(_NOISE.sub(" ", word.replace("*", " ")), prefix=prefix)


def _phrase(text: str, *, prefix: bool) -> str | None:
    text = _NOISE.sub(" ", text)
    if not _WORD.search(text):
        return None
    out: list[str] = []
    end = 0
    for run in cjk_run().finditer(text):
        out.append(text[end : run.start()])
        end = run.end()
        out.extend(pairs(run.group()))
        followed = _WORD.search(text, end) is not None
        if len(run.group()) > 1 and followed:
            out.append(run.group()[-1])  # as the index has it at the end of a run
        if not followed:
            # Nothing says that the run ends here in the text that is looked for: 数 must find 数据.
            prefix = len(run.group()) == 1
    out.append(text[end:])
    return _quoted(" ".join(out)) + (" *" if prefix else "")


def _words(text: str) -> list[str]:
    return _WORD.findall(_NOISE.sub(" ", text))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'
