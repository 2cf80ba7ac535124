"""Write-then-run: where no border stands, what was made in this session is asked about before it runs.

The reader sees what a command names; this says which of the files behind it the agent may have made itself. A file's
time of change tells that it changed since the session began, not by whom: the question says so.
"""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hermes.tools.approval.effects_model import Analysis, Effect, Severity, SimpleCommand

_MOST_FILES = 200
_MOST_BYTES = 1 << 20
_RUNNERS = re.compile(
    r"(?:python|pypy|ipython|node|deno|bun|ruby|perl|php|lua|bash|sh|dash|zsh|ksh|fish|java|julia|tclsh|guile)[\d.]*"
    r"|go|uv|uvx|poetry|pipenv|pdm|hatch|rye|npx|tsx|ts-node|Rscript|pytest|py\.test|tox|nox|dotnet|swift|crystal|nim"
    r"|make|gmake|just|task|rake|awk|gawk|gdb|expect|ansible-playbook|env|timeout|nice|xargs|time"
)
# What a program runs by itself in the folder that it is started in.
_BY_ITSELF = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
    "pytest": ("conftest.py",),
    "py.test": ("conftest.py",),
    "tox": ("tox.ini", "conftest.py"),
    "nox": ("noxfile.py",),
    "cargo": ("build.rs",),
    "cmake": ("CMakeLists.txt",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle"),
    "mvn": ("pom.xml",),
    "ant": ("build.xml",),
    "pip": ("setup.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "docker-compose": ("docker-compose.yml", "compose.yaml"),
    "scons": ("SConstruct",),
    "invoke": ("tasks.py",),
    "fab": ("fabfile.py",),
}
# Variables by which a shell or an interpreter runs a file before anything else.
SHELL_VARIABLES = ("BASH_ENV", "ENV", "LD_PRELOAD", "PROMPT_COMMAND")
_OTHER_VARIABLES = (
    *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "NODE_PATH"),
    *("NODE_OPTIONS", "LD_LIBRARY_PATH", "GIT_EXEC_PATH", "GIT_SSH", "GIT_EDITOR", "EDITOR", "PAGER"),
)
_DECLARED = re.compile(r"declare -\S*x\S* (\w+)=(\"(?:[^\"\\]|\\.)*\"|\$'(?:[^'\\]|\\.)*'|\S*)")
_ALIAS = re.compile(r"^alias (?:-- )?([^=\s]+)=", re.MULTILINE)
_STDIN_FILE = re.compile(r"(?<![<\d&])<\s*([\w./~-]+)")


class Makings(NamedTuple):
    """What can be told of a session: which files are new, and what its shell has beyond the login shell."""

    is_new: Callable[[str], bool]
    path: tuple[str, ...] = ()  # the folders in which the session's shell finds programs
    aliases: frozenset[str] = frozenset()
    variables: Mapping[str, str] = {}  # that differ from the login shell's


def since(moment: float) -> Callable[[str], bool]:
    """Whether what is at a path changed at or after `moment`; a file's time of change cannot be set back."""

    def is_new(path: str) -> bool:
        try:
            return os.stat(path).st_ctime >= moment  # noqa: PTH116
        except (OSError, ValueError):
            return False

    return is_new


def of_shell(login: str, present: str, is_new: Callable[[str], bool]) -> Makings:
    """What a session's shell has become, from the state that it was given and the one that it left."""
    before, now = _variables(login), _variables(present)
    changed = {name: value for name, value in now.items() if before.get(name) != value}
    path = tuple(filter(None, now.get("PATH", os.environ.get("PATH", os.defpath)).split(":")))
    return Makings(is_new, path, frozenset(_ALIAS.findall(present)) - frozenset(_ALIAS.findall(login)), changed)


def runs_made_here(analysis: Analysis, cwd: str, makings: Makings, *, only_shell: bool = False) -> list[Effect]:
    """What of the analysed text would run something made here. `only_shell` is for a border that holds the rest."""
    found = dict.fromkeys(_of_shell(analysis, makings))
    if not only_shell:
        found |= dict.fromkeys(_told(path) for path in _files(analysis, cwd, makings))
    return [Effect("made_here", Severity.ASK, detail, paths, path_class="workspace") for detail, paths in found]


def imports_made_here(code: str, cwd: str, makings: Makings) -> list[Effect]:
    """The modules that a script imports and the session made."""
    found = dict.fromkeys(_imported(code, cwd, makings))
    told = [_told(path) for path in found]
    return [Effect("made_here", Severity.ASK, detail, paths, path_class="workspace") for detail, paths in told]


def _told(path: str) -> tuple[str, tuple[str, ...]]:
    return f"{path} was made or changed since this session began; by whom is not known", (path,)


def _of_shell(analysis: Analysis, makings: Makings) -> Iterator[tuple[str, tuple[str, ...]]]:
    for command in analysis.commands:
        if command.argv and command.argv[0] in makings.aliases:
            yield f"{command.argv[0]} is an alias of this session", ()
    for name in (*SHELL_VARIABLES, *_OTHER_VARIABLES):
        value = makings.variables.get(name, "")
        if value and (name == "PROMPT_COMMAND" or any(makings.is_new(part) for part in _named(value))):
            yield f"{name} was set in this session to {value}, which runs before anything else", ()


def _named(value: str) -> list[str]:
    """The paths in the value of a variable."""
    return [part.partition("=")[2] or part for part in re.split(r"[:\s]+", value) if part]


def _files(analysis: Analysis, cwd: str, makings: Makings) -> Iterator[str]:
    for script in analysis.scripts:
        yield from _script(script, makings)
    for command in analysis.commands:
        yield from _of_command(command, command.cwd or cwd, makings)
    if any(command.argv and _RUNNERS.fullmatch(_name(command)) for command in analysis.commands):
        for word in _STDIN_FILE.findall(analysis.normalised):
            yield from _new([os.path.join(cwd, os.path.expanduser(word))], makings)  # noqa: PTH111, PTH118


def _name(command: SimpleCommand) -> str:
    return command.argv[0].rsplit("/", 1)[-1]


def _of_command(command: SimpleCommand, cwd: str, makings: Makings) -> Iterator[str]:
    if not command.argv or not command.argv[0]:
        return
    name, words = _name(command), command.argv[1:]
    if "/" in command.argv[0]:
        yield from _new([_join(cwd, command.argv[0])], makings)
    else:
        yield from _new([_found(command.argv[0], makings.path)], makings)
    folder = _join(cwd, words[words.index("-C") + 1]) if "-C" in words[:-1] else cwd
    yield from _new((f"{folder}/{file}" for file in _BY_ITSELF.get(name, ())), makings)
    if not _RUNNERS.fullmatch(name):
        return
    for place, word in enumerate(words[:_MOST_FILES]):
        if place and words[place - 1] == "-m":
            yield from _modules([word], cwd, makings)
        elif not word.startswith("-"):
            path = _join(cwd, word.partition("::")[0])
            yield from _folder(path, makings) if os.path.isdir(path) else _script(path, makings)  # noqa: PTH112


def _script(path: str, makings: Makings) -> Iterator[str]:
    yield from _new([path], makings)
    if path.endswith(".py"):
        yield from _imported(_text(path), os.path.dirname(path), makings)  # noqa: PTH120


def _folder(path: str, makings: Makings) -> Iterator[str]:
    """A folder that is handed to a runner: what in it is code."""
    looked = 0
    for where, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith((".", "node_modules", "__pycache__"))]
        for file in files:
            looked += 1
            if looked > _MOST_FILES:
                return
            if file.endswith((".py", ".js", ".ts", ".go", ".rb", ".sh")):
                yield from _new([f"{where}/{file}"], makings)


def _imported(code: str, folder: str, makings: Makings) -> Iterator[str]:
    """The new modules of `folder` that `code` imports, and those that they import in turn."""
    todo, seen = list(_import_names(code)), set[str]()
    while todo and len(seen) < _MOST_FILES:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        yield from _modules([name], folder, makings)
        base = f"{folder}/{name.replace('.', '/')}"
        for file in (f"{base}.py", f"{base}/__init__.py"):
            todo += _import_names(_text(file))


def _import_names(code: str) -> list[str]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names += [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
    return [name for name in names if name]


def _modules(names: Sequence[str], folder: str, makings: Makings) -> Iterator[str]:
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            base = f"{folder}/{'/'.join(parts[:count])}"
            yield from _new((f"{base}.py", f"{base}/__init__.py", f"{base}/__main__.py"), makings)


def _new(paths: Iterable[str], makings: Makings) -> Iterator[str]:
    for path in paths:
        if path and makings.is_new(path) and not os.path.isdir(path):  # noqa: PTH112
            yield path


def _found(name: str, folders: Sequence[str]) -> str:
    for folder in folders:
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112
            return path
    return ""


def _join(cwd: str, word: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(word)))  # noqa: PTH111, PTH118


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _variables(snapshot: str) -> dict[str, str]:
    return {name: value.strip("\"'").replace('\\"', '"') for name, value in _DECLARED.findall(snapshot)}
