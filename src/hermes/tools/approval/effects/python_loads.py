"""Code that Python text brings in: serialised data, modules that were just written, texts that are timed."""

import ast
import re
from collections.abc import Iterable

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects.python_files import PythonFiles, table
from hermes.tools.approval.effects.python_names import last_name
from hermes.tools.approval.tables import word_list

_SAFE_LOADERS = frozenset({"SafeLoader", "CSafeLoader", "FullLoader", "CFullLoader", "BaseLoader", "CBaseLoader"})
# Where serialised data may come from: a file on this machine, or what the code itself has made of its own objects.
_FILES = re.compile(
    r"(?:open|io\.open|gzip\.open|bz2\.open|lzma\.open|pathlib\.Path\(\)\.open|codecs\.open)\(\)(?:\.read\(\))?"
    r"|pathlib\.Path\(\)(?:\.read_bytes\(\))?|(?:c?[pP]ickle|dill|joblib|copy)\.\w+\(\)"
)
_NEEDS_FLAG = {"numpy.load": "allow_pickle"}  # without it they read numbers only
_ALWAYS_IMPORTED = ("sitecustomize", "usercustomize")  # by Python itself, before anything else


def loads_objects(code: PythonFiles, node: ast.Call, dotted: str) -> bool:
    """Whether the call turns data into objects, which may run code on the way; asks unless the data is at hand."""
    if dotted in table("unsafe loaders"):
        code.ask(f"code calls {dotted}", "decoded_code")
    elif dotted in ("yaml.load", "yaml.load_all"):
        loader = next((key.value for key in node.keywords if key.arg == "Loader"), (*node.args[1:2], None)[0])
        if loader is None or code.values.dotted(loader).rpartition(".")[2] not in _SAFE_LOADERS:
            code.ask(f"code calls {dotted} with a loader that makes any object", "decoded_code")
    elif dotted in table("loaders"):
        flag = _NEEDS_FLAG.get(dotted)
        is_read = flag is None or any(key.arg == flag for key in node.keywords)
        if is_read and not (node.args and all(_is_at_hand(code, meant) for meant in _meant(code, node.args[0]))):
            code.ask(f"code makes objects of data from elsewhere with {dotted}", "decoded_code")
    else:
        return False
    return True


def _meant(code: PythonFiles, node: ast.expr) -> list[ast.expr]:
    return code.values.bindings.meanings(node)


def _is_at_hand(code: PythonFiles, node: ast.expr) -> bool:
    if _FILES.fullmatch(code.values.dotted(node)):
        return True
    is_bytes = isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    return (
        isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp)
        and not is_bytes
        and not any(text == UNKNOWN or "://" in text for text in code.values.of(node))
    )


def timed_texts(code: PythonFiles, node: ast.Call) -> list[ast.expr]:
    """The statements that a call of timeit runs, but for functions, which are judged where they are written."""
    values = code.values
    named = [key.value for key in node.keywords if key.arg in ("stmt", "setup")]
    return [
        given
        for given in [*node.args[:2], *named]
        if not (
            isinstance(given, ast.Lambda)
            or values.dotted(given) == "functools.partial()"
            or values.dotted(given) in values.bindings.functions
        )
    ]


def annotations(nodes: Iterable[ast.AST]) -> list[str]:
    """The annotations that are texts with a call in them: libraries evaluate those."""
    found = (
        getattr(node, field, None)
        for node in nodes
        for field in ("annotation", "returns")
        if isinstance(node, ast.AnnAssign | ast.arg | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    texts = (
        part.value for note in found if note is not None for part in ast.walk(note) if isinstance(part, ast.Constant)
    )
    return [text for text in texts if isinstance(text, str) and "(" in text]


def written_modules(code: PythonFiles, tree: ast.Module) -> list[str]:
    """The files among those that were just written, by the code or by the command around it, that it imports.

    An import at the top of the text is done before what follows it is written.
    """
    early = {
        name.partition(".")[0]: node.lineno
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    found: list[str] = []
    for path in code.cmd.run.files:
        folder, _, name = path.rpartition("/")
        module = folder.rpartition("/")[2] if name == "__init__.py" else re.sub(r"\.(?:pyc?|so|[\w-]+\.so)\Z", "", name)
        if module == name or (not code.values.is_imported(module) and module not in _ALWAYS_IMPORTED):
            continue
        if module not in early or early[module] > code.made.get(path, 0):
            found.append(path)
    return found


def only_said(nodes: Iterable[ast.AST]) -> set[int]:
    """The constants that are shown, compared or explained, and nothing more."""
    said: list[ast.AST] = []
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in word_list("python_loads.says"):
            said += node.args
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said += node.exc.args
        elif isinstance(node, ast.Compare):
            said += [node.left, *node.comparators]
        elif isinstance(node, ast.Expr):
            said.append(node.value)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            said.append(node.msg)
    for node in said:  # grows: a text may be put together, but what a call makes of one is another thing
        if isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.Set):
            said += node.values if isinstance(node, ast.JoinedStr) else node.elts
        elif isinstance(node, ast.BinOp):
            said += [node.left, node.right]
    return {id(node) for node in said if isinstance(node, ast.Constant)}
