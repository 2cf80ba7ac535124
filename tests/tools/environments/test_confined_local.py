"""Confined local commands: what they may touch, what they cannot see, and how a denial is settled."""

import asyncio
import getpass
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.confinement.plan import Enforcement, PlanRequest
from hermes.confinement.policy import Confinement, PathRule
from hermes.errors import MissingPart, ToolError
from hermes.scope import TurnScope
from hermes.seams import Decision
from hermes.tools.builtin.process import process
from hermes.tools.builtin.search_files import search_files
from hermes.tools.builtin.terminal import terminal
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions, Mode
from hermes.tools.supervisor.confine import landlock, probe
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.tools.terminal.sandbox_escape import denial_in, folder_for
from tests.tools.bubblewrap import why_no_bubblewrap
from tests.tools.environments.conformance import Conformance, run
from tests.tools.real_backends import SshServer
from tests.tools.terminal_room import Room, ToldGate, told

PATH = f"{os.environ['PATH']}:/usr/local/bin:/usr/bin:/bin"
needs_bwrap = pytest.mark.skipif(bool(why_no_bubblewrap()), reason=why_no_bubblewrap())
pytestmark = pytest.mark.real


class Place:
    """A home with secrets, a workspace that is a git repository, and folders that nobody gave."""

    def __init__(self, root: Path) -> None:
        # Not below the temporary folder, which commands may write to.
        self.root = root
        self.home = root / "home"
        self.hermes = self.home / ".hermes"
        self.work = root / "work"
        for folder in (self.hermes / "skills", self.work / ".git" / "hooks", self.home / ".cache", root / "elsewhere"):
            folder.mkdir(parents=True)
        (self.hermes / ".env").write_text("OPENROUTER_API_KEY=sk-very-secret\n")
        (self.hermes / "config.yaml").write_text("model: x\n")
        (self.hermes / "skills" / "one.md").write_text("a skill\n")

    def border(self, *, mode: Mode = "on", level: probe.Wish = "full", **changes: Any) -> Border:
        given = {"workspace": str(self.work), "hermes_home": str(self.hermes), "home": str(self.home)}
        given["caches"] = str(self.hermes / "cache" / "work")
        return Border(mode=mode, level=level, request=PlanRequest(**{**given, **changes}))


@pytest.fixture
def place() -> Iterator[Place]:
    base = Path("/var/lib") if os.geteuid() == 0 else Path(os.path.expanduser("~" + getpass.getuser()))
    root = base / f"hermes-sandbox-test-{os.getpid()}"
    shutil.rmtree(root, ignore_errors=True)
    yield Place(root)
    shutil.rmtree(root, ignore_errors=True)


def make(supervisor: ProcessSupervisor, place: Place, **changes: Any) -> LocalEnvironment:
    env = {"PATH": PATH, "HOME": str(place.home), "LANG": "C.UTF-8"}
    options = LocalOptions(env=env, border=place.border(**changes), processes_folder=place.hermes / "processes")
    return LocalEnvironment(supervisor, str(place.work), options)


@pytest.fixture
def kind() -> str:
    return "local"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, place: Place) -> AsyncIterator[LocalEnvironment]:
    one = make(supervisor, place)
    yield one
    await one.close()


@needs_bwrap
class TestSandboxed(Conformance):
    """The common suite, inside."""


@needs_bwrap
async def test_the_workspace_temp_and_caches_are_writable_and_the_rest_is_not(
    environment: LocalEnvironment, place: Place
) -> None:
    writable = [place.work, "/tmp", "$XDG_CACHE_HOME", "$CARGO_HOME"]
    for folder in writable:
        assert (await run(environment, f"touch {folder}/canary && rm {folder}/canary")).exit_code == 0
    for folder in (place.root / "elsewhere", place.home, place.home / ".cache", "/usr", "/etc"):
        result = await run(environment, f"touch {folder}/canary")
        assert result.exit_code == 1
        assert "Read-only file system" in result.output
    assert not (place.root / "elsewhere" / "canary").exists()


@needs_bwrap
async def test_secrets_hooks_and_config_are_out_of_reach(environment: LocalEnvironment, place: Place) -> None:
    result = await run(environment, f"cat {place.hermes}/.env {place.hermes}/config.yaml; cat {place.hermes}/skills/*")
    assert "sk-very-secret" not in result.output
    assert "model: x" not in result.output
    assert "a skill" in result.output
    await run(environment, f"echo evil > .git/hooks/pre-commit; echo evil > {place.hermes}/config.yaml")
    assert not (place.work / ".git" / "hooks" / "pre-commit").exists()
    assert (place.hermes / "config.yaml").read_text() == "model: x\n"


@needs_bwrap
async def test_root_has_no_capability_and_the_runtime_cannot_be_signalled(environment: LocalEnvironment) -> None:
    result = await run(
        environment, f"grep CapEff /proc/self/status; kill -0 {os.getpid()}; ls /proc | grep -c '^[0-9]'"
    )
    assert "CapEff:\t0000000000000000" in result.output
    assert "No such process" in result.output
    assert int(result.output.split()[-1]) < 10


@needs_bwrap
async def test_the_network_is_there_unless_it_is_switched_off(supervisor: ProcessSupervisor, place: Place) -> None:
    with_network, without = make(supervisor, place), make(supervisor, place, network=False)
    assert (await run(with_network, "cat /proc/net/dev | grep -c :")).output != "1\n"
    assert (await run(without, "cat /proc/net/dev | grep -c :")).output == "1\n"
    await with_network.close()
    await without.close()


@needs_bwrap
async def test_git_commit_works(supervisor: ProcessSupervisor, place: Place) -> None:
    person = make(supervisor, place, mode="off")
    await run(person, "rm -r .git && git init -q . && git config user.email a@b && git config user.name a")
    environment = make(supervisor, place)
    result = await run(environment, "echo x > f && git add f && git commit -q -m first && git log --format=%s")
    assert (result.exit_code, result.output) == (0, "first\n")
    await person.close()
    await environment.close()


@needs_bwrap
async def test_a_denied_path_is_offered_and_then_works(supervisor: ProcessSupervisor, place: Place) -> None:
    environment = make(supervisor, place)
    room = Room(environment, supervisor, place.root)
    target = place.root / "elsewhere" / "new.txt"
    (place.work / "sub").mkdir()
    answer = told(await terminal({"command": f"cd sub && echo hi > {target}"}, ctx=room))  # both times from one folder
    assert (answer["exit_code"], target.read_text()) == (0, "hi\n")
    question = room.gate.asked[-1]
    assert (question.kind, question.text) == ("write", str(target))
    assert "the command says that it could not write" in str(question.details["why"])
    assert str(target.parent) in question.details["why"]
    assert "was opened, as allowed" in answer["sandbox"]
    await terminal({"command": f"echo again > {target}"}, ctx=room)
    assert len(room.gate.asked) == 3
    await environment.close()


@needs_bwrap
async def test_a_file_in_the_home_itself_does_not_open_all_of_the_home(
    supervisor: ProcessSupervisor, place: Place
) -> None:
    environment = make(supervisor, place)
    room = Room(environment, supervisor, place.root)
    (place.work / "sub").mkdir()
    answer = told(await terminal({"command": f"cd sub && echo hi > {place.home}/new.txt"}, ctx=room))
    assert (answer["exit_code"], room.gate.asked[-1].details["sandbox"]) == (0, "run_outside")
    assert str(place.home) not in (await environment.confinement()).writable
    await environment.close()


@needs_bwrap
async def test_a_refused_denial_changes_nothing_and_is_told(supervisor: ProcessSupervisor, place: Place) -> None:
    environment = make(supervisor, place)
    target = place.root / "elsewhere" / "new.txt"
    room = Room(environment, supervisor, place.root, PathGate(str(target)))
    answer = told(await terminal({"command": f"echo hi > {target}"}, ctx=room))
    assert answer["exit_code"] == 1
    assert "the border keeps" in answer["sandbox"]
    assert not target.exists()
    await environment.close()


class PathGate(ToldGate):
    """Denies writing at one path, and nothing else."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    async def decide(self, action, scope):  # type: ignore[no-untyped-def]  # as the class above
        await super().decide(action, scope)
        return Decision(allowed=action.text != self._path, reason="keep to the workspace")


@needs_bwrap
async def test_what_a_sandboxed_command_leaves_does_not_act_outside(
    supervisor: ProcessSupervisor, place: Place
) -> None:
    environment = make(supervisor, place)
    assert (await run(environment, "true")).exit_code == 0
    state = environment._state
    assert state is not None
    victim = place.root / "elsewhere" / "victim"
    victim.write_text("untouched\n")
    # Functions for the next command, links and fifos where the runtime will look and write, a changed login snapshot.
    await run(
        environment,
        f"touch() {{ echo evil; }}; export -f touch; for n in 3 4 5 6 7; do ln -s {victim} {state.shared}/snapshot-$n; "
        f"mkfifo {state.shared}/cwd-$n; done; echo 'echo evil' >> {state.login}; rm -rf {state.own}; true",
    )
    outside = await environment.execute_outside(
        f"touch {place.root}/elsewhere/made", Decision(allowed=True), TurnScope(), cwd=str(place.work)
    )
    assert (outside.exit_code, outside.output) == (0, "")
    assert (place.root / "elsewhere" / "made").exists()
    large = f": {'x' * 200_000}\necho large"
    assert (await run(environment, large)).output == "large\n"
    assert victim.read_text() == "untouched\n"
    await environment.close()


@needs_bwrap
async def test_a_program_that_a_command_put_on_path_runs_outside_only_when_it_is_typed(
    supervisor: ProcessSupervisor, place: Place
) -> None:
    folder, mark = place.work / ".venv/bin", place.root / "elsewhere" / "mark"
    folder.mkdir(parents=True)
    env = {"PATH": f"{folder}:{PATH}", "HOME": str(place.home), "LANG": "C.UTF-8"}
    environment = LocalEnvironment(supervisor, str(place.work), LocalOptions(env=env, border=place.border()))
    made = await run(environment, f"printf '#!/bin/sh\ntouch {mark}' > {folder}/sudo; chmod +x {folder}/sudo; sudo")
    assert "Read-only file system" in made.output
    for rule, is_run in (("docker", False), ("person", True)):
        decision = Decision(allowed=True, rule=rule)
        await environment.execute_outside("sudo --version", decision, TurnScope(), cwd=str(place.work))
        assert mark.exists() is is_run
    await environment.close()


@needs_bwrap
async def test_a_search_says_that_the_sandbox_hides_a_folder(supervisor: ProcessSupervisor, place: Place) -> None:
    environment = make(supervisor, place)
    room = Room(environment, supervisor, place.root)
    with pytest.raises(ToolError, match="out of sight"):
        await search_files({"pattern": "model", "path": str(place.hermes)}, ctx=room)
    shown = told(await search_files({"pattern": "skill", "path": str(place.hermes / "skills")}, ctx=room))
    assert shown["total_count"] == 1
    await environment.close()


@needs_bwrap
async def test_background_processes_run_inside_too(supervisor: ProcessSupervisor, place: Place) -> None:
    environment = make(supervisor, place)
    room = Room(environment, supervisor, place.root)
    for pty in (False, True):
        command = f"cat {place.hermes}/.env; touch {place.root}/elsewhere/x; touch made && echo made; tty"
        started = told(await terminal({"command": command, "background": True, "pty": pty}, ctx=room))
        ended = told(await process({"action": "wait", "session_id": started["session_id"]}, ctx=room))
        assert "sk-very-secret" not in ended["output"]
        assert "Read-only file system" in ended["output"]
        assert "made" in ended["output"]
    await environment.close()


async def test_on_refuses_where_there_is_no_bubblewrap_and_auto_says_so_once(
    supervisor: ProcessSupervisor, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None if name == "bwrap" else f"/bin/{name}")
    monkeypatch.setattr(probe, "_answers", {})
    monkeypatch.setattr(landlock, "version", lambda: 0)
    strict = make(supervisor, place)
    with pytest.raises(MissingPart, match="install bubblewrap"):
        await run(strict, "touch canary")
    assert not (place.work / "canary").exists()
    easy = make(supervisor, place, mode="auto", level="auto")
    room = Room(easy, supervisor, place.root)
    first = told(await terminal({"command": "true"}, ctx=room))
    assert "without a sandbox" in first["sandbox"]
    assert "sandbox" not in told(await terminal({"command": "true"}, ctx=room))
    await easy.close()


@needs_bwrap
async def test_the_probe_runs_the_program_once(supervisor: ProcessSupervisor) -> None:
    assert await probe.enforcement(supervisor) == Enforcement("full", shutil.which("bwrap") or "")


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("touch: cannot touch '/etc/x': Read-only file system", "/etc/x"),
        ("bash: line 1: /etc/x: Read-only file system", "/etc/x"),
        ("OSError: [Errno 30] Read-only file system: '/usr/lib/python3/x.py'", "/usr/lib/python3/x.py"),
        ("npm ERR! EROFS: read-only file system, mkdir '/root/.config/npm'", "/root/.config/npm"),
        ("error: could not create file /opt/a.txt: Read-only file system (os error 30)", "/opt/a.txt"),
        ("error: read-only file system", None),
    ],
)
def test_a_denial_is_read_from_what_programs_say(output: str, path: str | None) -> None:
    confined = Confinement(level="full", workspace="/srv")
    found = denial_in(output, 1, confined)
    assert found is not None
    assert found.path == path
    assert denial_in(output, 0, confined) is None
    assert denial_in("no such file", 1, confined) is None


def test_what_a_command_says_counts_only_where_the_border_keeps_it() -> None:
    rules = (
        PathRule("/srv", "write", "workspace", ""),
        PathRule("/srv/.envrc", "read", "self-running", "run by itself"),
        PathRule("/home/me/.ssh", "hidden", "secret", "keys"),
    )
    confined = Confinement(level="full", workspace="/srv", home="/home/me", rules=rules)
    said = "touch: cannot touch '{}': Read-only file system"
    for path in ("/home/me/.ssh/x", "/srv/.envrc", "/srv/.ENVRC"):
        found = denial_in(said.format(path), 1, confined)
        assert found is not None
        assert (found.path, found.is_final) == (None, True)
    own = denial_in(said.format("/srv/a/b"), 1, confined)
    assert own is not None  # it may be a mount of the person's own
    assert own.path is None
    assert "not known what" in own.why
    docker = denial_in("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", 1, confined)
    assert docker is not None
    assert "out of sight" in docker.why
    assert denial_in("kill: (1) - Operation not permitted", 1, confined) is None
    assert folder_for("/home/x", confined) is None  # /home holds the person's
    assert folder_for("/usr/lib/x", confined) == "/usr/lib"


@needs_bwrap
async def test_file_tools_and_commands_have_one_temporary_folder(environment: LocalEnvironment, tmp_path: Path) -> None:
    """And a file that only the person has there can be read, not replaced."""
    (tmp_path / "theirs.txt").write_text("theirs\n")
    name = f"/tmp/{tmp_path.name}-mine.txt"
    await environment.write(name, b"mine\n")
    assert (await run(environment, f"cat {name} && echo more >> {name}")).output == "mine\n"
    assert await environment.read(name) == b"mine\nmore\n"
    assert not await asyncio.to_thread(Path(name).exists)
    assert await environment.read(str(tmp_path / "theirs.txt")) == b"theirs\n"
    await environment.write(str(tmp_path / "theirs.txt"), b"changed\n")
    assert (tmp_path / "theirs.txt").read_text() == "theirs\n"


def in_work(place: Place, *words: str) -> None:
    """Run git in the workspace as the person would."""
    quiet = {"PATH": PATH, "HOME": str(place.home), "GIT_CONFIG_GLOBAL": "/dev/null"}
    named = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=place.work, env={**quiet, **named}, check=True, capture_output=True)


@needs_bwrap
@pytest.mark.parametrize("level", ["full", "files"])
async def test_git_fetches_and_pushes_over_ssh_though_no_key_is_in_sight(
    supervisor: ProcessSupervisor, place: Place, sshd: SshServer, tmp_path: Path, level: probe.Wish
) -> None:
    theirs = place.root / "theirs.git"
    shutil.rmtree(place.work / ".git")
    in_work(place, "init", "-q", "--bare", "-b", "main", str(theirs))
    in_work(place, "init", "-q", "-b", "main")
    in_work(place, "remote", "add", "origin", f"ssh://127.0.0.1:{sshd.port}{theirs}")
    in_work(place, "commit", "-q", "--allow-empty", "-m", "one")
    known = f"-o UserKnownHostsFile={tmp_path}/k -o StrictHostKeyChecking=accept-new"
    env = {"PATH": PATH, "HOME": str(place.home), "LANG": "C.UTF-8"}
    person = {**env, "GIT_SSH_COMMAND": f"ssh -F /dev/null -i {sshd.folder}/key {known}"}
    options = LocalOptions(env=env, border=place.border(level=level), person=person)
    environment = LocalEnvironment(supervisor, str(place.work), options)
    try:
        assert (await environment.confinement()).level == level
        done = await run(environment, "git push -u origin main && git fetch origin && git ls-remote origin")
        assert done.exit_code == 0, done.output
        code = "import subprocess; subprocess.run(['git', 'ls-remote', 'origin'])"
        again = await run(environment, f'python3 -c "{code}"')
        assert "refs/heads/main" in again.output
        elsewhere = await run(environment, f"git ls-remote ssh://127.0.0.1:{sshd.port}{place.work}")
        assert "was no remote of this workspace" in elsewhere.output
    finally:
        await environment.close()


@needs_bwrap
@pytest.mark.parametrize("level", ["full", "files"])
async def test_settings_of_git_that_start_something_do_not_outlast_the_command(
    supervisor: ProcessSupervisor, place: Place, level: probe.Wish
) -> None:
    shutil.rmtree(place.work / ".git")
    in_work(place, "init", "-q", "-b", "main")
    environment = make(supervisor, place, level=level)
    try:
        everyday = "git config user.name me && git remote add origin git@example.org:a/b.git && git checkout -qb x"
        done = await run(environment, everyday)
        assert (done.exit_code, done.notes) == (0, ()), done.output
        done = await run(environment, "git config core.fsmonitor 'touch /tmp/x' && git config alias.st status")
        assert done.exit_code == 0, done.output
        assert "alias.st, core.fsmonitor" in done.notes[0]
        config = (place.work / ".git" / "config").read_text()
        assert "fsmonitor" not in config
        assert "git@example.org:a/b.git" in config
        assert "name = me" in config
        assert (await run(environment, "true")).notes == ()
    finally:
        await environment.close()
