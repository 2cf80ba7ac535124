"""Find tool files by reading them: a file counts when its top level calls `registry.register(...)` or uses `@tool`."""

import ast
import importlib
import logging
import traceback
from pathlib import Path

from msgspec import Struct

log = logging.getLogger(__name__)

BUILTIN_PACKAGE = "hermes.tools.builtin"
BUILTIN_DIR = Path(__file__).parents[1] / "builtin"
_SKIPPED = frozenset({"__init__.py", "registry.py", "mcp_tool.py"})


class BrokenFile(Struct, frozen=True):
    """A tool file that could not be used: where, which line, and why."""

    path: Path
    line: int | None
    error: str

    @classmethod
    def of(cls, path: Path, error: BaseException) -> "BrokenFile":
        """Name the last line of `path` itself that took part in `error`."""
        line = error.lineno if isinstance(error, SyntaxError) else None
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == str(path):
                line = frame.lineno
        notes = [f"; {note}" for note in getattr(error, "__notes__", ())]
        return cls(path, line, f"{type(error).__name__}: {error}{''.join(notes)}")


def registers_tools(path: Path) -> bool:
    """Whether the module body of `path` registers a tool; unreadable or broken files do not."""
    try:
        return tree_registers(ast.parse(path.read_bytes(), filename=str(path)))
    except (OSError, SyntaxError, ValueError):
        return False


def tree_registers(tree: ast.Module) -> bool:
    """`registry.register(...)` as a statement of the module body, or a top-level function under `@tool`."""
    return any(is_register_call(node) or _is_decorated_tool(node) for node in tree.body)


def is_register_call(node: ast.stmt) -> bool:
    """An expression statement that calls `register` on the bare name `registry`."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "register"
        and isinstance(node.value.func.value, ast.Name)
        and node.value.func.value.id == "registry"
    )


def tool_files(folder: Path) -> list[Path]:
    """The qualifying files of `folder`, sorted; none when there is no such folder."""
    return [path for path in sorted(folder.glob("*.py")) if path.name not in _SKIPPED and registers_tools(path)]


def discover_builtin_tools(tools_dir: Path | str | None = None) -> list[str]:
    """Import every built-in tool module; return the names that imported. A failing one is logged and left out.

    With `tools_dir`, the files of that folder are loaded as user tools are.
    """
    if tools_dir is not None:
        from hermes.tools.registration.user_files import load_folder  # built-ins alone need none of it

        return [path.stem for path in load_folder(Path(tools_dir), "home").loaded]
    imported: list[str] = []
    for path in tool_files(BUILTIN_DIR):
        name = f"{BUILTIN_PACKAGE}.{path.stem}"
        try:
            importlib.import_module(name)
        except Exception:  # the border to one tool's code: a broken file costs that tool only
            log.warning("built-in tool file %s cannot be imported", path.name, exc_info=True)
            continue
        imported.append(name)
    return imported


def _is_decorated_tool(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Name) and target.id == "tool":
            return True
    return False
