"""The words of an HTML page as Markdown, with nothing but the standard library: for an install without `[web]`.

It knows the page's own marks (headings, lists, links, tables) and takes what is in `<main>` or `<article>` where there
is one. `html.parser` is not used: it takes quadratic time on hostile pages, and nothing stops the thread this runs in.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

_LONGEST_TAG = 20_000
_MOST_QUOTES = 20  # of which a `>` may be in one, before a tag is taken to end at the first
_ENOUGH_CHARS = 200  # in <main> or <article>; with less, that is not where the page's words are
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_HIDDEN = re.compile(r"""\shidden(?=[\s=/>]|$)|\saria-hidden\s*=\s*["']?true|display\s*:\s*none""", re.IGNORECASE)
_BLANK = re.compile(r"\s+")

_UNREAD = frozenset({"script", "style", "textarea", "title"})  # their content has no tags
_SILENT = frozenset(
    {"head", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "video", "audio", "select", "button"}
)
_AROUND = frozenset({"nav", "header", "footer", "aside", "form", "dialog", "menu"})
_MIDDLE = frozenset({"main", "article"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset({"p", "div", "section", "ul", "ol", "dl", "table", "figure", "address", "body", *_AROUND, *_MIDDLE})
_LINES = frozenset({"li", "tr", "dt", "dd", "br", "hr", "option", "figcaption", "caption"})
# They may stay open, so what they hide has no sure end.
_CLOSED_BY_OTHERS = frozenset(
    {"p", "li", "td", "th", "tr", "dt", "dd", "br", "hr", "img", "input", "meta", "link", "html", "body"}
)


class _Piece(NamedTuple):
    """A run of text, or a tag: its name, whether it ends an element, and what stands in it."""

    text: str
    tag: str = ""
    is_end: bool = False


def plain_text(page: str, url: str) -> str:
    """What a page says, as Markdown; empty when it says nothing."""
    inside = _written(page, url, within=_MIDDLE, without=_SILENT | _AROUND)
    if len(inside) >= _ENOUGH_CHARS:
        return inside
    return _written(page, url, without=_SILENT | _AROUND) or _written(page, url, without=_SILENT)


def _pieces(page: str) -> Iterator[_Piece]:
    """Text and tags in order, in linear time: whatever is not closed reaches to the end."""
    lower = page.lower()
    if len(lower) != len(page):  # a few letters change their length, and places must agree
        lower = page
    last = page.rfind(">")
    text_from = at = 0
    while (start := page.find("<", at)) >= 0:
        if page.startswith(("<!", "<?"), start):
            yield from _text(page[text_from:start])
            mark = "-->" if page.startswith("<!--", start) else ">"
            end = page.find(mark, start + 2)
            if end < 0:
                return
            text_from = at = end + len(mark)
            continue
        if start > last:
            break
        found = _TAG.match(page, start)
        end = _end_of_tag(page, start) if found else -1
        if found is None or end < 0:
            at = start + 1  # a bare sign, which is text
            continue
        yield from _text(page[text_from:start])
        name, is_end = found[2].lower(), bool(found[1])
        yield _Piece(page[found.end() : end], name, is_end)
        text_from = at = end + 1
        if name in _UNREAD and not is_end:
            text_from = at = lower.find(f"</{name}", at)
            if at < 0:
                return
    yield from _text(page[text_from:])


def _text(words: str) -> tuple[_Piece, ...]:
    return (_Piece(words),) if words else ()


def _end_of_tag(page: str, start: int) -> int:
    """Where a tag's `>` is, not counting those in quotes; -1 when it has none."""
    first = end = page.find(">", start, start + _LONGEST_TAG)
    for _ in range(_MOST_QUOTES):
        if end < 0:
            break
        inside = page[start:end]
        if inside.count('"') % 2 == 0 or inside.count("=") == 0:
            return end
        end = page.find(">", end + 1, start + _LONGEST_TAG)
    return first


def _written(page: str, url: str, *, without: frozenset[str], within: frozenset[str] = frozenset()) -> str:
    """The page as Markdown: the pieces in an element of `within`, if any is given, and in none of `without`."""
    writer = _Writer(url)
    depth_within, silent, depth_silent = 0, "", 0
    for piece in _pieces(page):
        tag = piece.tag
        if silent:  # only the end of that element counts; one of the same name may be in it
            if tag == silent:
                depth_silent += -1 if piece.is_end else 1
                silent = silent if depth_silent else ""
            continue
        if tag in within:
            depth_within = max(0, depth_within + (-1 if piece.is_end else 1))
        if tag and not piece.is_end and (tag in without or _is_hidden(piece)) and not piece.text.endswith("/"):
            silent, depth_silent = tag, 1
        elif not tag:
            if depth_within or not within:
                writer.text(piece.text)
        elif depth_within or not within or tag in within:
            writer.tag(piece)
    return writer.finish()


def _is_hidden(piece: _Piece) -> bool:
    return bool(piece.text) and piece.tag not in _CLOSED_BY_OTHERS and bool(_HIDDEN.search(piece.text))


class _Writer:
    """Collects the words of a line until something ends it, and puts before it what it is."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._out: list[str] = []
        self._line: list[str] = []
        self._has_words = False  # in the line
        self._mark = ""  # of the line that begins: a heading, a bullet
        self._lists: list[int | None] = []  # the last number of each list around; None for bullets
        self._quotes = 0
        self._is_pre = False
        self._link: tuple[int, str] | None = None  # where in the line it begins, and where it leads

    def text(self, raw: str) -> None:
        words = html.unescape(raw)
        self._has_words |= not words.isspace()
        self._line.append(words if self._is_pre else _BLANK.sub(" ", words))

    def tag(self, piece: _Piece) -> None:
        name, is_end = piece.tag, piece.is_end
        if name == "a":
            self._end_link()
            if not is_end and (found := _HREF.search(piece.text)):
                self._link = (len(self._line), html.unescape("".join(found.groups(""))).strip())
        elif name == "pre":
            self._end_line(blank=not is_end)
            self._out.append("```\n")
            self._is_pre = not is_end
        elif name in ("code", "kbd", "samp"):
            self._line += [] if self._is_pre else ["`"]
        elif name in ("td", "th") and not is_end:
            self._line += [" | "] if self._has_words else []
        elif name in ("ul", "ol", "blockquote") or name in _HEADINGS or name in _BLOCKS or name in _LINES:
            self._end_line(blank=name not in _LINES and not (self._lists and name in ("ul", "ol")))
            self._begin(name, is_end=is_end)

    def finish(self) -> str:
        self._end_line(blank=False)
        return re.sub(r"\n{3,}", "\n\n", "".join(self._out)).strip()

    def _begin(self, name: str, *, is_end: bool) -> None:
        if name == "blockquote":
            self._quotes = max(0, self._quotes + (-1 if is_end else 1))
        elif name in ("ul", "ol"):
            if not is_end:
                self._lists.append(0 if name == "ol" else None)
            elif self._lists:
                self._lists.pop()
        elif is_end:
            return
        elif name in _HEADINGS:
            self._mark = f"{_HEADINGS[name]} "
        elif name == "hr":
            self._out.append("---\n")
        elif name == "li":
            self._mark = self._bullet()

    def _bullet(self) -> str:
        indent = "  " * min(len(self._lists) - 1, 8)
        if not self._lists or self._lists[-1] is None:
            return f"{indent}- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1]}. "

    def _end_link(self) -> None:
        if self._link is None:
            return
        (at, where), self._link = self._link, None
        words = "".join(self._line[at:]).strip()
        target = _absolute(self._url, where)
        if words and target:
            gap = " " if self._line[at].startswith(" ") else ""
            self._line[at:] = [f"{gap}[{words}]({target})"]

    def _end_line(self, *, blank: bool) -> None:
        self._end_link()
        whole = "".join(self._line)
        line = whole.strip("\n") if self._is_pre else _BLANK.sub(" ", whole).strip()
        self._line.clear()
        self._has_words = False
        quote = "> " * min(self._quotes, 8)
        if line:
            self._out.append(f"{quote}{self._mark}{line}\n")
            self._mark = ""
        if blank and self._out and self._out[-1] != "\n":
            self._out.append("\n")


def _absolute(url: str, where: str) -> str:
    try:
        found = urljoin(url, where)
    except ValueError:
        return ""
    return found if found.startswith(("http://", "https://")) and not where.startswith("#") else ""
