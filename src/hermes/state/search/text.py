"""Text as the index sees it: words as they stand, runs of Chinese, Japanese and Korean as overlapping pairs.

The index itself splits at everything that is no letter or digit, folds case and drops accents. Here a run of CJK
characters is written as pairs, each a word of its own: 数据库 becomes 数据 据库 库. The last character stands alone
as well, so that a single character is found as the beginning of some word.
"""

import re
import unicodedata

_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\ud7b0-\ud7fb\uf900-\ufaff\U00020000-\U000323af"
)
CJK_RUN = re.compile(f"[{_CJK}]+")


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
    return CJK_RUN.sub(_spread, text)


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
