"""Services that fetch a page and make text of it, as data, for those who would rather not do it from this machine."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from hermes.errors import ToolError
from hermes.tools.web.page_text import PageText
from hermes.tools.web.providers import PROVIDERS, SearchService, missing, request_of, text_at, value_at
from hermes.tools.web.search_request import ask

# What differs from the service's search; `{query}` is the page's address.
_PAGES: dict[str, dict[str, Any]] = {
    "firecrawl": {
        "path": "/v2/scrape",
        "body": {"url": "{query}", "formats": ["markdown"]},
        "results": "data",
        "title": "metadata.title",
        "description": ("markdown",),
    },
    "parallel": {
        "path": "/v1/extract",
        "body": {"urls": ["{query}"], "advanced_settings": {"full_content": True}},
        "description": ("full_content", "excerpts"),
    },
    "tavily": {
        "path": "/extract",
        "body": {"urls": ["{query}"], "format": "markdown"},
        "description": ("raw_content",),
    },
    "exa": {"path": "/contents", "body": {"urls": ["{query}"], "text": True}, "description": ("text",)},
}
READERS = tuple(replace(known, **_PAGES[known.name]) for known in PROVIDERS if known.name in _PAGES)
_COMPLAINTS = ("failed_results", "errors", "statuses")


def reader_of(web: Mapping[str, Any]) -> SearchService | None:
    """The service that the settings ask for; None when this runtime fetches by itself."""
    asked = str(web.get("extract_backend") or "local").strip().lower()
    if asked == "local":
        return None
    found = next((reader for reader in READERS if reader.name == asked), None)
    if found is None:
        names = ", ".join(reader.name for reader in READERS)
        raise ToolError(f"there is no service {asked!r} that reads pages; the user can set one of local, {names}")
    lacking = missing(found, web)
    if lacking:
        raise ToolError(f"the service {found.name!r} cannot be used: {lacking}")
    return found


async def read_through(reader: SearchService, web: Mapping[str, Any], url: str, timeout_s: float) -> PageText:
    """The text of a page as the service gives it; `ToolError` with its complaint when there is none."""
    answer = await ask(request_of(reader, web, url, 1), reader.name, timeout_s)
    found = value_at(answer, reader.results)
    row = found[0] if isinstance(found, list) and found else found
    content = next((text for name in reader.description if (text := text_at(row, name))), "")
    if not content:
        raise ToolError(_complaint(answer) or f"{reader.name} found no text on the page")
    return PageText(text_at(row, reader.title), content)


def _complaint(answer: Any) -> str:
    for name in _COMPLAINTS:
        rows = value_at(answer, name)
        for row in rows if isinstance(rows, list) else ():
            said = text_at(row, "error") or text_at(row, "content") or text_at(row, "error.tag")
            if said:
                return said
    return text_at(answer, "error")
