"""New sessions that ask for the same tools are offered the same, as long as nothing has changed."""

import time
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from hermes.runtime.setup.tool_view_cache import ToolViewCache
from hermes.tools.registration.availability import CACHE_S
from hermes.tools.registration.definitions import ViewRequest
from hermes.tools.registry import registry

ASKED = ViewRequest(home=Path("/home"), settings=MappingProxyType({}), enabled=["file"])
OTHER_SETTINGS = MappingProxyType({"toolsets": "others"})


@pytest.fixture
def views() -> ToolViewCache:
    made = ToolViewCache()
    made.choose(ASKED, "definitions")
    return made


def test_the_same_question_has_the_same_answer(views: ToolViewCache) -> None:
    assert views.chosen(replace(ASKED)) == "definitions"


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, settings=OTHER_SETTINGS),
        replace(ASKED, enabled=["file", "terminal"]),
        replace(ASKED, enabled=None),
        replace(ASKED, disabled=["file"]),
        replace(ASKED, home=Path("/other")),
        replace(ASKED, window_tokens=8_000),
    ],
)
def test_another_question_is_not_answered(views: ToolViewCache, asked: ViewRequest) -> None:
    assert views.chosen(asked) is None


def test_a_change_of_the_tools_or_of_the_environment_is_seen(
    views: ToolViewCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setenv("HERMES_KANBAN_TASK", "1")
        assert views.chosen(ASKED) is None
    assert views.chosen(ASKED) == "definitions"
    registry.register_toolset_alias("test-views", "file")
    assert views.chosen(ASKED) is None


def test_tools_are_asked_again_in_time_whether_they_are_available(
    views: ToolViewCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.monotonic() + CACHE_S + 1
    monkeypatch.setattr("hermes.runtime.setup.tool_view_cache.monotonic", lambda: later)
    assert views.chosen(ASKED) is None
