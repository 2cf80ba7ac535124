"""Git inside: the person's ssh and credentials work for the remotes of the start, and for nothing else."""

import asyncio
import http.server
import os
import shutil
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.redact import Redactor
from hermes.tools.git_access.session_git import GitPerson, SessionGit
from hermes.tools.network.denied_hosts import DeniesHost, denied_hosts, denies_nothing
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.real_backends import SshServer

PATH = os.environ["PATH"]
PASSWORD = "a-password-of-the-person-42"


class Desk(NamedTuple):
    """A home, a workspace with a remote, and the variables that a command inside would have."""

    root: Path
    work: Path
    inside: dict[str, str]
    redactor: Redactor

    async def git(self, *words: str, cwd: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run git as a command inside would, while this loop answers at the door."""
        return await asyncio.to_thread(
            partial(
                subprocess.run,
                ["git", *words],
                cwd=cwd or self.work,
                env=self.inside,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        )


def plain(*words: str, cwd: Path, **env: str) -> str:
    settings = {"PATH": PATH, "HOME": str(cwd), "GIT_CONFIG_GLOBAL": "/dev/null", **env}
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *words], cwd=cwd, env={**settings, **identity}, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
async def supervisor() -> AsyncIterator[ProcessSupervisor]:
    one = ProcessSupervisor()
    yield one
    await one.close()


async def desk_of(
    root: Path,
    url: str,
    supervisor: ProcessSupervisor,
    person: dict[str, str],
    settings: str = "",
    denies: DeniesHost = denies_nothing,
) -> tuple[Desk, SessionGit]:
    home, work, programs, meeting = (root / name for name in ("home", "work", "programs", "meeting"))
    for folder in (home, work, programs, meeting):
        folder.mkdir()
    (home / ".gitconfig").write_text(settings)
    plain("init", "-qb", "main", cwd=work)
    plain("remote", "add", "origin", url, cwd=work)
    (work / "a.txt").write_text("one\n")
    plain("add", "a.txt", cwd=work)
    plain("commit", "-qm", "one", cwd=work)
    redactor = Redactor()
    environ = {"PATH": PATH, "HOME": str(home), **person}
    git = await SessionGit.of(GitPerson(supervisor, environ, work, redactor), denies)
    inside = {"PATH": PATH, "HOME": str(root / "nowhere"), "LC_ALL": "C", **git.open(programs, meeting)}
    git.attend()
    return Desk(root, work, inside, redactor), git


@pytest.fixture
async def desk(tmp_path: Path, sshd: SshServer, supervisor: ProcessSupervisor) -> AsyncIterator[Desk]:
    plain("init", "-q", "--bare", "-b", "main", str(tmp_path / "theirs.git"), cwd=tmp_path)
    plain("init", "-q", "--bare", "-b", "main", str(tmp_path / "other.git"), cwd=tmp_path)
    config = tmp_path / "ssh_config"
    config.write_text(
        f"IdentityFile {sshd.folder}/key\nUserKnownHostsFile {tmp_path}/known\nStrictHostKeyChecking accept-new\n"
        "PermitLocalCommand yes\n"
        f"LocalCommand touch {tmp_path}/local-command-ran\n"
    )
    url = f"ssh://127.0.0.1:{sshd.port}{tmp_path}/theirs.git"
    made, git = await desk_of(tmp_path, url, supervisor, {"GIT_SSH_COMMAND": f"ssh -F {config}"})
    yield made
    git.close()


async def test_a_push_and_a_fetch_reach_the_remote_with_the_persons_key(desk: Desk) -> None:
    pushed = await desk.git("push", "origin", "main")
    assert pushed.returncode == 0, pushed.stderr
    assert plain("log", "--format=%s", "main", cwd=desk.root / "theirs.git") == "one\n"
    fetched = await desk.git("fetch", "origin")
    assert fetched.returncode == 0, fetched.stderr
    async with asyncio.TaskGroup() as group:
        again = [group.create_task(desk.git("ls-remote", "origin")) for _ in range(4)]
    assert [done.result().returncode for done in again] == [0] * 4, again[0].result().stderr
    assert not (desk.root / "local-command-ran").exists()
    assert list((desk.root / "meeting").iterdir()) == [desk.root / "meeting" / "git-door"]


@pytest.mark.parametrize(("host", "is_denied"), [("127.0.0.*", True), ("Forge", True), ("elsewhere.test", False)])
async def test_a_rule_that_denies_the_host_of_a_remote_holds_for_ssh(
    tmp_path: Path, sshd: SshServer, supervisor: ProcessSupervisor, host: str, is_denied: bool
) -> None:
    plain("init", "-q", "--bare", "-b", "main", str(tmp_path / "theirs.git"), cwd=tmp_path)
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host forge\n  HostName 127.0.0.1\n  Port {sshd.port}\nHost *\n  IdentityFile {sshd.folder}/key\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  StrictHostKeyChecking accept-new\n"
    )
    denies = denied_hosts({"rules": [{"action": "deny", "hosts": [host]}]})
    ssh = {"GIT_SSH_COMMAND": f"ssh -F {config}"}
    desk, git = await desk_of(tmp_path, f"forge:{tmp_path}/theirs.git", supervisor, ssh, denies=denies)
    done = await desk.git("ls-remote", "origin")
    git.close()
    assert ("a rule of the user's denies forge" in done.stderr) == is_denied, done.stderr
    assert (done.returncode != 0) == is_denied


async def test_megabytes_arrive_whole_through_the_door(desk: Desk) -> None:
    (desk.work / "large").write_bytes(os.urandom(6 << 20))
    plain("add", "large", cwd=desk.work)
    plain("commit", "-qm", "large", cwd=desk.work)
    pushed = await desk.git("push", "-q", "origin", "main")
    assert pushed.returncode == 0, pushed.stderr
    url = plain("remote", "get-url", "origin", cwd=desk.work).strip()
    cloned = await desk.git("clone", "-q", url, "copy", cwd=desk.root)
    assert cloned.returncode == 0, cloned.stderr
    assert (desk.root / "copy" / "large").read_bytes() == (desk.work / "large").read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("ls-remote", "ssh://127.0.0.1:{port}{root}/other.git"),
        ("ls-remote", "ssh://root@127.0.0.1:{port}{root}/theirs.git"),
        ("ls-remote", "ssh://127.0.0.1:{port}{root}/theirs.git/../other.git"),
        ("ls-remote", "--upload-pack=touch {root}/PWN;git-upload-pack", "origin"),
        ("-c", "ssh.variant=simple", "ls-remote", "--upload-pack=sh -c 'touch {root}/PWN'", "origin"),
        ("archive", "--remote=origin", "HEAD"),
    ],
)
async def test_what_was_no_remote_at_the_start_is_refused_with_a_word(
    desk: Desk, sshd: SshServer, words: tuple[str, ...]
) -> None:
    done = await desk.git(*(word.format(port=sshd.port, root=desk.root) for word in words))
    assert done.returncode != 0
    assert "hermes: ssh was not used" in done.stderr
    assert not (desk.root / "PWN").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("127.0.0.1", "id"),
        ("-o", "ProxyCommand=touch {root}/PWN", "127.0.0.1", "git-upload-pack '{root}/theirs.git'"),
        ("-p", "{port}", "127.0.0.1", "git-upload-pack '{root}/theirs.git'; touch {root}/PWN"),
        ("-p", "{port}", "127.0.0.1", "git-upload-pack '{root}/theirs.git' '--x'"),
        ("-p", "{port}", "-oProxyCommand=x", "git-upload-pack '{root}/theirs.git'"),
        ("-A", "-p", "{port}", "127.0.0.1", "git-upload-pack '{root}/theirs.git'"),
        ("-L", "1234:localhost:22", "127.0.0.1", "git-upload-pack '{root}/theirs.git'"),
        (),
    ],
)
async def test_the_program_inside_is_no_ssh(desk: Desk, sshd: SshServer, words: tuple[str, ...]) -> None:
    told = [word.format(port=sshd.port, root=desk.root) for word in words]
    done = await asyncio.to_thread(
        partial(
            subprocess.run,
            [str(desk.root / "programs" / "git-ssh"), *told],
            env=desk.inside,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    )
    assert done.returncode == 128
    assert "hermes:" in done.stderr
    assert not (desk.root / "PWN").exists()


async def test_hostile_pipes_cost_nothing_but_their_own_visit(desk: Desk) -> None:
    meeting = desk.root / "meeting"
    names = [f"{number:032x}" for number in range(4)]
    (meeting / f"{names[0]}.ask").symlink_to("/etc/passwd")
    os.mkfifo(meeting / f"{names[1]}.ask")
    (meeting / f"{names[2]}.ask").write_bytes(b"ssh\0\0" + b"x" * (1 << 20))
    (meeting / f"{names[3]}.ask").write_bytes(b"ssh\0\0\0")
    for part in ("in", "out", "err", "end"):
        (meeting / f"{names[3]}.{part}").symlink_to(desk.root / "canary")
    (desk.root / "canary").write_text("whole\n")
    with (meeting / "git-door").open("wb", buffering=0) as door:
        door.write(b"\n".join([*map(str.encode, names), b"../../etc/passwd", b"\0\xff" * 40, b""]))
    answered = await desk.git("ls-remote", "origin")
    assert answered.returncode == 0, answered.stderr
    assert (desk.root / "canary").read_text() == "whole\n"


async def test_a_session_that_is_over_says_so(desk: Desk, tmp_path: Path) -> None:
    shutil.rmtree(desk.root / "meeting")
    done = await desk.git("ls-remote", "origin")
    assert done.returncode != 0
    assert "no longer answers" in done.stderr


# -- https -------------------------------------------------------------------------------------------------------


class _Protected(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        wanted = "Basic " + b64encode(f"me:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def https(tmp_path: Path) -> Iterator[str]:
    """A repository behind a password, on loopback."""
    plain("init", "-q", "--bare", "-b", "main", str(tmp_path / "site" / "theirs.git"), cwd=tmp_path)
    plain("update-server-info", cwd=tmp_path / "site" / "theirs.git")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    pair = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so no certificate can be made")
    subprocess.run([*made, *pair], check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Protected, directory=str(tmp_path / "site")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_credential_is_handed_to_git_for_a_host_of_the_remotes_alone(
    tmp_path: Path, https: str, supervisor: ProcessSupervisor
) -> None:
    store = tmp_path / "credentials"
    store.write_text(f"https://me:{PASSWORD}@{https}\nhttps://me:{PASSWORD}@elsewhere.example\n")
    before = store.read_text()
    settings = f"[credential]\n\thelper = store --file={store}\n"
    desk, git = await desk_of(tmp_path, f"https://{https}/theirs.git", supervisor, {}, settings)
    try:
        desk.inside["GIT_SSL_NO_VERIFY"] = "1"
        listed = await desk.git("ls-remote", "origin")
        assert listed.returncode == 0, listed.stderr
        elsewhere = await desk.git("credential", "fill", stdin="protocol=https\nhost=elsewhere.example\n\n")
        assert PASSWORD not in elsewhere.stdout
        assert "no remote of this workspace was at elsewhere.example" in elsewhere.stderr
        plainly = await desk.git("credential", "fill", stdin=f"protocol=http\nhost={https}\n\n")
        assert PASSWORD not in plainly.stdout
        await desk.git("credential", "reject", stdin=f"protocol=https\nhost={https}\nusername=me\n\n")
        assert store.read_text() == before
        assert PASSWORD not in desk.redactor.redact(f"the password is {PASSWORD}")
    finally:
        git.close()


async def test_settings_of_the_workspace_choose_no_helper_outside(
    tmp_path: Path, supervisor: ProcessSupervisor
) -> None:
    desk, git = await desk_of(tmp_path, "https://localhost:1/theirs.git", supervisor, {})
    try:
        plain("config", "credential.helper", f"!touch {tmp_path}/PWN; false", cwd=desk.work)
        await desk.git("credential", "fill", stdin="protocol=https\nhost=localhost:1\n\n")
        assert not (tmp_path / "PWN").exists()
    finally:
        git.close()
