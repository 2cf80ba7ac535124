"""The registry: the contract's collision rules, availability, queries, and safety under threads."""

import json
import logging
import threading
from typing import Any

import pytest

from hermes.tools.registration.availability import Checks
from hermes.tools.registry import ToolEntry, ToolRegistry, tool_error, tool_result
from hermes.tools.traits import Needs, Traits


def add(registry: ToolRegistry, name: str = "t", toolset: str = "one", **more: Any) -> None:
    schema = more.pop("schema", {"name": name, "description": "does", "parameters": {"type": "object"}})
    registry.register(
        name=name, toolset=toolset, schema=schema, handler=more.pop("handler", lambda args, **kw: "{}"), **more
    )


def test_entry_has_exactly_the_contract_fields() -> None:
    assert set(ToolEntry.__struct_fields__) == {
        "name", "toolset", "schema", "handler", "check_fn", "requires_env", "is_async", "description", "emoji",
        "max_result_size_chars", "dynamic_schema_overrides",
    }  # fmt: skip


def test_same_toolset_replaces_silently_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    add(registry)
    add(registry, emoji="🌧")
    assert registry.generation == 2
    assert registry.get_emoji("t") == "🌧"
    assert not caplog.records


def test_other_toolset_is_rejected_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    add(registry)
    add(registry, toolset="two")
    assert registry.get_toolset_for_tool("t") == "one"
    assert registry.generation == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert registry.rejections[0].owner == "one"


def test_override_replaces_with_an_info_line(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    add(registry)
    with caplog.at_level(logging.INFO):
        add(registry, toolset="two", override=True)
    assert registry.get_toolset_for_tool("t") == "two"
    assert registry.generation == 2
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert registry.get_registered_toolset_names() == ["two"]


def test_mcp_over_mcp_is_allowed_but_never_over_a_built_in() -> None:
    registry = ToolRegistry()
    add(registry, toolset="mcp-a")
    add(registry, toolset="mcp-b")
    assert registry.get_toolset_for_tool("t") == "mcp-b"
    add(registry, name="own", toolset="file")
    add(registry, name="own", toolset="mcp-a")
    assert registry.get_toolset_for_tool("own") == "file"


def test_first_check_of_a_toolset_stays_its_check() -> None:
    registry = ToolRegistry()
    add(registry, name="a", check_fn=lambda: False)
    add(registry, name="b", check_fn=lambda: True)
    assert registry.is_toolset_available("one") is False
    assert registry.is_toolset_available("none such") is True
    assert registry.check_toolset_requirements() == {"one": False}


def test_deregister_of_the_last_tool_takes_check_and_aliases_along() -> None:
    registry = ToolRegistry()
    add(registry, check_fn=lambda: False)
    registry.register_toolset_alias("uno", "one")
    assert registry.generation == 2
    registry.deregister("nobody")
    assert registry.generation == 2
    registry.deregister("t")
    assert registry.generation == 3
    assert registry.get_registered_toolset_aliases() == {}
    assert registry.is_toolset_available("one") is True


@pytest.mark.parametrize(
    "bad",
    [
        *({"name": ""}, {"name": 3}, {"toolset": ""}, {"schema": "no"}, {"handler": "no"}),
        *({"check_fn": "no"}, {"dynamic_schema_overrides": {"a": 1}}),
        *({"max_result_size_chars": size} for size in ("100", 0, -1, float("nan"))),
    ],
    ids=str,
)
def test_a_shapeless_registration_is_a_type_error(bad: dict[str, Any]) -> None:
    registry = ToolRegistry()
    whole: dict[str, Any] = {"name": "t", "toolset": "one", "schema": {}, "handler": print} | bad
    with pytest.raises(TypeError):
        registry.register(**whole)
    assert registry.generation == 0


def test_one_variable_may_be_named_without_a_list() -> None:
    registry = ToolRegistry()
    add(registry, requires_env="WEATHER_API_KEY")
    assert registry.get_toolset_requirements()["one"]["env_vars"] == ["WEATHER_API_KEY"]


def test_definitions_are_sorted_available_and_named_by_their_entry() -> None:
    registry = ToolRegistry()
    add(registry, name="b", schema={"name": "other", "description": "d"})
    add(registry, name="a")
    add(registry, name="c", check_fn=lambda: False)
    found = registry.get_definitions({"c", "b", "a", "zz"}, quiet=True)
    assert [one["function"]["name"] for one in found] == ["a", "b"]
    assert all(one["type"] == "function" for one in found)


def test_dynamic_schema_is_merged_and_its_failure_leaves_the_static_one(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    add(registry, name="a", dynamic_schema_overrides=lambda: {"description": "now"})
    add(registry, name="b", dynamic_schema_overrides=lambda: 1 / 0)
    add(registry, name="c", dynamic_schema_overrides=lambda: "nonsense")
    texts = {one["function"]["name"]: one["function"]["description"] for one in registry.get_definitions("abc")}
    assert texts == {"a": "now", "b": "does", "c": "does"}
    assert "'b'" in caplog.text


def test_a_shared_check_runs_once_in_a_pass_and_is_cached_across_passes() -> None:
    now = [0.0]
    registry = ToolRegistry()
    registry.checks = Checks(clock=lambda: now[0])
    ran: list[int] = []

    def check() -> bool:
        ran.append(1)
        return True

    add(registry, name="a", check_fn=check)
    add(registry, name="b", check_fn=check)
    registry.get_definitions({"a", "b"})
    registry.get_definitions({"a", "b"})
    assert len(ran) == 1
    now[0] = 31.0
    registry.get_definitions({"a", "b"})
    assert len(ran) == 2


def test_a_failure_soon_after_a_success_is_a_flake_and_later_is_believed() -> None:
    now = [0.0]
    checks = Checks(clock=lambda: now[0])
    answers = iter([True, False, False])

    def check() -> bool:
        return next(answers)

    assert checks.ask(check) is True
    now[0] = 40.0
    assert checks.ask(check) is True, "within a minute of a yes"
    now[0] = 70.0
    assert checks.ask(check) is False


def test_a_check_that_raises_leaves_or_hangs_means_unavailable_with_a_reason() -> None:
    forever = threading.Event()
    checks = Checks(hang_s=0.05)

    def leaves() -> bool:
        raise SystemExit(3)

    def hangs() -> bool:
        return forever.wait()

    def breaks() -> bool:
        raise RuntimeError("boom")

    assert [checks.ask(leaves), checks.ask(hangs), checks.ask(breaks)] == [False, False, False]
    assert "boom" in checks.reason(breaks)
    assert "did not answer" in checks.reason(hangs)
    assert checks.abandoned == 1
    forever.set()


def test_needs_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_NO_SUCH", raising=False)
    assert Needs(env=("HERMES_NO_SUCH",)).missing() == "HERMES_NO_SUCH is not set"
    assert "hermes-no-such-program" in Needs(binaries=("hermes-no-such-program",)).missing()
    assert "no_such_pkg.sub" in Needs(modules=("no_such_pkg.sub",)).missing()
    assert Needs(modules=("json",), binaries=("sh",))()
    registry = ToolRegistry()
    add(registry, traits=Traits(needs=Needs(env=("HERMES_NO_SUCH",))))
    entry = registry.get_entry("t")
    assert entry is not None
    assert registry.checks.why_not(entry.check_fn) == "HERMES_NO_SUCH is not set"
    assert entry.requires_env == ["HERMES_NO_SUCH"]
    assert entry.check_fn is not None


def test_result_limit_falls_back_to_the_default() -> None:
    registry = ToolRegistry()
    add(registry, name="a", max_result_size_chars=float("inf"))
    add(registry, name="b")
    assert registry.get_max_result_size("a") == float("inf")
    assert registry.get_max_result_size("b", 5) == 5
    assert registry.get_max_result_size("b") == 100_000


def test_results_and_errors_keep_non_ascii() -> None:
    assert tool_error("größer", code=3) == '{"error": "größer", "code": 3}'
    assert tool_result(lines=3) == '{"lines": 3}'
    assert tool_result([1, 2]) == "[1, 2]"
    assert json.loads(tool_result({"a": 1}, b=2)) == {"a": 1, "b": 2}


def test_many_threads_register_and_read_without_losing_a_change() -> None:
    registry = ToolRegistry()
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for count in range(50):
            add(registry, name=f"t{number}_{count}")
            registry.get_definitions(registry.get_all_tool_names(), quiet=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.generation == 400
    assert len(registry.get_all_tool_names()) == 400


def test_a_file_that_loads_registers_into_the_target_only() -> None:
    outer, local = ToolRegistry(), ToolRegistry()
    with local.loading("project", "x.py"):
        add(outer)
    assert outer.get_entry("t") is None
    tool = local.get("t")
    assert tool is not None
    assert (tool.origin, tool.source) == ("project", "x.py")
