"""Read config.yaml into a plain tree, quickly, and find the line of a key when something is wrong with it."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from hermes.config.paths import write_private
from hermes.config.section import is_secret
from hermes.errors import ConfigError, UserError
from hermes.typed import from_json

Tree = dict[str, Any]
Stamp = tuple[int, int, int]

MAX_DEPTH = 100
_CACHE_FORMAT = 2
_MAPS_OF_SECRETS = ("headers", "env", "docker_env")  # whose names are the user's own and tell nothing
_trees: dict[Path, tuple[Stamp, Tree]] = {}  # a cache: what was read from a file that has not changed since


class _KeptTree(msgspec.Struct, frozen=True):
    """A parsed config.yaml on disk; starting with it spares the import of the YAML library."""

    format: int
    stamp: Stamp
    tree: Tree


def read_tree(file: Path, kept: Path | None = None) -> Tree:
    """The content of `file`, empty when there is none; `kept` is where the parsed form is remembered.

    The tree is shared: do not change it.
    """
    stamp = _stamp(file)
    if stamp is None:
        return {}
    known = _trees.get(file)
    if known is not None and known[0] == stamp:
        return known[1]
    tree = _recall(kept, stamp) if kept is not None else None
    if tree is None:
        tree = parse(file)
        if kept is not None:
            _remember(kept, stamp, tree)
    _trees[file] = (stamp, tree)
    return tree


def parse(file: Path, *, example: str = "model: NAME", remedy: str = "; mend it with: hermes config edit") -> Tree:
    """Parse `file`; a fault in it is a `ConfigError` naming the line. What to do about it is that of config.yaml."""
    import yaml  # a start without a changed config.yaml does not pay for it

    text = _text(file)
    try:
        _refuse_bottomless(text)
        tree = yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader that also sees doubled keys
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(str(part) for part in (error.problem, error.context) if part)
        raise ConfigError(f"{file}{where}: this is not valid YAML ({problem}){remedy}") from error
    except yaml.YAMLError as error:
        problem = str(error).partition("\n")[0]
        raise ConfigError(f"{file}: this is not valid YAML ({problem}){remedy}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{file}: expected keys and values at the top, such as `{example}`")
    return tree


def line_of(file: Path, path: tuple[str, ...]) -> int | None:
    """The line on which the key `path` stands, or the nearest key above it that does."""
    import yaml  # only when something is wrong

    try:
        node = yaml.compose(_text(file), Loader=_loader())
    except yaml.YAMLError:
        return None
    line = None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pairs = [(k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode) and k.value == part]
            if not pairs:
                break
            line, node = pairs[-1][0].start_mark.line + 1, pairs[-1][1]
        elif isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _refuse_bottomless(text: str) -> None:
    """Raise where nesting has no end, or none in sight: the library would follow it until the process dies."""
    import yaml

    above: list[str | None] = []  # the anchors of what is open
    for event in yaml.parse(text, Loader=_loader()):
        problem = ""
        if isinstance(event, yaml.CollectionStartEvent):
            above.append(event.anchor)
            problem = f"nested more than {MAX_DEPTH} deep" if len(above) > MAX_DEPTH else ""
        elif isinstance(event, yaml.CollectionEndEvent):
            above.pop()
        elif isinstance(event, yaml.AliasEvent) and event.anchor in above:
            problem = f"*{event.anchor} holds itself"
        if problem:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error


def _stamp(file: Path) -> Stamp | None:
    try:
        seen = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)


def _recall(kept: Path, stamp: Stamp) -> Tree | None:
    try:
        found = from_json(kept.read_bytes(), _KeptTree)
    except (OSError, msgspec.MsgspecError):
        return None
    return found.tree if found.format == _CACHE_FORMAT and found.stamp == stamp else None


def _remember(kept: Path, stamp: Stamp, tree: Tree) -> None:
    """Keep the parsed form, unless it holds a key in plain: then config.yaml stays its only copy."""
    try:
        if _holds_secret(tree):
            kept.unlink(missing_ok=True)
            return
        encoded = msgspec.json.encode(_KeptTree(_CACHE_FORMAT, stamp, tree))
        if from_json(encoded, _KeptTree).tree == tree:  # dates and the like do not survive JSON
            write_private(kept, encoded.decode())
    except (UserError, OSError, TypeError, msgspec.MsgspecError):
        return  # a home that cannot be written to is read all the same


def _holds_secret(value: Any, name: str = "") -> bool:
    if isinstance(value, dict):
        is_all = name in _MAPS_OF_SECRETS
        return any(_holds_secret(item, "secret" if is_all else str(key)) for key, item in value.items())
    if isinstance(value, list):
        return any(_holds_secret(item, name) for item in value)
    if not isinstance(value, str) or not value or value.startswith("${"):
        return False
    from hermes.redact import Redactor  # only when config.yaml has changed

    return is_secret(name) or Redactor().holds_secret(value)


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where there is one, that refuses a key standing twice."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for name, _ in node.value:
                if not isinstance(name, yaml.ScalarNode) or not name.value:
                    raise yaml.constructor.ConstructorError(None, None, "a key must be a word", name.start_mark)
                if name.value in seen:
                    problem = f"the key {name.value!r} stands twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, name.start_mark)
                if name.value != "<<":
                    seen.add(name.value)
                    name.tag = "tag:yaml.org,2002:str"  # `on:` and `1:` name keys; they are no booleans or numbers
            return super().construct_mapping(node, deep=deep)

    return Loader
