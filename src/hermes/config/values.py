"""Turn what a file, a variable or a command line says into the value a key's type asks for."""

import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from hermes.config.section import SectionBase, bare, type_text
from hermes.typed import convert

S = TypeVar("S")
Lookup = Callable[[str], str | None]

_REFERENCE = r"\$\{(\w+)(?::-([^}]*))?\}"
_AT = r"(?s)^(.*?)(?: - at `(?:key in )?\$(.*)`)?$"
_STEP = r"[^.\[\]]+|\[\.\.\.\]"  # a field, a place in a list, or any key of a mapping
_TRUTH = {"yes": "true", "on": "true", "no": "false", "off": "false"}


class BadValue(Exception):
    """A value that does not fit; `path` leads to it from where the conversion began. Never leaves this package."""

    def __init__(self, path: tuple[str, ...], problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


def fit(value: object, kind: type[S] | Any) -> S:
    """`value` as `kind`; text that reads like a number is one where a number is asked for."""
    try:
        return convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        match = re.match(_AT, str(error))
        assert match is not None
        steps = re.findall(_STEP, match[2] or "")
        path = tuple(step for step in steps if step != "[...]")
        problem = _plain_words(match[1], None if path else kind)
        if allowed := _words_at(kind, steps):
            got = match[1].removeprefix("Invalid enum value")
            problem = f"expected one of {', '.join(allowed)}" + (f", got{got}" if got != match[1] else "")
        raise BadValue(path, problem) from error


def fit_text(text: str, kind: Any) -> Any:
    """`text` from the environment or the command line as `kind`: lists and mappings as JSON, lists also `a,b`."""
    wanted = bare(kind)
    origin = get_origin(wanted)
    if wanted is bool:
        return fit(_TRUTH.get(text.strip().lower(), text.strip().lower()), kind)
    if origin in (list, tuple, dict) or (isinstance(wanted, type) and issubclass(wanted, SectionBase)):
        stripped = text.strip()
        if stripped[:1] in ("[", "{"):
            try:
                return fit(msgspec.json.decode(stripped), kind)
            except msgspec.DecodeError as error:
                raise BadValue((), f"this is not JSON ({error})") from error
        if origin in (list, tuple):
            return fit([part.strip() for part in stripped.split(",") if part.strip()], kind)
        raise BadValue((), 'expected a JSON object such as {"name": "value"}')
    return fit(text, kind)


def plain(value: object) -> Any:
    """`value` as YAML would hold it: mappings, lists and scalars."""
    builtins = msgspec.to_builtins(value)
    if isinstance(builtins, dict):
        return {name: plain(item) for name, item in builtins.items()}
    if isinstance(builtins, list | tuple):
        return [plain(item) for item in builtins]
    return builtins


def expand(value: Any, lookup: Lookup, missing: Callable[[str], Any]) -> Any:
    """`value` with each `${NAME}` and `${NAME:-default}` in its texts replaced.

    Where a name is not set, the whole text becomes `missing(name)`.
    """
    if isinstance(value, str):
        return _expand_text(value, lookup, missing) if "${" in value else value
    if isinstance(value, Mapping):
        return {name: expand(item, lookup, missing) for name, item in value.items()}
    if isinstance(value, list):
        return [expand(item, lookup, missing) for item in value]
    return value


def _expand_text(text: str, lookup: Lookup, missing: Callable[[str], Any]) -> Any:
    out, end = [], 0
    for match in re.finditer(_REFERENCE, text):
        found = lookup(match[1])
        if not found and match[2] is not None:
            found = match[2]
        if found is None:
            return missing(match[1])
        out += [text[end : match.start()], found]
        end = match.end()
    return "".join([*out, text[end:]])


def _words_at(kind: Any, steps: list[str]) -> list[str]:
    """What may stand where `steps` lead to from `kind`, when that is one of some words; else nothing."""
    wanted = bare(kind)
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        found = [_words_at(each, steps) for each in inside if each is not types.NoneType]
        if not steps and not all(found):  # beside a number, say, the words are not all
            return []
        return list(dict.fromkeys(word for words in found for word in words))
    if not steps:
        return [str(each) for each in inside if each != ""] if origin is Literal else []
    if origin in (list, tuple, dict):
        return _words_at(inside[-1] if origin is dict else inside[0], steps[1:])
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        fields = msgspec.structs.fields(wanted)
        return [word for each in fields if each.encode_name == steps[0] for word in _words_at(each.type, steps[1:])]
    return []


def _plain_words(problem: str, kind: Any) -> str:
    """The library's complaint in a user's words."""
    names = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
    names |= {"object": "a mapping", "array": "a list", "null": "nothing"}
    bounded = re.match(r"Expected `(int|float)` (>=|<=|>|<) (\S+)", problem)
    if bounded:
        limits = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
        return f"expected {names[bounded[1]]} {limits[bounded[2]]} {bounded[3]}"
    wanted = re.match(r"Expected `([^`]*)`, got `([^`]*)`", problem)
    if wanted:
        words = [
            " or ".join(names.get(part.strip(), part.strip()) for part in each.split("|")) for each in wanted.groups()
        ]
        return f"expected {words[0]}, got {words[1]}"
    if kind is not None and problem.startswith("Unable"):
        return f"expected {type_text(kind)}"
    return problem[:1].lower() + problem[1:]
