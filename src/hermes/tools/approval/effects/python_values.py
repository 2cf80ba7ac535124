"""The values and the modules that expressions of a Python tree stand for, as far as the tree itself tells."""

import ast
import itertools
import re
from collections.abc import Iterable

from hermes.tools.approval.text import UNKNOWN

MARK = "HERMES_UNKNOWN"  # stands in the source for what the shell would put there
_MAX = 8
_MAX_TEXT = 4096
_MAX_DEPTH = 40
_LISTERS = frozenset({"iterdir", "glob", "rglob", "walk", "scandir", "listdir", "iglob"})
_SAME = frozenset(
    {
        "expanduser",
        "resolve",
        "absolute",
        "abspath",
        "realpath",
        "normpath",
        "str",
        "fspath",
        "as_posix",
        "decode",
        "encode",
        "strip",
        "fsencode",
    }
)


class Values:
    """What names hold: modules they were imported as, and the texts that were assigned to them."""

    def __init__(self, tree: ast.Module, home: str) -> None:
        self.home = home
        self.aliases: dict[str, str] = {}
        self.stars: list[str] = []
        self.bound: dict[str, list[ast.expr | str]] = {}
        self.imported: set[str] = set()
        self.depth = 0
        self.names: dict[str, str] = {}  # what names stand for, and the texts they hold, once found out
        self.texts: dict[str, list[str]] = {}
        for node in ast.walk(tree):
            self._bind(node)

    def modules(self) -> set[str]:
        """The first parts of the names of all modules that the code imports."""
        return self.imported

    def is_imported(self, module: str) -> bool:
        return module in self.imported

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._target(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._target(node.target, UNKNOWN)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._loop(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._target(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.arg):
            self.bound.setdefault(node.arg, []).append(UNKNOWN)
        elif isinstance(node, ast.Call) and _last(node.func) in ("__import__", "import_module"):
            self._module_of(node.args[0] if node.args else None)
        elif isinstance(node, ast.Subscript) and _last(node.value) == "modules":
            self._module_of(node.slice)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        prefix = "" if isinstance(node, ast.Import) else node.module or ""
        if prefix:
            self._module(prefix)
        for name in node.names:
            if isinstance(node, ast.Import):
                self._module(name.name)
                first = name.name.partition(".")[0]
                self.aliases[name.asname or first] = name.name if name.asname else first
            elif name.name == "*":
                self.stars.append(prefix)
            elif not node.level:
                self.aliases[name.asname or name.name] = f"{prefix}.{name.name}"

    def _module_of(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Constant):
            self._module(str(node.value))

    def _module(self, name: str) -> None:
        self.imported.add(name.partition(".")[0])

    def _target(self, target: ast.expr, value: ast.expr | str) -> None:
        if isinstance(target, ast.Name):
            self.bound.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = (
                value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
            )
            for number, inner in enumerate(target.elts):
                self._target(inner, parts[number] if parts else UNKNOWN)

    def _loop(self, target: ast.expr, source: ast.expr) -> None:
        if isinstance(source, ast.List | ast.Tuple | ast.Set):
            for value in source.elts:
                self._target(target, value)
            return
        if (
            isinstance(source, ast.Call)
            and _last(source.func) in ("sorted", "list", "reversed", "set", "tuple")
            and source.args
        ):
            self._loop(target, source.args[0])
            return
        lister = _last(source.func) if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Call) and lister in _LISTERS:
            # A name below the folder that is listed; `os.walk` yields the folder first.
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            self._target(first, ast.Call(ast.Name(f"\0{lister}"), [source], []))
            if isinstance(target, ast.Tuple):
                for other in target.elts[1:]:
                    self._target(other, UNKNOWN)
            return
        self._target(target, UNKNOWN)

    def dotted(self, node: ast.AST) -> str:
        """The full name an expression stands for: `os.system`, `pathlib.Path().unlink`; "?" where it has none."""
        self.depth += 1
        name = self._dotted(node) if self.depth < _MAX_DEPTH else "?"
        self.depth -= 1
        return name

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(self.dotted(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            owner = self.dotted(node.value)
            texts = self.of(node.slice)
            if owner == "sys.modules" and UNKNOWN not in texts[0]:
                return texts[0]
            if owner.endswith(".__dict__"):
                return f"{owner.removesuffix('.__dict__')}.{texts[0]}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self.dotted(node.left) == "pathlib.Path()":
            return "pathlib.Path()"
        if isinstance(node, ast.Await | ast.NamedExpr):
            return self.dotted(node.value)
        return "?"

    def _name(self, name: str) -> str:
        if name in self.aliases:
            return self.aliases[name]
        if name not in self.names:
            self.names[name] = "?"  # while it is looked for: it may stand for itself
            self.names[name] = self._meant(name)
        return self.names[name]

    def _meant(self, name: str) -> str:
        values = self.bound.get(name, [])
        for value in values[:4]:
            if isinstance(value, ast.expr):
                found = (
                    self.dotted(value)
                    if not (
                        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1] == "\0"
                    )
                    else self._listed_kind(value)
                )
                if found != "?":
                    return found
        if not values:
            return next((f"{module}.{name}" for module in self.stars), name)
        return "?"

    def _listed_kind(self, value: ast.Call) -> str:
        source = value.args[0]
        assert isinstance(source, ast.Call)
        return (
            "pathlib.Path()"
            if isinstance(source.func, ast.Attribute) and self.dotted(source.func.value) == "pathlib.Path()"
            else "?"
        )

    @staticmethod
    def _attribute(owner: str, name: str) -> str:
        if owner == "pathlib.Path()" and name in ("parent", "parents"):
            return "pathlib.Path()"
        return f"{owner}.{name}" if owner != "?" else "?"

    def _called(self, node: ast.Call) -> str:
        function = self.dotted(node.func)
        if (
            function in ("__import__", "builtins.__import__", "importlib.import_module", "importlib.__import__")
            and node.args
        ):
            return self.of(node.args[0])[0]
        if function == "getattr" and len(node.args) > 1:
            return f"{self.dotted(node.args[0])}.{self.of(node.args[1])[0]}"
        if function == "vars" and node.args:
            return f"{self.dotted(node.args[0])}.__dict__"
        if re.fullmatch(r"pathlib\.(?:Pure|Posix|Windows)*Path(?:\.home|\.cwd)?", function):
            return "pathlib.Path()"
        if function.startswith("pathlib.Path().") and function.count(".") == 2:
            kept = (
                "expanduser",
                "resolve",
                "absolute",
                "joinpath",
                "with_name",
                "with_suffix",
                "with_stem",
                "relative_to",
            )
            return "pathlib.Path()" if function.rsplit(".", 1)[1] in kept else f"{function}()"
        return f"{function}()" if function != "?" else "?"

    def of(self, node: ast.AST) -> list[str]:
        """The texts that an expression may be, unknown parts marked; at least one."""
        self.depth += 1
        found = self._of(node) if self.depth < _MAX_DEPTH else [UNKNOWN]
        self.depth -= 1
        return [text[:_MAX_TEXT].replace(MARK, UNKNOWN) for text in found[:_MAX]] or [UNKNOWN]

    def list_of(self, nodes: Iterable[ast.expr]) -> list[str]:
        """One text for each element of the lists among `nodes`."""
        flat = itertools.chain.from_iterable(
            node.elts if isinstance(node, ast.List | ast.Tuple) else [node] for node in nodes
        )
        return [self.of(node)[0] for node in flat]

    def _of(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Constant):
            return [_constant(node.value)]
        if isinstance(node, ast.Name):
            return self._held(node.id)
        if isinstance(node, ast.JoinedStr):
            return self._joined("", node.values)
        if isinstance(node, ast.FormattedValue):
            return self.of(node.value)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._result(node)
        if isinstance(node, ast.IfExp):
            return [*self.of(node.body), *self.of(node.orelse)]
        if isinstance(node, ast.Attribute) and self.dotted(node) == "sys.executable":
            return ["python3"]
        if isinstance(node, ast.Attribute) and node.attr in ("parent", "name", "stem"):
            return [
                UNKNOWN if node.attr != "parent" else text.rpartition("/")[0] or "." for text in self.of(node.value)
            ]
        return [UNKNOWN]

    def _held(self, name: str) -> list[str]:
        if name == MARK or name in self.aliases:
            return [UNKNOWN]
        if name not in self.texts:
            self.texts[name] = [UNKNOWN]
            values = self.bound.get(name, [UNKNOWN])[:_MAX]
            found = [text for value in values for text in ([value] if isinstance(value, str) else self.of(value))]
            self.texts[name] = found if len(found) <= _MAX else [*found[: _MAX - 1], UNKNOWN]
        return self.texts[name]

    def _joined(self, separator: str, nodes: list[ast.expr]) -> list[str]:
        choices = [self.of(node) for node in nodes[:64]]
        return [separator.join(parts) for parts in itertools.islice(itertools.product(*choices), _MAX)]

    def _binary(self, node: ast.BinOp) -> list[str]:
        if isinstance(node.op, ast.Add):
            return self._joined("", [node.left, node.right])
        if isinstance(node.op, ast.Div):
            return self._joined("/", [node.left, node.right])
        if isinstance(node.op, ast.Mod):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return [_filled(text, r"%[-+0 #]*\d*[a-z]", self.list_of(values)) for text in self.of(node.left)]
        return [UNKNOWN]

    def _subscript(self, node: ast.Subscript) -> list[str]:
        owner = self.dotted(node.value)
        if owner == "os.environ":
            return [self.home if self.of(node.slice)[0] in ("HOME", "USERPROFILE") else UNKNOWN]
        if isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1":
            return [text[::-1] for text in self.of(node.value)]
        return [UNKNOWN]

    def _result(self, node: ast.Call) -> list[str]:
        last = _last(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if last[:1] == "\0":
            return self._listed(node)
        if last in ("Path", "PurePath", "PosixPath", "joinpath", "join") and self._joins_path(node, last):
            nodes = ([receiver] if last == "joinpath" and receiver is not None else []) + node.args
            return self._joined("/", nodes) if nodes else ["."]
        if last == "join" and receiver is not None and node.args:
            parts = node.args[0]
            return (
                self._joined(self.of(receiver)[0], parts.elts) if isinstance(parts, ast.List | ast.Tuple) else [UNKNOWN]
            )
        if last == "home":
            return [self.home]
        if last == "format" and receiver is not None:
            return [_filled(text, r"\{\w*\}", self.list_of(node.args)) for text in self.of(receiver)]
        if (
            last == "chr"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, int)
        ):
            return [chr(node.args[0].value % 0x110000)]
        if last in ("getenv", "get") and self.dotted(node.func) in ("os.getenv", "os.environ.get") and node.args:
            return [self.home if self.of(node.args[0])[0] == "HOME" else UNKNOWN]
        if last in _SAME:
            inner = (
                node.args[0]
                if node.args
                and (last in ("str", "fspath") or receiver is None or self.dotted(receiver).startswith("os"))
                else receiver
            )
            return self.of(inner) if inner is not None else [UNKNOWN]
        return [UNKNOWN]

    def _joins_path(self, node: ast.Call, last: str) -> bool:
        return last != "join" or self.dotted(node.func).endswith("path.join")

    def _listed(self, node: ast.Call) -> list[str]:
        source = node.args[0]
        assert isinstance(source, ast.Call)
        on_path = isinstance(source.func, ast.Attribute) and self.dotted(source.func.value) == "pathlib.Path()"
        root = (
            source.func.value
            if on_path and isinstance(source.func, ast.Attribute)
            else (source.args[:1] or [ast.Constant(".")])[0]
        )
        lister = _last(source.func)
        if lister in ("glob", "iglob") and not on_path:
            return [
                re.split(r"[*?\[]", text, maxsplit=1)[0] + UNKNOWN if "/" in text else f"./{UNKNOWN}"
                for text in self.of(root)
            ]
        if lister == "listdir":
            return [UNKNOWN]
        return [f"{text}/{UNKNOWN}" for text in self.of(root)]


def _constant(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _filled(text: str, pattern: str, values: list[str]) -> str:
    rest = iter(values)
    return re.sub(pattern, lambda _: next(rest, UNKNOWN), text)
