"""`./check --changed`: which tests a change calls for, in small repositories and in this one."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.pick_tests import EVERYTHING, SMOKE, Graph, changed_files, module_of, pick

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "src/hermes/__init__.py": "",
    "src/hermes/words.py": "",
    "src/hermes/models/__init__.py": "",
    "src/hermes/models/wire.py": "from hermes.words import WORD",
    "src/hermes/models/client.py": "def call():\n    from hermes.models import wire",
    "src/hermes/models/prices.json": "{}",
    "src/hermes/models/providers/metadata.py": 'FILE = "prices.json"',
    "src/hermes/runtime/__init__.py": "",
    "src/hermes/runtime/loop.py": "import hermes.models.client",
    "src/hermes/runtime/agent.py": "from hermes.runtime.loop import run",
    "src/hermes/runtime/typed.py": "if TYPE_CHECKING:\n    from hermes.models.client import Client",
    "src/hermes/cli/__init__.py": "",
    "src/hermes/cli/main.py": 'COMMANDS = Table("hermes.cli.commands")',
    "src/hermes/cli/commands/__init__.py": "",
    "src/hermes/cli/commands/explain.py": 'FOLDER = "topics"',
    "src/hermes/cli/topics/songs.txt": "",
    "src/hermes/models/effects/lonely.py": "",
    "src/hermes/cli/commands/sing_song.py": "",
    "src/hermes/cli/commands/help_.py": "",
    "tests/conftest.py": "",
    "tests/helpers.py": "from hermes.models import client",
    "tests/models/conftest.py": "",
    "tests/models/drawing.txt": "",
    "tests/models/test_wire.py": "",
    "tests/models/test_client.py": "from hermes.models.client import Client",
    "tests/models/test_prices.py": "import hermes.models.providers.metadata",
    "tests/runtime/test_loop.py": "from hermes.runtime.loop import run",
    "tests/runtime/test_agent.py": "from hermes.runtime.agent import Agent",
    "tests/runtime/test_typed.py": "from hermes.runtime import typed",
    "tests/cli/test_words.py": 'run("sing-song")',
    "tests/cli/test_other.py": 'run("hermes.cli.main", "help")',
    "tests/cli/test_explain.py": "import hermes.cli.commands.explain",
    "tests/other/test_helped.py": "from tests.helpers import make",
    "tests/other/test_far.py": "",
    "tests/docs/test_blocks.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "picked"),
    [
        # Its own folder, however deep; another folder one step further; helpers of tests all the way.
        ("src/hermes/models/wire.py", "models/test_client models/test_wire other/test_helped runtime/test_loop"),
        ("src/hermes/models/client.py", "models/test_client other/test_helped runtime/test_loop"),
        ("src/hermes/runtime/loop.py", "runtime/test_agent runtime/test_loop"),
        ("src/hermes/models/prices.json", "models/test_prices"),
        ("src/hermes/cli/commands/sing_song.py", "cli/test_words"),
        ("src/hermes/cli/commands/help_.py", "cli/test_other"),
        ("src/hermes/models/deleted.py", ""),
        # Which test reaches these cannot be told: whoever names their folder, or all beside them.
        ("src/hermes/cli/topics/songs.txt", "cli/test_explain"),
        ("src/hermes/models/effects/lonely.py", "models/test_client models/test_prices models/test_wire"),
        ("tests/helpers.py", "other/test_helped"),
        ("tests/models/conftest.py", "models/test_client models/test_prices models/test_wire"),
        ("tests/models/drawing.txt", "models/test_client models/test_prices models/test_wire"),
        ("tests/other/test_far.py", "other/test_far"),
        ("README.md", "docs/test_blocks"),
        ("docs/context.md", "docs/test_blocks"),
        ("docs/decisions/one.md", ""),
        ("CHANGELOG.md", ""),
    ],
)
def test_a_change_calls_for_the_tests_that_import_it(root: Path, changed: str, picked: str) -> None:
    found = pick(root, [changed])
    assert (found.tests, found.why_all) == (tuple(f"tests/{name}.py" for name in picked.split()), "")


def test_tests_of_real_parts_run_beside_the_change(root: Path) -> None:
    changed = ["src/hermes/models/wire.py", "tests/other/test_far.py"]
    assert pick(root, changed).near == ("tests/models", "tests/other")


@pytest.mark.parametrize("name", [*EVERYTHING, "tests/conftest.py"])
def test_what_all_tests_run_with_calls_for_all_and_says_so(root: Path, name: str) -> None:
    assert pick(root, ["tests/other/test_far.py", name]) == (
        (),
        f"{name} changed, which all of them run with",
        (),
    )


def test_a_module_that_nearly_everything_imports_calls_for_all_and_says_so(root: Path) -> None:
    for test in list((root / "tests").rglob("test_*.py"))[:8]:
        test.write_text("import hermes.words\n")
    picked = pick(root, ["src/hermes/words.py"])
    assert picked.tests == ()
    assert "the change reaches" in picked.why_all


def test_what_is_committed_changed_deleted_and_new_since_main_counts(root: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@x")
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", "-A")
    git("commit", "-m", "all")
    git("checkout", "-b", "work")
    assert changed_files(root) == []
    (root / "tests/other/test_far.py").write_text("changed\n")
    git("commit", "-am", "on the branch")
    git("checkout", "main")
    (root / "LICENSE").write_text("on main alone\n")
    git("add", "-A")
    git("commit", "-m", "on main")
    git("checkout", "work")
    (root / "src/hermes/words.py").write_text("uncommitted = 1\n")
    (root / "src/hermes/new word.py").write_text("")
    (root / "tests/helpers.py").unlink()
    uncommitted = ["src/hermes/new word.py", "src/hermes/words.py", "tests/helpers.py"]
    assert changed_files(root) == [*uncommitted, "tests/other/test_far.py"]
    assert changed_files(root, "HEAD") == uncommitted
    with pytest.raises(SystemExit, match="no commit 'nowhere'"):
        changed_files(root, "nowhere")


# -- in this repository --------------------------------------------------------------------------------------------


def test_the_smoke_tests_are_there() -> None:
    for test in SMOKE:
        file, _, name = test.partition("::")
        assert name in (ROOT / file).read_text(encoding="utf-8"), test


def test_a_change_in_one_folder_calls_for_a_fraction() -> None:
    graph = Graph(ROOT)
    folders = ("tools/files", "tools/builtin", "models", "context", "host/commands", "surfaces/cli/interactive")
    for folder in folders:
        for file in sorted((ROOT / "src/hermes" / folder).glob("[a-z]*.py")):
            found = pick(ROOT, [file.relative_to(ROOT).as_posix()], graph)
            assert found.why_all == "", file
            assert len(found.tests) < len(graph.tests) / 2, file


def test_every_module_calls_for_a_test_beside_the_smoke_tests() -> None:
    graph = Graph(ROOT)
    modules = [name for name in graph.files.values() if name.startswith("src/hermes/")]
    bare = [name for name in modules if not graph.tests_of(str(module_of(name)))]
    assert bare == ["src/hermes/__main__.py"]


def test_the_command_line_prints_paths_for_pytest_and_a_word_beside(root: Path) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts/pick_tests.py", "no such commit"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "check: there is no commit 'no such commit' to compare with\n"
