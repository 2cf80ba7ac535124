"""A real server, for a session that does not work on this machine."""

from tests.tools.real_backends import sshd

__all__ = ["sshd"]
