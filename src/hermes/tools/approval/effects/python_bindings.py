"""What the names of a Python tree may hold: by assignments, loops, and calls of the tree's own functions."""

import ast
import itertools
from collections.abc import Iterable, Iterator

from hermes.tools.approval.text import UNKNOWN

MOST = 64  # values of one name that are told apart
DARK = ast.Constant(UNKNOWN)
MORE = ast.Constant(UNKNOWN)  # what a name held before, with something added
LISTERS = frozenset({"iterdir", "glob", "rglob", "walk", "scandir", "listdir", "iglob"})
_SAME_ITEMS = frozenset({"sorted", "list", "reversed", "set", "tuple", "tqdm", "iter", "frozenset", "copy", "deque"})
_GROWS = frozenset({"append", "add", "appendleft", "put", "put_nowait"})
_REORDERS = frozenset({"reverse", "sort", "pop", "remove", "rotate"})
_CALLS_ON = frozenset({"submit", "to_thread", "apply_async", "run_in_executor", "partial", "run_sync", "apply"})
_MAPS = frozenset({"map", "imap", "imap_unordered", "filter", "starmap"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Each(ast.expr):
    """Any item of what `source` holds; of each such item the part at `place`, where one is given."""

    def __init__(self, source: ast.expr, place: int | None = None) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self.holder = ""  # the name that it is bound to


class Bindings:
    """The expressions that names may stand for. Names are not told apart by scope: one holds what any of them holds."""

    def __init__(self, tree: ast.Module, *, has_arguments: bool) -> None:
        self.has_arguments = has_arguments
        self.bound: dict[str, list[ast.expr]] = {}
        self.grown: dict[str, list[ast.expr]] = {}
        self.reordered: set[str] = set()  # lists whose order is not the one they are written in
        self.functions: dict[str, Function] = {}
        self.fields: dict[str, list[str]] = {}
        self.methods: set[str] = set()
        self.classes: set[str] = set()
        self.imported: set[str] = set()
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._define(node)
        for node in nodes:
            self._bind(node)
        self._pass_all(nodes)
        self.changed: dict[ast.expr, set[str]] = {}  # by list, the names under which it grows or is reordered
        for name in sorted(self.grown.keys() | self.reordered):
            for meant in self.meanings(_named(name)):
                self.changed.setdefault(meant, set()).add(name)

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
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    self.fields.setdefault(node.name, []).append(part.target.id)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                more = _added(target, node.value)
                if more:
                    self.grown.setdefault(_key(target), []).extend(more)
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
            self.reordered.add(_key(node.func.value))
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
        name = _key(function.value)
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
            name = _key(target.value)
            if name:
                self.reordered.add(name)
                self.grown.setdefault(name, []).append(value)
        else:
            self._hold(_key(target), value)

    def _hold(self, name: str, value: ast.expr) -> None:
        if isinstance(value, Each):
            value.holder = name
        if name and _key(value) != name:
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

    # Looking up

    def meanings(self, node: ast.expr) -> list[ast.expr]:
        """What `node` may be once names are replaced by what they hold; DARK among it for what is not known."""
        return _some(self._meanings(node, frozenset()))

    def items(self, node: ast.expr) -> list[ast.expr]:
        """What the items of `node` may be."""
        return _some(self._items(node, frozenset()))

    def words(self, node: ast.expr, depth: int = 0) -> list[list[ast.expr]]:
        """The lists of expressions that `node` may be; empty when it is no list that is written out."""
        found: list[list[ast.expr]] = []
        for meant in self.meanings(node):
            names = self.changed.get(meant, set())
            parts = _joined_lists(meant)
            if isinstance(meant, ast.List | ast.Tuple):
                lists = self._spread(meant.elts)
            elif parts and depth < 8:
                lists = self._joined([self.words(part, depth + 3) for part in parts], parts)
            else:
                continue
            grown = [more for name in sorted(names) for more in self.grown.get(name, [])]
            if lists and names & self.reordered:
                found.append([DARK])
            elif grown:  # run before it has grown, or after
                found.extend(words for words in lists if words)
                found.extend([*words, *more] for words in lists for more in self._spread(grown))
            else:
                found.extend(lists)
        return found if len(found) <= MOST else [*found[:MOST], [DARK]]

    def _joined(self, sides: list[list[list[ast.expr]]], parts: list[ast.expr]) -> list[list[ast.expr]]:
        """The lists that `parts` make one after another; none when no part is a list, as of texts that are added."""
        if not any(sides):
            return []
        for side, part in zip(sides, parts, strict=True):
            if not all(isinstance(meant, ast.List | ast.Tuple) or self.words(meant) for meant in self.meanings(part)):
                side.append([DARK])
        return [list(itertools.chain(*lists)) for lists in itertools.islice(itertools.product(*sides), MOST + 1)]

    def _spread(self, elements: list[ast.expr]) -> list[list[ast.expr]]:
        lists: list[list[ast.expr]] = [[]]
        for element in elements:
            choices = [[element]]
            if isinstance(element, ast.Starred):
                choices = (self.words(element.value) if len(lists[0]) < MOST else []) or [[DARK]]
            lists = [[*before, *after] for before in lists for after in choices][:MOST]
        return lists

    def _meanings(self, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
        name = _key(node)
        if len(seen) > 12 or name in seen:
            yield DARK
        elif name in self.bound and not self._is_foreign(node):
            for value in self.bound[name]:
                yield from self._meanings(value, seen | {name})
        elif isinstance(node, Each):
            yield from self._parts(node, seen)
        elif isinstance(node, ast.Await | ast.NamedExpr):
            yield from self._meanings(node.value, seen)
        elif isinstance(node, ast.IfExp):
            yield from self._meanings(node.body, seen)
            yield from self._meanings(node.orelse, seen)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._meanings(value, seen)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) and _key(node.value):
            yield from self._held(node.value, seen) if _key(node.value) in self.bound else [node]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions:
            yield from self._returned(node.func.id, node, seen)
        else:
            yield node

    def _returned(self, name: str, node: ast.Call, seen: frozenset[str]) -> Iterator[ast.expr]:
        function = self.functions[name]
        if f"{name}()" in seen or function.name != name:
            yield node
            return
        parts = list(ast.walk(function))
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts):
            yield DARK
        for part in parts:
            if isinstance(part, ast.Return) and part.value is not None:
                yield from self._meanings(part.value, seen | {f"{name}()"})

    def _parts(self, node: Each, seen: frozenset[str]) -> Iterator[ast.expr]:
        for item in self._items(node.source, seen):
            if node.place is None:
                yield from self._meanings(item, seen)
            elif isinstance(item, ast.Tuple | ast.List) and node.place < len(item.elts):
                if node.holder and _key(item.elts[node.place]) == node.holder:
                    continue  # it was put there under the same name, which holds nothing more by that
                yield from self._meanings(item.elts[node.place], seen)
            elif isinstance(item, ast.Call) and node.place == 0 and last_name(item.func)[:1] == "\0":
                yield item  # `os.walk` yields the folder first
            else:
                yield DARK

    def _held(self, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
        """The values of a mapping or the items of a list, whatever the key."""
        for meant in self._meanings(node, seen):
            if isinstance(meant, ast.Dict):
                for value in meant.values:
                    yield from self._meanings(value, seen)
            else:
                yield from self._items(meant, seen)
        for value in self.grown.get(_key(node), []):
            yield from self._meanings(value, seen)

    def _pairs(self, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
        for meant in self._meanings(node, seen):
            if isinstance(meant, ast.Dict):
                for key, value in zip(meant.keys, meant.values, strict=True):
                    yield ast.Tuple([key if key is not None else DARK, value], ast.Load())
            else:
                yield DARK
        for value in self.grown.get(_key(node), []):
            yield ast.Tuple([DARK, value], ast.Load())

    def _items(self, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
        for meant in self._meanings(node, seen):
            if isinstance(meant, ast.List | ast.Tuple | ast.Set):
                yield from self._elements(meant.elts, seen)
            elif isinstance(meant, ast.Dict):
                yield from (key if key is not None else DARK for key in meant.keys)
            elif isinstance(meant, ast.ListComp | ast.GeneratorExp | ast.SetComp):
                yield from self._meanings(meant.elt, seen)
            elif isinstance(meant, ast.BinOp) and isinstance(meant.op, ast.Add):
                yield from self._items(meant.left, seen)
                yield from self._items(meant.right, seen)
            elif isinstance(meant, ast.Call):
                yield from self._items_of_call(meant, seen)
            else:
                yield DARK
        yield from self._elements(self.grown.get(_key(node), []), seen)

    def _elements(self, elements: list[ast.expr], seen: frozenset[str]) -> Iterator[ast.expr]:
        for element in elements:
            if isinstance(element, ast.Starred):
                yield from self._items(element.value, seen)
            else:
                yield element

    def _items_of_call(self, call: ast.Call, seen: frozenset[str]) -> Iterator[ast.expr]:
        last = last_name(call.func)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if last in LISTERS:
            yield ast.Call(ast.Name(f"\0{last}"), [call], [])
        elif last in _SAME_ITEMS and call.args:
            yield from self._items(call.args[0], seen)
        elif last == "filter" and len(call.args) > 1:
            yield from self._items(call.args[1], seen)
        elif last == "enumerate" and call.args:
            for item in self._items(call.args[0], seen):
                yield ast.Tuple([DARK, item], ast.Load())
        elif last == "zip":
            columns = [_some(self._items(column, seen)) for column in call.args]
            for number in range(max(map(len, columns), default=0)):
                cells = [column[number] if number < len(column) else DARK for column in columns]
                yield ast.Tuple(cells, ast.Load())
        elif last in ("items", "values") and receiver is not None:
            yield from self._pairs(receiver, seen) if last == "items" else self._held(receiver, seen)
        elif last == "keys" and receiver is not None:
            yield from self._items(receiver, seen)
        elif last in ("split", "splitlines") and isinstance(receiver, ast.Constant) and isinstance(receiver.value, str):
            yield from (ast.Constant(text) for text in receiver.value.split()) if not call.args else [DARK]
        else:
            yield DARK


def _all_dark(bindings: Bindings, function: Function | ast.Lambda) -> None:
    arguments = function.args
    for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if part is not None:
            bindings.bound.setdefault(part.arg, []).append(DARK)


def _joined_lists(node: ast.expr) -> list[ast.expr]:
    """The expressions whose items `node` holds in their order: both sides of a sum, or what `list(...)` copies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    is_copy = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    return node.args[:1] if is_copy and isinstance(node, ast.Call) else []


def _added(target: ast.expr, value: ast.expr) -> list[ast.expr]:
    """What `x = x + [...]` and `x = [*x, ...]` add to the end of x."""
    if not isinstance(target, ast.Name):
        return []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.List | ast.Tuple):
        return value.right.elts if _key(value.left) == target.id else []
    if isinstance(value, ast.List) and value.elts and isinstance(value.elts[0], ast.Starred):
        return value.elts[1:] if _key(value.elts[0].value) == target.id else []
    return []


def _some(found: Iterable[ast.expr]) -> list[ast.expr]:
    some = list(itertools.islice(found, MOST + 1))
    return some if len(some) <= MOST else [*some[:MOST], DARK]


def _key(node: ast.AST) -> str:
    """The name under which what `node` holds is kept: `x` for a name, `.x` for an attribute, "" for neither."""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def _named(name: str) -> ast.expr:
    """An expression whose key is `name`."""
    return ast.Attribute(DARK, name[1:], ast.Load()) if name[:1] == "." else ast.Name(name, ast.Load())


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, and of `c`; "" of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
