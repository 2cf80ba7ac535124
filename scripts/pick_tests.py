"""Which tests a change calls for, told by the import graph: `python scripts/pick_tests.py [BASE]` prints their paths.

A test is picked when it, or a helper that it imports, imports what changed: directly, through modules of the same
folder, or through one module of another folder that imports one of those. Where that finds none in the folder of tests
that mirrors the change, all tests of that folder run. Further away, one smoke test per surface stands for the rest.
Tests of real parts (containers, ssh) run in the folders that mirror the change: a line `+FOLDER` names each. A change
that reaches nearly everything picks everything; then nothing is printed, and the reason goes to stderr.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TREES = {"src": "", "tests": "tests.", "scripts": "scripts.", "bench": "bench."}  # folders, and how modules are named
MOST = 0.6  # of the files of tests: who picks more had better run them all
# One per surface and per way in: what a person types, what they see, what a program calls, what is made from code.
SMOKE = (
    "tests/surfaces/cli/test_start.py::test_the_version_is_told",
    "tests/surfaces/cli/test_chat.py::test_stdout_is_the_answer_and_nothing_else",
    "tests/surfaces/cli/interactive/test_first_steps.py::test_watch_a_tool_run",
    "tests/surfaces/cli/test_runner.py::test_both_spellings_act",
    "tests/runtime/test_facade.py::test_a_script_that_has_asked_a_server_ends_without_a_word",
    "tests/compat/test_weather_turn.py::test_the_model_uses_it_and_a_restarted_session_still_does",
    "tests/config/test_reference.py::test_the_page_is_current",
    "tests/house/test_api.py::test_the_page_is_current",
)
# Nothing that a graph of imports could tell: they decide what all tests run with.
EVERYTHING = ("pyproject.toml", "constraints.txt", "check", "scripts/environment.py", "scripts/run_tests.py")
NOTHING = ("CHANGELOG.md", "LICENSE", ".gitignore", "docs/decisions/", ".ci/")
PAGES = "tests/docs"


class Picked(NamedTuple):
    """Paths for pytest, or why all of them are to run. `near` are the folders whose tests of real parts run as well."""

    tests: tuple[str, ...]
    why_all: str = ""
    near: tuple[str, ...] = ()


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else ""
    changed = changed_files(ROOT, base)
    picked = pick(ROOT, changed)
    if picked.why_all:
        sys.stderr.write(f"   all tests run: {picked.why_all}\n")
        return 0
    files = {test.partition("::")[0] for test in picked.tests}
    sys.stderr.write(f"   {len(changed)} files changed; tests of {len(files)} files run\n")
    sys.stdout.write("".join(f"{line}\n" for line in (*picked.tests, *(f"+{folder}" for folder in picked.near))))
    return 0


def changed_files(root: Path, base: str = "") -> list[str]:
    """What differs from `base`, committed or not. Without one: from where this branch left main."""
    if not base:
        known = [name for name in ("main", "origin/main") if _git(root, "rev-parse", "-q", "--verify", name)]
        base = (_git(root, "merge-base", "HEAD", known[0]) if known else "") or "HEAD"
    elif not _git(root, "rev-parse", "-q", "--verify", f"{base}^{{commit}}"):
        sys.exit(f"check: there is no commit {base!r} to compare with")
    told = _git(root, "diff", "--name-only", "-z", "--no-renames", base)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({name for name in (told + new).split("\0") if name})


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip("\n") if done.returncode == 0 else ""


def pick(root: Path, changed: Iterable[str], graph: "Graph | None" = None) -> Picked:
    """The tests for these files, and the smoke tests."""
    graph = graph or Graph(root)
    chosen: set[str] = set()
    near: set[str] = set()
    for name in changed:
        near.add(f"tests/{name.removeprefix('src/hermes/').removeprefix('tests/')}".rpartition("/")[0])
        if name in EVERYTHING or name.endswith("tests/conftest.py"):
            return Picked((), f"{name} changed, which all of them run with")
        if not name.startswith(NOTHING):
            chosen |= set(_for_file(graph, name))
    if len(chosen) > MOST * len(graph.tests):
        return Picked((), f"the change reaches {len(chosen)} of {len(graph.tests)} files of tests")
    smoke = [test for test in SMOKE if (root / test.partition("::")[0]).exists()]
    tests = (*sorted(chosen), *(test for test in smoke if test.partition("::")[0] not in chosen))
    return Picked(tests, near=tuple(sorted(near)))


def _for_file(graph: "Graph", name: str) -> Iterator[str]:
    """The files of tests that one changed file calls for."""
    module = module_of(name)
    if module is not None:
        yield from graph.tests_of(module)
        if "/conftest.py" in name:
            yield from graph.below(name.rpartition("/")[0])
    elif name.startswith(("README", "docs/")):
        yield from graph.below(PAGES)
    elif name.startswith("examples/"):
        yield from graph.below("tests/examples")
    elif name.startswith("tests/"):
        yield from graph.below(name.rpartition("/")[0])
    else:  # data beside modules, or a program: whoever names it, or the folder that it is found in
        folder, _, file = name.rpartition("/")
        area, _, named = folder.rpartition("/")
        yield from graph.naming(file) or graph.naming(f'"{named}"', area)


def module_of(name: str) -> str | None:
    """The module in a file of this repository, as tests and code import it."""
    tree, _, rest = name.partition("/")
    if tree not in TREES or not rest.endswith(".py"):
        return None
    return TREES[tree] + rest.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Graph:
    """Who imports whom, in this repository."""

    def __init__(self, root: Path) -> None:
        self._root = root
        files = [path.relative_to(root).as_posix() for tree in TREES for path in sorted((root / tree).rglob("*.py"))]
        self.files = {module: name for name in files if (module := module_of(name)) is not None}
        self.tests = {name for name in files if name.startswith("tests/") and "/test_" in name}
        self._sources = {module: (root / name).read_text(encoding="utf-8") for module, name in self.files.items()}
        self._importers: dict[str, set[str]] = defaultdict(set)
        self._hubs: dict[str, set[str]] = defaultdict(set)  # by package: who loads the modules in it by their names
        for module, source in self._sources.items():
            for imported in self._imports(module, source):
                self._importers[imported].add(module)

    def tests_of(self, module: str) -> set[str]:
        """The files of tests that reach the module, and those that are named after it."""
        near = self._closure({module}, lambda one, other: folder_of(one) == folder_of(other))
        reached = near | {importer for one in near for importer in self._importers[one]}
        if module.startswith("tests."):
            reached = {module}
        helped = self._closure(reached, lambda _, other: other.startswith("tests."))
        found = {self.files[one] for one in helped if one in self.files} | self._mirrors(module) | self._by_name(module)
        folder = self._mirror_folder(module)
        if not any(name.startswith(f"{folder}/") for name in found):
            found |= {test for test in self.tests if test.rpartition("/")[0] == folder}
        own, _, file = self.files.get(module, "").removeprefix("src/hermes/").rpartition("/")
        if file == "__init__.py" and not found & self.tests:  # a package whose tests are all in folders below
            found |= self.below(f"tests/{own}")
        return found & self.tests

    def below(self, folder: str) -> set[str]:
        return {name for name in self.tests if name.startswith(f"{folder}/")}

    def naming(self, word: str, area: str = "") -> set[str]:
        """The tests of the modules, and the tests, that name a file; with an area, of those below that folder."""
        named = [module for module, source in self._sources.items() if word in source and self._is_in(module, area)]
        return {test for module in named for test in self.tests_of(module)}

    def _is_in(self, module: str, area: str) -> bool:
        return not area or self.files[module].startswith(f"{area}/")

    def _closure(self, start: Iterable[str], follows: Callable[[str, str], bool]) -> set[str]:
        seen, left = set(start), list(start)
        while left:
            one = left.pop()
            for other in self._importers[one] - seen:
                if follows(one, other):
                    seen.add(other)
                    left.append(other)
        return seen

    def _mirrors(self, module: str) -> set[str]:
        name = self.files.get(module, "").removeprefix("src/hermes/")
        folder, _, file = f"tests/{name}".rpartition("/")
        stem = file.removesuffix(".py")
        above, _, package = folder.rpartition("/")
        named = (f"{folder}/test_{stem}.py", f"{folder}/{stem}/test_{stem}.py", f"{above}/test_{package}.py")
        return {test for test in self.tests if test in named}

    def _mirror_folder(self, module: str) -> str:
        """The folder of tests that mirrors the module's own, or the nearest one above that has tests."""
        folder = f"tests/{self.files.get(module, '').removeprefix('src/hermes/')}".rpartition("/")[0]
        while "/" in folder and not any(test.rpartition("/")[0] == folder for test in self.tests):
            folder = folder.rpartition("/")[0]
        return folder if "/" in folder else ""

    def _by_name(self, module: str) -> set[str]:
        """Tests that call by its name what is loaded by name: a command, a slash command, a check."""
        package, _, stem = module.rpartition(".")
        if not self._hubs[package]:
            return set()
        area = f"tests/{package.removeprefix('hermes.').replace('.', '/').rpartition('/')[0]}/"
        word = stem.rstrip("_").replace("_", "-")  # as tables name it
        sure = (f'"{word}"', f'"{word} ', f'"/{word}', f" /{word}", f'"{stem}"')
        return {
            name
            for other, name in self.files.items()
            if name in self.tests and name.startswith(area) and any(one in self._sources[other] for one in sure)
        }

    def _imports(self, module: str, source: str) -> Iterator[str]:
        for node in _running(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names if one.name in self.files)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found = {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
                yield from (one for one in found if one in self.files)
            elif isinstance(node, ast.Constant) and node.value in self.files and str(node.value).startswith("hermes."):
                name = str(node.value)
                self._hubs[name].add(module)
                yield name  # imported late, by its name, or run with -m


def folder_of(module: str) -> str:
    """The folder of a module, by which near is told from far."""
    return module.rpartition(".")[0]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker reads."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)


if __name__ == "__main__":
    sys.exit(main())
