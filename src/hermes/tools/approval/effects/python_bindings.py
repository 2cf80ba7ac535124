"""What expressions of a Python tree may be, once names are replaced by what they hold."""

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator

from hermes.tools.approval.effects.python_names import DARK, MOST, Each, PythonNames, key_of, last_name
from hermes.tools.approval.effects_model import Budget

LISTERS = frozenset({"iterdir", "glob", "rglob", "walk", "scandir", "listdir", "iglob"})
_SAME_ITEMS = frozenset({"sorted", "list", "reversed", "set", "tuple", "tqdm", "iter", "frozenset", "copy", "deque"})
_MAX_DEPTH = 40
_ENTRIES = 16  # of lists, that are copied in one step


class Bindings(PythonNames):
    """The names of a tree, and what expressions with them stand for.

    What is found out once is kept. A name that stands for itself is DARK while it is looked for, and what was found out
    on the way is kept, too: each name and expression is followed once, however often and in whatever circle it is used.
    """

    def __init__(self, nodes: list[ast.AST], budget: Budget, *, has_arguments: bool) -> None:
        super().__init__(nodes, has_arguments=has_arguments)
        self.budget = budget
        self.depth = 0
        self.meant: dict[str | ast.expr, list[ast.expr]] = {}
        self.held: dict[str | ast.expr, list[ast.expr]] = {}
        self.lists: dict[ast.expr, list[list[ast.expr]]] = {}
        self.returned: dict[str, list[ast.expr]] = {}
        self.changed: dict[ast.expr, set[str]] = {}  # by list, the names under which it grows or is reordered
        for name in sorted(self.grown.keys() | self.reordered):
            for meant in self.meanings(_named(name)):
                self.changed.setdefault(meant, set()).add(name)

    def meanings(self, node: ast.expr) -> list[ast.expr]:
        """What `node` may be once names are replaced by what they hold; DARK among it for what is not known."""
        return self._once(self.meant, node, lambda: _distinct(self._meanings(node)))

    def items(self, node: ast.expr) -> list[ast.expr]:
        """What the items of `node` may be."""
        return self._once(self.held, node, lambda: self._items(node))

    def _once(
        self, kept: dict[str | ast.expr, list[ast.expr]], node: ast.expr, look: Callable[[], Iterable[ast.expr]]
    ) -> list[ast.expr]:
        name = key_of(node)
        key = name if name in self.bound and not self._is_foreign(node) else node
        found = kept.get(key)
        if found is not None:
            return found
        if self.depth >= _MAX_DEPTH:
            return [DARK]
        self.depth += 1
        kept[key] = [DARK]
        found = kept[key] = _some(look())
        self.depth -= 1
        self.budget.spend(1 + len(found))
        return found

    def words(self, node: ast.expr) -> list[list[ast.expr]]:
        """The lists of expressions that `node` may be; empty when it is no list that is written out."""
        found = self.lists.get(node)
        if found is not None:
            return found
        if self.depth >= _MAX_DEPTH:
            return [[DARK]]
        self.depth += 1
        self.lists[node] = [[DARK]]
        found = self.lists[node] = self._words(node)
        self.depth -= 1
        self.budget.spend(1 + sum(map(len, found)))
        return found

    def _words(self, node: ast.expr) -> list[list[ast.expr]]:
        found: list[list[ast.expr]] = []
        for meant in self.meanings(node):
            names = self.changed.get(meant, set())
            parts = _joined_lists(meant)
            if isinstance(meant, ast.List | ast.Tuple):
                lists = self._spread(meant.elts)
            elif parts:
                lists = self._joined([[*self.words(part)] for part in parts], parts)
            else:
                continue
            grown = [more for name in sorted(names) for more in self.grown.get(name, [])]
            if lists and names & self.reordered:
                found.append([DARK])
            elif grown:  # run before it has grown, or after
                found.extend(words for words in lists if words)
                found.extend([*words, *more] for more in self._spread(grown) for words in lists)
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
            lists = [[*before, *after] for before in lists for after in choices]
            self.budget.spend(1 + sum(map(len, lists)) // _ENTRIES)
            if len(lists) > MOST:
                lists = [*lists[:MOST], [DARK]]
        return lists

    def _meanings(self, node: ast.expr) -> Iterator[ast.expr]:
        name = key_of(node)
        if name in self.bound and not self._is_foreign(node):
            for value in self.bound[name]:
                yield from self.meanings(value)
        elif isinstance(node, Each):
            yield from self._parts(node)
        elif isinstance(node, ast.Await | ast.NamedExpr):
            yield from self.meanings(node.value)
        elif isinstance(node, ast.IfExp):
            yield from self.meanings(node.body)
            yield from self.meanings(node.orelse)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self.meanings(value)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) and key_of(node.value):
            yield from self._held(node.value) if key_of(node.value) in self.bound else [node]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions:
            yield from self._returned(node.func.id, node)
        else:
            yield node

    def _returned(self, name: str, node: ast.Call) -> Iterable[ast.expr]:
        function = self.functions[name]
        if function.name != name:
            return [node]
        if name not in self.returned:
            self.returned[name] = [node]  # while it is looked for: a function that calls itself
            parts = list(ast.walk(function))
            self.budget.spend(len(parts))
            dark = [DARK] if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts) else []
            values = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
            self.returned[name] = _some(itertools.chain(dark, *map(self.meanings, values)))
        return self.returned[name]

    def _parts(self, node: Each) -> Iterator[ast.expr]:
        for item in self.items(node.source):
            if node.place is None:
                yield from self.meanings(item)
            elif isinstance(item, ast.Tuple | ast.List) and node.place < len(item.elts):
                if node.holder and key_of(item.elts[node.place]) == node.holder:
                    continue  # it was put there under the same name, which holds nothing more by that
                yield from self.meanings(item.elts[node.place])
            elif isinstance(item, ast.Call) and node.place == 0 and last_name(item.func)[:1] == "\0":
                yield item  # `os.walk` yields the folder first
            else:
                yield DARK

    def _held(self, node: ast.expr) -> Iterator[ast.expr]:
        """The values of a mapping or the items of a list, whatever the key."""
        for meant in self.meanings(node):
            if isinstance(meant, ast.Dict):
                for value in meant.values:
                    yield from self.meanings(value)
            else:
                yield from self.items(meant)
        for value in self.grown.get(key_of(node), []):
            yield from self.meanings(value)

    def _pairs(self, node: ast.expr) -> Iterator[ast.expr]:
        for meant in self.meanings(node):
            if isinstance(meant, ast.Dict):
                for key, value in zip(meant.keys, meant.values, strict=True):
                    yield ast.Tuple([key if key is not None else DARK, value], ast.Load())
            else:
                yield DARK
        for value in self.grown.get(key_of(node), []):
            yield ast.Tuple([DARK, value], ast.Load())

    def _items(self, node: ast.expr) -> Iterator[ast.expr]:
        for meant in self.meanings(node):
            if isinstance(meant, ast.List | ast.Tuple | ast.Set):
                yield from self._elements(meant.elts)
            elif isinstance(meant, ast.Dict):
                yield from (key if key is not None else DARK for key in meant.keys)
            elif isinstance(meant, ast.ListComp | ast.GeneratorExp | ast.SetComp):
                yield from self.meanings(meant.elt)
            elif isinstance(meant, ast.BinOp) and isinstance(meant.op, ast.Add):
                yield from self.items(meant.left)
                yield from self.items(meant.right)
            elif isinstance(meant, ast.Call):
                yield from self._items_of_call(meant)
            else:
                yield DARK
        yield from self._elements(self.grown.get(key_of(node), []))

    def _elements(self, elements: list[ast.expr]) -> Iterator[ast.expr]:
        for element in elements:
            if isinstance(element, ast.Starred):
                yield from self.items(element.value)
            else:
                yield element

    def _items_of_call(self, call: ast.Call) -> Iterator[ast.expr]:
        last = last_name(call.func)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if last in LISTERS:
            yield ast.Call(ast.Name(f"\0{last}"), [call], [])
        elif last in _SAME_ITEMS and call.args:
            yield from self.items(call.args[0])
        elif last == "filter" and len(call.args) > 1:
            yield from self.items(call.args[1])
        elif last == "enumerate" and call.args:
            for item in self.items(call.args[0]):
                yield ast.Tuple([DARK, item], ast.Load())
        elif last == "zip":
            columns = [self.items(column) for column in call.args]
            for number in range(max(map(len, columns), default=0)):
                cells = [column[number] if number < len(column) else DARK for column in columns]
                yield ast.Tuple(cells, ast.Load())
        elif last in ("items", "values") and receiver is not None:
            yield from self._pairs(receiver) if last == "items" else self._held(receiver)
        elif last == "keys" and receiver is not None:
            yield from self.items(receiver)
        elif last in ("split", "splitlines") and isinstance(receiver, ast.Constant) and isinstance(receiver.value, str):
            yield from (ast.Constant(text) for text in receiver.value.split()) if not call.args else [DARK]
        else:
            yield DARK


def _joined_lists(node: ast.expr) -> list[ast.expr]:
    """The expressions whose items `node` holds in their order: both sides of a sum, or what `list(...)` copies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    is_copy = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    return node.args[:1] if is_copy and isinstance(node, ast.Call) else []


def _distinct(found: Iterable[ast.expr]) -> Iterator[ast.expr]:
    seen: set[ast.expr] = set()
    for node in found:
        if node not in seen:
            seen.add(node)
            yield node


def _some(found: Iterable[ast.expr]) -> list[ast.expr]:
    some = list(itertools.islice(found, MOST + 1))
    return some if len(some) <= MOST else [*some[:MOST], DARK]


def _named(name: str) -> ast.expr:
    """An expression whose key is `name`."""
    return ast.Attribute(DARK, name[1:], ast.Load()) if name[:1] == "." else ast.Name(name, ast.Load())
