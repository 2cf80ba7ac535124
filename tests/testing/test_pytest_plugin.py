"""The fixtures that users' own tests get, seen from such tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hermes

SOURCE = Path(hermes.__file__).parents[1]
HEAD = """
import os
from hermes.testing import calls, says
"""


def run_tests(folder: Path, text: str, *also_on_path: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "test_one.py").write_text(HEAD + text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    path = os.pathsep.join(map(str, (SOURCE, *also_on_path)))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path, "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "hermes.testing.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_an_agent_works_in_an_empty_workspace_and_an_empty_home(tmp_path: Path) -> None:
    done = run_tests(
        tmp_path,
        """
def test_it(scripted_model, hermes_agent, hermes_workspace):
    model = scripted_model(calls("terminal", command="pwd; echo made > here.txt"), says("Done."))
    assert hermes_agent(model, enabled_toolsets=["terminal"]).chat("Go") == "Done."
    assert (hermes_workspace / "here.txt").read_text() == "made\\n"
    home = os.environ["HERMES_HOME"]
    assert os.path.dirname(home) == str(hermes_workspace.parent)
    assert os.path.exists(home + "/state.db")
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / ".hermes").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def test_it(scripted_model): scripted_model(says('never asked for'))\n",
            "1 lines of the script were not asked for",
        ),
        (
            "def test_it(scripted_server): scripted_server(says('never asked for'))\n",
            "the script was not played to its end",
        ),
    ],
)
def test_a_script_that_was_not_played_to_its_end_fails_the_test(tmp_path: Path, text: str, told: str) -> None:
    done = run_tests(tmp_path, text)
    assert done.returncode == 1
    assert told in done.stdout


def test_the_fixtures_are_named_in_the_list_of_fixtures(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "pytest", "--fixtures", "-p", "hermes.testing.pytest_plugin"]
    listed = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    for name in ("hermes_workspace", "scripted_model", "scripted_server", "hermes_agent"):
        assert f"\n{name} " in listed.stdout


def test_naming_the_plugin_where_it_is_installed_is_no_error(tmp_path: Path) -> None:
    declared = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    lines = [f"{name} = {module}" for name, module in declared["project"]["entry-points"]["pytest11"].items()]
    installed = tmp_path / "installed" / "hermes_runtime_here-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-runtime-here\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))

    done = run_tests(tmp_path, "def test_it(scripted_model): scripted_model()\n", installed.parent)

    assert done.returncode == 0, done.stdout + done.stderr
