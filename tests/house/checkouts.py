"""Tiny checkouts with the real launcher, whose dependencies are wheels made on the spot: nothing is fetched."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = """\
[project]
name = "hermes-runtime"
version = "0"
dependencies = ["greeter>=1"]

[project.optional-dependencies]
local = ["whisperer"]
all = ["hermes-runtime[local]"]

[project.scripts]
hermes = "hermes.surfaces.cli.main:main"
"""

MAIN = """\
import sys
from importlib.metadata import version


def main() -> int:
    print(version("greeter"), sys.prefix, *sys.argv[1:])
    return 0
"""


def write_wheel(folder: Path, name: str, version: str) -> None:
    """Put a wheel that holds one empty module into `folder`."""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


class Checkout:
    """A checkout at `root` and the folder of wheels that its installer sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "check out"
        self.environment = self.root / ".venv"
        self.wheels = folder / "wheels"
        self.home = folder / "home"
        for each in (self.wheels, self.home, self.root / "scripts", self.root / "src/hermes/surfaces/cli"):
            each.mkdir(parents=True)
        for name, version in (("greeter", "1.0"), ("greeter", "2.0"), ("whisperer", "1.0")):
            write_wheel(self.wheels, name, version)
        shutil.copy(ROOT / "hermes", self.root)
        shutil.copy(ROOT / "scripts/environment.py", self.root / "scripts")
        (self.root / "pyproject.toml").write_text(PYPROJECT)
        (self.root / "constraints.txt").write_text("greeter==1.0\nwhisperer==1.0\n")
        (self.root / "src/hermes/surfaces/cli/main.py").write_text(MAIN)

    def variables(self, **more: str) -> dict[str, str]:
        """Return the environment variables a start gets: of the surroundings, nothing but PATH."""
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri(), "PIP_CONFIG_FILE": os.devnull}
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), **offline, **more}

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "hermes", *arguments],
            env=self.variables(**more),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start the launcher as the leader of its own process group, as a terminal does."""
        return subprocess.Popen(
            [self.root / "hermes", *arguments],
            env=self.variables(**more),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def hide(self, *modules: str) -> str:
        """Return a PYTHONPATH on which `modules` fail to import, as where the system package is missing."""
        folder = self.folder / "-".join(("without", *modules))
        for module in modules:
            (folder / module).mkdir(parents=True)
            (folder / module / "__init__.py").write_text(f"raise ModuleNotFoundError('No module named {module!r}')\n")
        return str(folder)

    def bare_path(self) -> str:
        """Return a PATH with the basic tools alone: no pip, no uv, no virtualenv, no second Python."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for tool in ("cat", "cksum", "readlink", "sh"):
            if not (folder / tool).exists():
                (folder / tool).symlink_to(shutil.which(tool) or tool)
        return str(folder)
