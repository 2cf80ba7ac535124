"""Plan the confinement of a session: look once at the person's machine, before any command of the agent has run.

What lies in the workspace may have been written by an earlier session, so nothing there widens a plan: a link in it
that leads out of it is not followed, and a git folder elsewhere counts only when that folder names this workspace.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from hermes.confinement import places
from hermes.confinement.policy import (
    TEMP_FOLDERS,
    Confinement,
    Enforcement,
    Level,
    PathRule,
    PlanRequest,
    is_below,
)

__all__ = ["Enforcement", "PlanRequest", "own_root", "plan"]

_HOOKS_PATH = re.compile(r"^\s*hookspath\s*=\s*\"?([^\"\n;#]+)", re.IGNORECASE | re.MULTILINE)
_MOST_BYTES = 256 << 10
_MOST_FOLDERS = 3000  # looked through for repositories in the workspace
_DEEPEST = 5
_NOT_LOOKED_INTO = frozenset({"node_modules", ".git", "__pycache__", ".venv", "venv", "target", ".tox"})


@runtime_checkable
class OpensFolders(Protocol):
    """An environment in which a person can open one more folder, between two commands."""

    @property
    def opened_folders(self) -> tuple[str, ...]: ...
    async def open_folder(self, folder: str) -> None: ...


def plan(request: PlanRequest, found: Enforcement) -> Confinement:
    """The confinement of one session. It reads the file system, and changes nothing."""
    workspace = os.path.realpath(request.workspace)
    home = os.path.realpath(request.home) if request.home else ""
    rules = [*_sockets(request, home), *_hidden(request, home), *_own_folders(request, home, found.level)]
    rules += _roots(request, workspace)
    rules += _protected(workspace, home, rules)
    rules += [PathRule(os.path.realpath(each), "read", "socket", "granted by name") for each in request.sockets]
    return Confinement(
        level=found.level,
        policy=request.policy,
        workspace=workspace,
        home=home,
        rules=tuple(sorted(rules, key=lambda rule: rule.path.count("/") if rule.path != "/" else 0)),
        temp=os.path.realpath(request.temp) if request.temp else "",
        network=request.network,
        limits=request.limits,
        env=_variables(request, found.level),
        without=() if found.level == "none" else _dropped(request),
        bwrap=found.bwrap,
        why=found.why,
    )


def opened(confined: Confinement, folder: str, why: str) -> Confinement:
    """The same with one more real folder, protected inside as the workspace is; nothing else is planned again."""
    root = PathRule(folder, "write", "granted", why)
    return confined.with_rules(root, *_protected(confined.workspace, confined.home, [root]))


def own_root(folder: str, workspace: str) -> str | None:
    """The real path of a folder that was named by the person; None when the workspace has led it elsewhere."""
    spelled = os.path.abspath(folder)  # noqa: PTH100 - links are what this is about
    real = os.path.realpath(spelled)
    if is_below(spelled, workspace) and not is_below(real, workspace):
        return None
    return real


def _roots(request: PlanRequest, workspace: str) -> Iterator[PathRule]:
    """What the person lets commands write."""
    confined_to = [os.path.realpath(root) for root in request.safe_roots]
    if request.policy == "open" and not confined_to:
        yield PathRule("/", "write", "granted", "terminal.sandbox is open")
    found = [] if request.policy == "read-only" else list(_workspace_roots(request, workspace))
    found += [PathRule(root, "write", "granted", "HERMES_WRITE_SAFE_ROOT") for root in confined_to]
    for folder in request.writable:
        real = own_root(folder, workspace)
        if real is not None:
            found.append(PathRule(real, "write", "granted", "named in the settings or on the command line"))
    kept = [rule for rule in found if not confined_to or any(is_below(rule.path, root) for root in confined_to)]
    if not any(rule.path == workspace for rule in kept):
        yield PathRule(workspace, "read", "workspace", "the workspace, which this policy leaves as it is")
    yield from kept


def _workspace_roots(request: PlanRequest, workspace: str) -> Iterator[PathRule]:
    yield PathRule(workspace, "write", "workspace", "the workspace")
    for folder in _git_folders(workspace):
        if not is_below(folder, workspace):
            yield PathRule(folder, "write", "workspace", "the git folder of this worktree")
    active = _active_environment(request.environ, workspace)
    if active is not None:
        yield PathRule(active, "write", "workspace", "the active virtualenv")


def _own_folders(request: PlanRequest, home: str, level: Level) -> Iterator[PathRule]:
    """What the session brings along: its temporary folder, its caches, the state of its shell."""
    if level != "files":  # which cannot put another folder in their place
        for folder in TEMP_FOLDERS:
            yield PathRule(folder, "write", "temp", "a temporary folder that only this session has")
        if any(is_below(home, folder) for folder in TEMP_FOLDERS):
            yield PathRule(home, "read", "system", "the home folder")  # else the private folder would cover it
    elif request.temp:
        yield PathRule(os.path.realpath(request.temp), "write", "temp", "the session's temporary folder")
    if request.caches:
        yield PathRule(os.path.realpath(request.caches), "write", "cache", "package caches of Hermes' own")
    for folder in request.shared:
        yield PathRule(os.path.realpath(folder), "write", "hermes", "the state of the session's shell")
    for folder in request.shown:
        yield PathRule(os.path.realpath(folder), "read", "hermes", "the state of the session's shell")


def _hidden(request: PlanRequest, home: str) -> Iterator[PathRule]:
    why = "keys and passwords are not for commands"
    for path in places.SYSTEM_SECRETS:
        yield PathRule(path, "hidden", "secret", why)
    folder, ending = places.HOST_KEYS
    for name in _files(folder):
        if name.endswith(ending):
            yield PathRule(f"{folder}/{name}", "hidden", "secret", why)
    homes = {home, "/root"} - {""}
    for name in places.SECRETS:
        for home_folder in homes:
            path = f"{home_folder}/{name}"
            for spelled in {path, os.path.realpath(path)}:  # a link may lead to where the keys are
                if spelled not in (home, "/"):
                    yield PathRule(spelled, "hidden", "secret", why)
    if request.hermes_home:
        own = os.path.realpath(request.hermes_home)
        yield PathRule(own, "hidden", "hermes", "Hermes' own files")
        for name in places.VISIBLE_IN_HERMES_HOME:
            yield PathRule(f"{own}/{name}", "read", "hermes", "yours for the agent to read")


def _sockets(request: PlanRequest, home: str) -> Iterator[PathRule]:
    why = "sockets of the machine are out of sight"
    for folder in {os.path.realpath(each) for each in places.SOCKET_FOLDERS}:
        yield PathRule(folder, "hidden", "socket", why)
    names = os.path.realpath("/etc/resolv.conf")
    if any(is_below(names, folder) for folder in places.SOCKET_FOLDERS):
        yield PathRule(names, "read", "system", "how host names are found")
    if home:
        for name in places.SOCKET_FILES:
            yield PathRule(f"{home}/{name}", "hidden", "socket", why)
    for variable in places.SOCKET_VARIABLES:
        path = request.environ.get(variable, "")
        if path.startswith("/"):
            yield PathRule(os.path.realpath(path), "hidden", "socket", why)


def _protected(workspace: str, home: str, rules: Iterable[PathRule]) -> Iterator[PathRule]:
    """What other programs believe or run, in every folder that may be written."""
    roots = [rule for rule in rules if rule.access == "write" and rule.kind in ("workspace", "granted")]
    for root in roots:
        folder = root.path
        if folder == "/":
            folder = workspace
        for name in places.PROTECTED:
            yield PathRule(f"{folder}/{name}", "read", "protected", "programs believe what is in there")
        for name in places.SELF_RUNNING:
            yield PathRule(f"{folder}/{name}", "read", "self-running", "other programs run this by themselves")
        yield from _environment_files(folder)
        for file in _git_files(folder, nested := list(_nested_gits(folder))):
            yield PathRule(file, "read", "protected", "git goes where it says")
        for git in (*_git_folders(folder), *(each for each in nested if os.path.isdir(each)), folder):  # noqa: PTH112
            yield from _git_rules(git, folder)
        if home and is_below(home, folder):
            for name in places.START_FILES:
                yield PathRule(f"{home}/{name}", "read", "self-running", "shells and tools run this by themselves")


def _environment_files(folder: str) -> Iterator[PathRule]:
    """The interpreters of virtualenvs: `folder` itself, or those it holds."""
    candidates = [folder, *(f"{folder}/{name}" for name in (".venv", "venv", "env", ".env"))]
    for prefix in candidates:
        if os.path.isfile(f"{prefix}/pyvenv.cfg") and not os.path.islink(prefix):  # noqa: PTH113, PTH114
            for name in places.INTERPRETERS:
                yield PathRule(f"{prefix}/{name}", "read", "protected", "the interpreter of a virtualenv")


def _git_rules(git: str, root: str) -> Iterator[PathRule]:
    if git == root and not os.path.isfile(f"{git}/HEAD"):  # noqa: PTH113 - a folder that is no repository itself
        return
    for folder in (git, *_modules(git)):
        yield PathRule(f"{folder}/{places.GIT_HOOKS}", "read", "protected", "git runs hooks by itself")
        for name in places.GIT_CONFIGS:
            yield PathRule(f"{folder}/{name}", "read", "git-config", "git runs programs that its settings name")
        for hooks in _HOOKS_PATH.findall(_text(f"{folder}/config")):
            path = os.path.normpath(os.path.join(root, os.path.expanduser(hooks.strip())))  # noqa: PTH111, PTH118
            if is_below(path, root) and path != root:
                yield PathRule(path, "read", "protected", "git runs hooks by itself")
    for name in _names(f"{git}/worktrees"):
        yield PathRule(f"{git}/worktrees/{name}/config.worktree", "read", "git-config", "git runs what it names")
        yield PathRule(f"{git}/worktrees/{name}/commondir", "read", "protected", "git believes it")


def _modules(git: str, depth: int = 0) -> Iterator[str]:
    for name in _names(f"{git}/modules"):
        folder = f"{git}/modules/{name}"
        if os.path.isfile(f"{folder}/HEAD"):  # noqa: PTH113
            yield folder
            if depth < _DEEPEST:
                yield from _modules(folder, depth + 1)
        elif depth < _DEEPEST:  # a submodule whose name has a slash in it
            for inner in _names(folder):
                if os.path.isfile(f"{folder}/{inner}/HEAD"):  # noqa: PTH113
                    yield f"{folder}/{inner}"


def _git_folders(folder: str) -> list[str]:
    """The git folder of a checkout, and the one it shares with others where it is a worktree."""
    git = f"{folder}/.git"
    if os.path.islink(git):  # noqa: PTH114
        real = os.path.realpath(git)
        return [real] if is_below(real, folder) else []
    if os.path.isdir(git):  # noqa: PTH112
        return [git]
    named = _text(git).strip().removeprefix("gitdir:").strip()
    if not named:
        return []
    own = os.path.realpath(os.path.join(folder, named))  # noqa: PTH118
    # Git writes this line when it makes the worktree; whoever cannot write there cannot make it say another folder.
    back = _text(f"{own}/gitdir").strip()
    if back and os.path.realpath(back) == os.path.realpath(git):
        common = os.path.realpath(os.path.join(own, _text(f"{own}/commondir").strip() or "."))  # noqa: PTH118
        return [own, common] if is_below(own, f"{common}/worktrees") else [own]
    return [own] if is_below(own, folder) else []


def _git_files(folder: str, nested: list[str]) -> list[str]:
    """The files in which a worktree or a submodule says where its git folder is."""
    return [path for path in (f"{folder}/.git", *nested) if os.path.isfile(path) and not os.path.islink(path)]  # noqa: PTH113, PTH114


def _nested_gits(folder: str) -> Iterator[str]:
    """`.git` of the repositories and submodules within the workspace, as far as a short look finds them."""
    todo, looked = [(folder, 0)], 0
    while todo and looked < _MOST_FOLDERS:
        here, depth = todo.pop()
        looked += 1
        git = f"{here}/.git"
        if here != folder and os.path.lexists(git) and not os.path.islink(git):  # noqa: PTH114
            yield git
        if depth < _DEEPEST:
            todo += [(f"{here}/{name}", depth + 1) for name in _names(here) if name not in _NOT_LOOKED_INTO]


def _active_environment(environ: Mapping[str, str], workspace: str) -> str | None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable, "")
        real = own_root(prefix, workspace) if prefix.startswith("/") else None
        if real is None or is_below(real, workspace) or is_below(workspace, real):
            continue
        if os.path.isfile(f"{real}/pyvenv.cfg"):  # noqa: PTH113 - a whole conda installation is more than a project's
            return real
    return None


def _variables(request: PlanRequest, level: Level) -> dict[str, str]:
    if level == "none":
        return {}
    made = {"TMPDIR": "/tmp" if level == "full" else request.temp} if request.temp else {}  # noqa: S108
    if request.caches:
        made |= {name: f"{request.caches}/{folder}" for name, folder in places.CACHES.items()}
    return made


def _dropped(request: PlanRequest) -> tuple[str, ...]:
    granted = set(request.sockets)
    return tuple(name for name in places.DROPPED_VARIABLES if request.environ.get(name, "") not in granted)


def _names(folder: str) -> list[str]:
    """The folders in a folder, sorted; none when it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        file = Path(path)
        return file.read_text("utf-8", "replace")[:_MOST_BYTES] if file.is_file() else ""
    except OSError:
        return ""
