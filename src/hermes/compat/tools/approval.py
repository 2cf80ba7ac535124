"""`tools.approval`."""

from hermes.tools.approval import detect_dangerous_command

__all__ = ["detect_dangerous_command"]
