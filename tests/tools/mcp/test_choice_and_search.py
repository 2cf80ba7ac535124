"""Which tools a session gets: toolsets by name, include and exclude, and search where there are many."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.context import injection_scan
from hermes.errors import UserError
from hermes.host.tool_report import report
from hermes.testing.replies import calls, says
from hermes.tools.mcp.tool_names import offered_names
from tests.tools.mcp.mcp_room import bare, body, mcp_room, settings_of

DONE = says("Done.")


@pytest.mark.parametrize(
    ("keywords", "is_offered"),
    [
        ({}, True),
        ({"enabled_toolsets": ["mcp-my-server.1"]}, True),
        ({"enabled_toolsets": ["my-server.1"]}, True),
        ({"enabled_toolsets": ["file"]}, False),
        ({"enabled_toolsets": ["hermes-cli"]}, True),
        ({"disabled_toolsets": ["my-server.1"]}, False),
        ({"disabled_toolsets": ["mcp-my-server.1"]}, False),
    ],
)
async def test_a_toolset_has_the_name_of_its_server(
    hermes_home: Path, keywords: dict[str, Any], is_offered: bool
) -> None:
    async with mcp_room(hermes_home, {"my-server.1": bare()}, DONE, **keywords) as room:
        await room.ask()
        names = {tool.name for tool in room.model.full_requests[0].tools}
    assert ("mcp__my_server_1__echo" in names) is is_offered


async def test_include_wins_over_exclude_and_leaves_the_rest_out(hermes_home: Path) -> None:
    servers = {
        "one": bare(tools={"include": "echo", "exclude": ["echo"]}),
        "two": bare(tools={"exclude": ["echo", "crash"]}),
        "off": bare(enabled=False),
    }
    async with mcp_room(hermes_home, servers, DONE) as room:
        await room.ask()
        names = {tool.name for tool in room.model.full_requests[0].tools if tool.name.startswith("mcp__")}
    assert {name for name in names if "__one__" in name} == {"mcp__one__echo"}
    assert "mcp__two__pid" in names
    assert not {"mcp__two__echo", "mcp__two__crash"} & names
    assert not any("__off__" in name for name in names)


async def test_the_report_of_tools_knows_servers_that_were_seen_and_those_that_were_not(hermes_home: Path) -> None:
    servers = {"seen": bare(), "unseen": {"command": "no-such-program"}}
    async with mcp_room(hermes_home, servers, DONE):
        pass
    found = report(hermes_home, settings_of(hermes_home).mapping, hermes_home)
    found.check_toolsets(["mcp-seen", "seen", "mcp-unseen", "unseen"])
    assert "mcp__seen__echo" in {line.name for line in found.tools}
    assert "mcp__seen__echo" in found.resolve(["mcp-seen"])
    with pytest.raises(UserError, match="no toolset 'mcp-other'"):
        found.check_toolsets(["mcp-other"])


async def test_many_tools_are_found_by_search_and_called_through_the_same_gate(hermes_home: Path) -> None:
    rules = {"approvals": {"rules": [{"action": "deny", "tool": "mcp__many__t7"}]}}
    script = (
        calls("tool_search", query="tool 1234"),
        calls("tool_describe", name="mcp__many__t5"),
        calls("tool_call", name="mcp__many__t5", arguments={"a": "x"}),
        calls("tool_call", name="mcp__many__t5", arguments={"a": {"not": "text"}}),
        calls("tool_call", name="mcp__many__t7", arguments={}),
        DONE,
    )
    async with mcp_room(hermes_home, {"many": bare("many")}, *script, settings=rules) as room:
        found, described, called, unfit, denied = await room.ask()
        first, last = room.model.full_requests[0], room.model.full_requests[-1]
    bridge = [tool for tool in first.tools if tool.name.startswith("tool_")]
    assert first.tools == last.tools
    assert len(msgspec.json.encode(bridge)) / 4 <= 1000, "2,000 tools in the tokens of three"
    assert "mcp__many__t1234" in found
    assert body(described)["parameters"]["properties"] == {"a": {"type": "string"}}
    assert "no tool t5" in called, "it reached the server, which has no such tool after all"
    assert "do not fit the schema" in unfit
    assert "not allowed" in denied


async def test_few_tools_are_listed(hermes_home: Path) -> None:
    async with mcp_room(hermes_home, {"bare": bare()}, DONE) as room:
        await room.ask()
        assert "tool_search" not in {tool.name for tool in room.model.full_requests[0].tools}


def test_names_are_legal_unlike_and_the_same_whatever_the_order() -> None:
    tools = ["a.b", "a b", "a_b", "x" * 200, "x" * 201, "", "ümlaut"]
    names = offered_names("my server", tools)
    assert names == offered_names("my server", list(reversed(tools)))
    assert len(set(names.values())) == len(tools)
    assert names["a_b"] == "mcp__my_server__a_b"
    assert all(len(name) <= 64 and name.isascii() for name in names.values())


async def test_what_is_offered_is_looked_through_once_for_what_a_server_says(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    real = injection_scan.scan

    def watched(text: str) -> object:
        looked.append(text)
        return real(text)

    monkeypatch.setattr(injection_scan, "scan", watched)
    offers: list[list[str]] = []
    for entry in (bare(), bare(), bare(tools={"exclude": ["echo"]})):
        async with mcp_room(hermes_home, {"bare": entry}, says("Hi.")) as room:
            looked.clear()
            offers.append([one.name for one in (await room.client()).offered()])
            assert bool(looked) == (len(offers) != 2), "a second start reads what the first one made"
    assert offers[0] == offers[1]
    assert set(offers[0]) - set(offers[2]) == {"mcp__bare__echo"}, "another choice is made anew"
    damaged = hermes_home / "mcp" / "bare.offers"
    damaged.write_text('{"key": 1')
    async with mcp_room(hermes_home, {"bare": bare()}, says("Hi.")) as room:
        assert [one.name for one in (await room.client()).offered()] == offers[0]
