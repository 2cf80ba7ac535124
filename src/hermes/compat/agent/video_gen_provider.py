"""`agent.video_gen_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import VideoGenProvider

__all__ = ["VideoGenProvider"]
