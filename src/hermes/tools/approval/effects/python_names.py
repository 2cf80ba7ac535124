"""What is bound to the names of a Python tree: by assignments, loops, and calls of the tree's own functions."""

import ast
import itertools
from collections.abc import Iterator

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects_model import Budget

MOST = 64  # values of one name that are told apart
DARK = ast.Constant(UNKNOWN)
MORE = ast.Constant(UNKNOWN)  # what a name held before, with something added
_GROWS = frozenset({"append", "add", "appendleft", "put", "put_nowait"})
_REORDERS = frozenset({"reverse", "sort", "pop", "remove", "rotate"})
_CALLS_ON = frozenset({"submit", "to_thread", "apply_async", "run_in_executor", "partial", "run_sync", "apply"})
_MAPS = frozenset({"map", "imap", "imap_unordered", "filter", "starmap"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINE = frozenset({ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_BIND = frozenset(
    {
        *(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension),
        *(ast.withitem, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call),
    }
)


class Each(ast.expr):
    """Any item of what `source` holds; of each such item the part at `place`, where one is given."""

    def __init__(self, source: ast.expr, place: int | None = None) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self.holder = ""  # the name that it is bound to


class PythonNames:
    """The expressions that are bound to names. Scopes are not told apart: a name holds what any of that name holds."""

    def __init__(self, nodes: list[ast.AST], *, has_arguments: bool) -> None:
        self.has_arguments = has_arguments
        self.bound: dict[str, list[ast.expr]] = {}
        self.grown: dict[str, list[ast.expr]] = {}
        self.reordered: set[str] = set()  # lists whose order is not the one they are written in
        self.functions: dict[str, Function] = {}
        self.fields: dict[str, list[str]] = {}
        self.methods: set[str] = set()
        self.classes: set[str] = set()
        self.imported: set[str] = set()
        for node in nodes:
            if type(node) in _DEFINE:
                self._define(node)
        for node in nodes:
            if type(node) in _BIND:
                self._bind(node)
        self._pass_all(nodes)

    # Collecting

    def _define(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported.update(name.asname or name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, Function):
            if node.name in self.functions:  # two of one name: both get what either is called with
                _all_dark(self, self.functions[node.name])
                _all_dark(self, node)
            self.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            self.classes.add(node.name)
            for part in node.body:
                if isinstance(part, Function):
                    self.methods.add(part.name)
                    if part.name == "__init__":
                        self.functions[node.name] = part
                elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                    self._hold(f".{part.targets[0].id}", part.value)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    self.fields.setdefault(node.name, []).append(part.target.id)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                more = _added(target, node.value)
                if more:
                    self.grown.setdefault(key_of(target), []).extend(more)
                else:
                    self._target(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._target(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name) and isinstance(node.value, ast.List | ast.Tuple):
                self.grown.setdefault(node.target.id, []).extend(node.value.elts)
            else:
                self._target(node.target, MORE)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._target(node.target, Each(node.iter))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._target(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.Lambda):
            _all_dark(self, node)
        elif isinstance(node, Function):
            self._defaults(node.args)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REORDERS:
            self.reordered.add(key_of(node.func.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            self._grow(node.func, node.args)
            if node.func.attr == "add_argument":
                self._option(node)

    def _option(self, call: ast.Call) -> None:
        """An option of argparse holds its default, and what the command line says."""
        names = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        default = next((key.value for key in call.keywords if key.arg == "default"), DARK)
        for name in names:
            key = f".{name.lstrip('-').replace('-', '_')}"
            self._hold(key, default)
            if self.has_arguments:
                self._hold(key, DARK)

    def _grow(self, function: ast.Attribute, arguments: list[ast.expr]) -> None:
        name = key_of(function.value)
        if function.attr == "insert":
            self.reordered.add(name)
        if name and function.attr in _GROWS:
            self.grown.setdefault(name, []).append(arguments[0])
        elif name and function.attr == "insert":
            self.grown.setdefault(name, []).extend(arguments[1:])
        elif name and function.attr in ("extend", "update"):
            self.grown.setdefault(name, []).append(ast.Starred(arguments[0]))

    def _target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if isinstance(value, ast.Call) and last_name(value.func) == "mkstemp":
                parts = [value] * len(target.elts)  # a new file: its descriptor and its name
            for number, inner in enumerate(target.elts):
                whole = len(parts) == len(target.elts)
                part = parts[number] if whole else Each(value.source, number) if isinstance(value, Each) else DARK
                self._target(inner, part)
        elif isinstance(target, ast.Subscript):
            name = key_of(target.value)
            if name:
                self.reordered.add(name)
                self.grown.setdefault(name, []).append(value)
        else:
            self._hold(key_of(target), value)

    def _hold(self, name: str, value: ast.expr) -> None:
        if isinstance(value, Each):
            value.holder = name
        if name and key_of(value) != name:
            self.bound.setdefault(name, []).append(value)

    def _defaults(self, arguments: ast.arguments) -> None:
        names = [*arguments.posonlyargs, *arguments.args]
        for name, value in zip(reversed(names), reversed(arguments.defaults), strict=False):
            self._hold(name.arg, value)
        for name, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                self._hold(name.arg, default)
        if arguments.kwarg:
            self._hold(arguments.kwarg.arg, DARK)

    # Calls of the tree's own functions

    def _pass_all(self, nodes: list[ast.AST]) -> None:
        called: set[int] = set()
        reached: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Call):
                for function, name in self._pass(node):
                    called.add(id(function))
                    reached.add(name)
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called:
                name = last_name(node)
                if name in self.functions and isinstance(node.ctx, ast.Load) and not self._is_foreign(node):
                    _all_dark(self, self.functions[name])  # handed on: called with whatever
        for name, function_def in self.functions.items():
            if name not in reached:
                _all_dark(self, function_def)

    def _pass(self, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
        """Bind what `call` hands to functions of the tree; yield each expression that names one."""
        name = last_name(call.func)
        if name in self.fields:
            for field, value in itertools.zip_longest(self.fields[name], call.args[: len(self.fields[name])]):
                self._hold(f".{field}", value if value is not None else DARK)
            for keyword in call.keywords:
                self._hold(f".{keyword.arg}", keyword.value)
        if name in self.functions and not self._is_foreign(call.func):
            self._hand(self.functions[name], call.args, call.keywords)
            yield call.func, name
        target = next((key.value for key in call.keywords if key.arg == "target"), None)
        given = next((key.value for key in call.keywords if key.arg == "args"), None)
        if target is not None and last_name(target) in self.functions and not self._is_foreign(target):
            spread: list[ast.expr] = [ast.Starred(given)] if given is not None else []
            items = given.elts if isinstance(given, ast.Tuple | ast.List) else spread
            self._hand(self.functions[last_name(target)], items, [])
            yield target, last_name(target)
        if name not in _CALLS_ON and name not in _MAPS:
            return
        for number, argument in enumerate(call.args[:2]):
            if last_name(argument) in self.functions and not self._is_foreign(argument):
                rest = call.args[number + 1 :]
                function = self.functions[last_name(argument)]
                self._hand(function, [Each(each) for each in rest] if name in _MAPS else rest, call.keywords)
                yield argument, last_name(argument)
                return

    def _hand(self, function: Function, given: list[ast.expr], keywords: list[ast.keyword]) -> None:
        arguments = function.args
        names = [part.arg for part in (*arguments.posonlyargs, *arguments.args)]
        if names[:1] in (["self"], ["cls"]):
            del names[0]
        rest: list[ast.expr] = []
        for number, value in enumerate(given):
            if isinstance(value, ast.Starred):
                for name in names[number:]:
                    self._hold(name, Each(value.value))
                rest.extend(given[number:])
                break
            if number < len(names):
                self._hold(names[number], value)
            else:
                rest.append(value)
        if arguments.vararg:
            self._hold(arguments.vararg.arg, ast.Tuple(rest, ast.Load()))
        for keyword in keywords:
            for name in [keyword.arg] if keyword.arg else names:
                self._hold(name, keyword.value if keyword.arg else DARK)

    def _is_foreign(self, node: ast.expr) -> bool:
        """Whether a dotted name belongs to an imported module, not to the tree's own classes."""
        if not isinstance(node, ast.Attribute):
            return False
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.imported


def nodes_of(tree: ast.AST, budget: Budget) -> list[ast.AST]:
    """The nodes of a tree, as `ast.walk` tells them, but for operators and contexts: half of all, and never judged."""
    nodes = [tree]
    for node in nodes:
        budget.spend()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                nodes.append(value)
    return nodes


def _all_dark(names: PythonNames, function: Function | ast.Lambda) -> None:
    arguments = function.args
    for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if part is not None:
            names.bound.setdefault(part.arg, []).append(DARK)


def _added(target: ast.expr, value: ast.expr) -> list[ast.expr]:
    """What `x = x + [...]` and `x = [*x, ...]` add to the end of x."""
    if not isinstance(target, ast.Name):
        return []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.List | ast.Tuple):
        return value.right.elts if key_of(value.left) == target.id else []
    if isinstance(value, ast.List) and value.elts and isinstance(value.elts[0], ast.Starred):
        return value.elts[1:] if key_of(value.elts[0].value) == target.id else []
    return []


def key_of(node: ast.AST) -> str:
    """The name under which what `node` holds is kept: `x` for a name, `.x` for an attribute, "" for neither."""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, and of `c`; "" of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
