"""Importing Hermes only defines things, and `hermes --version` imports next to nothing."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.testing.replies import says
from hermes.testing.server import ServerThread

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"

# What `hermes --version` may load beyond what the interpreter itself has at start. Each costs every command its time.
VERSION_BUDGET = {
    "hermes",
    "hermes.surfaces",
    "hermes.surfaces.cli",
    "hermes.surfaces.cli.main",
    "__future__",
    "collections",
    "collections.abc",
    "heapq",
    "itertools",
    "keyword",
    "operator",
    "reprlib",
    "_collections",
    "_operator",
}

# What the second `hermes chat -q` in a home may load: every one of them pays for it before its request is sent.
CHAT_MODULES = 240
CHAT_BYTES = 1_260_000  # of our own source
CHAT_LIBRARIES = {
    *("aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "click", "cython_runtime", "frozenlist", "idna", "msgspec"),
    *("multidict", "propcache", "typing_extensions", "yarl"),
}

# What the first prompt of a conversation comes before, and how many modules of ours it may load.
PROMPT_LATER = {
    *("hermes.tools.approval.gate", "hermes.tools.approval.analysis", "hermes.surfaces.cli.chat.headless"),
    *("aiohttp", "http.client", "pygments", "rich", "tree_sitter", "urllib.request", "yaml"),
}
PROMPT_MODULES = 225


def modules(source: Path = SRC) -> list[str]:
    """Return the names of all modules under `source`, from the files: nothing is imported to find them."""
    paths = (file.relative_to(source).with_suffix("") for file in source.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


# Runs in the fresh process. Only what our own code does is counted: going up the stack from the act, the first frame
# is either ours, or belongs to the import system, and then it was a library's import or the reading of a module file.
# gettext is let off: `click.Path(...)` in a decorator has click look up the word "file" in the user's language.
PROBE = """
import sys, os, _thread, json, io

acts = []

def blame(act):
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] == PACKAGE:
            acts.append(f"{name}:{frame.f_lineno}: {act}")
            return
        if name.startswith("importlib._bootstrap") or name == "gettext":
            return
        frame = frame.f_back

ACTS = ("open", "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.putenv",
        "os.listdir", "os.scandir", "os.mkdir", "os.chdir", "sqlite3.", "ctypes.dlopen", "signal.", "pty.")

def hook(event, arguments):
    if event.startswith(ACTS):
        blame(f"{event} {arguments[:1]!r}")

class Watched(type(os.environ)):
    def __getitem__(self, key):
        blame(f"reads the environment ({key!r})")
        return super().__getitem__(key)
    def __iter__(self):
        blame("reads the environment")
        return super().__iter__()
    def __contains__(self, key):
        blame(f"reads the environment ({key!r})")
        return super().__contains__(key)
    def get(self, key, default=None):
        blame(f"reads the environment ({key!r})")
        return super().get(key, default)
    def copy(self):
        blame("reads the environment")
        return super().copy()

def watch(module, name):
    real = getattr(module, name)
    def watched(*a, **k):
        blame(f"starts a thread")
        return real(*a, **k)
    setattr(module, name, watched)

PACKAGE, *names = json.loads(sys.stdin.read())
watch(_thread, "start_new_thread")
import threading
watch(threading, "_start_new_thread")
os.environ.__class__ = Watched
sys.addaudithook(hook)
import importlib
failed = []
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}: {error}")
report = {"acts": acts, "failed": failed, "threads": threading.active_count(), "loaded": len(names)}
os.write(3, json.dumps(report).encode())
"""


def probe(source: Path, package: str, folder: Path) -> tuple[dict[str, object], str]:
    """Import all modules under `source` in a fresh process; return its report and what it printed."""
    result = folder / "report.json"
    with result.open("wb") as report:
        ran = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" 3>"$0"', report.name, sys.executable, "-P", "-c", PROBE],
            input=json.dumps([package, *modules(source)]),
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
        )
    assert ran.returncode == 0, ran.stderr
    return json.loads(result.read_bytes()), ran.stdout + ran.stderr


def test_importing_every_module_only_defines_things(tmp_path: Path) -> None:
    report, printed = probe(SRC, "hermes", tmp_path)

    assert report == {"acts": [], "failed": [], "threads": 1, "loaded": len(modules())}
    assert printed == ""


@pytest.mark.parametrize(
    ("source", "act"),
    [
        ("import os\nos.environ.get('A')", "reads the environment"),
        ("import os\nos.getenv('A')", "reads the environment"),
        ("import os\n'A' in os.environ", "reads the environment"),
        ("import os\ndict(os.environ)", "reads the environment"),
        ("from os import environ\ntry:\n    environ['A']\nexcept KeyError:\n    pass", "reads the environment"),
        ("from pathlib import Path\nPath.home()", "reads the environment"),
        ("open('/dev/null').close()", "open"),
        ("from pathlib import Path\nPath('/etc/hostname').exists() and Path('/etc/hostname').read_text()", "open"),
        ("import socket\nsocket.socket().close()", "socket.__new__"),
        ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
        ("import os\nos.waitpid(os.fork() or os._exit(0), 0)", "os.fork"),
        ("import threading\nthreading.Thread(target=int).start()", "starts a thread"),
        ("import _thread\n_thread.start_new_thread(int, ())", "starts a thread"),
        ("import sqlite3\nsqlite3.connect(':memory:').close()", "sqlite3.connect"),
        ("import os\nos.listdir('/')", "os.listdir"),
    ],
)
def test_an_act_at_import_is_seen(tmp_path: Path, source: str, act: str) -> None:
    (tmp_path / "src/acting").mkdir(parents=True)
    (tmp_path / "src/acting/__init__.py").touch()
    (tmp_path / "src/acting/module.py").write_text(source)

    report, _ = probe(tmp_path / "src", "acting", tmp_path)

    acts = report["acts"]
    assert isinstance(acts, list)
    assert any(line.startswith("acting.module:") and act in line for line in acts), acts


def test_declaring_a_command_with_click_is_no_act(tmp_path: Path) -> None:
    (tmp_path / "src/acting").mkdir(parents=True)
    (tmp_path / "src/acting/__init__.py").write_text(
        "import click\nclick.argument('file', type=click.Path(dir_okay=False))"
    )

    assert probe(tmp_path / "src", "acting", tmp_path)[0]["acts"] == []


def test_printing_at_import_is_seen(tmp_path: Path) -> None:
    (tmp_path / "src/acting").mkdir(parents=True)
    (tmp_path / "src/acting/__init__.py").write_text("print('hello')")

    assert probe(tmp_path / "src", "acting", tmp_path)[1] == "hello\n"


def test_putting_an_agent_together_takes_few_modules() -> None:
    """A capability joins as a part (`runtime/parts/`), not by one more import here."""
    tree = ast.parse((SRC / "hermes/runtime/setup/assembly.py").read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert 10 < sum(len(node.names) if isinstance(node, ast.Import) else 1 for node in found) <= 25


def test_asking_for_the_version_imports_the_named_few() -> None:
    is_there = (SRC / "hermes/surfaces/cli/main.py").exists()
    act = (
        "from hermes.surfaces.cli.main import main; main()" if is_there else "import hermes; print(hermes.__version__)"
    )
    code = (
        "import sys; before = set(sys.modules); sys.argv = ['hermes', '--version']\n"
        f"try:\n    {act}\n"
        "except SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n', file=sys.stderr)"
    )

    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stderr
    assert "0." in ran.stdout
    assert set(ran.stderr.split()) - VERSION_BUDGET == set()


def test_an_answer_without_tools_keeps_to_its_budget_of_imports(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from hermes.surfaces.cli.main import main; main(sys.argv[1:])\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n', file=sys.stderr)"
    )
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SRC), "HOME": str(tmp_path), "HERMES_HOME": f"{tmp_path}/h"}
    with ServerThread([says("Hello."), says("Hello.")]) as server:
        words = ["chat", "-q", "Hi", "--provider", "custom", "--model", "m", "--base-url", server.base_url]
        for _ in range(2):  # the first one also writes down which built-in tools there are
            command = [sys.executable, "-P", "-c", code, *words]
            ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)

    loaded = ran.stderr.split()
    ours = [SRC.joinpath(*name.split(".")) for name in loaded if name.partition(".")[0] == "hermes"]
    files = [file for path in ours for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    others = {name.partition(".")[0] for name in loaded} - {"hermes", *sys.stdlib_module_names}
    assert len(ours) <= CHAT_MODULES
    assert sum(file.stat().st_size for file in files) <= CHAT_BYTES
    assert {name for name in others if not name.startswith("_cython")} <= CHAT_LIBRARIES


def test_the_first_prompt_does_without_the_gate_and_clients_of_the_web(tmp_path: Path) -> None:
    """Whoever types `hermes` waits for all of these before the first key is taken."""
    code = "import hermes.surfaces.cli.interactive.start_chat, sys; print(*sorted(sys.modules), sep='\\n')"
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(SRC), "HOME": str(tmp_path)}

    ran = subprocess.run([sys.executable, "-P", "-c", code], env=environ, capture_output=True, text=True, check=True)

    loaded = set(ran.stdout.split())
    assert "hermes.surfaces.cli.interactive.terminal" in loaded
    assert loaded & PROMPT_LATER == set()
    assert sum(name.partition(".")[0] == "hermes" for name in loaded) <= PROMPT_MODULES
