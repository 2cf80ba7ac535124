"""The values and the modules that expressions of a Python tree stand for, as far as the tree itself tells."""

import ast
import base64
import binascii
import codecs
import html
import itertools
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects.python_bindings import Bindings
from hermes.tools.approval.effects.python_names import MOST, Each, last_name
from hermes.tools.approval.effects_model import Budget
from hermes.tools.approval.tables import sections, word_list

_CODECS = frozenset({"rot13", "rot_13", "hex", "hex_codec", "base64", "base64_codec", "base_64", "utf-8", "utf8"})


def fold(function: str, *texts: str) -> str | None:
    """The text that `function` makes of `texts`, or None where it would fail."""
    try:
        return FOLDS[function](*texts)
    except (ValueError, TypeError, LookupError, binascii.Error):
        return None


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _decode(text: str, codec: str = "utf-8", *_errors: str) -> str:
    if codec.lower() not in _CODECS:
        raise LookupError(codec)
    if codec.startswith("rot"):
        return codecs.encode(text, "rot13")
    if codec.lower().startswith("utf"):
        return text
    return _text(bytes.fromhex(text) if codec.startswith("hex") else base64.b64decode(text))


FOLDS: dict[str, Callable[..., str]] = {  # a method by its last name, with the text it belongs to first
    "base64.b64decode": lambda text: _text(base64.b64decode(text)),
    "base64.urlsafe_b64decode": lambda text: _text(base64.urlsafe_b64decode(text)),
    "base64.decodebytes": lambda text: _text(base64.decodebytes(text.encode())),
    "base64.b32decode": lambda text: _text(base64.b32decode(text)),
    "base64.b16decode": lambda text: _text(base64.b16decode(text)),
    "base64.b85decode": lambda text: _text(base64.b85decode(text)),
    "base64.a85decode": lambda text: _text(base64.a85decode(text)),
    "binascii.a2b_base64": lambda text: _text(binascii.a2b_base64(text)),
    "binascii.unhexlify": lambda text: _text(bytes.fromhex(text)),
    "binascii.a2b_hex": lambda text: _text(bytes.fromhex(text)),
    "bytes.fromhex": lambda text: _text(bytes.fromhex(text)),
    "bytearray.fromhex": lambda text: _text(bytes.fromhex(text)),
    "codecs.decode": _decode,
    "codecs.encode": _decode,
    "urllib.parse.unquote": unquote,
    "html.unescape": html.unescape,
    ".lower": str.lower,
    ".upper": str.upper,
    ".title": str.title,
    ".swapcase": str.swapcase,
    ".casefold": str.casefold,
    ".capitalize": str.capitalize,
    ".removeprefix": str.removeprefix,
    ".removesuffix": str.removesuffix,
    "reversed": lambda text: text[::-1],
}


MARK = "HERMES_UNKNOWN"  # stands in the source for what the shell would put there
_MAX_TEXT = 16384
_CHARACTERS = 256  # of a text, for one step
MADE = "/tmp/made-by-tempfile"  # noqa: S108 - a name for what the code makes, never a path that is opened here
_MAKES = frozenset({"mkdtemp", "mkstemp", "mktemp", "TemporaryDirectory", "NamedTemporaryFile"})
_MAX_DEPTH = 40
_BIND = frozenset({ast.Import, ast.ImportFrom, ast.Call, ast.Subscript})
_STAYS_A_PATH = frozenset(words("expanduser resolve absolute joinpath with_name with_suffix with_stem relative_to"))


class PythonValues:
    """What names hold: modules they were imported as, and the texts that were assigned to them."""

    def __init__(self, nodes: list[ast.AST], home: str, budget: Budget, *, has_arguments: bool) -> None:
        self.home = home
        self.budget = budget
        self.has_arguments = has_arguments
        self.aliases: dict[str, str] = {}
        self.stars: list[str] = []
        self.bindings = Bindings(nodes, budget, has_arguments=has_arguments)
        self.imported: set[str] = set()
        self.whole: set[str] = set()  # the same with all parts of their names
        self.depth = 0
        # What names and expressions stand for, and the texts they hold, once found out; while one is looked for, it is
        # not known, so that nothing is followed twice, or in a circle.
        self.names: dict[str, str] = {}
        self.texts: dict[str, list[str]] = {}
        self.dotted_names: dict[ast.AST, str] = {}
        self.known_texts: dict[ast.AST, list[str]] = {}
        for node in nodes:
            if type(node) in _BIND:
                self._bind(node)

    def modules(self) -> set[str]:
        """The first parts of the names of all modules that the code imports."""
        return self.imported

    def is_imported(self, module: str) -> bool:
        return module in self.imported

    def is_module_found(self, node: ast.expr) -> bool:
        """Whether `node` is the name of a module that pkgutil has found in a package."""
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == "name" else node
        held = self.bindings.bound.get(owner.id, []) if isinstance(owner, ast.Name) else []
        return bool(held) and all(
            isinstance(value, Each)
            and isinstance(value.source, ast.Call)
            and self.dotted(value.source.func) in ("pkgutil.walk_packages", "pkgutil.iter_modules")
            for value in held
        )

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.Call) and last_name(node.func) in ("__import__", "import_module"):
            self._module_of(node.args[0] if node.args else None)
        elif isinstance(node, ast.Subscript) and last_name(node.value) == "modules":
            self._module_of(node.slice)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        prefix = "" if isinstance(node, ast.Import) else node.module or ""
        if prefix:
            self._module(prefix)
        for name in node.names:
            if isinstance(node, ast.Import):
                self._module(name.name)
                first = name.name.partition(".")[0]
                self._alias(name.asname or first, name.name if name.asname else first)
            elif name.name == "*":
                self.stars.append(prefix)
            elif not node.level:
                self.whole.add(f"{prefix}.{name.name}")
                self._alias(name.asname or name.name, f"{prefix}.{name.name}")

    def _alias(self, name: str, meant: str) -> None:
        """One name may be imported twice, in a `try`: it stands for whichever could do more."""
        if name not in self.aliases or _power(meant) >= _power(self.aliases[name]):
            self.aliases[name] = meant

    def _module_of(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Constant):
            self._module(str(node.value))

    def _module(self, name: str) -> None:
        self.imported.add(name.partition(".")[0])
        self.whole.add(name)

    def dotted(self, node: ast.AST) -> str:
        """The full name an expression stands for: `os.system`, `pathlib.Path().unlink`; "?" where it has none."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        name = self.dotted_names.get(node)
        if name is None:
            if self.depth >= _MAX_DEPTH:
                return "?"
            self.budget.spend()
            self.depth += 1
            self.dotted_names[node] = "?"
            name = self.dotted_names[node] = self._dotted(node)
            self.depth -= 1
        return name

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            held = f".{node.attr}"
            is_own = owner == "?" or owner.removesuffix("()") in self.bindings.classes
            return self._name(held) if is_own and held in self.bindings.bound else self._attribute(owner, node.attr)
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
        return self._first(self.bindings.meanings(node), node) if isinstance(node, ast.expr) else "?"

    def _name(self, name: str) -> str:
        if name in self.aliases and name not in self.bindings.bound:
            return self.aliases[name]
        if name not in self.names:
            self.names[name] = "?"  # while it is looked for: it may stand for itself
            self.names[name] = self._meant(name)
            if name in self.aliases and _power(self.names[name]) <= _power(self.aliases[name]):
                self.names[name] = self.aliases[name]
        return self.names[name]

    def _meant(self, name: str) -> str:
        values = self.bindings.bound.get(name, [])
        if not values:
            return next((f"{module}.{name}" for module in self.stars), name)
        return self._first(values)

    def _first(self, values: list[ast.expr], node: ast.AST | None = None) -> str:
        for value in values:
            if value is not node:
                is_listed = isinstance(value, ast.Call) and last_name(value.func)[:1] == "\0"
                found = self._listed_kind(value) if is_listed and isinstance(value, ast.Call) else self.dotted(value)
                if found != "?":
                    return found
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
            return "pathlib.Path()" if function.rsplit(".", 1)[1] in _STAYS_A_PATH else f"{function}()"
        return f"{function}()" if function != "?" else "?"

    def of(self, node: ast.AST) -> list[str]:
        """The texts that an expression may be, unknown parts marked; at least one."""
        found = self.known_texts.get(node)
        if found is None:
            if self.depth >= _MAX_DEPTH:
                return [UNKNOWN]
            self.depth += 1
            self.known_texts[node] = [UNKNOWN]
            found = self.known_texts[node] = self._some(self._of(node))
            self.depth -= 1
        return found

    def _some(self, texts: list[str]) -> list[str]:
        """The different ones among `texts`, cut where there are too many or they are too long, which they then say."""
        found = list(dict.fromkeys(texts)) or [UNKNOWN]
        if len(found) > MOST:
            found = [*found[:MOST], UNKNOWN]
        self.budget.spend(1 + len(found) // 3 + sum(map(len, found)) // _CHARACTERS)
        return [_cut(text).replace(MARK, UNKNOWN) for text in found]

    def commands(self, node: ast.expr) -> list[list[str]]:
        """The commands that `node` may be, each as its words; a text for the shell is one word."""
        found: list[list[str]] = []
        for parts in self.bindings.words(node):
            choices = itertools.product(*map(self.of, parts))
            found.extend(list(choice) for choice in itertools.islice(choices, MOST))
            if next(choices, None) is not None:
                found.append([UNKNOWN])
        for meant in self.bindings.meanings(node):
            if not isinstance(meant, ast.List | ast.Tuple) and not self.bindings.words(meant):
                found.extend([text] for text in self.of(self._unsplit(meant)))
        return found or [[UNKNOWN]]

    def _unsplit(self, node: ast.expr) -> ast.expr:
        """The line that `node` takes apart into words, if it does."""
        if not isinstance(node, ast.Call) or last_name(node.func) != "split":
            return node
        if self.dotted(node.func) == "shlex.split" and node.args:
            return node.args[0]
        return node.func.value if isinstance(node.func, ast.Attribute) else node

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
            return self._held(node, node.id)
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
        if isinstance(node, ast.Attribute) and f".{node.attr}" in self.bindings.bound:
            return self._held(node, f".{node.attr}")
        if isinstance(node, ast.Attribute) and node.attr == "name" and self.dotted(node.value).startswith("tempfile."):
            return self.of(node.value)
        if isinstance(node, ast.Attribute) and node.attr in ("parent", "name", "stem"):
            return [
                UNKNOWN if node.attr != "parent" else text.rpartition("/")[0] or "." for text in self.of(node.value)
            ]
        if isinstance(node, Each | ast.BoolOp):
            return [text for value in self.bindings.meanings(node) for text in self.of(value)]
        return [UNKNOWN]

    def _held(self, node: ast.Name | ast.Attribute, name: str) -> list[str]:
        if name == MARK or name in self.aliases:
            return [UNKNOWN]
        if name not in self.texts:
            self.texts[name] = [UNKNOWN]
            values = self.bindings.meanings(node) if name in self.bindings.bound else []
            found = [text for value in values for text in self.of(value)] or [UNKNOWN]
            self.texts[name] = list(dict.fromkeys(found))
        return self.texts[name]

    def _joined(self, separator: str, nodes: list[ast.expr]) -> list[str]:
        choices = [self.of(node) for node in nodes[:MOST]] + [[UNKNOWN]] * (len(nodes) > MOST)
        found = [separator.join(parts) for parts in itertools.islice(itertools.product(*choices), MOST + 1)]
        self.budget.spend(sum(map(len, found)) // _CHARACTERS)
        return found

    def _binary(self, node: ast.BinOp) -> list[str]:
        if isinstance(node.op, ast.Add):
            return self._joined("", [node.left, node.right])
        if isinstance(node.op, ast.Div):
            return self._joined("/", [node.left, node.right])
        if isinstance(node.op, ast.Mod):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return self._filled(node.left, r"%[-+0 #]*\d*[a-z]", values)
        return [UNKNOWN]

    def _filled(self, text: ast.expr, pattern: str, nodes: list[ast.expr]) -> list[str]:
        """The texts that come of putting the values of `nodes` into the places that `pattern` finds."""
        choices = itertools.product(self.of(text), *map(self.of, nodes))
        return [_filled(form, pattern, list(given)) for form, *given in itertools.islice(choices, MOST + 1)]

    def _subscript(self, node: ast.Subscript) -> list[str]:
        owner = self.dotted(node.value)
        if owner == "os.environ":
            return [self.home if self.of(node.slice)[0] in ("HOME", "USERPROFILE") else UNKNOWN]
        if owner == "sys.argv" and not self.has_arguments:
            return ["argument"]  # it ends there with an IndexError
        if isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1":
            return [text[::-1] for text in self.of(node.value)]
        return self._replaced(node)

    def _replaced(self, node: ast.expr) -> list[str]:
        """The texts of what stands behind `node`, where the tree itself says what that is."""
        meant = self.bindings.meanings(node)
        return [UNKNOWN] if meant == [node] else [text for value in meant for text in self.of(value)]

    def _result(self, node: ast.Call) -> list[str]:
        last = last_name(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if last[:1] == "\0":
            return self._listed(node)
        if last in ("Path", "PurePath", "PosixPath", "joinpath", "join") and self._joins_path(node, last):
            nodes = ([receiver] if last == "joinpath" and receiver is not None else []) + node.args
            return self._joined("/", nodes) if nodes else ["."]
        if last == "join" and receiver is not None and node.args:
            lists = self.bindings.words(node.args[0])
            return [text for parts in lists for text in self._joined(self.of(receiver)[0], parts)] or [UNKNOWN]
        if last in ("with_suffix", "with_name", "with_stem") and receiver is not None:
            return [self._sibling(text, last, self.list_of(node.args[:1])) for text in self.of(receiver)]
        if last == "home":
            return [self.home]
        if last in _MAKES and self.dotted(node.func) == f"tempfile.{last}":
            return [MADE]
        if last == "replace" and receiver is not None and len(node.args) == 2:
            old, new = self.list_of(node.args)
            return [UNKNOWN if UNKNOWN in text + old else text.replace(old, new) for text in self.of(receiver)]
        if last == "format" and receiver is not None:
            return self._filled(receiver, r"\{\w*\}", node.args)
        if (
            last == "chr"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, int)
        ):
            return [chr(node.args[0].value % 0x110000)]
        if last in ("getenv", "get") and self.dotted(node.func) in ("os.getenv", "os.environ.get") and node.args:
            return [self.home if self.of(node.args[0])[0] == "HOME" else UNKNOWN]
        if folded := self._folded(node, receiver):
            return folded
        if last in word_list("python_values.same"):
            inner = (
                node.args[0]
                if node.args
                and (last in ("str", "fspath") or receiver is None or self.dotted(receiver).startswith("os"))
                else receiver
            )
            return self.of(inner) if inner is not None else [UNKNOWN]
        return self._replaced(node)

    def _folded(self, node: ast.Call, receiver: ast.expr | None) -> list[str]:
        """What a function that is known here makes of constants; nothing where one of them is not known."""
        name = self.dotted(node.func)
        nodes = node.args
        if name not in FOLDS and receiver is not None:
            name, nodes = f".{last_name(node.func)}", [receiver, *node.args]
        if name not in FOLDS:
            return []
        choices = itertools.product(*map(self.of, nodes[:3]))
        known = (texts for texts in itertools.islice(choices, MOST) if UNKNOWN not in "".join(texts))
        found = [text for texts in known if (text := fold(name, *texts)) is not None]
        return [*found, UNKNOWN] if found and next(choices, None) is not None else found

    @staticmethod
    def _sibling(path: str, how: str, given: list[str]) -> str:
        """A file beside `path`: these methods take no separator."""
        folder, slash, name = path.rpartition("/")
        part = given[0] if given else ""
        if UNKNOWN in name + part:
            return f"{folder or '.'}/{UNKNOWN}"
        stem, dot, suffix = name.rpartition(".")
        made = {"with_name": part, "with_suffix": (stem or name) + part, "with_stem": part + dot + suffix}[how]
        return folder + slash + made

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
        lister = last_name(source.func)
        if lister in ("glob", "iglob") and not on_path:
            return [
                re.split(r"[*?\[]", text, maxsplit=1)[0] + UNKNOWN if "/" in text else f"./{UNKNOWN}"
                for text in self.of(root)
            ]
        if lister == "listdir":
            return [UNKNOWN]
        return [f"{text}/{UNKNOWN}" for text in self.of(root)]


def _power(dotted: str) -> int:
    """How much harm a dotted name could do: none that is known of, as a module that can, as a member that does."""
    module, _, member = dotted.partition(".")
    listed = sections("python.txt").get(f"module {module}")
    if listed is None:
        return 2 if module in sections("python.txt")["closed"] else 0
    return 2 if member and member.partition(".")[0].removesuffix("()") not in listed else 1


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + UNKNOWN


def _constant(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def _filled(text: str, pattern: str, values: list[str]) -> str:
    rest = iter(values)
    return re.sub(pattern, lambda _: next(rest, UNKNOWN), text)
