"""What a section of config.yaml is: a frozen struct whose fields carry their own documentation."""

import types
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from hermes.tables import Table

# For keys that may also be null: msgspec takes a limit on a number, not on a union with null.
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
PositiveNumber: TypeAlias = Annotated[float, Meta(gt=0)]
Amount: TypeAlias = Annotated[float, Meta(ge=0)]


class SectionBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every section, and of the structs inside one.

    A field is a key that acts. One that is typed before its capability exists is declared with `pending=True`
    (or the whole section with `PENDING`), and using it gives a warning instead of silence.
    """

    PENDING: ClassVar[bool] = False

    @classmethod
    def fold(cls, plain: object) -> object:
        """The mapping form of `plain`; a section that has a shorter or older spelling accepts it here."""
        return plain

    @classmethod
    def warned(cls, plain: object) -> str:  # noqa: ARG003 - for those that have something to say
        """One line about an older spelling in `plain`, as config.yaml has it; usually none."""
        return ""

    @classmethod
    def refused(cls, plain: object) -> tuple[str, str] | None:  # noqa: ARG003 - for those whose types do not say it all
        """A key in `plain` whose value means nothing, and why, in a sentence; usually none."""
        return None


_SECRET_ENDINGS = (
    *("api_key", "apikey", "token", "password", "secret", "password_hash", "private_key", "dsn"),
    "authorization",  # a header
)
SECTIONS: Table[type[SectionBase]] = Table("hermes.config.sections", "Section")


class Key(Struct, frozen=True, kw_only=True):
    """One field of a section, as the loader and the reference see it."""

    name: str
    annotation: Any
    default: Any
    description: str
    env: tuple[str, ...]
    pending: bool
    values: str = ""  # what its values are, imported when there are any

    @property
    def type(self) -> Any:
        """What it holds."""
        if not self.values:
            return self.annotation
        module, _, name = self.values.rpartition(".")
        return dict.__class_getitem__((str, getattr(import_module(module), name)))


def key(
    description: str, *, env: str | tuple[str, ...] = (), pending: bool = False, values: str = "", **limits: Any
) -> Meta:
    """Metadata of a key: what it does, the variables that set it, and limits such as `ge=0`.

    `values` names the struct of a mapping's values, for one that few have: it is checked as such, and stays plain,
    `${NAME}` and all, for whoever uses it.
    """
    names = (env,) if isinstance(env, str) else env
    return Meta(description=description, extra={"env": names, "pending": pending, "values": values}, **limits)


@cache
def keys_of(kind: type[SectionBase]) -> tuple[Key, ...]:
    """The fields of `kind`, in the order they are written."""
    return tuple(_keys(kind))


def _keys(kind: type[SectionBase]) -> Iterator[Key]:
    for field in msgspec.structs.fields(kind):
        description, extra = _annotation(field.type)
        yield Key(
            name=field.encode_name,
            annotation=field.type,
            default=_default(field),
            description=description,
            env=extra.get("env", ()),
            pending=kind.PENDING or extra.get("pending", False),
            values=extra.get("values", ""),
        )


def section_name(kind: type[SectionBase]) -> str:
    """The name of a section in config.yaml: that of the module it lives in."""
    return kind.__module__.rpartition(".")[2].rstrip("_")


def bare(annotated: Any) -> Any:
    """A type without its metadata."""
    while get_origin(annotated) is Annotated:
        annotated = get_args(annotated)[0]
    return annotated


def struct_inside(annotated: Any) -> tuple[type[SectionBase] | None, Literal["one", "list", "dict"]]:
    """The struct that values of this type are made of, and whether directly or as items of a list or mapping."""
    plain = bare(annotated)
    origin = get_origin(plain)
    if origin in (Union, types.UnionType):
        found = [struct_inside(each) for each in get_args(plain)]
        return next((each for each in found if each[0] is not None), (None, "one"))
    if isinstance(plain, type) and issubclass(plain, SectionBase):
        return plain, "one"
    if origin in (list, tuple):
        return struct_inside(get_args(plain)[0])[0], "list"
    if origin is dict:
        return struct_inside(get_args(plain)[1])[0], "dict"
    return None, "one"


def type_text(annotated: Any) -> str:
    """A type in a user's words: `number`, `one of a, b`, `list of text`."""
    plain = bare(annotated)
    origin = get_origin(plain)
    if origin is Literal:
        return "one of " + ", ".join(str(each) for each in get_args(plain))
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(each) for each in get_args(plain))
    if origin in (list, tuple):
        return f"list of {type_text(get_args(plain)[0])}"
    if origin is dict or (isinstance(plain, type) and issubclass(plain, SectionBase)):
        return "mapping"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null"}
    return names.get(plain, "any value")


def is_secret(name: str) -> bool:
    """Whether a key or variable of this name holds something that must not be shown."""
    last = name.rpartition(".")[2].lower()
    return last.endswith(_SECRET_ENDINGS)


def _annotation(annotated: Any) -> tuple[str, dict[str, Any]]:
    description = ""
    extra: dict[str, Any] = {}
    while get_origin(annotated) is Annotated:
        annotated, *notes = get_args(annotated)
        for note in notes:
            if isinstance(note, Meta):
                description = note.description or description
                extra = {**(note.extra or {}), **extra}
    return description, extra


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None
