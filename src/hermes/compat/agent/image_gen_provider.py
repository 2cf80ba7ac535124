"""`agent.image_gen_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import ImageGenProvider

__all__ = ["ImageGenProvider"]
