"""Find what the laws of the house forbid and no ready-made linter looks for. Standard library only.

    python scripts/lint_house.py [FOLDER]     (default: src/hermes)

Each finding is one line, `file:line: rule: what to do instead`; the exit code says whether there was any.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
SUPERVISOR = ("tools", "supervisor")
SKILL_SCRIPTS = (
    "extensions",
    "skills",
    "bundled",
)  # commands of the agent, which its gate sees
TASK_OWNERS = {  # the places that hold a task by hand, and why a TaskGroup will not do there
    "scope.py",  # `unbroken` outlives a cancellation of the task that awaits it
    "runtime/held_tasks.py",  # a title or a review outlives the turn it is made for, and ends with the agent
    "runtime/call_checkpoints.py",  # the first look at a project runs beside a model call, and ends with the agent
    "runtime/session/lease.py",  # a renewal is made in turns that take long; a group in every turn would cost them all
    "tools/mcp/owned_server.py",  # a server outlives the turn that needed it first, and ends with the agent
    "tools/calling/loops.py",  # the task runs on another loop than the one that waits for it
}

OUTSIDE = "confinement/outside.py"  # the table of what starts unconfined, with a reason each
STORE = ("state", "sqlite")  # all that knows SQLite, so that another database is another folder beside it
STORE_MODULES = {"sqlite3", "_sqlite3"}

# Files whose names end like a gerund or a participle: nouns and programs, and what a table prescribes.
NOUNS = {"encoding", "keyring", "recording", "typed"}
NAMED_BY_A_TABLE = ("config/sections/", "host/commands/", "host/doctor_checks/", "tools/builtin/")
# Class names that stand for one thing in several files: a table's own, and the contract's base beside its seam.
SHARED_CLASS_NAMES = {"Section", "ContextEngine"}

TASKS = {"asyncio.create_task", "asyncio.gather", "asyncio.ensure_future"}
# The same things by the modules that define them.
ALSO_KNOWN_AS = {"asyncio.tasks.": "asyncio.", "concurrent.futures.process.": "concurrent.futures.", "posix.": "os."}
ENVIRONMENTS = ("os.environ", "os.environb")
ENVIRON_METHODS = {"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__"}
PROCESS_MODULES = {"subprocess", "pty", "multiprocessing", "_posixsubprocess"}
PROCESS_CALLS = {
    "os.system",
    "os.popen",
    "os.fork",
    "os.forkpty",
    "os.startfile",
    "os.posix_spawn",
    "os.posix_spawnp",
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.subprocess.create_subprocess_exec",
    "asyncio.subprocess.create_subprocess_shell",
    "concurrent.futures.ProcessPoolExecutor",
}
LOOP_PROCESS_METHODS = {"subprocess_exec", "subprocess_shell"}
BROAD = {"Exception", "BaseException"}
TYPED = "typed.py"
TYPED_CALLS = {  # and how many arguments they have without a type
    "msgspec.convert": 0,
    "msgspec.json.Decoder": 0,
    "msgspec.json.decode": 1,
    "msgspec.msgpack.Decoder": 0,
    "msgspec.msgpack.decode": 1,
    "msgspec.yaml.decode": 1,
    "msgspec.toml.decode": 1,
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One violation, where it stands."""

    line: int
    rule: str
    text: str


def check_source(
    source: str,
    *,
    in_supervisor: bool = False,
    in_store: bool = False,
    owns_tasks: bool = False,
    learns_types: bool = False,
) -> list[Finding]:
    """Return what is wrong with one module, in the order of its lines."""
    tree = ast.parse(source)
    names = _imported_names(tree)
    findings = list(_sizes(source, tree))
    for node in ast.walk(tree):
        if not owns_tasks:
            findings += _tasks(node, names)
        findings += _environment_writes(node, names)
        findings += _silent_excepts(node, names)
        if not in_supervisor:
            findings += _processes(node, names)
        if not in_store:
            findings += _databases(node)
        if not learns_types:
            findings += _types_learned_anywhere(node, names)
    return sorted(set(findings))


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Map each name that an import binds anywhere in the module to the dotted name it stands for."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    names.update(_names_of_the_environment(tree, names))
    return names


def _names_of_the_environment(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The variables that are the environment itself, not a copy of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (dotted := _dotted(node.value, names)) in ENVIRONMENTS:
            yield from ((target.id, dotted) for target in node.targets if isinstance(target, ast.Name))


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the full dotted name of an expression, or "" where it is not a plain chain of names."""
    if isinstance(node, ast.Name):
        return _common(names.get(node.id, node.id))
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value, names)
        return _common(f"{head}.{node.attr}") if head else ""
    return ""


def _common(dotted: str) -> str:
    """The name that the lists above use."""
    for rare, common in ALSO_KNOWN_AS.items():
        if dotted.startswith(rare):
            return common + dotted.removeprefix(rare)
    return dotted


def _sizes(source: str, tree: ast.Module) -> Iterator[Finding]:
    lines = source.count("\n")
    if lines > MAX_FILE_LINES:
        yield Finding(1, "file-too-long", f"{lines} lines; split it, {MAX_FILE_LINES} is the limit")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                text = f"{node.name} has {length} lines; split it, {MAX_FUNCTION_LINES} is the limit"
                yield Finding(node.lineno, "function-too-long", text)


def _tasks(node: ast.AST, names: dict[str, str]) -> Iterator[Finding]:
    if isinstance(node, ast.Attribute | ast.Name):
        dotted = _dotted(node, names)
        if dotted in TASKS:
            yield Finding(node.lineno, "unowned-task", f"{dotted}: tasks live in a TaskGroup")
    if isinstance(node, ast.Call) and _dotted(node.func, names) == "asyncio.Task":
        yield Finding(node.lineno, "unowned-task", "asyncio.Task(...): tasks live in a TaskGroup")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create_task":
        owner = node.func.value
        is_loop_getter = isinstance(owner, ast.Call) and _dotted(owner.func, names).endswith("_event_loop")
        is_loop_getter |= isinstance(owner, ast.Call) and _dotted(owner.func, names).endswith("get_running_loop")
        name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
        if is_loop_getter or name.lstrip("_").endswith("loop"):
            yield Finding(node.lineno, "unowned-task", "loop.create_task: tasks live in a TaskGroup")


def _types_learned_anywhere(node: ast.AST, names: dict[str, str]) -> Iterator[Finding]:
    if not isinstance(node, ast.Call) or (called := _dotted(node.func, names)) not in TYPED_CALLS:
        return
    if len(node.args) > TYPED_CALLS[called] or any(given.arg in ("type", None) for given in node.keywords):
        text = f"{called} with a type: two threads that do it at once end the process; use hermes.typed"
        yield Finding(node.lineno, "type-learned-unguarded", text)


def _environment_writes(node: ast.AST, names: dict[str, str]) -> Iterator[Finding]:
    rule, text = "environment-write", "the runtime never writes its own environment; hand a child its own"
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        targets = []
    for target in targets:
        written = target.value if isinstance(target, ast.Subscript) else target
        # A name that is given another value, or none any more, leaves the environment as it was.
        is_moved = isinstance(target, ast.Name) and not isinstance(node, ast.AugAssign)
        if not is_moved and _dotted(written, names) in ENVIRONMENTS:
            yield Finding(node.lineno, rule, text)  # type: ignore[attr-defined]  # all four have a line
    if isinstance(node, ast.Call):
        owner, _, method = _dotted(node.func, names).rpartition(".")
        if owner in ENVIRONMENTS and method in ENVIRON_METHODS:
            yield Finding(node.lineno, rule, text)
        if owner == "os" and method in ("putenv", "unsetenv"):
            yield Finding(node.lineno, rule, text)


def _silent_excepts(node: ast.AST, names: dict[str, str]) -> Iterator[Finding]:
    if isinstance(node, ast.ExceptHandler) and _is_broad(node.type, names) and _is_silent(node):
        yield Finding(node.lineno, "silent-except", "a broad except reports what it caught")
    suppressed = node.args if isinstance(node, ast.Call) and _dotted(node.func, names) == "contextlib.suppress" else []
    for argument in (each for each in suppressed if _is_broad(each, names)):
        yield Finding(argument.lineno, "silent-except", "suppress names the narrow error it expects")


def _is_broad(expression: ast.expr | None, names: dict[str, str]) -> bool:
    if expression is None:
        return True
    if isinstance(expression, ast.Tuple):
        return any(_is_broad(each, names) for each in expression.elts)
    return _dotted(expression, names).removeprefix("builtins.") in BROAD


def _is_silent(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler neither raises, nor calls anything, nor keeps the error: then nobody can hear of it."""
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    is_kept = any(isinstance(node, ast.Name) and node.id == handler.name for node in inside)
    return not is_kept and not any(isinstance(node, ast.Raise | ast.Call | ast.Await | ast.Yield) for node in inside)


def _processes(node: ast.AST, names: dict[str, str]) -> Iterator[Finding]:
    rule, text = "process-start", "children are started by hermes.tools.supervisor alone"
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] in PROCESS_MODULES:
                yield Finding(node.lineno, rule, f"import {alias.name}: {text}")
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            dotted = _common(f"{node.module}.{alias.name}")
            if node.module.partition(".")[0] in PROCESS_MODULES or _starts_process(dotted):
                yield Finding(node.lineno, rule, f"{dotted}: {text}")
    elif isinstance(node, ast.Attribute):
        dotted = _dotted(node, names)
        if _starts_process(dotted):
            yield Finding(node.lineno, rule, f"{dotted}: {text}")
        elif node.attr in LOOP_PROCESS_METHODS:
            yield Finding(node.lineno, rule, f"{node.attr}: {text}")


def _databases(node: ast.AST) -> Iterator[Finding]:
    named: list[object] = []
    if isinstance(node, ast.Import):
        named = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        named = [node.module]
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        named = [node.args[0].value] if called in ("import_module", "__import__") else []
    for name in named:
        if isinstance(name, str) and name.partition(".")[0] in STORE_MODULES:
            text = f"import {name}: only hermes.state.sqlite speaks SQLite; ask it, or the queries of the store"
            yield Finding(node.lineno, "database-import", text)  # type: ignore[attr-defined]  # all three have a line


def _starts_process(dotted: str) -> bool:
    return dotted in PROCESS_CALLS or dotted.startswith(("os.exec", "os.spawn"))


def started_freely(sources: Mapping[str, str]) -> Iterator[tuple[str, Finding]]:
    """Starts that say nothing of their confinement, and starts outside that are not in the table with a reason."""
    known = _table_of_starts(sources.get(OUTSIDE, ""))
    used: set[str] = set()
    for place, source in sources.items():
        if "SpawnSpec" not in source and "utside(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or place == OUTSIDE:
                continue
            if name == "SpawnSpec" and "confinement" not in {word.arg for word in node.keywords}:
                yield place, Finding(node.lineno, "unconfined-start", "SpawnSpec: say what it is confined by")
            if name in ("outside", "Outside"):  # the second where the table is not worth its import
                named = {str(each.value) for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant)}
                used |= named & known
                if not named or not (named & known):
                    yield place, Finding(node.lineno, "unconfined-start", f"outside: name a row of {OUTSIDE}")
    for name in sorted(known - used):
        yield OUTSIDE, Finding(1, "unconfined-start", f"{name!r}: nothing starts so; take the row out")


def _table_of_starts(source: str) -> set[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            return {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    return set()


def misnamed(place: str) -> Iterator[Finding]:
    """A file that is named by what is done instead of by the noun it owns; there is no docstring in a traceback."""
    stem = place.rpartition("/")[2].removesuffix(".py").strip("_")
    is_odd = "_" not in stem and stem.endswith(("ing", "ed")) and stem not in NOUNS
    if is_odd and not place.startswith(NAMED_BY_A_TABLE):
        yield Finding(1, "file-name", f"{stem}: name it by the noun it owns, or by verb_object")


def named_twice(sources: Mapping[str, str]) -> Iterator[tuple[str, Finding]]:
    """Every second definition of a class name among the sources, by their places."""
    first: dict[str, str] = {}
    for place, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ClassDef) or node.name in SHARED_CLASS_NAMES:
                continue
            if first.setdefault(node.name, place) != place:
                yield place, Finding(node.lineno, "class-name", f"{node.name} is in {first[node.name]} already")


def check_folder(folder: Path) -> Iterator[tuple[Path, Finding]]:
    sources = {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))
    }
    for twice, finding in (*named_twice(sources), *started_freely(sources)):
        yield folder / twice, finding
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder)
        for finding in misnamed(place.as_posix()):
            yield file, finding
        for finding in check_source(
            sources[place.as_posix()],
            in_supervisor=place.parts[:2] == SUPERVISOR or place.parts[:3] == SKILL_SCRIPTS,
            in_store=place.parts[:2] == STORE,
            owns_tasks=place.as_posix() in TASK_OWNERS,
            learns_types=place.as_posix() == TYPED,
        ):
            yield file, finding


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src" / "hermes"
    count = 0
    for file, finding in check_folder(folder):
        count += 1
        sys.stdout.write(f"{file}:{finding.line}: {finding.rule}: {finding.text}\n")
    sys.stdout.write(f"the laws of the house: {count} findings\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
