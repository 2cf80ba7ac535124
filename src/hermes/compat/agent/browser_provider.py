"""`agent.browser_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import BrowserProvider

__all__ = ["BrowserProvider"]
