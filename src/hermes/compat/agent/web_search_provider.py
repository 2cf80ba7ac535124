"""`agent.web_search_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import WebSearchProvider

__all__ = ["WebSearchProvider"]
