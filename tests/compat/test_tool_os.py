"""A tool file reads the variables of .env that it asks for, and no others; the process's environment is not written."""

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.compat.tool_os import NAME, names_asked_for, with_own_os
from hermes.tools.registration.definitions import ViewRequest, session_view
from hermes.tools.registration.user_files import load_folder
from hermes.tools.registry import ToolRegistry, registry
from hermes.tools.traits import Needs
from hermes.types import text_of
from tests.runtime.rooms import room

DOTENV = "OVEN_KEY=from-dotenv\nOTHER_KEY=of-another-tool\nSPARE_KEY=of-nobody\n"
LOOK = """
def look():
    seen = {name: os.environ.get(name) for name in ("OVEN_KEY", "OTHER_KEY", "SPARE_KEY")}
    return {**seen, "listed": sorted(name for name in os.environ if name.endswith("_KEY"))}
"""
TOOL = """
import json
IMPORT
TOP = os.getenv("OVEN_KEY")
LOOK

def check():
    return bool(os.getenv("OVEN_KEY"))


def handler(args, **kw):
    return json.dumps({"top": TOP, "getenv": os.getenv("OVEN_KEY"), "none": os.getenv("SPARE_KEY", "none"), **look()})


registry.register(name="oven", toolset="oven", schema={"name": "oven", "parameters": {"type": "object"}},
    handler=handler, check_fn=check, requires_env=["OVEN_KEY"])
"""
ONLY_OVEN = {"OVEN_KEY": "from-dotenv", "OTHER_KEY": None, "SPARE_KEY": None, "listed": ["OVEN_KEY"]}


@pytest.fixture(autouse=True)
def _no_keys_exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.endswith("_KEY")]:
        monkeypatch.delenv(name)
    before = _environment()
    yield
    assert _environment() == before


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture
def home(hermes_home: Path) -> Iterator[Path]:
    (hermes_home / ".env").write_text(DOTENV)
    (hermes_home / "tools").mkdir()
    before = set(registry.snapshot())
    yield hermes_home
    for name in set(registry.snapshot()) - before:
        registry.deregister(name)


def written(home: Path, text: str, name: str = "oven.py", imports: str = "import os", look: str = LOOK) -> None:
    text = text.replace("IMPORT", f"{imports}\nfrom tools.registry import registry").replace("LOOK", look)
    (home / "tools" / name).write_text(text)


def called(home: Path, name: str = "oven") -> dict[str, Any]:
    tools = ToolRegistry()
    assert load_folder(home / "tools", "home", tools).broken == []
    found = tools.get(name)
    assert found is not None
    assert tools.checks.ask(found.entry.check_fn)
    answer: dict[str, Any] = json.loads(tools.dispatch(name, {}))
    return answer


async def test_check_and_handler_in_a_turn_see_what_the_tool_asks_for(home: Path, tmp_path: Path) -> None:
    written(home, TOOL)
    view = session_view(ViewRequest(home=home, settings={}, enabled=["oven"]))
    tool = view.find("oven")
    assert tool is not None
    async with room(tmp_path, tool) as it:
        answer = json.loads(text_of((await it.one("oven", "{}")).content))
    assert answer == {"top": "from-dotenv", "getenv": "from-dotenv", "none": "none", **ONLY_OVEN}


@pytest.mark.parametrize(
    "imports",
    [
        "import os",
        "import json, os",
        "import os.path",
        "import os as system\nos = system",
        "import os\nfrom os import environ, getenv as asked\nassert environ is os.environ and asked('OVEN_KEY')",
        "from os import *\nimport os\nassert getenv('OVEN_KEY') and environ is os.environ",
        "def late():\n    import os\n    return os\nos = late()",
        "class Held:\n    import os\n    from os import environ\nos = Held.os\nassert Held.environ['OVEN_KEY']",
    ],
)
def test_every_way_to_import_it(home: Path, imports: str) -> None:
    written(home, TOOL, imports=imports)
    assert called(home)["getenv"] == "from-dotenv"


def test_each_file_sees_only_what_it_names(home: Path) -> None:
    written(home, TOOL)
    other = TOOL.replace("OVEN_KEY", "OTHER_KEY").replace('"oven"', '"other"')
    written(home, other, "other.py", look=LOOK.replace('"OVEN_KEY", "OTHER_KEY"', '"OTHER_KEY", "OVEN_KEY"'))
    assert called(home)["listed"] == ["OVEN_KEY"]
    assert called(home, "other")["listed"] == ["OTHER_KEY"]


def test_names_that_only_the_registration_tells_count_too(home: Path) -> None:
    written(home, TOOL.replace('requires_env=["OVEN_KEY"]', 'requires_env="OVEN_KEY other".split()[:1]'))
    assert {**called(home), "top": None} == {"top": None, "getenv": "from-dotenv", "none": "none", **ONLY_OVEN}


def test_a_file_beside_it_sees_what_the_files_of_the_folder_name(home: Path) -> None:
    (home / "tools" / "_shared.py").write_text(f"import os\n{LOOK}\n")
    written(home, TOOL, look="\nfrom ._shared import look\n")
    assert called(home)["OVEN_KEY"] == "from-dotenv"
    assert called(home)["SPARE_KEY"] is None


def test_what_is_exported_wins_and_changes_are_the_environments(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home, TOOL)
    monkeypatch.setenv("OVEN_KEY", "exported")
    assert called(home)["getenv"] == "exported"
    monkeypatch.delenv("OVEN_KEY")
    changing = TOOL.replace("return json.dumps(", "os.environ['MADE'] = '1'\n    return json.dumps(")
    written(home, changing)
    assert called(home)["getenv"] == "from-dotenv"
    assert os.environ.pop("MADE") == "1"


def test_a_value_that_is_changed_in_the_file_is_seen_at_once(home: Path) -> None:
    written(home, TOOL)
    assert called(home)["getenv"] == "from-dotenv"
    (home / ".env").write_text("OVEN_KEY=newer\n")
    assert called(home)["getenv"] == "newer"


def test_needs_are_met_by_it(home: Path) -> None:
    assert Needs(env=("OVEN_KEY",)).missing() == ""
    assert Needs(env=("GONE_KEY",)).missing() == "GONE_KEY is not set"
    assert Needs(any_env=("GONE_KEY", "OVEN_KEY")).missing() == ""


def test_the_view_is_a_mapping_like_the_real_one(home: Path) -> None:
    lines = [
        "made = os.environ.copy()",
        "assert type(made) is dict and made['OVEN_KEY'] == 'from-dotenv' and 'SPARE_KEY' not in made",
        "assert (os.environ | {'X': '1'})['X'] == '1' and ({'X': '1'} | os.environ)['OVEN_KEY'] == 'from-dotenv'",
        "assert {**os.environ} == made and len(os.environ) == len(made) and 'OVEN_KEY' in os.environ",
        "assert os.path.join('a', 'b') == 'a/b' and os.sep == '/' and isinstance(os.getpid(), int)",
        "assert 'from-dotenv' not in repr(os.environ)",
    ]
    written(home, TOOL, imports="import os\n" + "\n".join(lines))
    assert called(home)["getenv"] == "from-dotenv"


def test_the_text_tells_which_variables_are_asked_for() -> None:
    text = """
A = ["ONE", "TWO"]
registry.register(name="x", requires_env=A)
registry.register(name="y", requires_env=("THREE",))
@tool(needs=Needs(env=["FOUR"], any_env=("FIVE",)), env=["not"])
def f(): ...
"""
    assert names_asked_for(ast.parse(text)) == {"ONE", "TWO", "THREE", "FOUR", "FIVE"}


def test_other_imports_and_lines_stay_as_they_are() -> None:
    text = "import json, sys\nimport os.path as p\nfrom os.path import join\nfrom .os import x\n"
    assert ast.unparse(with_own_os(ast.parse(text))) == ast.unparse(ast.parse(text))
    changed = with_own_os(ast.parse("import json, os\n\n\nimport os as o, sys\n"))
    assert ast.unparse(changed) == f"import json\nos = {NAME}\no = {NAME}\nimport sys"
    assert [node.lineno for node in changed.body] == [1, 1, 4, 4]
