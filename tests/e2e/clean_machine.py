"""A machine with nothing but the system: its own folders, read-only, an empty home, and a copy of the checkout in it.

Commands are typed into a terminal there, and questions are answered as a newcomer would.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.surfaces.cli.interactive import terminal as screens
from tests.surfaces.cli.interactive.terminal import Terminal

ROOT = Path(__file__).parents[2]
HOME = "/home/me"
CHECKOUT = f"{HOME}/hermes-runtime"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")
LIMIT_S = 600.0

# Makes the environment as a first start does, but takes the packages from one that is here: nothing is fetched.
QUICK_ENVIRONMENT = """
import os, sys
from pathlib import Path

root, packages = Path(sys.argv[1]), sys.argv[2:]
sys.path.insert(0, str(root / "scripts"))
import environment as maker

project = maker.Project.read(root)
made = maker.Environment(root / ".venv", maker.Progress())
with made.lock():
    made.create(os.path.realpath(sys.executable))
    site = next(made.path.glob("lib/python3*/site-packages"))
    (site / "packages.pth").write_text("".join(f"{each}\\n" for each in packages))
    made.link(project)
    made.write("stamp", project.stamp)
"""

# What a newcomer answers: the first that stands at the end of the screen.
ANSWERS: tuple[tuple[str, str], ...] = (
    (r"Write it \[y/N\]:$", "\n"),
    (r"Write it \[Y/n\]:$", "\n"),
    (r"Remove it \[Y/n\]:$", "\n"),
    (r"Allow it\? .*:$", "o\n"),
    (r"Which \(1, 2\) \[2\]:$", "\n"),
    (r"Provider, by number or name.*:$", "custom\n"),
    (r"Address of the API \(base URL\).*:$", "ADDRESS\n"),
    (r"[Kk]ey of .*:$", "\n"),
    (r"Model, by number or name:$", "1\n"),
)


class CleanMachine:
    """The home in `folder`; `address` is that of a scripted server on this machine, which plays Ollama."""

    def __init__(self, folder: Path, address: str, *, shares: Sequence[Path] = ()) -> None:
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        self.home = folder / "me"
        self.home.mkdir()
        self.address = address
        self._shares = [*shares, *_python_outside()]
        self.environ = {
            "HOME": HOME,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "OLLAMA_HOST": address.split("/")[2],
        }
        self.printed: list[str] = []  # of all commands, in their order

    def copy_checkout(self) -> None:
        """The files that git knows or would take, without its history."""
        listed = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            source, target = ROOT / name, self.home / "hermes-runtime" / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def make_environment(self) -> None:
        """Have the environment there without fetching anything."""
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        done = self.run(["/usr/bin/env", "python3", "-c", QUICK_ENVIRONMENT, CHECKOUT, *packages])
        assert done.returncode == 0, done.stderr

    def let_it_fetch(self) -> None:
        """Give the installer the settings of whoever runs this: where packages come from is theirs to say."""
        own = Path(os.environ.get("HERMES_CHECK_USER_HOME") or os.environ["HOME"])
        for name in (".config/pip", ".pip", ".config/uv"):
            if (own / name).is_dir():
                shutil.copytree(own / name, self.home / name)
        self.environ |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}

    def command(self, words: Sequence[str], cwd: str = HOME) -> list[str]:
        """`words` as a process of that machine."""
        mounts = [part for place in SYSTEM if os.path.lexists(place) for part in _mount(place)]
        for place in self._shares:
            mounts += ["--ro-bind", str(place), str(place)]
        return [
            *("bwrap", "--die-with-parent", "--unshare-pid", *mounts, "--proc", "/proc", "--dev", "/dev"),
            *("--tmpfs", "/tmp", "--bind", str(self.home), HOME, "--chdir", cwd, "--clearenv"),
            *(part for name, value in self.environ.items() for part in ("--setenv", name, value)),
            *words,
        ]

    def run(self, words: Sequence[str], cwd: str = HOME) -> "subprocess.CompletedProcess[str]":
        """Run without a terminal."""
        return subprocess.run(
            self.command(words, cwd), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S
        )

    def type(self, line: str, cwd: str, said: Sequence[str] = ()) -> int:
        """Type `line` into a shell in a terminal, answer what it asks, say `said` in a conversation; the exit code."""
        words = self.command(["/bin/bash", "-c", line], cwd)
        terminal = Terminal(words, {"PATH": os.environ["PATH"]}, self.home, columns=200)
        waiting = [*said, screens.CTRL_D] if said else []
        answered = 0
        try:
            while terminal._read():
                shown = terminal.text.rstrip()
                if len(shown) <= answered:
                    continue
                reply = next((text for pattern, text in ANSWERS if re.search(pattern, shown)), None)
                if reply is None and waiting and shown.endswith("\n>"):
                    reply = waiting.pop(0)
                if reply is not None:
                    answered = len(shown)
                    terminal.type(reply.replace("ADDRESS", self.address))
            self.printed.append(terminal.text)
            return terminal.process.wait(timeout=60)
        finally:
            terminal.close()


def _mount(place: str) -> list[str]:
    path = Path(place)
    return ["--symlink", str(path.readlink()), place] if path.is_symlink() else ["--ro-bind", place, place]


def _python_outside() -> list[Path]:
    """What the packages and the interpreter of this run need that is no folder of the system's."""
    folders = {Path(sys.prefix), Path(sys.base_prefix)}
    return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))
