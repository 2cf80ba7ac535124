"""Real backends for tests: a dockerd, a podman and an sshd of our own, and a small image made of this machine's files.

Fixtures, for every test below tests/tools (`conftest.py` names them): `docker_engine`, `podman_engine`, `sshd`,
`container_image`. Each skips with its reason where it cannot be had. `container(...)` and `over_ssh(...)` make an
environment on one of them; whoever makes it closes it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.seams import Supervisor
from hermes.tools.environments.docker import DockerEnvironment, DockerOptions
from hermes.tools.environments.remote import Common
from hermes.tools.environments.ssh import SshEnvironment, SshOptions

IMAGE = "hermes-test-image"
SEARCH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CLIENT_PATH = "/usr/local/bin:/usr/bin:/bin"
READY_LIMIT = 300  # looks, a tenth of a second apart

# -- the image -----------------------------------------------------------------------------------------------------

PACKAGES = (
    *("bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "hostname", "mawk", "mount", "procps"),
    *("sed", "tar", "util-linux"),
)
PYTHON = "/usr/bin/python3"
LEFT_OUT = ("test", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo", "__pycache__", "dist-packages")
FOLDERS = ("dev", "etc", "opt", "proc", "root", "run", "sys", "tmp", "var/tmp", "workspace")


@pytest.fixture(scope="session")
def container_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tar file of a root file system with bash, the usual tools and Python; made in a second or two."""
    _need_a_machine()
    if shutil.which("dpkg-query") is None or not Path(PYTHON).exists():
        pytest.skip("the image for containers is made of a Debian system's own files, with python3")
    file = tmp_path_factory.mktemp("image") / "rootfs.tar"
    listed = subprocess.run(["dpkg-query", "-L", *PACKAGES], check=False, capture_output=True, text=True).stdout
    programs = [line for line in listed.splitlines() if "bin/" in line and Path(line).is_file()]
    asked = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    library = Path(subprocess.run([PYTHON, "-Ic", asked], check=True, capture_output=True, text=True).stdout.strip())
    modules = [str(path) for path in library.glob("lib-dynload/*.so")]
    with tarfile.open(file, "w", dereference=True) as image:
        for name in FOLDERS:
            image.addfile(_folder(name))
        for name in ("bin", "sbin", "lib", "lib64"):
            image.addfile(_link(name, f"usr/{name}"))
        image.addfile(_link("usr/bin/awk", "mawk"))  # on Debian a link of its alternatives, which no package lists
        files = {*programs, PYTHON, *_libraries([*programs, PYTHON, *modules]), "/usr/lib/locale/C.utf8"}
        for name, path in {_merged(path): path for path in files if Path(path).exists()}.items():
            image.add(path, name)
        image.add(library, _merged(str(library)), filter=_wanted)
        for name in ("passwd", "group", "nsswitch.conf"):
            image.add(f"/etc/{name}", f"etc/{name}")
    return file


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
    return entry


def _link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = entry.name.split("/")
    return None if any(part in LEFT_OUT or part.startswith("config-") for part in parts) else entry


def _libraries(files: list[str]) -> set[str]:
    """What the dynamic linker loads for these programs, itself included."""
    told = subprocess.run(["ldd", *files], check=False, capture_output=True, text=True).stdout
    words = [word for line in told.splitlines() if "(0x" in line for word in line.split()]
    return {word for word in words if word.startswith("/")}


def _merged(path: str) -> str:
    """Where a file goes in the image, whose /bin and /lib are links into /usr."""
    return path.lstrip("/") if path.startswith(("/usr/", "/etc/")) else f"usr{path}"


# -- engines -------------------------------------------------------------------------------------------------------


class Engine(NamedTuple):
    """A container engine that answers, with the image in it."""

    program: str
    env: dict[str, str]


def container(supervisor: Supervisor, engine: Engine, **changes: object) -> DockerEnvironment:
    """An environment in a container of its own, thrown away at its end; `changes` are fields of `DockerOptions`."""
    given = {"image": IMAGE, "program": engine.program, "persistent": False, "network": False, "memory_mb": 512}
    options = DockerOptions(**{**given, "cpu": 0.0, **changes})  # type: ignore[arg-type]  # a test's choice of fields
    return DockerEnvironment(Common(supervisor=supervisor, client_env=engine.env), options)


def _need_a_machine() -> None:
    """Engines make mounts and resolve paths from the root of the machine, which a chroot does not see."""
    if os.geteuid() != 0:
        pytest.skip("a container engine of our own needs root")
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    # Of each: the part of its file system that is mounted, and where. A chroot has no root, or a folder as its root.
    if not any(mount[4] == "/" and (mount[3] == "/" or "btrfs" in mount) for mount in mounts):
        pytest.skip("containers cannot be started from inside a chroot")


def _need(program: str) -> None:
    _need_a_machine()
    if shutil.which(program, path=SEARCH) is None:
        pytest.skip(f"{program} is not installed (scripts/install-system-parts)")


@pytest.fixture(scope="session")
def docker_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A dockerd that only this test run talks to."""
    _need("dockerd")
    image: Path = request.getfixturevalue("container_image")
    # The socket's path must be short, and the data must not be on an overlay of the test's own.
    folder = _own_folder("dockerd")
    socket = f"unix:///run/hermes-dockerd-{os.getpid()}.sock"
    line = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=overlay2"]
    line += ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    env = {"PATH": SEARCH, "DOCKER_HOST": socket, "HOME": "/root"}
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen([*line, "-H", socket], stdout=log, stderr=log, env={**os.environ, "PATH": SEARCH})
    try:
        _wait_until(["docker", "version"], env, daemon, folder / "log")
        _words(["docker", "import", str(image), IMAGE], env)
        yield Engine("docker", env)
        names = _words(["docker", "ps", "-aq"], env)
        if names:
            subprocess.run(["docker", "rm", "-f", *names], env=env, check=False, capture_output=True)
    finally:
        daemon.terminate()
        daemon.wait(60)
        _remove(folder)
    assert names == [], "containers were left behind"


@pytest.fixture(scope="session")
def podman_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Podman with a store of its own."""
    _need("podman")
    image: Path = request.getfixturevalue("container_image")
    folder = _own_folder("podman")
    (folder / "containers.conf").write_text(
        '[containers]\nnetns="none"\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n'
        '[engine]\ncgroup_manager="cgroupfs"\nruntime="runc"\nevents_logger="file"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver="overlay"\ngraphroot="{folder}/graph"\nrunroot="{folder}/run"\n'
    )
    env = {"PATH": SEARCH, "HOME": "/root", "CONTAINERS_CONF": f"{folder}/containers.conf"}
    env["CONTAINERS_STORAGE_CONF"] = f"{folder}/storage.conf"
    try:
        _words(["podman", "import", str(image), IMAGE], env)
        yield Engine("podman", env)
        names = _words(["podman", "ps", "-aq"], env)
        subprocess.run(["podman", "rm", "-af", "-t", "0"], env=env, check=False, capture_output=True)
    finally:
        _remove(folder)
    assert names == [], "containers were left behind"


def _own_folder(engine: str) -> Path:
    """A folder for this run's engine; those of runs that were killed go."""
    for left in Path("/var/lib").glob(f"hermes-{engine}-*"):
        if not Path(f"/proc/{left.name.rpartition('-')[2]}").exists():
            _remove(left)
    folder = Path(f"/var/lib/hermes-{engine}-{os.getpid()}")
    folder.mkdir()
    return folder


def _remove(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((each for each in mounts if each.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def _words(line: list[str], env: dict[str, str]) -> list[str]:
    answer = subprocess.run(line, env=env, check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def _wait_until(line: list[str], env: dict[str, str], daemon: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(READY_LIMIT):
        if subprocess.run(line, env=env, capture_output=True, check=False).returncode == 0:
            return
        assert daemon.poll() is None, log.read_text()[-2000:]
        signal.sigtimedwait([], 0.1)
    raise AssertionError(f"no answer to {line}: {log.read_text()[-2000:]}")


# -- ssh -----------------------------------------------------------------------------------------------------------

SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PidFile {folder}/pid
PasswordAuthentication no
MaxSessions 64
"""


class SshServer(NamedTuple):
    """A running sshd, with the keys that open it."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"


def over_ssh(supervisor: Supervisor, server: SshServer, cwd: str = "~", **changes: object) -> SshEnvironment:
    """An environment over ssh, as root; `changes` are fields of `SshOptions`."""
    common = Common(supervisor=supervisor, client_env={"PATH": CLIENT_PATH})
    return SshEnvironment(common, ssh_options(server, **changes), cwd)


def ssh_options(server: SshServer, **changes: object) -> SshOptions:
    given = {"host": "127.0.0.1", "user": "root", "port": server.port, "key": str(server.folder / "key")}
    return SshOptions(**{**given, "known_hosts": str(server.folder / "known_hosts"), **changes})  # type: ignore[arg-type]  # a test's choice


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """An OpenSSH server on loopback."""
    if shutil.which("sshd", path=SEARCH) is None or shutil.which("ssh") is None:
        pytest.skip("openssh-server and openssh-client are not installed (scripts/install-system-parts)")
    if os.geteuid() != 0:
        pytest.skip("sshd serves logins only when root starts it")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    one = start_sshd(folder)
    yield one
    one.process.terminate()
    one.process.wait(10)


def start_sshd(folder: Path, port: int = 0) -> SshServer:
    """A server with the keys in `folder`; the caller ends it."""
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=folder))
    program = shutil.which("sshd", path=SEARCH)
    assert program is not None
    process = subprocess.Popen([program, "-D", "-f", folder / "sshd_config", "-E", folder / "log"])
    for _ in range(READY_LIMIT):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
            break
        assert process.poll() is None, (folder / "log").read_text()
        signal.sigtimedwait([], 0.1)
    return SshServer(folder, port, process)
