"""What a call cost, and how we know."""

from collections.abc import Mapping

from hermes.config import paths
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.models.catalogue import find_provider
from hermes.models.metadata import Metadata, Price, load_metadata
from hermes.types import Usage


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
        if entry is None or entry.kind == "any":
            return None, "none"
        if entry.kind == "local":
            return 0.0, "none"
        facts = self._metadata.find(model)
        return (None, "none") if facts is None else (facts.price, "official_docs_snapshot" if facts.price else "none")
