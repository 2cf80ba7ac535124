"""What a session's git gets from outside: the person's ssh and credentials, for the remotes of the start."""

import contextlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hermes.config.host_entry import plain_name
from hermes.confinement.outside import outside
from hermes.own_git import OwnGit
from hermes.programs import find_program, split_path
from hermes.redact import Redactor
from hermes.seams import Decision, SpawnSpec, Supervisor
from hermes.tools.git_access import credential_request, ssh_request
from hermes.tools.git_access.door import GitDoor, Visit
from hermes.tools.git_access.inside_programs import credential_program, ssh_program
from hermes.tools.git_access.remotes import GitSetting, Remotes, read_settings, remotes_of
from hermes.tools.network.denied_hosts import DeniesHost, denies_nothing

_MOST_MODULES = 64
_MOST_DEPTH = 4
_LIST = ("config", "--list", "--show-scope", "--show-origin", "-z")
_PURPOSE = "remotes of the workspace"


class GitPerson(NamedTuple):
    """Whose git it is: the runtime's own environment, and the folder whose repository counts."""

    supervisor: Supervisor
    environ: Mapping[str, str]
    workspace: Path
    redactor: Redactor | None = None


class SessionGit:
    """Made before the session's first command; answers until it is closed."""

    def __init__(self, person: GitPerson, settings: list[GitSetting], denies: DeniesHost = denies_nothing) -> None:
        self._person = person
        self._denies = denies
        self.remotes: Remotes = remotes_of(settings)
        self.files = settings_files(settings, person.workspace)
        self._options = ssh_request.own_options(settings, person.environ.get("GIT_SSH_COMMAND", ""))
        self.variables: dict[str, str] = {}  # by which git inside finds its way here, once it is open
        self._door: GitDoor | None = None
        self._bash = find_program("bash", person.environ, person.workspace) or "/bin/bash"

    @classmethod
    async def of(cls, person: GitPerson, denies: DeniesHost = denies_nothing) -> "SessionGit":
        """With the remotes that the workspace has now, its modules' among them."""
        return cls(person, await _settings_of(person), denies)

    def open(self, programs: Path, meeting: Path) -> dict[str, str]:
        """Begin to answer; return the variables by which git inside finds its way here.

        Commands may read `programs` and write `meeting`.
        """
        self._door = GitDoor(meeting, self._answer)
        ssh, helper = programs / "git-ssh", programs / "git-credential"
        for file, text in (
            (ssh, ssh_program(self._bash, str(meeting))),
            (helper, credential_program(self._bash, str(meeting))),
        ):
            file.write_text(text)
            file.chmod(0o700)
        self.variables = {
            "GIT_SSH_COMMAND": shlex.quote(str(ssh)),
            "GIT_SSH_VARIANT": "ssh",
            **_added_settings(self._person.environ, [("credential.helper", ""), ("credential.helper", str(helper))]),
        }
        return self.variables

    def attend(self) -> None:
        """Answer on the running loop."""
        if self._door is not None:
            self._door.attend()

    def close(self) -> None:
        if self._door is not None:
            self._door.close()

    async def _answer(self, visit: Visit) -> int:
        kind, *words = visit.words or ("",)
        if kind == "ssh" and words:
            return await self._ssh(visit, words[1:], words[0])
        if kind == "credential" and len(words) == 1:
            return await self._credential(visit, words[0])
        return _complain(visit, "hermes: this request is not understood")

    async def _ssh(self, visit: Visit, words: list[str], protocol: str) -> int:
        request = ssh_request.read_request(words, protocol)
        why = request if isinstance(request, str) else ssh_request.refusal(request, self.remotes)
        if isinstance(request, str) or why:
            return _complain(visit, f"hermes: ssh was not used: {why}. Ask the user to fetch or push it.")
        program = find_program("ssh", self._person.environ, self._person.workspace)
        if program is None:
            return _complain(visit, "hermes: ssh is not installed (Debian: package openssh-client)")
        if self._denies is not denies_nothing and await self._is_denied(program, request):
            return _complain(visit, f"hermes: ssh was not used: a rule of the user's denies {request.host}")
        ends = (visit.stdin, visit.stdout, visit.stderr)
        for fd in ends:
            os.set_blocking(fd, True)
        spec = SpawnSpec(
            argv=(
                *(self._bash, "--noprofile", "--norc", "-c"),
                'exec "${@:4}" <&"$1" >&"$2" 2>&"$3"',
                *("bash", *map(str, ends), *ssh_request.ssh_argv(program, request, self._options)),
            ),
            cwd="/",
            env=self._environment({"GIT_PROTOCOL": request.protocol} if request.protocol else {}),
            owner="git-ssh",
            confinement=outside("git ssh"),
            pass_fds=ends,
        )
        child = await self._person.supervisor.spawn(Decision.own("git's ssh outside"), spec)
        try:
            return await child.wait() % 256
        finally:
            child.release()

    async def _is_denied(self, program: str, request: ssh_request.SshRequest) -> bool:
        """Whether a rule denies the host, by the name it has in the remote or by what ssh's own settings make of it."""
        spec = SpawnSpec(
            argv=ssh_request.looking_up(program, request, self._options),
            cwd="/",
            env=self._environment({}),
            owner="git-ssh",
            confinement=outside("git ssh"),
            merge_stderr=False,
        )
        child = await self._person.supervisor.spawn(Decision.own("where git's ssh leads"), spec)
        said = bytearray()
        try:
            async for chunk in child.output():
                said += chunk
            await child.wait()
        finally:
            child.release()
        host, port = ssh_request.where_to(said.decode("utf-8", "replace"))
        port = int(request.port or port)
        return self._denies(plain_name(request.host), port) or self._denies(plain_name(host), port)

    async def _credential(self, visit: Visit, text: str) -> int:
        asked = credential_request.read_attributes(text)
        why = credential_request.refusal(asked, self.remotes)
        if why:
            return _complain(visit, f"hermes: {why}")
        program = find_program("git", self._person.environ, self._person.workspace)
        if program is None:
            return _complain(visit, "hermes: git is not installed")
        spec = SpawnSpec(
            argv=(program, "-c", "core.askPass=", "-c", "credential.interactive=false", "credential", "fill"),
            cwd="/",  # of no repository: the workspace's settings are not the person's
            env=self._environment({"GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": "/", "GIT_ASKPASS": ""}),
            stdin=credential_request.question(asked),
            owner="git-credential",
            confinement=outside("git credential"),
            merge_stderr=False,
        )
        child = await self._person.supervisor.spawn(Decision.own("git's credential"), spec)
        said = bytearray()
        try:
            async for chunk in child.output():
                said += chunk
            code = await child.wait()
        finally:
            child.release()
        found = credential_request.read_attributes(said.decode("utf-8", "replace"))
        if code != 0 or not found.get("password"):
            return 1
        if self._person.redactor is not None:
            self._person.redactor.register(found["password"], "git credential")
        with contextlib.suppress(OSError):
            os.write(visit.stdout, credential_request.handed(found))
        return 0

    def _environment(self, added: Mapping[str, str]) -> dict[str, str]:
        """The person's own, so that their agent, keys and helpers are found; nothing that speaks to git by itself."""
        environ = self._person.environ
        kept = {name: value for name, value in environ.items() if _is_the_persons(name)}
        return {**kept, "PATH": split_path(environ, self._person.workspace).own, **added}


async def _settings_of(person: GitPerson) -> list[GitSetting]:
    """The settings in force in the workspace, and what its modules' repositories add; nothing where there is no git."""
    if find_program("git", person.environ, person.workspace) is None:
        return []
    git = OwnGit(person.supervisor, person.environ, person.workspace)
    answer = await git.ask(*_LIST, purpose=_PURPOSE)
    found = read_settings(answer.output) if answer.code == 0 else []
    for file in _module_files(person.workspace / ".git" / "modules"):
        answer = await git.ask("config", "--file", str(file), *_LIST[1:], purpose=_PURPOSE)
        found += read_settings(answer.output) if answer.code == 0 else []
    return found


def settings_files(settings: list[GitSetting], workspace: Path) -> tuple[str, ...]:
    """The files that git reads its settings from here, those that others include among them."""
    origins = dict.fromkeys(one.origin.removeprefix("file:") for one in settings if one.origin.startswith("file:"))
    return tuple(os.path.realpath(workspace / origin) for origin in origins)


def _module_files(folder: Path) -> list[Path]:
    """The settings of modules: below .git/modules, where a module's name may have slashes in it."""
    found: list[Path] = []
    for where, folders, files in os.walk(folder):
        depth = len(Path(where).relative_to(folder).parts)
        if "config" in files and "HEAD" in files:
            found.append(Path(where) / "config")
            folders[:] = [name for name in folders if name == "modules"]
        elif depth >= _MOST_DEPTH:
            folders.clear()
        if len(found) >= _MOST_MODULES:
            break
    return found


def _added_settings(environ: Mapping[str, str], settings: list[tuple[str, str]]) -> dict[str, str]:
    """Variables that give git these settings, after those that it is given by variables already."""
    first = int(environ["GIT_CONFIG_COUNT"]) if environ.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    made = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for place, (key, value) in enumerate(settings, first):
        made |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    return made


def _complain(visit: Visit, text: str) -> int:
    with contextlib.suppress(OSError):
        os.write(visit.stderr, f"{text}\n".encode())
    return 128


def _is_the_persons(name: str) -> bool:
    return name.startswith("GIT_CONFIG") or not name.startswith(("GIT_", "SSH_ASKPASS"))
