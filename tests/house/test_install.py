"""The package installs as a wheel, runs from it, and its core stays small."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_DISTRIBUTIONS = 25
MAX_BYTES = 60_000_000


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict[str, object]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert isinstance(table, dict)
    return table


def required_names(requirements: list[str]) -> set[str]:
    """Return the names that `requirements` ask for on this interpreter, leaving those of extras out."""
    found = set()
    for requirement in requirements:
        specifier, _, marker = requirement.partition(";")
        match = re.match(r"[\w.-]+", specifier.strip())
        assert match is not None, requirement
        if _holds(marker.strip()):
            found.add(normal(match[0]))
    return found


def _holds(marker: str) -> bool:
    if not marker:
        return True
    from packaging.markers import Marker  # a part of pytest's own installation

    return Marker(marker).evaluate({"extra": ""})


def core_distributions() -> dict[str, importlib.metadata.Distribution]:
    """Return all that the core dependencies bring with them, by name, as installed here."""
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    queue, found = required_names(dependencies), dict[str, importlib.metadata.Distribution]()
    while queue:
        name = queue.pop()
        if name not in found:
            found[name] = importlib.metadata.distribution(name)
            queue |= required_names(found[name].requires or [])
    return found


def installed_bytes(distribution: importlib.metadata.Distribution) -> int:
    return bytes_of(Path(str(distribution.locate_file(file))) for file in distribution.files or [])


def bytes_of(files: Iterable[Path]) -> int:
    """What is installed, as `bench/run install` counts it: what the interpreter makes of it by itself is apart."""
    return sum(file.lstat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def test_core_is_at_most_25_distributions_and_60_mb() -> None:
    found = core_distributions()
    sizes = {name: installed_bytes(distribution) for name, distribution in found.items()}
    sources = bytes_of((ROOT / "src").rglob("*"))

    assert len(found) + 1 <= MAX_DISTRIBUTIONS, sorted(found)
    assert sum(sizes.values()) + sources <= MAX_BYTES, sizes


def test_every_dependency_is_pinned_by_name_and_version_alone() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line.partition("==")[0] for line in lines]
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    asked = [each for group in extras.values() for each in group if not each.startswith("hermes-runtime[")]

    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.!+]+", line)] == []
    assert pinned == sorted(set(pinned))
    assert set(core_distributions()) | required_names(asked) <= set(pinned)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy by the pinned build backend, without fetching anything."""
    folder = tmp_path_factory.mktemp("wheel")
    source = _copy_of_the_sources(folder / "source")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_wheel_installs_and_its_command_answers(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True, with_pip=False)
    site_packages = next(environment.glob("lib/python3*/site-packages"))
    shutil.unpack_archive(wheel, site_packages, "zip")
    # The dependencies are those of the environment the tests run in; the package itself is the wheel's.
    core = {Path(str(each.locate_file(""))) for each in core_distributions().values()}
    (site_packages / "dependencies.pth").write_text("".join(f"{folder}\n" for folder in core))

    entry = next(iter(importlib.metadata.distributions(name="hermes-runtime", path=[str(site_packages)])))
    commands = {each.name: each.value for each in entry.entry_points if each.group == "console_scripts"}
    asked = "import sys, hermes; print(hermes.__version__, hermes.__file__)"
    ran = subprocess.run([environment / "bin/python", "-P", "-c", asked], capture_output=True, text=True, cwd=tmp_path)

    assert commands == project()["scripts"]
    assert ran.stdout.split() == [entry.version, str(site_packages / "hermes/__init__.py")], ran.stderr
    for target in commands.values():
        module, _, function = target.partition(":")
        call = f"import sys; from {module} import {function}; sys.argv[1:] = ['--version']; sys.exit({function}())"
        answered = subprocess.run([environment / "bin/python", "-P", "-c", call], capture_output=True, text=True)
        assert (answered.returncode, entry.version in answered.stdout) == (0, True), answered.stderr


def test_wheel_holds_every_module_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path / "unpacked", "zip")
    unpacked = {str(file.relative_to(tmp_path / "unpacked")) for file in (tmp_path / "unpacked").rglob("*.py")}

    assert unpacked == {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src").rglob("*.py")}


@pytest.mark.full
def test_pip_install_from_nothing_gives_a_working_command_within_the_limits(tmp_path: Path) -> None:
    """The one test that uses the installer's own settings: it fetches packages, as a user's first install does."""
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True, with_pip=False)
    source = _copy_of_the_sources(tmp_path / "source")
    home = {"HOME": os.environ.get("HERMES_CHECK_USER_HOME", os.environ["HOME"])}
    pip = [os.path.realpath(sys.executable), "-m", "pip", "--python", str(environment / "bin/python"), "install"]

    subprocess.run(
        [*pip, "--quiet", "-c", "constraints.txt", "."], cwd=source, check=True, env={**os.environ, **home}, timeout=400
    )

    answered = subprocess.run([environment / "bin/hermes", "--version"], capture_output=True, text=True)
    site_packages = next(environment.glob("lib/python3*/site-packages"))
    everything = [*site_packages.rglob("*"), *(environment / "bin").iterdir()]
    assert answered.returncode == 0, answered.stderr
    assert len(list(site_packages.glob("*.dist-info"))) <= MAX_DISTRIBUTIONS
    assert bytes_of(everything) <= MAX_BYTES


def _copy_of_the_sources(folder: Path) -> Path:
    folder.mkdir()
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder
