"""The fetcher below the tool: which address it connects to, and how often it asks for one."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest

from hermes.errors import ToolError
from hermes.tools.web.addresses import (
    AddressRules,
    FetchTarget,
    Lookup,
    Refused,
    check_addresses,
    numeric,
    real_address,
)
from hermes.tools.web.fetch_page import Fetcher, FetchLimits
from tests.tools.web.site import site


class Names:
    """A name server that answers each question with the next of its answers."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append(host)
        return self.answers.pop(0) if self.answers else ()


def fetcher(rules: AddressRules, lookup: Lookup) -> Fetcher:
    async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    async def allow(target: FetchTarget) -> None:
        return None

    limits = FetchLimits(timeout_s=20)
    return Fetcher(rules=rules, limits=limits, in_thread=in_thread, allow=allow, lookup=lookup)


async def test_the_connection_goes_to_the_address_that_was_checked_and_the_name_is_asked_once() -> None:
    async with site() as here:
        names = Names(("127.0.0.1",), ("127.0.0.2",))
        rules = AddressRules(private_hosts=("rebinding.example",))
        page = await fetcher(rules, names).fetch(here.url("/plain", "rebinding.example"))
    assert page.body == b"one\ntwo\n"
    assert names.asked == ["rebinding.example"]
    assert here.headers[0]["host"] == f"rebinding.example:{here.port}"


async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    names = Names(("93.184.215.14", "127.0.0.1"))
    with pytest.raises(Refused, match="not public"):
        await fetcher(AddressRules(), names).fetch("http://mixed.example/")


async def test_a_name_that_changes_between_hops_is_checked_again() -> None:
    async with site() as here:
        names = Names(("127.0.0.1",), ("10.0.0.1",))
        rules = AddressRules(private_hosts=("127.0.0.1",))
        with pytest.raises(Refused, match="not public"):
            await fetcher(rules, names).fetch(here.url("/to?where=/plain", "turning.example"))
    assert names.asked == ["turning.example", "turning.example"]
    assert len(here.asked) == 1


async def test_a_name_without_an_address_is_told() -> None:
    with pytest.raises(Refused, match="no address"):
        await fetcher(AddressRules(), Names()).fetch("http://nowhere.example/")


async def test_a_port_where_nobody_listens_is_told() -> None:
    async with site() as here:
        port = here.port
    with pytest.raises(ToolError, match="could not be fetched"):
        await fetcher(AddressRules(allow_private=True), Names()).fetch(f"http://127.0.0.1:{port}/")


async def test_a_unicode_host_is_fetched_under_its_encoded_name() -> None:
    async with site() as here:
        rules = AddressRules(private_hosts=("127.0.0.1",))
        page = await fetcher(rules, Names(("127.0.0.1",))).fetch(here.url("/plain", "bücher.example"))
    assert page.body == b"one\ntwo\n"
    assert here.headers[0]["host"].startswith("xn--bcher-kva.example")


async def test_the_time_a_person_takes_to_decide_is_not_the_pages() -> None:
    async with site() as here:
        made = fetcher(AddressRules(private_hosts=("127.0.0.1",)), Names())
        asked: list[str] = []

        async def slow(target: FetchTarget) -> None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 1.1)
            asked.append(target.url)

        limits = FetchLimits(timeout_s=1.0)
        page = await dataclasses.replace(made, allow=slow, limits=limits).fetch(here.url("/plain"))
    assert page.body == b"one\ntwo\n"
    assert asked == [here.url("/plain")]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1"])
def test_numeric_spellings_are_one_address(host: str) -> None:
    assert numeric(host) == "127.0.0.1"


def test_names_are_not_numeric() -> None:
    assert [numeric(host) for host in ("example.org", "127.0.0.1.example.org", "a", "")] == [None, None, None, None]


@pytest.mark.parametrize(
    "text",
    [
        *("0.1.2.3", "10.1.2.3", "100.64.0.1", "127.9.9.9", "169.254.9.9", "172.31.0.1", "192.0.2.1", "192.88.99.1"),
        *("192.168.0.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::10.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::808:808"),
        *("100::1", "2001:db8::1", "2002:a00:1::", "2002:6440:1::", "4000::1", "5f00::1", "fc00::1", "fd00::1"),
        *("fe80::1", "fec0::1", "feff::1", "ff02::1"),
    ],
)
def test_an_address_that_is_not_public_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="not public"):
        check_addresses("http://x.example/", ("http", "x.example", 80), [text], AddressRules())


@pytest.mark.parametrize("text", ["8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::", "2606:4700::1111"])
def test_a_public_address_is_fetched(text: str) -> None:
    target = check_addresses("http://x.example/", ("http", "x.example", 80), [text], AddressRules())
    assert not target.is_private


@pytest.mark.parametrize("text", ["::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "::10.0.0.1"])
def test_a_wrapped_address_is_judged_by_what_is_inside(text: str) -> None:
    assert str(real_address(ip_address(text))) == "10.0.0.1"
