"""`web_search` against a real server that answers as each service documents it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.errors import ToolError
from hermes.testing.fakes import FixedGate
from hermes.testing.workplace import FakeContext
from hermes.tools.builtin.web_search import web_search
from hermes.tools.web.providers import choose, is_available, known_services
from tests.tools.web.site import Site, site

EXPECTED = [
    {"title": "Otters", "url": "https://o.example/1", "description": "They swim.", "position": 1},
    {"title": "Rivers", "url": "https://o.example/2", "description": "They flow.", "position": 2},
]
ROWS = [("Otters", "https://o.example/1", "They swim."), ("Rivers", "https://o.example/2", "They flow.")]


def rows(title: str, link: str, words: str, wrap: bool = False) -> list[dict[str, Any]]:
    return [{title: one, link: two, words: [three] if wrap else three} for one, two, three in ROWS]


# name -> path it is asked at, its answer, its settings, and the header that carries the key
SERVICES: dict[str, tuple[str, Any, dict[str, str], tuple[str, str] | None]] = {
    "firecrawl": (
        "/v2/search",
        {"success": True, "data": {"web": rows("title", "url", "description"), "images": [], "news": []}},
        {"firecrawl_api_key": "K"},
        ("authorization", "Bearer K"),
    ),
    "parallel": (
        "/v1/search",
        {"search_id": "s", "results": rows("title", "url", "excerpts", wrap=True)},
        {"parallel_api_key": "K"},
        ("x-api-key", "K"),
    ),
    "tavily": (
        "/search",
        {"query": "otters", "results": rows("title", "url", "content"), "response_time": 1.1},
        {"tavily_api_key": "K"},
        ("authorization", "Bearer K"),
    ),
    "exa": (
        "/search",
        {"requestId": "r", "results": rows("title", "url", "highlights", wrap=True)},
        {"exa_api_key": "K"},
        ("x-api-key", "K"),
    ),
    "searxng": ("/search", {"query": "otters", "results": rows("title", "url", "content")}, {}, None),
    "brave": (
        "/res/v1/web/search",
        {"type": "search", "web": {"type": "search", "results": rows("title", "url", "description")}},
        {"brave_api_key": "K"},
        ("x-subscription-token", "K"),
    ),
}


def context(here: Site, name: str, **more: Any) -> FakeContext:
    settings = {**SERVICES[name][2], "search_backend": name, "endpoints": {name: here.url("")}, **more}
    if name == "searxng":
        settings["searxng_url"] = here.url("/")
    return FakeContext(settings={"web": settings})


async def search(ctx: FakeContext, query: str = "otters & rivers", **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(await web_search({"query": query, **more}, ctx=ctx))
    return answer


@pytest.mark.parametrize("name", SERVICES)
async def test_each_service_is_asked_its_way_and_its_results_come_in_one_shape(name: str) -> None:
    path, answer, _, header = SERVICES[name]
    async with site() as here:
        here.answers[path] = (200, answer)
        found = await search(context(here, name), limit=7)
    assert found == {"success": True, "data": {"web": EXPECTED}, "provider": name}
    if header:
        assert here.headers[0][header[0]] == header[1]
    asked = json.dumps(here.bodies[0]) if here.bodies else here.asked[0]
    assert "otters & rivers" in asked or "otters%20%26%20rivers" in asked
    assert ("7" in asked) == (name != "searxng")


@pytest.mark.parametrize("name", SERVICES)
async def test_no_more_results_come_than_were_asked_for(name: str) -> None:
    path, answer, _, _ = SERVICES[name]
    async with site() as here:
        here.answers[path] = (200, answer)
        found = await search(context(here, name), limit=1)
    assert found["data"]["web"] == EXPECTED[:1]


async def test_a_service_of_ones_own_is_described_in_the_settings(hermes_home: Path) -> None:
    async with site() as here:
        here.answers["/find"] = (200, {"data": {"hits": rows("name", "href", "text")}})
        hermes_home.joinpath("config.yaml").write_text(
            f"""
web:
  custom:
    url: {here.url("/find")}?q={{query}}&n={{limit}}
    headers: {{X-Key: "${{MY_KEY}}"}}
    results: data.hits
    title: name
    link: href
    description: text
"""
        )
        hermes_home.joinpath(".env").write_text("MY_KEY=abc\nTAVILY_API_KEY=unused-key\n")
        assert is_available()
        found = await search(FakeContext(settings=load_settings().mapping), limit=3)
    assert found == {"success": True, "data": {"web": EXPECTED}, "provider": "custom"}
    assert here.asked == ["/find?q=otters%20%26%20rivers&n=3"]
    assert here.headers[0]["x-key"] == "abc"


async def test_a_service_of_ones_own_may_be_asked_by_post() -> None:
    async with site() as here:
        here.answers["/find"] = (200, {"results": rows("title", "url", "description")})
        custom = {"url": here.url("/find"), "method": "POST", "body": {"q": "{query}", "n": "{limit}"}}
        found = await search(FakeContext(settings={"web": {"custom": custom}}), "otters", limit=3)
    assert found["data"]["web"] == EXPECTED
    assert here.bodies == [{"q": "otters", "n": 3}]


async def test_ddgs_is_asked_in_process_when_its_package_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ddgs"
    package.mkdir()
    rows_ = [{"title": one, "href": two, "body": three} for one, two, three in ROWS]
    package.joinpath("__init__.py").write_text(
        f"class DDGS:\n    def text(self, query, max_results):\n        return {rows_!r}[:max_results]\n"
    )
    package.joinpath("exceptions.py").write_text("class DDGSException(Exception): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        found = await search(FakeContext(settings={"web": {"search_backend": "duckduckgo"}}))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "ddgs"]:
            del sys.modules[name]
    assert found == {"success": True, "data": {"web": EXPECTED}, "provider": "ddgs"}


def test_the_first_service_that_has_what_it_needs_is_taken() -> None:
    order = [provider.name for provider in known_services()]
    assert order == ["firecrawl", "parallel", "tavily", "exa", "searxng", "brave", "ddgs"]
    keys = {"exa_api_key": "k", "brave_api_key": "k", "searxng_url": "http://x"}
    assert choose(keys).name == "exa"
    assert choose({**keys, "exa_api_key": ""}).name == "searxng"
    assert choose({**keys, "backend": "brave"}).name == "brave"
    assert choose({**keys, "backend": "exa", "search_backend": "brave-free"}).name == "brave"
    assert choose({"firecrawl_url": "http://own"}).name == "firecrawl"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"search_backend": "tavily"}, "TAVILY_API_KEY is not set"),
        ({"backend": "searxng"}, "SEARXNG_URL is not set"),
        ({"backend": "altavista"}, "no search service 'altavista'"),
        ({"backend": "custom"}, "web.custom.url is not set"),
        ({"backend": "ddgs"}, "'ddgs' is not installed"),
        ({}, "no search service is set up"),
    ],
)
async def test_a_service_that_cannot_be_used_says_why(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await search(FakeContext(settings={"web": settings}))


@pytest.mark.parametrize(
    ("status", "said"), [(401, "refused the key"), (429, "asks to wait"), (500, "answered 500"), (302, "answered 302")]
)
async def test_a_service_that_fails_is_told_to_the_model(status: int, said: str) -> None:
    async with site() as here:
        here.answers["/search"] = (status, {"detail": "no"})
        with pytest.raises(ToolError, match=said):
            await search(context(here, "tavily"))


async def test_an_answer_without_results_is_an_empty_list_and_one_of_another_kind_an_error() -> None:
    async with site() as here:
        here.answers["/search"] = (200, {"query": "x"})
        assert (await search(context(here, "tavily")))["data"] == {"web": []}
        here.answers["/search"] = (200, {"results": "none"})
        with pytest.raises(ToolError, match="no list"):
            await search(context(here, "tavily"))


async def test_a_search_passes_the_gate_and_carries_no_key() -> None:
    async with site() as here:
        ctx = context(here, "tavily")
        ctx.gate = gate = FixedGate(allowed=False, reason="offline today")
        with pytest.raises(ToolError, match="offline today"):
            await search(ctx)
        with pytest.raises(ToolError, match="key or token"):
            await search(ctx, "what is sk-ant-abcdefghijklmnopqrstuvwxyz0123")
        with pytest.raises(ToolError, match="empty"):
            await search(ctx, "  ")
    assert [action.kind for action in gate.asked] == ["network"]
    assert here.asked == []


def test_without_any_key_the_tool_is_not_offered(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("FIRECRAWL_API_KEY", "FIRECRAWL_API_URL", "PARALLEL_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY"):
        monkeypatch.delenv(provider, raising=False)
    with pytest.raises(ToolError, match="no search service is set up"):
        is_available()
    hermes_home.joinpath(".env").write_text("BRAVE_SEARCH_API_KEY=k\n")
    assert is_available()
