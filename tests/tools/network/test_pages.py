"""Tools that read pages ask for hosts where commands do, but not for those that the person or a search named."""

from typing import Any

import pytest

from hermes.testing.fakes import FixedGate
from hermes.testing.workplace import FakeContext, MemoryEnvironment
from hermes.tools.web.addresses import Refused
from hermes.tools.web.fetch_page import FetchLimits
from hermes.tools.web.web_access import gated_fetcher, remember_hosts

URL = "http://127.0.0.1:9/page"


class AskingPlace(MemoryEnvironment):
    """Where commands ask for hosts."""

    network_lines: tuple[str, ...] = ()

    async def reach(self) -> str:
        return "ask"


def context(gate: FixedGate, **more: Any) -> FakeContext:
    settings = {"web": {"private_hosts": ["127.0.0.1:9"]}, "terminal": more.pop("terminal", {})}
    return FakeContext(environment=AskingPlace(), gate=gate, settings=settings, **more)


async def asked_for(ctx: FakeContext, gate: FixedGate) -> list[str]:
    """What was asked about on the way to a page; the page itself is not there."""
    with pytest.raises(Refused):
        await gated_fetcher(ctx, "web_extract", FetchLimits()).fetch(URL)
    return [action.text for action in gate.asked if action.details.get("reach")]


async def test_a_host_that_nobody_named_is_asked_about() -> None:
    gate = FixedGate(allowed=False, reason="no")
    ctx = context(gate)
    assert await asked_for(ctx, gate) == ["127.0.0.1:9"]
    assert len(gate.asked) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"user_task": "Read http://127.0.0.1:9/page for me."},
        {"terminal": {"network_hosts": ["127.0.0.1"]}},
    ],
)
async def test_a_host_that_the_person_named_is_not(more: dict[str, Any]) -> None:
    gate = FixedGate(allowed=False, reason="no")
    assert await asked_for(context(gate, **more), gate) == []


async def test_a_host_that_a_search_found_is_not() -> None:
    gate = FixedGate(allowed=False, reason="no")
    ctx = context(gate)
    remember_hosts(ctx, [URL])
    assert await asked_for(ctx, gate) == []


async def test_a_name_within_another_is_not_named() -> None:
    gate = FixedGate(allowed=False, reason="no")
    assert await asked_for(context(gate, user_task="see 127.0.0.1.evil.test"), gate) == ["127.0.0.1:9"]


async def test_a_name_is_not_looked_up_before_its_host_is_granted() -> None:
    """The name itself would leave: no address is needed for the question."""
    gate = FixedGate(allowed=False, reason="no")
    with pytest.raises(Refused, match="no"):
        await gated_fetcher(context(gate), "web_extract", FetchLimits()).fetch("http://words.known-nowhere.invalid/")
    assert [action.text for action in gate.asked] == ["words.known-nowhere.invalid:80"]


async def test_nobody_is_asked_about_an_address_that_is_refused_anyway() -> None:
    gate = FixedGate(allowed=True)
    with pytest.raises(Refused, match="not public"):
        await gated_fetcher(context(gate), "web_extract", FetchLimits()).fetch("http://0x7f000001/admin")
    assert gate.asked == []
