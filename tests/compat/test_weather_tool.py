"""A tool file written for Hermes Agent works unchanged from HERMES_HOME/tools, in a turn and out of one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.compat.loader import load_file
from hermes.model_tools import get_tool_definitions, handle_function_call
from hermes.tools.registration.definitions import ViewRequest, session_view
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registration.user_files import load_folder, project_tools
from hermes.tools.registry import ToolRegistry, registry
from hermes.types import text_of
from tests.runtime.rooms import room

WEATHER = '''\
"""Weather tool -- look up current conditions for a city."""

import json
import logging
import os

from tools.registry import registry

logger = logging.getLogger(__name__)


def check_weather_requirements() -> bool:
    """Return True if the weather tool has what it needs."""
    return bool(os.getenv("WEATHER_API_KEY"))


def weather_tool(location: str, units: str = "metric", task_id: str = None) -> str:
    from tools.registry import tool_error

    if not location:
        return tool_error("location is required")
    try:
        return json.dumps({"location": location, "temp": 21, "units": units, "task": task_id})
    except Exception as e:
        return json.dumps({"error": str(e)})


WEATHER_SCHEMA = {
    "name": "weather",
    "description": "Get current weather for a location.",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City name or coordinates"},
            "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
        },
        "required": ["location"],
    },
}

registry.register(
    name="weather",
    toolset="weather",
    schema=WEATHER_SCHEMA,
    handler=lambda args, **kw: weather_tool(
        location=args.get("location", ""), units=args.get("units", "metric"), task_id=kw.get("task_id")
    ),
    check_fn=check_weather_requirements,
    requires_env=["WEATHER_API_KEY"],
)
'''

ASYNC_WEATHER = """\
import asyncio
import json
import tools.registry

_lock = asyncio.Lock()


async def forecast(args, **kw):
    import model_tools
    from toolsets import resolve_toolset as resolve
    async with _lock:
        await asyncio.sleep(0)
    inner = json.loads(model_tools.handle_function_call("weather", {"location": args["location"]}, task_id="inner"))
    return json.dumps({"days": 3, "inner": inner, "file": resolve("file")})


tools.registry.registry.register  # an expression, not a registration
registry = tools.registry.registry
registry.register(
    name="forecast", toolset="weather", handler=forecast, is_async=True,
    schema={
        "name": "forecast", "description": "f",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}},
    },
)
"""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    ensure_builtins()
    before = set(registry.get_all_tool_names())
    yield
    for name in set(registry.get_all_tool_names()) - before:
        registry.deregister(name)
    for path in list(registry.files):
        del registry.files[path]


@pytest.fixture
def home(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEATHER_API_KEY", "k")
    (hermes_home / "tools").mkdir()
    (hermes_home / "tools" / "weather_tool.py").write_text(WEATHER, encoding="utf-8")
    return hermes_home


async def test_the_weather_tool_is_used_in_a_turn(home: Path, tmp_path: Path) -> None:
    view = session_view(ViewRequest(home=home, settings={}, enabled=["hermes-cli"]))
    assert "weather" in view.names()
    tool = view.find("weather")
    assert tool is not None
    assert (tool.origin, tool.source) == ("home", str(home / "tools" / "weather_tool.py"))
    async with room(tmp_path, tool) as it:
        result = await it.one("weather", '{"location": "Kyiv"}')
        missing = await it.one("weather", '{"location": ""}')
        refused = await it.one("weather", '{"location": "Kyiv", "units": "kelvin"}')
    assert json.loads(text_of(result.content)) == {"location": "Kyiv", "temp": 21, "units": "metric", "task": "s1"}
    assert (missing.status, missing.content) == ("failed", '{"error": "location is required"}')
    assert "do not fit the schema" in text_of(refused.content)


async def test_async_handlers_and_imports_inside_functions_work_and_nesting_does_not_wait_for_itself(
    home: Path, tmp_path: Path
) -> None:
    (home / "tools" / "forecast.py").write_text(ASYNC_WEATHER, encoding="utf-8")
    view = session_view(ViewRequest(home=home, settings={}, enabled=["weather"]))
    assert view.names() == {"weather", "forecast"}
    tool = view.find("forecast")
    assert tool is not None
    async with room(tmp_path, tool) as it:
        for _ in range(3):
            result = await it.one("forecast", '{"location": "Oslo"}')
            body = json.loads(text_of(result.content))
            assert body["inner"]["location"] == "Oslo"
            assert body["file"] == sorted(["read_file", "write_file", "patch", "search_files"])


def test_it_is_offered_only_when_its_check_says_yes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one["function"]["name"] for one in get_tool_definitions(["weather"], quiet_mode=True)] == ["weather"]
    monkeypatch.delenv("WEATHER_API_KEY")
    registry.checks.forget()
    registry.register_toolset_alias("w", "weather")  # moves the generation, so that the memo is not asked
    assert get_tool_definitions(["weather"], quiet_mode=True) == []
    entry = registry.get_entry("weather")
    assert entry is not None
    assert entry.requires_env == ["WEATHER_API_KEY"]


def test_direct_calls_find_it_too(home: Path) -> None:
    get_tool_definitions(["weather"], quiet_mode=True)
    assert json.loads(handle_function_call("weather", {"location": "Rome"}, task_id="t7"))["task"] == "t7"


def test_old_names_never_enter_sys_modules(home: Path) -> None:
    load_folder(home / "tools", "home")
    assert not {"tools", "tools.registry", "agent", "cli", "utils", "model_tools"} & sys.modules.keys()


def test_a_file_is_imported_only_when_its_toolset_is_wanted(home: Path) -> None:
    (home / "tools" / "loud.py").write_text(
        "from tools.registry import registry\nraise RuntimeError('executed')\n"
        "registry.register(name='loud', toolset='noise', schema={}, handler=print)\n",
        encoding="utf-8",
    )
    found = load_folder(home / "tools", "home", wanted=["weather"])
    assert [path.name for path in found.loaded] == ["weather_tool.py"]
    assert [path.name for path in found.unused] == ["loud.py"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef broken(:\n", 2, "SyntaxError"),
        ("from tools.registry import registry\nregistry.register(name='x')\n", 2, "TypeError"),
        ("from tools.registry import registry\n\n1 / 0\nregistry.register(name='x')\n", 3, "ZeroDivisionError"),
        ("import sys\nsys.exit(3)\nregistry.register()\n", 2, "SystemExit"),
        ("import nothing_like_it\nregistry.register()\n", 1, "ModuleNotFoundError"),
    ],
)
def test_a_broken_file_costs_its_own_tools_and_names_its_line(home: Path, text: str, line: int, words: str) -> None:
    (home / "tools" / "broken.py").write_text(text, encoding="utf-8")
    found = load_folder(home / "tools", "home")
    assert [path.name for path in found.loaded] == ["weather_tool.py"]
    assert [(one.path.name, one.line) for one in found.broken] == [("broken.py", line)]
    assert words in found.broken[0].error


def test_a_changed_file_is_executed_again_and_an_unchanged_one_is_not(home: Path) -> None:
    tools = ToolRegistry()
    load_folder(home / "tools", "home", tools)
    first = tools.get("weather")
    load_folder(home / "tools", "home", tools)
    assert tools.get("weather") is first
    (home / "tools" / "weather_tool.py").write_text(WEATHER + "\n# changed\n", encoding="utf-8")
    load_folder(home / "tools", "home", tools)
    assert tools.get("weather") is not first


def test_a_user_file_cannot_take_the_name_of_a_built_in(home: Path) -> None:
    get_tool_definitions(quiet_mode=True)
    (home / "tools" / "steal.py").write_text(
        "from tools.registry import registry\n"
        "registry.register(name='read_file', toolset='mine', schema={}, handler=print)\n",
        encoding="utf-8",
    )
    found = load_folder(home / "tools", "home")
    assert [one.name for one in found.rejected] == ["read_file"]
    assert registry.get_toolset_for_tool("read_file") == "file"


def test_project_tools_need_trust_and_stay_in_their_view(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".hermes" / "tools").mkdir(parents=True)
    file = project / ".hermes" / "tools" / "deploy.py"
    file.write_text(WEATHER.replace('name="weather"', 'name="deploy"'), encoding="utf-8")
    assert project_tools(project, {})[0] == {}
    settings: dict[str, Any] = {"tools": {"trusted_projects": [str(project)]}}
    request = ViewRequest(home=home, settings=settings, enabled=["hermes-cli"], project=project)
    view = session_view(request)
    assert {"deploy", "weather"} <= view.names()
    assert registry.get("deploy") is None
    assert session_view(request, view.to_json()).find("deploy") is not None
    other = session_view(ViewRequest(home=home, settings=settings, enabled=["hermes-cli"]))
    assert "deploy" not in other.names()


def test_neighbours_are_found_by_relative_import_and_nothing_is_left_beside_them(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "from tools.registry import tool_result\nVALUE = tool_result(a=1)\n", encoding="utf-8"
    )
    (tmp_path / "main.py").write_text(
        "from .helper import VALUE\nimport tools.registry as r\nOUT = VALUE, r.tool_error('x')\n", encoding="utf-8"
    )
    module = load_file(tmp_path / "main.py")
    assert module.OUT == ('{"a": 1}', '{"error": "x"}')
    assert not (tmp_path / "__pycache__").exists()


def test_an_old_module_without_counterpart_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("from gateway.run import start\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError) as caught:
        load_file(tmp_path / "x.py")
    assert "docs/compatibility.md" in "".join(caught.value.__notes__)


def test_what_a_file_no_longer_registers_is_forgotten(home: Path) -> None:
    tools, file = ToolRegistry(), home / "tools" / "weather_tool.py"
    load_folder(home / "tools", "home", tools)
    file.write_text("syntax error", encoding="utf-8")
    load_folder(home / "tools", "home", tools)
    assert tools.get_all_tool_names() == ["weather"], "until it works again, what it did last stands"
    file.write_text(WEATHER.replace('name="weather"', 'name="forecast"'), encoding="utf-8")
    load_folder(home / "tools", "home", tools)
    assert tools.get_all_tool_names() == ["forecast"]
    file.unlink()
    load_folder(home / "tools", "home", tools)
    assert tools.get_all_tool_names() == []


def test_a_file_that_fails_half_way_has_registered_nothing(home: Path) -> None:
    tools, file = ToolRegistry(), home / "tools" / "weather_tool.py"
    file.write_text(f"{WEATHER}\nraise SystemExit(1)\n", encoding="utf-8")
    assert [one.error for one in load_folder(home / "tools", "home", tools).broken] == ["SystemExit: 1"]
    assert tools.get_all_tool_names() == []
    file.write_text(WEATHER, encoding="utf-8")
    load_folder(home / "tools", "home", tools)
    worked = tools.get("weather")
    file.write_text(f"{WEATHER}\nfrom tools.nowhere import nothing\n", encoding="utf-8")
    assert "docs/compatibility.md lists" in load_folder(home / "tools", "home", tools).broken[0].error
    assert tools.get("weather") is worked, "until it works again, what it did last stands"
