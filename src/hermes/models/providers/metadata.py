"""What is known about models: windows, output caps and prices. A bundled snapshot, and the user's newer one over it."""

import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config import paths
from hermes.config.paths import write_private
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.models.providers.catalogue import find_provider
from hermes.models.wires.answer_values import any_json
from hermes.typed import convert, from_json
from hermes.types import Usage

FILE_NAME = "models.json"
_MILLION = 1_000_000


class Price(Struct, frozen=True, omit_defaults=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float | None:
        """What `usage` costs; None when its tokens are not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        read = self.cache_read if self.cache_read is not None else self.input
        write = self.cache_write if self.cache_write is not None else self.input
        tokens = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + (usage.cache_read_tokens or 0) * read
            + (usage.cache_write_tokens or 0) * write
        )
        return tokens / _MILLION


class ModelFacts(Struct, frozen=True, omit_defaults=True):
    """One model, whoever serves it."""

    id: str
    context: int | None = None
    output: int | None = None
    price: Price | None = None


class ModelTable(Struct, frozen=True):
    """A file of facts."""

    models: tuple[ModelFacts, ...]
    snapshot: str = ""
    unit: str = "US dollars per million tokens"


class Metadata:
    """Facts by model name. Names with a vendor before them or a date after them are found as well."""

    def __init__(self, *tables: ModelTable) -> None:
        self._facts: dict[str, ModelFacts] = {}
        for table in tables:
            self._facts |= {_key(facts.id): facts for facts in table.models}
        self.snapshot = tables[-1].snapshot if tables else ""  # when the newest of them were taken

    def find(self, model: str) -> ModelFacts | None:
        """The facts of `model`, of the longest known name that it begins with."""
        key = _key(model)
        found = self._facts.get(key)
        if found is not None:
            return found
        fitting = [name for name in self._facts if key.startswith(name) and not key[len(name)].isalnum()]
        return self._facts[max(fitting, key=len)] if fitting else None


@lru_cache(maxsize=8)
def _table(file: Path, _mtime: float) -> ModelTable:
    return from_json(file.read_bytes(), ModelTable)


@lru_cache(maxsize=8)
def _metadata(own: Path, mtime: float | None) -> Metadata:
    bundled = _table(Path(__file__).with_name(FILE_NAME), 0.0)
    return Metadata(bundled) if mtime is None else Metadata(bundled, _table(own, mtime))


def load_metadata(cache_dir: Path) -> Metadata:
    """The bundled snapshot under the user's own, if they have made one."""
    own = cache_dir / FILE_NAME
    try:
        return _metadata(own, own.stat().st_mtime if own.is_file() else None)
    except msgspec.DecodeError as error:
        raise UserError(f"{own} cannot be read ({error}); run: hermes model --update SOURCE, or delete it") from error


def snapshot(cache_dir: Path) -> str:
    """When the facts in use were taken: the user's own, else the bundled ones."""
    files = (cache_dir / FILE_NAME, Path(__file__).with_name(FILE_NAME))
    return next(_table(file, file.stat().st_mtime).snapshot for file in files if file.is_file())


def update_metadata(cache_dir: Path, raw: bytes) -> ModelTable:
    """Keep the facts in `raw` as the user's own. Takes our format and that of models.dev."""
    try:
        decoded = any_json(raw)
        table = (
            convert(decoded, ModelTable)
            if isinstance(decoded, Mapping) and "models" in decoded
            else _from_models_dev(decoded)
        )
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UserError(f"this is not a table of models: {error}; nothing was changed") from error
    if not table.models:
        raise UserError("this table holds no model; nothing was changed")
    paths.make_private(cache_dir)
    table = replace(table, snapshot=table.snapshot or time.strftime("%Y-%m-%d"))
    write_private(cache_dir / FILE_NAME, msgspec.json.format(msgspec.json.encode(table)).decode())
    return table


def _from_models_dev(decoded: Any) -> ModelTable:
    """`{provider: {"models": {id: {"limit": {...}, "cost": {...}}}}}`."""
    found: dict[str, ModelFacts] = {}
    for provider in decoded.values() if isinstance(decoded, Mapping) else ():
        models = provider.get("models") if isinstance(provider, Mapping) else None
        for name, facts in models.items() if isinstance(models, Mapping) else ():
            limit, cost = _mapping(facts, "limit"), _mapping(facts, "cost")
            price = None
            if isinstance(cost.get("input"), int | float) and isinstance(cost.get("output"), int | float):
                price = Price(cost["input"], cost["output"], cost.get("cache_read"), cost.get("cache_write"))
            found.setdefault(_key(str(name)), ModelFacts(str(name), limit.get("context"), limit.get("output"), price))
    return convert(msgspec.to_builtins(ModelTable(tuple(found.values()))), ModelTable)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


@lru_cache(maxsize=4096)
def _key(model: str) -> str:
    """One spelling for the many a model has: without vendor and region, lower case, hyphens for dots."""
    name = model.lower().rpartition("/")[2]
    for vendor in ("anthropic.", "meta.", "amazon.", "deepseek.", "openai."):
        name = name.partition(vendor)[2] or name
    return name.replace(".", "-").replace("_", "-").replace(":", "-")


def price_list(settings: Settings) -> "PriceList":
    """Dollars and their source for provider, model and usage: the user's own prices, then the snapshot's.

    A price that nobody knows is None, never zero. A model on this machine costs nothing.
    """
    top = settings.of(top_section.Section)
    own = {entry.name: entry for entry in top.custom_providers} | dict(top.providers)
    prices = {
        (provider.lower(), model): Price(price.input, price.output, price.cache_read, price.cache_write)
        for provider, entry in own.items()
        for model, price in entry.prices.items()
    }
    return PriceList(prices, load_metadata(paths.cache_dir(settings.home)))


RECORDED = "demo"  # the model of `hermes demo`: its answers were paid for when they were recorded


class PriceList:
    """Prices by provider and model."""

    def __init__(self, own: Mapping[tuple[str, str], Price], metadata: Metadata) -> None:
        self._own = own
        self._metadata = metadata
        self.version = metadata.snapshot
        self._known: dict[tuple[str, str], tuple[Price | float | None, str]] = {}

    def __call__(self, provider: str, model: str, usage: Usage) -> tuple[float | None, str]:
        known = self._known.get((provider, model))
        if known is None:
            known = self._known[provider, model] = self._find(provider, model)
        price, source = known
        if not isinstance(price, Price):
            return price, source
        cost = price.of(usage)
        return cost, "none" if cost is None and source != "user_override" else source

    def _find(self, provider: str, model: str) -> tuple[Price | float | None, str]:
        """The price, or what every call costs, and who says so."""
        mine = self._own.get((provider.lower(), model))
        if mine is not None:
            return mine, "user_override"
        entry = find_provider(provider)
        if provider == RECORDED or (entry is not None and entry.kind in ("local", "box")):
            return 0.0, "none"
        if entry is None or entry.kind == "any":
            return None, "none"
        facts = self._metadata.find(model)
        return (None, "none") if facts is None else (facts.price, "official_docs_snapshot" if facts.price else "none")
