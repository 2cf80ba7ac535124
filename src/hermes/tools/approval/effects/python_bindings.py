"""What expressions of a Python tree may be, once names are replaced by what they hold."""

import ast
import itertools
from collections.abc import Iterable, Iterator

from hermes.tools.approval.effects.python_names import DARK, MOST, Each, Names, key_of, last_name

LISTERS = frozenset({"iterdir", "glob", "rglob", "walk", "scandir", "listdir", "iglob"})
_SAME_ITEMS = frozenset({"sorted", "list", "reversed", "set", "tuple", "tqdm", "iter", "frozenset", "copy", "deque"})


class Bindings(Names):
    """The names of a tree, and what expressions with them stand for."""

    def __init__(self, tree: ast.Module, *, has_arguments: bool) -> None:
        super().__init__(tree, has_arguments=has_arguments)
        self.changed: dict[ast.expr, set[str]] = {}  # by list, the names under which it grows or is reordered
        for name in sorted(self.grown.keys() | self.reordered):
            for meant in self.meanings(_named(name)):
                self.changed.setdefault(meant, set()).add(name)

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
        name = key_of(node)
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
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) and key_of(node.value):
            yield from self._held(node.value, seen) if key_of(node.value) in self.bound else [node]
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
                if node.holder and key_of(item.elts[node.place]) == node.holder:
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
        for value in self.grown.get(key_of(node), []):
            yield from self._meanings(value, seen)

    def _pairs(self, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
        for meant in self._meanings(node, seen):
            if isinstance(meant, ast.Dict):
                for key, value in zip(meant.keys, meant.values, strict=True):
                    yield ast.Tuple([key if key is not None else DARK, value], ast.Load())
            else:
                yield DARK
        for value in self.grown.get(key_of(node), []):
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
        yield from self._elements(self.grown.get(key_of(node), []), seen)

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


def _joined_lists(node: ast.expr) -> list[ast.expr]:
    """The expressions whose items `node` holds in their order: both sides of a sum, or what `list(...)` copies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    is_copy = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    return node.args[:1] if is_copy and isinstance(node, ast.Call) else []


def _some(found: Iterable[ast.expr]) -> list[ast.expr]:
    some = list(itertools.islice(found, MOST + 1))
    return some if len(some) <= MOST else [*some[:MOST], DARK]


def _named(name: str) -> ast.expr:
    """An expression whose key is `name`."""
    return ast.Attribute(DARK, name[1:], ast.Load()) if name[:1] == "." else ast.Name(name, ast.Load())
