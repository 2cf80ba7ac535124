"""`./hermes`: the environment is made once, survives what goes wrong meanwhile, and follows its inputs."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.house.checkouts import PYPROJECT, ROOT, Checkout

BASE_PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout whose environment is there. Tests that change it make their own."""
    checkout = Checkout(tmp_path_factory.mktemp("made"))
    assert checkout.run().returncode == 0
    return checkout


def test_first_start_makes_the_environment_and_runs_the_command(checkout: Checkout) -> None:
    started = checkout.run("chat", "-q", "two words")

    assert (started.returncode, started.stdout) == (0, f"1.0 {checkout.environment} chat -q two words\n")
    assert "making a Python environment" in started.stderr
    assert "installing 1 package\n" in started.stderr


def test_later_start_runs_the_command_and_says_nothing(made: Checkout) -> None:
    again = made.run("x")

    assert (again.returncode, again.stdout, again.stderr) == (0, f"1.0 {made.environment} x\n", "")


def test_later_start_looks_for_no_python(made: Checkout) -> None:
    """What the launcher adds is a shell and two `cat`: measured at 5 ms."""
    again = made.run(PATH=made.bare_path())

    assert (again.returncode, again.stderr) == (0, "")


def test_start_through_a_link_and_from_another_folder_finds_the_checkout(made: Checkout) -> None:
    link = made.folder / "linked"
    link.symlink_to(made.root / "hermes")

    through_link = subprocess.run([link, "y"], env=made.variables(), cwd="/", capture_output=True, text=True)

    assert through_link.stdout == f"1.0 {made.environment} y\n"


def test_modules_in_the_current_folder_are_not_imported(made: Checkout, tmp_path: Path) -> None:
    (tmp_path / "hermes.py").write_text("raise SystemExit('the wrong hermes')\n")

    started = subprocess.run([made.root / "hermes"], env=made.variables(), cwd=tmp_path, capture_output=True, text=True)

    assert (started.returncode, started.stderr) == (0, "")


def test_changed_constraints_update_the_environment_in_place(checkout: Checkout) -> None:
    checkout.run()
    (checkout.environment / "keepsake").touch()
    (checkout.root / "constraints.txt").write_text("greeter==2.0\n")

    updated, after = checkout.run(), checkout.run()

    assert updated.stdout.split()[0] == "2.0"
    assert "updating the Python environment" in updated.stderr
    assert (checkout.environment / "keepsake").exists()
    assert after.stderr == ""


def test_a_change_that_asks_for_no_other_package_installs_nothing(checkout: Checkout) -> None:
    checkout.run()
    (checkout.root / "pyproject.toml").write_text(f"{PYPROJECT}\n[tool.other]\nkey = 1\n")
    shutil.rmtree(checkout.wheels)

    started = checkout.run()

    assert (started.returncode, started.stderr) == (0, "")


def test_moved_checkout_runs_its_own_sources(checkout: Checkout) -> None:
    checkout.run()
    checkout.root = checkout.root.rename(checkout.folder / "moved")
    main = checkout.root / "src/hermes/surfaces/cli/main.py"
    main.write_text(main.read_text().replace("print(", "print('moved', "))

    assert checkout.run().stdout.startswith("moved 1.0 ")


def test_failed_update_shows_why_and_the_next_start_tries_again(checkout: Checkout) -> None:
    checkout.run()
    constraints = checkout.root / "constraints.txt"
    constraints.write_text("greeter==3.0\n")

    failed = checkout.run()
    constraints.write_text("greeter==2.0\n")
    mended = checkout.run()

    assert (failed.returncode, failed.stdout) == (1, "")
    assert "conflicting dependencies" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("hermes: packages could not be installed")
    assert mended.stdout.split()[0] == "2.0"


@pytest.mark.parametrize("stop_with", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_start_after_one_that_was_stopped_halfway_begins_again(checkout: Checkout, stop_with: signal.Signals) -> None:
    slow = _SlowInstall(checkout)
    first = checkout.start(PYTHONPATH=slow.path)
    slow.wait_until_reached()
    if stop_with == signal.SIGINT:
        os.killpg(first.pid, stop_with)
    else:
        os.kill(_maker_of(first), stop_with)
    _, errors = first.communicate(timeout=60)
    slow.close()

    again = checkout.run()

    assert first.returncode != 0
    assert ("stopped; the next start begins again" in errors) == (stop_with == signal.SIGINT)
    assert (again.returncode, again.stdout) == (0, f"1.0 {checkout.environment}\n")


def test_two_first_starts_at_once_make_one_environment(checkout: Checkout) -> None:
    slow = _SlowInstall(checkout)
    first = checkout.start(PYTHONPATH=slow.path)
    slow.wait_until_reached()
    second = checkout.start()
    assert second.stderr is not None
    waiting = second.stderr.readline()
    slow.let_go()
    outputs = [first.communicate(timeout=120), second.communicate(timeout=120)]
    slow.close()

    assert [output for output, _ in outputs] == [f"1.0 {checkout.environment}\n"] * 2
    assert "another start is making" in waiting
    assert [errors.count("installing 1 package") for _, errors in outputs] == [1, 0]


@pytest.mark.parametrize(
    "damage", ["empty folder", "no interpreter", "dangling interpreter", "no stamp", "another version"]
)
def test_damaged_environment_is_made_again(checkout: Checkout, damage: str) -> None:
    environment = checkout.environment
    if damage == "empty folder":
        environment.mkdir()
    else:
        checkout.run()
    if damage in ("no interpreter", "dangling interpreter"):
        (environment / "bin/python").unlink()
    if damage == "dangling interpreter":
        (environment / "bin/python").symlink_to("/nowhere/python3")
    if damage == "no stamp":
        (environment / "hermes/stamp").unlink()
        shutil.rmtree(environment / "lib")
    if damage == "another version":
        (environment / "hermes/version").write_text("3.9.0 (an upgrade has replaced the interpreter)")
        (checkout.root / "constraints.txt").write_text("greeter==1.0\n# changed\n")

    started = checkout.run()

    assert (started.returncode, started.stdout) == (0, f"1.0 {environment}\n")


def test_environment_of_somebody_else_is_kept_aside(checkout: Checkout) -> None:
    (checkout.environment / "bin").mkdir(parents=True)
    (checkout.environment / "bin/precious").write_text("mine")

    started = checkout.run()

    assert started.returncode == 0
    assert "was not made by ./hermes and has been moved to" in started.stderr
    assert (checkout.root / ".venv.old-1/bin/precious").read_text() == "mine"


def test_missing_ensurepip_is_no_obstacle_where_another_pip_is(checkout: Checkout) -> None:
    started = checkout.run(PYTHONPATH=checkout.hide("ensurepip"))

    assert (started.returncode, started.stdout) == (0, f"1.0 {checkout.environment}\n")


def test_nothing_to_install_with_is_one_sentence_with_the_next_step(checkout: Checkout) -> None:
    script = checkout.root / "scripts/environment.py"
    script.write_text(script.read_text().replace("/usr/share/python-wheels", "/nowhere"))

    started = checkout.run(
        PATH=checkout.bare_path(), HERMES_PYTHON=BASE_PYTHON, PYTHONPATH=checkout.hide("ensurepip", "pip")
    )

    assert started.returncode == 1
    assert started.stderr.splitlines()[-1].startswith("hermes: there is no pip to install packages with")
    assert "apt-get install python3-venv" in started.stderr


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is Debian's own")
def test_debian_without_any_pip_unpacks_its_package_into_the_environment(checkout: Checkout) -> None:
    script = checkout.root / "scripts/environment.py"
    script.write_text(script.read_text().replace('SYSTEM_WHEELS = "/usr/share', 'SYSTEM_WHEELS = "/nowhere'))
    write_deb(checkout, "python3-pip-whl", _wheel_of_pip(), "usr/share/python-wheels")
    surroundings = {"HERMES_PYTHON": BASE_PYTHON, "PYTHONPATH": checkout.hide("ensurepip", "pip")}

    started = checkout.run(PATH=f"{checkout.bare_path()}:{debian_tools(checkout)}", **surroundings)

    assert (started.returncode, started.stdout) == (0, f"1.0 {checkout.environment}\n"), started.stderr
    assert "fetching python3-pip-whl of Debian, for this environment alone" in started.stderr
    asked = (checkout.folder / "asked").read_text().splitlines()
    assert [line.split()[-1] for line in asked] == ["python3-pip-whl", "update", "python3-pip-whl"]
    assert all(f"Dir::Cache={checkout.environment}" in line for line in asked)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is Debian's own")
def test_library_that_an_extra_is_linked_against_comes_from_its_debian_package(checkout: Checkout) -> None:
    table = '[tool.hermes.libraries.local]\n"libc.so.6" = "libc6"\n"libwhisper.so.9" = "libwhisper9"\n'
    (checkout.root / "pyproject.toml").write_text(f"{PYPROJECT}\n{table}")
    write_deb(checkout, "python3-pip-whl", _wheel_of_pip(), "usr/share/python-wheels")  # where there is no other
    tools = f"{debian_tools(checkout)}:{os.environ['PATH']}"

    refused = checkout.run("--install-extra", "local", PATH=tools)
    library = checkout.folder / "libwhisper.so.9"
    library.write_bytes(b"whisper")
    write_deb(checkout, "libwhisper9", library, "usr/lib")
    done = checkout.run("--install-extra", "local", PATH=tools)

    assert refused.returncode == 1
    assert refused.stderr.endswith("run 'apt-get install libwhisper9'.\n")
    assert done.returncode == 0, done.stderr
    assert (checkout.environment / "lib/libwhisper.so.9").read_bytes() == b"whisper"
    assert not (checkout.environment / "lib/libc.so.6").exists()


@pytest.mark.skipif(find_spec("ensurepip") is None, reason="this Python has no ensurepip")
def test_pip_without_ensurepip_or_outside_pip_comes_from_ensurepip(checkout: Checkout) -> None:
    """The environment's own pip is the last resort that needs nothing installed."""
    script = checkout.root / "scripts/environment.py"
    script.write_text(
        script.read_text().replace("/usr/share/python-wheels", "/nowhere").replace('[base, "-m", "pip"]', '["false"]')
    )

    started = checkout.run(PATH=f"{checkout.bare_path()}:{_folder_of('false', checkout)}", HERMES_PYTHON=BASE_PYTHON)

    assert (started.returncode, started.stdout) == (0, f"1.0 {checkout.environment}\n")


@pytest.mark.parametrize("value", ["old", "/nowhere/python"])
def test_unsuitable_interpreter_is_one_sentence(checkout: Checkout, value: str) -> None:
    old = checkout.folder / "old"
    old.write_text("#!/bin/sh\nexit 1\n")  # what an older Python answers to the version question
    old.chmod(0o755)
    chosen = str(old) if value == "old" else value

    started = checkout.run(HERMES_PYTHON=chosen)

    assert started.returncode != 0
    assert started.stderr == (
        f"hermes: HERMES_PYTHON is '{chosen}', which is not a Python 3.11 or newer; name one that is.\n"
    )


def test_no_python_at_all_is_one_sentence(checkout: Checkout) -> None:
    started = checkout.run(PATH=checkout.bare_path())

    assert started.returncode != 0
    assert started.stderr.startswith("hermes: Python 3.11 or newer is needed")
    assert started.stderr.count("\n") == 1


def test_chosen_interpreter_makes_the_environment(checkout: Checkout) -> None:
    checkout.run(HERMES_PYTHON=BASE_PYTHON)

    assert os.path.realpath(checkout.environment / "bin/python") == BASE_PYTHON
    assert checkout.run(HERMES_PYTHON=BASE_PYTHON).stderr == ""
    assert checkout.run().stderr == ""


def test_extra_is_installed_on_demand_and_kept_by_updates(checkout: Checkout) -> None:
    first = checkout.run("--install-extra", "all")
    assert (first.returncode, first.stdout) == (0, "")
    assert _has(checkout, "whisperer")
    (checkout.root / "constraints.txt").write_text("greeter==2.0\nwhisperer==1.0\n")
    checkout.run()
    shutil.rmtree(checkout.environment / "bin")

    checkout.run("--install-extra", "local")

    assert _has(checkout, "whisperer")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "hermes: there is no extra 'nothing'; the extras are: all, local.\n"),
        ([], "hermes: --install-extra takes one name, as in: ./hermes --install-extra dev\n"),
    ],
)
def test_wrong_extra_is_one_sentence(made: Checkout, arguments: list[str], sentence: str) -> None:
    started = made.run("--install-extra", *arguments)

    assert started.returncode != 0
    assert started.stderr == sentence
    assert made.run().stderr == ""


def test_read_only_checkout_keeps_its_environment_under_hermes_home() -> None:
    # Not under tmp_path: pytest closes its folders to other users, and again whenever another run starts.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        checkout = Checkout(Path(folder))
        hermes_home = checkout.folder / "hermes home"
        hermes_home.mkdir()
        other = _Unprivileged(checkout, hermes_home)

        first, second = other.run("z"), other.run("z")

        assert not checkout.environment.exists()
        assert first.stdout.startswith(f"1.0 {hermes_home}/environments/check out-"), first.stderr
        assert (second.stdout, second.stderr) == (first.stdout, "")
        assert list(hermes_home.glob("environments/*/pycache/**/main.*.pyc"))
        other.close()


class _SlowInstall:
    """Holds an install back in the middle: the installer opens a FIFO and waits for its other end."""

    def __init__(self, checkout: Checkout) -> None:
        folder = checkout.folder / "slow"
        folder.mkdir()
        self.path = str(folder)
        self._reached, self._gate = folder / "reached", folder / "gate"
        os.mkfifo(self._reached)
        os.mkfifo(self._gate)
        (folder / "sitecustomize.py").write_text(
            "import sys\n"
            "if 'install' in sys.argv or 'install' in sys.orig_argv:\n"
            f"    open({str(self._reached)!r}, 'w').close()\n"
            f"    open({str(self._gate)!r}).close()\n"
        )
        self._writers: list[int] = []

    def wait_until_reached(self) -> None:
        reader = threading.Thread(target=self._reached.read_bytes, daemon=True)
        reader.start()
        reader.join(timeout=60)
        assert not reader.is_alive(), "the installer was not started within 60 s"

    def let_go(self) -> None:
        """Open both FIFOs for good: `pip --python` runs a second interpreter, which waits as well."""
        self._writers += [os.open(fifo, os.O_RDWR) for fifo in (self._gate, self._reached)]

    def close(self) -> None:
        for writer in self._writers:
            os.close(writer)


class _Unprivileged:
    """Starts the launcher as a user who may read the checkout and write `hermes_home` only."""

    def __init__(self, checkout: Checkout, hermes_home: Path) -> None:
        self._checkout, self._home = checkout, hermes_home
        self._uid: int | None = None
        if os.geteuid() == 0:
            self._uid = 65534
            os.chown(hermes_home, self._uid, -1)
        else:
            self._set_modes(0o555)

    def close(self) -> None:
        self._set_modes(0o755)  # so that the folder can be removed

    def _set_modes(self, mode: int) -> None:
        for folder in (self._checkout.root, self._checkout.root / "src"):
            folder.chmod(mode)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._checkout.root / "hermes", *arguments],
            env=self._checkout.variables(HERMES_HOME=str(self._home), PATH="/usr/local/bin:/usr/bin:/bin"),
            cwd="/",
            user=self._uid,
            capture_output=True,
            text=True,
            timeout=240,
        )


def write_deb(checkout: Checkout, package: str, file: Path, folder: str) -> None:
    """Make a real Debian package that holds `file`, where the tools of `debian_tools` find it."""
    tree = checkout.folder / f"deb-{package}"
    (tree / folder).mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        f"Package: {package}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
    )
    shutil.copy(file, tree / folder)
    repository = checkout.folder / "repository"
    repository.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "-b", tree, repository / f"{package}_1_all.deb"], check=True, capture_output=True)


def debian_tools(checkout: Checkout) -> Path:
    """A folder with the real dpkg-deb, and an apt-get that fetches from a folder and knows nothing before `update`."""
    folder = checkout.folder / "debian"
    folder.mkdir()
    for tool in ("dpkg-deb", "mkdir", "cp", "tar", "rm"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    apt = folder / "apt-get"
    apt.write_text(
        f"#!/bin/sh\ncd '{checkout.folder}' && echo \"$*\" >>asked && for last; do :; done\n"
        'case $last in update) : >updated ;; *) [ -e updated ] && cp "repository/$last"_*.deb "$OLDPWD" ;; esac\n'
    )
    apt.chmod(0o755)
    return folder


def _wheel_of_pip() -> Path:
    ensurepip = find_spec("ensurepip")
    folders = [
        "/usr/share/python-wheels",
        f"{sys.prefix}/hermes",
        *((ensurepip and ensurepip.submodule_search_locations) or ()),
    ]
    wheels = [wheel for folder in folders for wheel in Path(folder).rglob("pip-*.whl")]
    if not wheels:
        pytest.skip("there is no wheel of pip on this machine to make the package from")
    return wheels[0]


def _maker_of(launcher: "subprocess.Popen[str]") -> int:
    """Return the process that makes the environment: the launcher's one child."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def _has(checkout: Checkout, module: str) -> bool:
    return subprocess.run([checkout.environment / "bin/python", "-c", f"import {module}"]).returncode == 0


def _folder_of(tool: str, checkout: Checkout) -> Path:
    folder = checkout.folder / f"only-{tool}"
    folder.mkdir()
    (folder / tool).symlink_to(shutil.which(tool) or tool)
    return folder


def test_progress_outlives_a_folder_that_goes_while_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tmp_path / f"unpack-{number}").mkdir()
        (tmp_path / f"unpack-{number}" / "file").write_bytes(b"12")
    spec = spec_from_file_location("environment", ROOT / "scripts" / "environment.py")
    assert spec is not None
    assert spec.loader is not None
    environment = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "environment", environment)
    spec.loader.exec_module(environment)
    sizes: list[int] = []

    def stat_and_remove(file: Path) -> int:
        if not sizes:
            for folder in tmp_path.iterdir():
                shutil.rmtree(folder)
        sizes.append(file.stat().st_size if file.exists() else 0)
        return sizes[-1]

    monkeypatch.setattr(environment, "_size", stat_and_remove)
    assert environment._size_below(tmp_path) == 0
    assert sizes
