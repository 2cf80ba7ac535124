"""Make text of a page: the article of an HTML page as Markdown, the words of a PDF, JSON and plain text as they are."""

import codecs
import io
import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from hermes.errors import MissingPart, ToolError
from hermes.tools.web.fetch_page import WebPage

MAX_HTML_CHARS = 5_000_000
MAX_ARTICLE_CHARS = 1_000_000  # finding the article takes quadratic time; beyond this every word of the page is taken
MAX_PDF_PAGES = 500
_INSTALL = "install it with: pip install 'hermes-runtime[web]'"
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_EMBEDDED = re.compile(
    r"!\[[^\]\n]{0,500}\]\(\s*data:[^)\s]*\s*\)|\bdata:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]{40,}"
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,1000}?)</title", re.IGNORECASE | re.DOTALL)
# Encodings that are programs rather than character sets: a page may not choose one of these.
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "undefined"})
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says."""

    title: str
    content: str


def read_page(page: WebPage) -> PageText:
    """The page's text; blocking. `ToolError` when it has none, `MissingPart` when its format needs a package."""
    kind = page.content_type
    if page.body.startswith(b"%PDF-") or kind == "application/pdf":
        return _pdf(page)
    if kind in _HTML or (kind in ("", "application/octet-stream", "text/plain") and _looks_like_html(page.body)):
        return _html(decoded(page), page.url)
    if kind == "application/json" or kind.endswith("+json"):
        return PageText(_name(page.url), _json(decoded(page)))
    if kind.startswith("text/") or kind.endswith(("xml", "yaml", "javascript")) or _is_text(page.body):
        return PageText(_name(page.url), _found(decoded(page)))
    raise ToolError(f"it is {kind or 'binary'}, which cannot be read as text")


def decoded(page: WebPage) -> str:
    """The body as text. What the bytes are counts for more than what the page says they are."""
    body = page.body
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    try:
        return body.decode("utf-8")  # text in another encoding is hardly ever valid UTF-8
    except UnicodeDecodeError:
        pass
    inside = _META_CHARSET.search(body[:4096])
    for name in (page.charset, inside[1].decode("ascii") if inside else "", "windows-1252"):
        try:
            known = codecs.lookup(name).name if name else "utf-8"
            if known != "utf-8" and known.replace("_", "-") not in _NO_CHARSETS:
                return body.decode(known)
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return body.decode("utf-8", "replace")


def without_embedded(text: str) -> str:
    """`text` without pictures that are written out in it."""
    return _EMBEDDED.sub("[embedded data removed]", text) if "data:" in text else text


def _html(text: str, url: str) -> PageText:
    if len(text) > MAX_HTML_CHARS:
        raise ToolError(f"its HTML has {len(text)} characters; at most {MAX_HTML_CHARS} are read")
    if not text.strip():
        raise ToolError("the page is empty")
    try:
        import trafilatura  # lxml and 1 s of imports, for those who read pages
    except ImportError:
        from hermes.tools.web.plain_html import plain_text  # for an install without it

        return PageText(_title(text), _found(plain_text(text, url)))
    if len(text) > MAX_ARTICLE_CHARS:
        return PageText(_title(text), _found(trafilatura.html2txt(text)))
    content = trafilatura.extract(
        text, url=url, output_format="markdown", include_links=True, include_tables=True, include_formatting=True
    )
    return PageText(_title(text), _found(content or trafilatura.html2txt(text)))


def _title(text: str) -> str:
    found = _TITLE.search(text[:200_000])
    if not found:
        return ""
    import html  # only for pages without an article

    return " ".join(html.unescape(found[1]).split())


def _pdf(page: WebPage) -> PageText:
    try:
        import pypdf  # for those who read PDFs
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise MissingPart(f"reading PDF needs pypdf; {_INSTALL}") from error
    try:
        reader = pypdf.PdfReader(io.BytesIO(page.body))
        title = str(reader.metadata.title or "") if reader.metadata else ""
        pages = [each.extract_text() for each in reader.pages[:MAX_PDF_PAGES]]
        total = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError, NotImplementedError) as error:
        raise ToolError(f"the PDF cannot be read: {type(error).__name__}: {error}") from error
    text = "\n\n".join(f"[page {number}]\n{words}" for number, words in enumerate(pages, 1) if words.strip())
    if total > MAX_PDF_PAGES:
        text += f"\n\n[{total - MAX_PDF_PAGES} further pages were not read]"
    if not text:
        raise ToolError("the PDF holds no text; its pages are pictures")
    return PageText(title or _name(page.url), text)


def _json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return _found(text)


def _found(text: str) -> str:
    if not text.strip():
        raise ToolError("no text was found on the page")
    return text


def _name(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[2]


def _looks_like_html(body: bytes) -> bool:
    start = body[:2048].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or b"<head" in start


def _is_text(body: bytes) -> bool:
    return b"\0" not in body[:8192] and bool(body)
