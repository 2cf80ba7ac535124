"""`agent.tts_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import TTSProvider

__all__ = ["TTSProvider"]
