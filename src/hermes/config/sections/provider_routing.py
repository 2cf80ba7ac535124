"""Whom an aggregator such as OpenRouter may ask."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Whom an aggregator such as OpenRouter may ask. Other providers take no notice of it."""

    only: Annotated[tuple[str, ...], key("Providers that may be asked; empty is all.")] = ()
    ignore: Annotated[tuple[str, ...], key("Providers that are not asked.")] = ()
    order: Annotated[tuple[str, ...], key("Providers in the order in which they are tried.")] = ()
    sort: Annotated[Literal["", "price", "throughput", "latency"], key("What the best provider is best at.")] = ""
    require_parameters: Annotated[bool, key("Ask only those that understand every field of the request.")] = False
    data_collection: Annotated[Literal["", "allow", "deny"], key("Whether those that keep data may be asked.")] = ""
