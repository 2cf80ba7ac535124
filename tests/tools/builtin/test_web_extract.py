"""`web_extract` against a real server: pages as they are, and pages that mean harm."""

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.testing.fakes import FixedGate
from hermes.testing.workplace import FakeContext
from hermes.tools.builtin.web_extract import web_extract
from hermes.tools.registry import registry
from hermes.tools.traits import Traits
from hermes.types import ToolCall
from tests.runtime.rooms import room, tool
from tests.tools.web.site import Site, site

WAIT_S = 20.0


def context(here: Site, **web: Any) -> FakeContext:
    """A call's context in which the site's own address, and no other private one, may be reached."""
    return FakeContext(settings={"web": {"private_hosts": [f"127.0.0.1:{here.port}"], **web}})


async def extract(ctx: FakeContext, *urls: str, **more: Any) -> list[dict[str, Any]]:
    answer = json.loads(await web_extract({"urls": list(urls), **more}, ctx=ctx))
    results: list[dict[str, Any]] = answer["results"]
    return results


async def one(ctx: FakeContext, url: str, **more: Any) -> dict[str, Any]:
    (result,) = await extract(ctx, url, **more)
    return result


async def test_an_article_becomes_markdown_without_the_rest_of_the_page() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/article"))
    assert (result["title"], result["error"]) == ("Otters & rivers", None)
    assert "# Otters" in result["content"]
    assert f"[the study]({here.url('/study')})" in result["content"]
    assert "Imprint" not in result["content"]
    assert "base64" not in result["content"]


@pytest.mark.parametrize("how", ["gzip", "deflate", "raw"])
async def test_a_packed_page_is_unpacked(how: str) -> None:
    async with site() as here:
        result = await one(context(here), here.url(f"/packed/{how}"))
    assert "Otters hold hands" in result["content"]


async def test_a_packing_that_was_not_asked_for_is_told() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/packed/br"))
    assert "'br'" in result["error"]


async def test_json_and_plain_text_come_as_they_are() -> None:
    async with site() as here:
        found = await extract(context(here), here.url("/json"), here.url("/plain"))
    assert json.loads(found[0]["content"]) == {"name": "otter", "legs": 4}
    assert found[1]["content"] == "one\ntwo\n"


async def test_a_pdf_is_read_page_by_page() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/pdf/otters.pdf"))
    assert result["title"] == "otters.pdf"
    assert result["content"] == "[page 1]\nOtters swim at night"


async def test_what_holds_no_text_is_an_error_of_its_own_entry() -> None:
    async with site() as here:
        found = await extract(
            context(here), here.url("/picture"), here.url("/empty"), here.url("/nowhere"), here.url("/plain")
        )
    assert [bool(each["error"]) for each in found] == [True, True, True, False]
    assert "404" in found[2]["error"]


async def test_a_long_page_is_cut_and_kept_whole_behind_its_handle() -> None:
    async with site() as here:
        ctx = context(here)
        result = await one(ctx, here.url("/long"), char_limit=2000)
    whole = "".join(f"line {n}\n" for n in range(20_000))
    assert (await ctx.shelf.read(result["full_text"])).decode() == whole
    assert result["chars"] == len(whole)
    assert result["content"].startswith("line 0\n")
    assert result["content"].endswith("line 19999\n")
    assert len(result["content"]) < 2300


async def test_five_pages_are_fetched_side_by_side_and_six_are_refused() -> None:
    async with site() as here:
        found = await extract(context(here), *(here.url(f"/plain/{n}") for n in range(5)))
        assert [each["url"] for each in found] == [here.url(f"/plain/{n}") for n in range(5)]
        with pytest.raises(ToolError, match="5"):
            await extract(context(here), *(here.url(f"/plain/{n}") for n in range(6)))


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "0",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.5.5",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "224.0.0.1",
        "metadata.google.internal",
    ],
)
async def test_no_spelling_of_a_private_address_is_fetched(host: str) -> None:
    async with site() as here:
        result = await one(FakeContext(settings={}), here.url("/plain", host))
    assert result["error"]
    assert "not public" in result["error"] or "credentials" in result["error"]
    assert here.asked == []


async def test_allowing_private_addresses_leaves_those_with_credentials_closed() -> None:
    settings = {"security": {"allow_private_urls": True}}
    async with site() as here:
        allowed = await one(FakeContext(settings=settings), here.url("/plain"))
    refused = await one(FakeContext(settings=settings), "http://169.254.169.254/latest/meta-data/")
    assert allowed["content"] == "one\ntwo\n"
    assert "not public" in refused["error"]


@pytest.mark.parametrize("spelling", ["127.0.0.1", "127.0.0.0/8", "localhost"])
async def test_a_private_host_may_be_named_in_the_settings(spelling: str) -> None:
    host = "localhost" if spelling == "localhost" else "127.0.0.1"
    async with site() as here:
        result = await one(FakeContext(settings={"web": {"private_hosts": [spelling]}}), here.url("/plain", host))
    assert result["error"] is None


async def test_a_redirect_to_a_private_address_is_refused_at_its_hop() -> None:
    async with site() as outside, site() as inside:
        result = await one(context(outside), outside.url(f"/to?where={inside.url('/plain')}"))
    assert "not public" in result["error"]
    assert len(outside.asked) == 1
    assert inside.asked == []


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x", "javascript:1"])
async def test_a_redirect_to_another_scheme_is_refused(where: str) -> None:
    async with site() as here:
        result = await one(context(here), here.url(f"/to?where={where}"))
    assert "only http and https" in result["error"]


async def test_a_redirect_within_what_is_allowed_is_followed() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/to?where=/plain"))
    assert (result["url"], result["content"]) == (here.url("/plain"), "one\ntwo\n")


async def test_a_redirect_that_carries_a_key_away_is_refused() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/to?where=/plain%3Fk=sk-ant-abcdefghijklmnopqrstuvwxyz0123"))
    assert "key or token" in result["error"]


async def test_a_redirect_to_nonsense_costs_its_own_page_only() -> None:
    async with site() as here:
        bad, good = await extract(context(here), here.url("/to?where=http://[::1"), here.url("/plain"))
    assert "no URL" in bad["error"]
    assert good["error"] is None


async def test_endless_redirects_end() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/round/0"))
    assert "redirects more than 10 times" in result["error"]
    assert len(here.asked) == 11


async def test_every_hop_is_shown_to_the_gate_and_a_no_is_a_no() -> None:
    gate = FixedGate(allowed=False, reason="not that site")
    async with site() as here:
        ctx = context(here)
        ctx.gate = gate
        result = await one(ctx, here.url("/plain"))
        assert (result["error"], result["blocked_by_policy"]) == ("not that site", True)
        assert here.asked == []
        ctx.gate = allowing = FixedGate()
        await one(ctx, here.url("/to?where=/plain"))
    assert [action.text for action in allowing.asked] == [here.url("/to?where=/plain"), here.url("/plain")]
    assert {(action.kind, action.details["method"]) for action in allowing.asked} == {("network", "GET")}


# -- what a URL may hold ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tail",
    [
        "?k=sk-ant-abcdefghijklmnopqrstuvwxyz0123",
        "/ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "?k=%73%6B-ant-abcdefghijklmnopqrstuvwxyz0123",
        "?k=%2573k-ant-abcdefghijklmnopqrstuvwxyz0123",
        "?k=the-value-of-a-variable",
        "#AKIAABCDEFGHIJKLMNOP",
    ],
)
async def test_a_url_with_a_key_in_it_is_not_sent(tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "the-value-of-a-variable")
    async with site() as here:
        result = await one(context(here), here.url(f"/plain{tail}"))
    assert "key or token" in result["error"]
    assert here.asked == []


async def test_ordinary_parameters_are_no_keys() -> None:
    async with site() as here:
        result = await one(
            context(here), here.url("/plain?page_token=CAUQAAxyz123&id=3f2504e0-4f89-11d3-9a0c-0305e82c3301")
        )
    assert result["error"] is None


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/", "http://", "nonsense", "http://user:pass@127.0.0.1/", "http://[::1", "http://" + "a" * 9000],
)
async def test_what_is_no_url_to_fetch_is_refused_with_a_sentence(url: str) -> None:
    assert (await one(FakeContext(settings={}), url))["error"]


async def test_a_site_on_the_users_list_is_blocked_by_policy(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("# sites\n*.tracker.localhost\n")
    settings = {
        "security": {
            "website_blocklist": {"enabled": True, "domains": ["evil.localhost"], "shared_files": [str(listed)]}
        }
    }
    for host in ("evil.localhost", "www.evil.localhost", "a.tracker.localhost"):
        result = await one(FakeContext(settings=settings), f"http://{host}/")
        assert result["blocked_by_policy"] is True
    assert "blocked_by_policy" not in await one(FakeContext(settings=settings), "http://notevil.localhost/")


# -- size and time ---------------------------------------------------------------------------------------------------


async def test_two_declared_gigabytes_are_not_read() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/huge"))
        async with asyncio.timeout(WAIT_S):
            await here.left.wait()
    assert "larger than 10 MB" in result["error"]
    assert here.sent_bytes < 20_000_000


async def test_a_body_that_says_it_is_too_large_is_not_waited_for() -> None:
    async with site() as here:
        result = await one(context(here, extract_timeout_s=WAIT_S), here.url(f"/drip/{2 << 30}"))
    assert "larger than 10 MB" in result["error"]


async def test_a_body_without_end_is_left_at_the_limit() -> None:
    async with site() as here:
        result = await one(context(here, extract_max_mb=2), here.url("/endless"))
        async with asyncio.timeout(WAIT_S):
            await here.left.wait()
    assert "larger than 2 MB" in result["error"]
    assert here.sent_bytes < 30_000_000


async def test_a_gzip_bomb_stops_at_the_limit() -> None:
    async with site() as here:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await one(context(here), here.url("/bomb"))
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert "larger than 10 MB" in result["error"]
    assert here.sent_bytes < 2_000_000
    assert grown_kb < 300_000  # the bomb holds a gigabyte


async def test_a_slow_drip_ends_with_the_time_for_a_page() -> None:
    async with site() as here:
        async with asyncio.timeout(WAIT_S):
            result = await one(context(here, extract_timeout_s=0.3), here.url("/drip"))
            await here.left.wait()
    assert "within 0.3 s" in result["error"]


async def test_an_interrupt_ends_a_fetch_and_leaves_no_connection() -> None:
    async with site() as here:
        ctx = context(here)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await one(ctx, here.url("/drip"))
        async with asyncio.timeout(WAIT_S):
            await here.left.wait()


@pytest.mark.parametrize(
    ("declared", "real"),
    [
        ("utf-8", "utf-8"),
        ("iso-8859-1", "utf-8"),
        ("utf-8", "windows-1252"),
        ("utf-99", "utf-8"),
        ("base64", "utf-8"),
        ("utf-7", "windows-1252"),
        ("utf-16", "utf-16"),
        ("ascii", "windows-1252"),
    ],
)
async def test_a_wrong_charset_does_not_garble_the_text(declared: str, real: str) -> None:
    async with site() as here:
        result = await one(context(here), here.url(f"/charset/{declared}/{real}"))
    assert "schwören: “Größe” hold" in result["content"]


async def test_a_charset_is_also_read_from_inside_the_page() -> None:
    async with site() as here:
        result = await one(context(here), here.url("/meta"))
    assert "Выдры hold" in result["content"]


# -- through a service -----------------------------------------------------------------------------------------------

READINGS: dict[str, tuple[str, Any, Any]] = {
    "firecrawl": (
        "/v2/scrape",
        {"success": True, "data": {"markdown": "# Otters", "metadata": {"title": "O"}}},
        {"success": False, "error": "blocked there"},
    ),
    "parallel": (
        "/v1/extract",
        {"results": [{"url": "u", "title": "O", "excerpts": [], "full_content": "# Otters"}], "errors": []},
        {"results": [], "errors": [{"url": "u", "error_type": "fetch_error", "content": "blocked there"}]},
    ),
    "tavily": (
        "/extract",
        {"results": [{"url": "u", "title": "O", "raw_content": "# Otters"}], "failed_results": []},
        {"results": [], "failed_results": [{"url": "u", "error": "blocked there"}]},
    ),
    "exa": (
        "/contents",
        {"results": [{"url": "u", "title": "O", "text": "# Otters"}], "statuses": [{"id": "u", "status": "success"}]},
        {"results": [], "statuses": [{"id": "u", "status": "error", "error": {"tag": "blocked there"}}]},
    ),
}


@pytest.mark.parametrize("name", READINGS)
async def test_a_service_may_read_the_page_instead(name: str) -> None:
    path, good, bad = READINGS[name]
    async with site() as here:
        keys = {f"{name}_api_key": "K", "extract_backend": name, "endpoints": {name: here.url("")}}
        ctx = FakeContext(settings={"web": keys})
        here.answers[path] = (200, good)
        result = await one(ctx, "http://93.184.215.14/page")
        assert (result["title"], result["content"], result["error"]) == ("O", "# Otters", None)
        assert "http://93.184.215.14/page" in json.dumps(here.bodies[0])
        here.answers[path] = (200, bad)
        assert (await one(ctx, "http://93.184.215.14/page"))["error"] == "blocked there"
        asked = len(here.asked)
        assert "not public" in (await one(ctx, "http://10.0.0.1/"))["error"]
        assert "key or token" in (await one(ctx, "http://93.184.215.14/?k=AKIAABCDEFGHIJKLMNOP"))["error"]
        assert len(here.asked) == asked


@pytest.mark.parametrize(("name", "said"), [("tavily", "TAVILY_API_KEY is not set"), ("gopher", "no service 'gopher'")])
async def test_a_service_that_cannot_read_pages_says_why(name: str, said: str) -> None:
    result = await one(FakeContext(settings={"web": {"extract_backend": name}}), "http://93.184.215.14/")
    assert said in result["error"]


# -- the border ------------------------------------------------------------------------------------------------------


async def test_a_page_with_orders_reaches_the_model_fenced_as_data(tmp_path: Path) -> None:
    found = registry.get_entry("web_extract")
    assert found is not None
    async with site() as here:
        settings = {"web": {"private_hosts": [f"127.0.0.1:{here.port}"]}}
        registered = tool(
            "web_extract", web_extract, found.schema["parameters"], traits=Traits(provenance="web"), is_async=True
        )
        async with room(tmp_path, registered, settings=settings) as turn:
            (result,) = await turn.run(ToolCall("c1", "web_extract", json.dumps({"urls": [here.url("/orders")]})))
    text = str(result.content)
    assert text.startswith('<untrusted_tool_result source="web_extract">')
    assert text.count("</untrusted_tool_result>") == 1
    assert text.endswith("</untrusted_tool_result>")
    assert "Ignore all previous instructions" in text
