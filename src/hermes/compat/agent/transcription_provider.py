"""`agent.transcription_provider`: the base class."""

from hermes.extensions.plugins.provider_bases import TranscriptionProvider

__all__ = ["TranscriptionProvider"]
