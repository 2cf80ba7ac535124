"""Toolsets, definitions and the frozen view."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import model_tools, toolsets
from hermes.tools.registration.definitions import ViewRequest, session_view
from hermes.tools.registration.groups import Groups, table
from hermes.tools.registry import ToolRegistry, registry
from hermes.tools.traits import Traits
from hermes.tools.view import SessionView

SOURCE = str(Path(__file__).parents[2] / "src")

CORE_TOOLS, TOOLSETS, LEGACY_TOOLSETS = table()


@pytest.fixture
def extra() -> Iterator[list[str]]:
    """Names to take out of the process's registry afterwards."""
    names: list[str] = []
    yield names
    for name in names:
        registry.deregister(name)


def add(names: list[str], name: str, toolset: str, **more: Any) -> None:
    schema = more.pop("schema", {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}})
    registry.register(name=name, toolset=toolset, schema=schema, handler=lambda args, **kw: "{}", **more)
    names.append(name)


def names_of(definitions: list[dict[str, Any]]) -> list[str]:
    return [one["function"]["name"] for one in definitions]


def test_every_toolset_of_the_contract_is_there() -> None:
    assert len(CORE_TOOLS) == 48
    assert toolsets.resolve_toolset("debugging") == sorted(
        {"terminal", "process", "web_search", "web_extract", "read_file", "write_file", "patch", "search_files"}
    )
    assert toolsets.resolve_toolset("safe") == ["image_generate", "vision_analyze", "web_extract", "web_search"]
    assert toolsets.resolve_toolset("hermes-cli") == sorted(CORE_TOOLS)
    acp = set(toolsets.resolve_toolset("hermes-acp"))
    assert acp == set(CORE_TOOLS) - {
        "image_generate", "text_to_speech", "clarify", "cronjob", "send_message", "computer_use",
        *(name for name in CORE_TOOLS if name.startswith(("ha_", "kanban_"))),
    }  # fmt: skip
    assert set(toolsets.resolve_toolset("hermes-gateway")) > set(CORE_TOOLS)
    assert LEGACY_TOOLSETS["browser_tools"] == [
        name for name in CORE_TOOLS if name.startswith("browser_") and name not in ("browser_cdp", "browser_dialog")
    ]
    assert set(toolsets.resolve_toolset("all")) == set(toolsets.resolve_toolset("*"))
    assert toolsets.resolve_toolset("nothing like it") == []


def test_circles_and_diamonds_are_harmless() -> None:
    custom: Any = {
        "a": {"description": "", "tools": ["x"], "includes": ["b", "c"]},
        "b": {"description": "", "tools": ["y"], "includes": ["c", "a"]},
        "c": {"description": "", "tools": ["z"], "includes": ["a"]},
    }
    groups = Groups(ToolRegistry(), custom)
    assert groups.resolve("a") == groups.resolve("b") == ["x", "y", "z"]
    info = groups.info("a")
    assert info is not None
    assert (info["tool_count"], info["is_composite"], info["direct_tools"]) == (3, True, ["x"])


def test_registered_toolsets_and_aliases_are_names_too(extra: list[str]) -> None:
    add(extra, "mcp_foo_do", "mcp-foo")
    registry.register_toolset_alias("foo", "mcp-foo")
    assert toolsets.resolve_toolset("foo") == toolsets.resolve_toolset("mcp-foo") == ["mcp_foo_do"]
    assert toolsets.validate_toolset("foo")
    assert not toolsets.validate_toolset("bar")
    add(extra, "more_files", "file")
    assert "more_files" in toolsets.resolve_toolset("file")


def test_enabled_disabled_legacy_and_unknown(extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    add(extra, "mine", "own")
    add(extra, "other", "own")
    assert names_of(model_tools.get_tool_definitions(["own"], quiet_mode=True)) == ["mine", "other"]
    assert names_of(model_tools.get_tool_definitions([], quiet_mode=True)) == []
    assert names_of(model_tools.get_tool_definitions(["own", "file_tools"], ["own"], quiet_mode=True)) == sorted(
        name for name in LEGACY_TOOLSETS["file_tools"] if registry.is_available(name)
    )
    assert "mine" in names_of(model_tools.get_tool_definitions(quiet_mode=True))
    assert "mine" not in names_of(model_tools.get_tool_definitions(disabled_toolsets=["own"], quiet_mode=True))
    capsys.readouterr()
    model_tools.get_tool_definitions(["own", "wat"])
    shown = capsys.readouterr().out
    assert "Unknown toolset: wat" in shown
    assert "Tools (2): mine, other" in shown


def test_the_memo_gives_fresh_lists_and_follows_changes(extra: list[str], hermes_home: Path) -> None:
    add(extra, "mine", "own")
    first = model_tools.get_tool_definitions(["own"], quiet_mode=True)
    first.append({})
    second = model_tools.get_tool_definitions(["own"], quiet_mode=True)
    assert len(second) == 1
    assert second[0] is first[0]
    add(extra, "later", "own")
    assert names_of(model_tools.get_tool_definitions(["own"], quiet_mode=True)) == ["later", "mine"]
    (hermes_home / "config.yaml").write_text(
        "tools:\n  custom_toolsets:\n    both: {description: two, tools: [mine], includes: [own]}\n", encoding="utf-8"
    )
    assert names_of(model_tools.get_tool_definitions(["both"], quiet_mode=True)) == ["later", "mine"]


def test_a_schema_can_follow_what_else_is_offered(extra: list[str]) -> None:
    def refine(schema: dict[str, Any], names: frozenset[str]) -> dict[str, Any] | None:
        return {**schema, "description": ", ".join(sorted(names))} if "helper" in names else None

    add(extra, "script", "own", traits=Traits(refine=refine))
    assert names_of(model_tools.get_tool_definitions(["own"], quiet_mode=True)) == []
    add(extra, "helper", "own")
    found = model_tools.get_tool_definitions(["own"], quiet_mode=True)
    assert found[1]["function"]["description"] == "helper, script"


def test_browser_navigate_recommends_only_what_is_there(extra: list[str]) -> None:
    ours = registry.get("browser_navigate")
    registry.deregister("browser_navigate")
    text = "Open a page. For reading prefer web_search or web_extract. Needs a URL."
    schema = {"name": "browser_navigate", "description": text, "parameters": {}}
    add(extra, "browser_navigate", "browser", schema=schema)
    found = model_tools.get_tool_definitions(["browser"], ["web"], quiet_mode=True)
    alone = [one for one in found if one["function"]["name"] == "browser_navigate"]
    assert alone[0]["function"]["description"] == "Open a page. Needs a URL."
    assert alone[0]["function"]["parameters"] == {"type": "object", "properties": {}}
    registry.deregister("browser_navigate")
    if ours is not None:
        registry.add(ours)


def test_a_view_stays_byte_for_byte_when_checks_flap_and_tools_change(extra: list[str], hermes_home: Path) -> None:
    there = [True]
    add(extra, "flappy", "own", check_fn=lambda: there[0])
    add(extra, "steady", "own", schema={"name": "steady", "description": "ü", "parameters": {"type": "object"}})
    request = ViewRequest(home=hermes_home, settings={}, enabled=["own"])
    view = session_view(request)
    stored = view.to_json()
    there[0] = False
    registry.checks.forget()
    registry.deregister("steady")
    again = session_view(request, stored)
    assert again.to_json() == stored
    assert again.definitions() == view.definitions()
    assert [one.name for one in again.definitions()] == ["flappy", "steady"]
    assert again.find("steady") is None
    assert SessionView.from_json(stored, {}).to_json() == stored


def test_definitions_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    script = (
        "import json; from hermes.model_tools import get_tool_definitions as g; print(json.dumps(g(quiet_mode=True)))"
    )
    texts = []
    for seed in ("1", "2", "3"):
        env = {
            "PYTHONPATH": SOURCE,
            "HERMES_HOME": str(tmp_path / "h"),
            "PYTHONHASHSEED": seed,
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60
        )
        texts.append(done.stdout)
    assert texts[0] == texts[1] == texts[2]
    assert len(json.loads(texts[0])) > 3


def test_the_manifest_says_what_live_registration_says_and_imports_nothing(tmp_path: Path) -> None:
    script = """
import json, sys
from hermes.model_tools import get_tool_definitions
from hermes.tools.registry import registry
from hermes.tools.registration.manifest import _address, _record
first = get_tool_definitions(quiet_mode=True)
imported = sorted(name for name in sys.modules if name.startswith("hermes.tools.builtin."))
lazy = {name: tool for name, tool in registry.snapshot().items() if tool.lazy}
needed = [(_address(tool.traits.refine) or [""])[0] for tool in registry.snapshot().values()]
generation = registry.generation
shown = {}
for name, tool in lazy.items():
    handler = tool.entry.handler.load()
    live = registry.get(name)
    assert not live.lazy and live.entry.handler is handler
    shown[name] = [
        tool.entry.schema == live.entry.schema, tool.entry.toolset == live.entry.toolset,
        tool.entry.description == live.entry.description, tool.entry.emoji == live.entry.emoji,
        tool.entry.requires_env == live.entry.requires_env, tool.entry.is_async == live.entry.is_async,
        tool.entry.max_result_size_chars == live.entry.max_result_size_chars,
        (tool.entry.check_fn is None) == (live.entry.check_fn is None),
        _record(tool).flags == _record(live).flags, tool.traits.needs == live.traits.needs, tool.origin == live.origin,
    ]
print(json.dumps({
    "imported": imported, "needed": needed, "lazy": sorted(lazy), "same": shown,
    "moved": registry.generation - generation,
    "equal": first == get_tool_definitions(quiet_mode=True),
}))
"""
    env = {"PYTHONPATH": SOURCE, "HERMES_HOME": str(tmp_path / "h"), "PATH": os.environ["PATH"]}
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads(done.stdout))
    cold, warm = runs
    assert cold["lazy"] == []
    assert len(cold["imported"]) > 3
    assert set(warm["imported"]) <= set(warm["needed"]), "only what must word a schema anew is imported"
    assert len(warm["lazy"]) > 3
    assert all(all(parts) for parts in warm["same"].values()), warm["same"]
    assert warm["moved"] == 0
    assert warm["equal"]


def test_the_registry_knows_the_built_ins_before_anybody_asked_for_definitions(tmp_path: Path) -> None:
    script = """
from hermes.tools.registry import registry
registry.register(name="terminal", toolset="mine", schema={}, handler=print)
registry.register(name="mine", toolset="mine", schema={}, handler=print)
entry = registry.get_entry("terminal")
print(entry.toolset, callable(entry.handler), registry.get_toolset_for_tool("mine"), len(registry.rejections))
"""
    env = {"PYTHONPATH": SOURCE, "HERMES_HOME": str(tmp_path / "h"), "PATH": os.environ["PATH"]}
    for _ in range(2):  # without a manifest, and with one
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout == "terminal True mine 1\n"


def test_an_unreadable_manifest_costs_nothing_but_time(tmp_path: Path) -> None:
    cache = tmp_path / "h" / "cache"
    cache.mkdir(parents=True)
    (cache / "tools.json").write_text("{broken", encoding="utf-8")
    script = "from hermes.model_tools import get_all_tool_names as g; print(len(g()))"
    env = {"PYTHONPATH": SOURCE, "HERMES_HOME": str(tmp_path / "h"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) > 3
    assert json.loads((cache / "tools.json").read_text(encoding="utf-8"))["files"]


def test_all_presets_name_only_known_groups() -> None:
    for group in TOOLSETS.values():
        assert all(name in TOOLSETS for name in group["includes"])


def test_a_schema_that_is_no_json_costs_its_own_tool_only(extra: list[str], caplog: pytest.LogCaptureFixture) -> None:
    deep: dict[str, Any] = {}
    node = deep
    for _ in range(5000):
        node["items"] = {}
        node = node["items"]
    for name, parameters in (("code", {"x": print}), ("deep", deep), ("surrogate", {"x": "\ud800"}), ("fine", {})):
        add(extra, f"schema_{name}", "own", schema={"name": name, "description": "d", "parameters": parameters})
    assert names_of(model_tools.get_tool_definitions(["own"], quiet_mode=True)) == ["schema_fine"]
    assert "schema_deep" in caplog.text
