"""What a plugin says of itself: `plugin.yaml`, and what it declares to need."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

from hermes.errors import UserError

FILES: Final = ("plugin.yaml", "plugin.yml")
MAX_BYTES = 256_000
MOST_CHARS = 500  # of a text that lists show
Kind: TypeAlias = Literal["standalone", "backend", "exclusive", "platform", "model-provider"]
Source: TypeAlias = Literal["user", "project", "entrypoint", "bundled"]
NEEDS: Final = ("tools", "hooks", "network", "files", "env", "llm")
_LISTS: Final = ("tools", "hooks", "network", "files", "env")


class RequiredVariable(Struct, frozen=True, kw_only=True):
    """A variable that a plugin wants to have: asked for by `hermes setup` and `hermes plugins enable`."""

    name: str
    description: str = ""
    url: str = ""
    secret: bool = True


class PluginNeeds(Struct, frozen=True, kw_only=True):
    """What a plugin declares to need. A list of `*` is all of a kind.

    `hooks` are those it listens to, `tools` those it calls, `env` the variables of .env it reads, `llm` whether it asks
    a model: what is not here is not handed out. `network` and `files` are what it says it touches by itself, which
    nobody can hold it to.
    """

    tools: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    llm: bool = False

    def allows(self, kind: str, name: str) -> bool:
        """Whether `name` is among what was declared of this kind."""
        declared: Sequence[str] = getattr(self, kind)
        return "*" in declared or name in declared

    def lines(self) -> list[str]:
        """For a person, one line a kind."""
        told = [f"{kind}: {', '.join(names)}" for kind in _LISTS if (names := getattr(self, kind))]
        return [*told, *(["asks a model (llm)"] if self.llm else [])] or ["needs nothing beyond itself"]


class PluginManifest(Struct, frozen=True, kw_only=True):
    """A plugin by its own words, and where it was found."""

    name: str
    key: str
    path: str = ""
    source: Source = "user"
    version: str = ""
    description: str = ""
    author: str = ""
    requires_env: list[RequiredVariable] = field(default_factory=list)
    provides_tools: list[str] = field(default_factory=list)
    provides_hooks: list[str] = field(default_factory=list)
    kind: Kind = "standalone"
    needs: PluginNeeds | None = None  # None: it declares nothing
    module: str = ""  # of an installed package
    warnings: list[str] = field(default_factory=list)
    error: str = ""  # why it cannot be used at all

    @property
    def declaration(self) -> str:
        """A digest of what it declares; changes when that does."""
        if self.needs is None:
            return "nothing"
        plain = {name: getattr(self.needs, name) for name in NEEDS}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

    def declared(self) -> list[str]:
        """What it declares, for a person."""
        return ["declares nothing: it gets all that plugins can get"] if self.needs is None else self.needs.lines()


def manifest_file(folder: Path) -> Path | None:
    """The manifest in a folder; None when it is no plugin."""
    return next((file for name in FILES if (file := folder / name).is_file()), None)


def read_manifest(folder: Path, *, category: str = "", source: Source = "user") -> PluginManifest:
    """The plugin in `folder`. One whose manifest cannot be read carries an `error` and its folder's name."""
    warnings: list[str] = []
    try:
        plain = _plain(folder)
        found = _from_plain(plain, folder, warnings)
        error = "" if (folder / "__init__.py").is_file() else "it has no __init__.py"
    except UserError as problem:
        found, error = {"name": folder.name}, str(problem)
    name = str(found["name"])
    key = f"{category}/{folder.name}" if category else name
    if not error and "kind" not in found:
        found["kind"] = _guessed_kind(folder)
    return PluginManifest(
        **{**found, "key": key, "path": str(folder), "source": source}, warnings=warnings, error=error
    )


def _plain(folder: Path) -> Mapping[str, Any]:
    import yaml  # paid by who has plugins, when a manifest is new

    file = manifest_file(folder)
    if file is None:
        raise UserError("its plugin.yaml is no file")  # a folder, or a pipe, which nobody may ever write into
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UserError(f"{file.name} has more than {MAX_BYTES:,} bytes")
        plain = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file.name} cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{file.name} is no YAML: {words}") from error
    if plain is None:
        return {}
    if not isinstance(plain, Mapping):
        raise UserError(f"{file.name} must hold a mapping, not {type(plain).__name__}")
    return plain


def _from_plain(plain: Mapping[str, Any], folder: Path, warnings: list[str]) -> dict[str, Any]:
    name = plain.get("name") or folder.name
    if not isinstance(name, str) or not name.strip() or "/" in name or name.startswith("."):
        raise UserError(f"plugin.yaml: name must be a word without '/', not {_shown(name)}")
    found: dict[str, Any] = {"name": name.strip()}
    for each in ("version", "description", "author"):
        value = plain.get(each)
        if isinstance(value, Mapping | list):
            warnings.append(f"{each} is no text")
            value = None
        found[each] = "" if value is None else " ".join(str(value).split())[:MOST_CHARS]
    for each in ("provides_tools", "provides_hooks"):
        found[each] = _names(plain.get(each), each, warnings)
    found["requires_env"] = _variables(plain.get("requires_env"), warnings)
    if (kind := plain.get("kind")) is not None:
        if kind in get_args(Kind):
            found["kind"] = kind
        else:
            warnings.append(f"kind {_shown(kind)} is not known; it is taken for standalone")
            found["kind"] = "standalone"
    if "needs" in plain:
        found["needs"] = _needs(plain["needs"])
    return found


def _names(value: Any, what: str, warnings: list[str]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return list(value)
    warnings.append(f"{what} is no list of names")
    return []


def _variables(value: Any, warnings: list[str]) -> list[RequiredVariable]:
    found: list[RequiredVariable] = []
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(one, str) and one.isidentifier():
            found.append(RequiredVariable(name=one))
        elif isinstance(one, Mapping) and isinstance(one.get("name"), str) and one["name"].isidentifier():
            words = {name: text for name in ("description", "url") if isinstance(text := one.get(name), str)}
            found.append(RequiredVariable(name=one["name"], secret=bool(one.get("secret", True)), **words))
        else:
            warnings.append(f"requires_env names no variable: {_shown(one)}")
    return found


def _shown(value: Any) -> str:
    """A value for a message. Not what is in lists: a few lines of YAML that name each other are gigabytes as text."""
    return repr(value)[:MOST_CHARS] if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _needs(value: Any) -> PluginNeeds:
    """A declaration must be understood whole: a right that was misspelt would be asked for in vain."""
    if value is None:
        return PluginNeeds()
    if not isinstance(value, Mapping):
        raise UserError("plugin.yaml: needs must be a mapping of tools, hooks, network, files, env and llm")
    found: dict[str, Any] = {}
    for name, given in value.items():
        if name not in NEEDS:
            raise UserError(f"plugin.yaml: needs.{name} is not known; there are {', '.join(NEEDS)}")
        if name == "llm":
            if not isinstance(given, bool):
                raise UserError("plugin.yaml: needs.llm must be true or false")
            found[name] = given
            continue
        listed = (
            ["*"] if given is True else [] if given in (None, False) else [given] if isinstance(given, str) else given
        )
        if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
            raise UserError(f"plugin.yaml: needs.{name} must be a list of names, or true for all")
        found[name] = tuple(sorted(set(listed)))
    return PluginNeeds(**found)


def _guessed_kind(folder: Path) -> Kind:
    """The kind of a plugin that does not say: by what its source mentions."""
    try:
        text = (folder / "__init__.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "standalone"
    if "register_memory_provider" in text or "MemoryProvider" in text:
        return "exclusive"
    if "register_provider" in text and "ProviderProfile" in text:
        return "model-provider"
    return "standalone"
