"""`hermes.compat.install()`: scripts with old imports run; names of users' own packages stay theirs."""

import os
import subprocess
import sys
from pathlib import Path

from hermes.compat import MODULES

SOURCE = str(Path(__file__).parents[2] / "src")


def run(script: str, folder: Path) -> str:
    env = {"PYTHONPATH": SOURCE, "HERMES_HOME": str(folder / "h"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scripts_import_the_old_names_only_after_install(tmp_path: Path) -> None:
    script = """
try:
    import run_agent
except ModuleNotFoundError as error:
    print("before:", error.name)
import hermes.compat
hermes.compat.install()
hermes.compat.install()
from run_agent import AIAgent
from model_tools import TOOL_TO_TOOLSET_MAP, TOOLSET_REQUIREMENTS, get_tool_definitions
assert TOOL_TO_TOOLSET_MAP["read_file"] == "file" and "file" in TOOLSET_REQUIREMENTS
import model_tools
assert model_tools.__spec__.name == "hermes.model_tools"
from toolsets import resolve_toolset
import hermes
print(AIAgent is hermes.AIAgent, len(resolve_toolset("file")))
try:
    import tools
except ModuleNotFoundError as error:
    print("still:", error.name)
"""
    assert run(script, tmp_path) == "before: run_agent\nTrue 4\nstill: tools\n"


def test_a_module_of_the_users_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "toolsets.py").write_text("MINE = True\n", encoding="utf-8")
    script = "import hermes.compat; hermes.compat.install(); import toolsets; print(toolsets.MINE)"
    assert run(script, tmp_path) == "True\n"


def test_every_module_of_the_map_imports(tmp_path: Path) -> None:
    script = """
import importlib
from hermes.compat import MODULES
for name in MODULES.values():
    importlib.import_module(name)
print(len(MODULES))
"""
    assert run(script, tmp_path) == f"{len(MODULES)}\n"


def test_every_module_of_the_map_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
    assert [name for name in MODULES if f"`{name}`" not in page] == []
