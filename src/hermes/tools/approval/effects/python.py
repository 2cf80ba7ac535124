"""Inline Python by its syntax tree: what is not understood as harmless asks."""

import ast
import itertools
import re
import sys
import textwrap
import warnings
from functools import cache
from pathlib import Path

from hermes.tools.approval.command_text import UNKNOWN, quoted
from hermes.tools.approval.effects import python_loads
from hermes.tools.approval.effects.databases import sql
from hermes.tools.approval.effects.python_files import PythonFiles, judge_whole, table
from hermes.tools.approval.effects.python_names import MORE, MOST, nodes_of
from hermes.tools.approval.effects.python_values import MARK, PythonValues
from hermes.tools.approval.paths import matters, writes
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput
from hermes.tools.approval.tables import sections

_CHARACTERS = 6  # that are parsed in one step
_PLACES = 500
_COOKIE = re.compile(r"(?:[^\r\n]*(?:\r\n?|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_CODECS = frozenset({"utf-8", "utf8", "utf_8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1"})
_EXECS = re.compile(r"(?:os|posix)\.(?:exec|spawn|posix_spawn)[a-z]*")
_SQL = re.compile(r"(?i)\W*(?:drop|truncate|delete|update|alter)\s")
_RUNS_TEXT = frozenset({"exec", "eval", "FunctionType", "CodeType", "runcode", "runsource", "getattr", "builtins"})
_SQL_RUNS = frozenset({"execute", "executescript", "exec_driver_sql", "run_sql"})
_FILE_TOOLS = frozenset({"hermes_tools.write_file", "hermes_tools.patch"})
_LOCAL = ("/", "http://localhost", "http://127.0.0.1", "http://[::1]", "http://0.0.0.0")

_JUDGED = frozenset(
    {
        *(ast.Call, ast.Attribute, ast.Subscript, ast.Assign, ast.Expr, ast.FormattedValue, ast.Name, ast.Constant),
    }
)


@cache
def _prefixes(title: str) -> tuple[str, ...]:
    return tuple(table(title))


@cache
def _harmless() -> dict[str, frozenset[str]]:
    """By module, the members that may be used; of the closed ones none."""
    listed = {title[7:]: names for title, names in sections("python.txt").items() if title.startswith("module ")}
    return listed | dict.fromkeys(table("closed"), frozenset())


@cache
def _without_service() -> frozenset[str]:
    """The modules none of whose objects stands for something on another machine."""
    return (sys.stdlib_module_names | table("without a service")) - table("network")


@cache
def _without_sql() -> frozenset[str]:
    """The modules that speak to no database, by themselves or through a program."""
    return (sys.stdlib_module_names | {"hermes_tools"}) - {"sqlite3", "subprocess", "asyncio", "ctypes", "importlib"}


def judge_python(cmd: Command, code: str) -> None:
    """Record the effects of `code`; code that Python cannot read is asked about."""
    text = textwrap.dedent(code.replace(UNKNOWN, MARK)).strip("\n")
    # Each place in a text that is to be filled is parsed by itself, which takes long; other braces are not as many.
    cmd.run.budget.spend(len(text) // _CHARACTERS + 6 * max(0, text.count("{") - _PLACES))
    if (cookie := _COOKIE.match(code)) and cookie[1].lower() not in _PLAIN_CODECS:
        # Python reads a file by the encoding that it names, and some turn what stands in a comment into code.
        cmd.run.add("decoded_code", f"code in the encoding {cookie[1]}: {cmd.line}")
    try:
        with warnings.catch_warnings():  # a stray backslash in somebody's code is no concern of ours
            warnings.simplefilter("ignore")
            _Judge(cmd, ast.parse(text)).run()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        cmd.run.add("inline_code", f"{cmd.name} code that does not parse: {cmd.line}")


class _Judge(PythonFiles):
    """One walk over a tree, with the names that it binds."""

    def __init__(self, cmd: Command, tree: ast.Module) -> None:
        self.cmd = cmd
        self.tree = tree
        self.nodes = nodes_of(tree, cmd.run.budget)
        self.made = {}
        cmd.run.budget.spend(len(self.nodes))
        more = len(cmd.args) > (2 if "-c" in cmd.args else 1)
        self.values = PythonValues(self.nodes, cmd.run.places.home, cmd.run.budget, has_arguments=more)
        self.called: set[int] = set()  # expressions that stand where a call names its function
        self.closed: set[int] = set()  # and those that are closed as soon as they are opened
        self.fine: set[int] = set()  # and those that stand where a module may be named as a whole
        self.timed: set[int] = set()  # and calls of `globals` for statements that are judged themselves
        named = {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in self.nodes
            if isinstance(node, (ast.Attribute, ast.Name))
        }
        self.runs_text = bool(named & _RUNS_TEXT)
        self.speaks_sql = not self.values.modules() <= _without_sql() or "terminal" in named

    def run(self) -> None:
        nodes = [node for node in self.nodes if type(node) in _JUDGED]
        for node in nodes:
            if isinstance(node, ast.Call):
                self._mark(node)
                self._link(node)
            elif isinstance(node, ast.Attribute | ast.Subscript):
                self.fine.add(id(node.value))
                if isinstance(node, ast.Attribute) and node.attr == "close":
                    self.closed.add(id(node.value))
            elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
                self.fine.add(id(node.value))
                self.called.add(id(node.value))  # an alias: what it stands for is judged where it is called
            elif isinstance(node, ast.Assign):
                self._set_by(node)
            elif isinstance(node, ast.Expr | ast.FormattedValue):
                self.fine.add(id(node.value))
        # What is written counts where it is run or imported, wherever that stands; `chdir` says where it lands.
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        writers = {id(node) for node in calls if self._is_writer(node)}
        for node in sorted((node for node in calls if id(node) in writers), key=lambda node: node.lineno):
            self._call(node)
        said = python_loads.only_said(self.nodes) if self.speaks_sql else set()
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node) if id(node) not in writers else None
            elif isinstance(node, ast.Attribute | ast.Name):
                self._reference(node)
            elif (
                self.speaks_sql
                and isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in said
                and _SQL.match(node.value)
            ):
                sql(self.cmd, node.value)
        for text in python_loads.annotations(self.nodes):
            judge_python(self.cmd, text)
        for path in python_loads.written_modules(self, self.tree):
            self._imports(path)
        judge_whole(self, self.nodes, self.fine)

    def _is_writer(self, node: ast.Call) -> bool:
        dotted = self.values.dotted(node.func)
        return dotted.endswith("open") or dotted in table("make") | table("copy") | {"os.chdir", *_FILE_TOOLS}

    def _imports(self, path: str) -> None:
        """A module that was only just written: its text is judged where it is known."""
        out = self.cmd.run.files[path]
        if out.text is None or out.labels & {"remote", "decoded"}:
            self.ask(f"code imports {path}, which was only just written", "decoded_code")
        else:
            del self.cmd.run.files[path]  # it may import itself
            judge_python(self.cmd, out.text)
            self.cmd.run.files[path] = out

    def _set_by(self, node: ast.Assign) -> None:
        """`os.environ["X"] = …`: programs that are started from here on see it."""
        for target in node.targets:
            if isinstance(target, ast.Subscript) and self.values.dotted(target.value) == "os.environ":
                self._setting(target.slice, node.value)

    def _environment(self, node: ast.expr) -> None:
        """`env={"X": …}` and `env=dict(os.environ, X=…)`, also under a name."""
        for meant in self.values.bindings.meanings(node):
            if isinstance(meant, ast.Dict):
                for name, value in zip(meant.keys, meant.values, strict=True):
                    self._setting(name, value) if name is not None else None
            elif isinstance(meant, ast.Call):
                for keyword in meant.keywords:
                    self._setting(ast.Constant(keyword.arg or ""), keyword.value)

    def _setting(self, key: ast.expr, value: ast.expr) -> None:
        for name, text in itertools.product(self.values.of(key)[:1], self.values.of(value)[:1]):
            if name.isidentifier():
                self.cmd.scope.put(name, (text,))
                if UNKNOWN not in text:
                    self.cmd.shell(f"{name}={quoted(text)}", NOTHING)

    def _mark(self, node: ast.Call) -> None:
        self.called.add(id(node.func))
        shown = self.values.dotted(node.func)
        if shown.startswith("timeit."):
            self.timed.update(id(key.value) for key in node.keywords if key.arg == "globals")
        if shown in table("show") or shown.startswith(("inspect.", "importlib.", "pprint.", "unittest.mock.patch.")):
            self.fine.update(id(argument) for argument in node.args)

    # Names and attributes

    def _reference(self, node: ast.Attribute | ast.Name) -> None:
        if isinstance(node, ast.Attribute):
            name = node.attr
            root = self.values.dotted(node).partition(".")[0]
            is_field_list = name == "__dict__" and not self.values.is_imported(root)
            if name in table("frames") or (
                re.fullmatch("__.*__", name) and not self._is_known_dunder(name, root) and not is_field_list
            ):
                self.ask(f"code reaches into {name}")
        elif isinstance(node.ctx, ast.Store):
            return
        elif node.id in ("__builtins__", "__loader__", "__spec__"):
            self.ask(f"code reaches into {node.id}")
        dotted = self.values.dotted(node)
        module, _, member = dotted.partition(".")
        if module not in _harmless() or not self.values.is_imported(module):
            return
        if not member:
            if id(node) not in self.fine:
                self.ask(f"code hands the module {module} on")
        elif id(node) not in self.called and "()" not in dotted and not self._is_harmless(dotted):
            self.ask(f"code hands {dotted} on")

    def _is_known_dunder(self, name: str, root: str) -> bool:
        """Whether the name is one that only tells something, or one that a library has made up for its own objects."""
        if name in table("dunders"):
            return True
        is_library = self.values.is_imported(root) and root not in _harmless() and root not in sys.stdlib_module_names
        is_own_class = root in self.values.bindings.classes and name == "__subclasses__"
        return is_own_class or (is_library and name not in table("dunders that lead on"))

    def _is_harmless(self, dotted: str) -> bool:
        if dotted.startswith("pathlib.Path()."):
            member = dotted.split(".")[2].removesuffix("()")  # of what no path has, another thing is meant
            return member in _harmless()["pathlib.Path()"] or not hasattr(Path, member)
        module, _, member = dotted.partition(".")
        return member.partition(".")[0].removesuffix("()") in _harmless()[module]

    # Calls

    def _call(self, node: ast.Call) -> None:
        dotted = self.values.dotted(node.func)
        if dotted in table("evaluate"):
            self._evaluates(node, dotted)
        elif dotted == "getattr":
            if id(node) not in self.fine:
                self._getattr(node.args[1:2])
        elif dotted in ("os.kill", "os.killpg") and node.args and self._is_own_child(node.args[0]):
            return
        elif dotted in ("operator.attrgetter", "operator.methodcaller"):
            self._getattr(node.args if dotted.endswith("attrgetter") else node.args[:1])
        elif dotted in table("start") or _EXECS.fullmatch(dotted):
            self._starts(node, dotted)
        elif dotted in ("timeit.timeit", "timeit.repeat", "timeit.Timer"):
            self._times(node)
        elif python_loads.loads_objects(self, node, dotted):
            return
        elif dotted in _FILE_TOOLS:
            for path in self.paths([*node.args[:1], *(key.value for key in node.keywords if key.arg == "path")]):
                self._made(path, node.lineno)  # the call itself is put to the gate when it comes
        elif dotted == "os.open":
            self._os_open(node)
        elif self.speaks_sql and dotted.rpartition(".")[2] in _SQL_RUNS and node.args:
            self._runs_sql(node.args[0])
        elif dotted == "open" or dotted.endswith(".open"):
            self._open(node, dotted)
        elif not self._file_call(node, dotted):
            self._other(node, dotted)

    def _evaluates(self, node: ast.Call, name: str) -> None:
        if id(node) in self.timed:
            return
        if name == "compile" and not self.runs_text:
            return  # a check of the syntax: nothing here would run what it makes
        if name in ("exec", "eval", "compile") and node.args:
            for text in self.values.of(node.args[0]):
                is_decoded = self._is_decoded(node.args[0])
                if UNKNOWN in text or is_decoded:
                    self.ask("code makes more code and runs it", "decoded_code" if is_decoded else "inline_code")
                if UNKNOWN not in text:
                    judge_python(self.cmd, text)
        elif name.endswith(("__import__", "import_module")) and node.args:
            # Below a package that is named, any module is one of it.
            unknown = any(UNKNOWN in text.partition(".")[0] for text in self.values.of(node.args[0]))
            if unknown and not self.values.is_module_found(node.args[0]):
                self.ask("code loads a module that is only known when it runs")
        else:
            self.ask(f"code calls {name}")

    def _is_own_child(self, node: ast.expr) -> bool:
        """Whether `node` is the number of a process that the code itself has started, or its own."""
        if isinstance(node, ast.Call) and self.values.dotted(node.func) in ("os.getpgid", "os.getpid"):
            return all(map(self._is_own_child, node.args))
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "pid"
            and self.values.dotted(node.value) in ("subprocess.Popen()", "multiprocessing.Process()")
        )

    def _runs_sql(self, node: ast.expr) -> None:
        """SQL by its text; one whose beginning is not known asks, unless it is a file of SQL or built by a library."""
        for meant in self.values.bindings.meanings(node):
            adds = meant is MORE or (isinstance(meant, ast.BinOp) and _leftmost(meant) == ast.unparse(node))
            for text in self.values.of(meant):
                if _SQL.match(text):
                    sql(self.cmd, text)
                elif text.startswith(UNKNOWN) and not adds and not self._is_known_sql(meant):
                    self.ask("code runs SQL that is only known then", "sql_made")

    def _is_known_sql(self, node: ast.expr) -> bool:
        """Whether a library builds the statement, or a file of SQL is named where the text comes from."""
        if self.values.modules() & table("build sql"):
            return True
        sources = [node]
        for source in sources:
            for part in ast.walk(source):
                if isinstance(part, ast.Constant) and str(part.value).endswith(".sql"):
                    return True
                if isinstance(part, ast.Name) and len(sources) < MOST:
                    sources += [meant for meant in self.values.bindings.meanings(part) if meant not in sources]
        return False

    def _times(self, node: ast.Call) -> None:
        """Statements that are timed are run: a text is judged like any other code."""
        for given in python_loads.timed_texts(self, node):
            for text in self.values.of(given):
                if UNKNOWN in text:
                    self.ask("code times what is only known when it runs")
                else:
                    judge_python(self.cmd, text)

    def _is_decoded(self, node: ast.expr) -> bool:
        return any(
            isinstance(part, ast.Call) for meant in self.values.bindings.meanings(node) for part in ast.walk(meant)
        )

    def _getattr(self, asked: list[ast.expr]) -> None:
        names = [name for node in asked for name in self.values.of(node)] or [UNKNOWN]
        if any(
            UNKNOWN in name or (name.startswith("__") and name not in table("dunders")) or _is_harmful(name)
            for name in names
        ):
            self.ask("code looks a function up by its name")

    def _starts(self, node: ast.Call, dotted: str) -> None:
        stdin = NOTHING
        for key in node.keywords:
            if key.arg == "env":
                self._environment(key.value)
            elif key.arg == "stdin" and "DEVNULL" not in ast.unparse(key.value):
                stdin = DARK
            elif key.arg == "input":
                given = self.values.of(key.value)[0]
                stdin = CommandOutput(None if UNKNOWN in given else given)
        first = next(
            itertools.chain(node.args, (key.value for key in node.keywords if key.arg in ("args", "cmd"))), None
        )
        if first is None:
            self.ask("code starts a program that is only known when it runs")
            return
        arguments = [first]
        if dotted.endswith("create_subprocess_exec"):
            arguments = list(node.args)
        elif _EXECS.fullmatch(dotted):
            arguments = list(node.args)[1 if "spawn" in dotted and "posix" not in dotted else 0 :]
            self._words(
                [*self.values.of(arguments[0])[:1], *self.values.list_of(arguments[1:])[1:]] if arguments else [UNKNOWN]
            )
            return
        if len(arguments) > 1 or isinstance(first, ast.Starred):
            first = ast.List(arguments, ast.Load())
        for words in self.values.commands(first):
            if len(words) != 1:
                self._words(words, stdin)
            elif not words[0].strip(UNKNOWN + " "):
                self.ask("code starts a program that is only known when it runs")
            else:
                self.cmd.shell(words[0].replace(UNKNOWN, "${_}"), stdin)

    def _words(self, argv: list[str], stdin: CommandOutput = NOTHING) -> None:
        if not argv or not argv[0].strip(UNKNOWN):
            self.ask("code starts a program that is only known when it runs")
        else:
            self.cmd.nested(argv, stdin)

    def _other(self, node: ast.Call, dotted: str) -> None:
        module, _, member = dotted.partition(".")
        method = node.func.attr if isinstance(node.func, ast.Attribute) else dotted
        if module in _harmless() and member and self.values.is_imported(module):
            if "()." not in dotted.removeprefix("pathlib.Path().") and not self._is_harmless(dotted):
                self.ask(f"code calls {dotted}")
                return
            harmful = table("harmful methods")
            if module in table("starters") and not self.values.bindings.bound.keys() & {".name", ".pid"}:
                harmful -= table("own children")
            if any(part in harmful for part in member.split(".")[1:]):
                self.ask(f"code calls {dotted}")
        elif isinstance(node.func, ast.Attribute) and _is_harmful(method):
            if not self._is_own_affair(node, dotted, method):
                self.ask(
                    f"code calls {method}",
                    "infrastructure" if method.startswith(("delete", "terminate")) else "inline_code",
                )
        elif method == "drop" and not node.args and not node.keywords:
            self.ask("code drops a collection", "database_destroy")
        elif module == "git" and any(text.startswith("-") for text in self.values.list_of(node.args)):
            self._words(["git", method.replace("_", "-"), *self.values.list_of(node.args)])
        if dotted in ("sys.modules.get", "sys.modules.pop", "pickle.Unpickler"):
            self.ask(f"code calls {dotted}")
        if method == "urlretrieve":
            self._write(node.args[1] if len(node.args) > 1 else None)
        elif module not in _harmless() and not method.startswith(_prefixes("reading")):
            for path in self.paths([*node.args, *(key.value for key in node.keywords)]):
                if UNKNOWN not in path and re.match(r"[/~]|\.{1,2}/", path) and matters(self.cmd, path):
                    writes(self.cmd, path)

    def _is_own_affair(self, node: ast.Call, dotted: str, method: str) -> bool:
        """Whether a method with a harmful name is one of the code's own objects, or of a service on this machine."""
        if method == "delete" and all(text.startswith(_LOCAL) for text in self.values.list_of(node.args[:1]) or [""]):
            return True
        owner = dotted.partition(".")[0].removesuffix("()")
        is_own = owner == "?" or owner in self.values.bindings.classes or owner in _without_service()
        if not is_own or not (
            method in table("own children")
            or method in table("means nothing without a service")
            or method not in table("harmful methods")
        ):
            return False
        if method in self.values.bindings.methods:
            return True
        return self.values.modules() <= _without_service()


def _leftmost(node: ast.expr) -> str:
    """What the text of a sum begins with."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return ast.unparse(node)


def _is_harmful(method: str) -> bool:
    return method in table("harmful methods") or method.startswith(_prefixes("harmful prefixes"))
