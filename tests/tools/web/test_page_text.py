"""What is made of a page's bytes, where a server is not needed to see it."""

import pytest

from hermes.errors import ToolError
from hermes.tools.web.fetch_page import WebPage
from hermes.tools.web.page_text import MAX_ARTICLE_CHARS, MAX_HTML_CHARS, read_page, without_embedded


def page(body: bytes, kind: str = "text/html") -> WebPage:
    return WebPage(url="http://x.example/name.ext", content_type=kind, charset="", body=body)


def test_a_very_long_page_gives_all_its_words() -> None:
    one = "<p>hello world number {}</p>\n"
    body = "<html><head><title>Long</title></head><body>" + "".join(one.format(n) for n in range(50_000))
    assert len(body) > MAX_ARTICLE_CHARS
    text = read_page(page(body.encode()))
    assert text.title == "Long"
    assert "number 0" in text.content
    assert "number 49999" in text.content


def test_a_page_beyond_reason_is_refused() -> None:
    with pytest.raises(ToolError, match="at most"):
        read_page(page(b"<html>" + b"x" * MAX_HTML_CHARS))


@pytest.mark.parametrize("tag", ["div", "b", "table><tr><td", "ul><li", "blockquote"])
def test_deep_nesting_ends_in_a_sentence_or_in_text(tag: str) -> None:
    body = b"<html><body>" + f"<{tag}>".encode() * 50_000 + b"hello"
    found = outcome(body)
    assert "hello" in found or found == "no text was found on the page"


def outcome(body: bytes) -> str:
    try:
        return read_page(page(body)).content
    except ToolError as error:
        return str(error)


@pytest.mark.parametrize("body", [b"%PDF-1.4 broken", b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 1 0 R>>endobj"])
def test_a_broken_pdf_is_told(body: bytes) -> None:
    with pytest.raises(ToolError, match="PDF"):
        read_page(page(body, "application/pdf"))


def test_html_is_known_by_its_beginning_when_the_server_does_not_say() -> None:
    body = b"<!DOCTYPE html><html><body><p>Some words that stand here for a reason.</p></body></html>"
    assert "<p>" not in read_page(page(body, "")).content
    assert "<p>" not in read_page(page(body, "text/plain")).content


def test_json_that_is_none_comes_as_text() -> None:
    assert read_page(page(b"{not json", "application/json")).content == "{not json"


def test_written_out_pictures_are_taken_away() -> None:
    data = "data:image/png;base64," + "QUJD" * 20
    assert without_embedded(f"a ![x]({data}) b {data} c") == "a [embedded data removed] b [embedded data removed] c"
