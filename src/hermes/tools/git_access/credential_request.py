"""What git asks a credential helper for: one host of the workspace's remotes, over https, or nothing."""

from collections.abc import Mapping

from hermes.tools.git_access.remotes import Remotes

_ASKED = ("protocol", "host", "path", "username")
_HANDED = ("protocol", "host", "username", "password")


def read_attributes(text: str) -> dict[str, str]:
    """The lines `name=value` of git's credential protocol."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value for name, _, value in pairs}


def refusal(asked: Mapping[str, str], remotes: Remotes) -> str:
    """Why no credential is looked for; empty when one is."""
    host = asked.get("host", "")
    if asked.get("protocol") != "https":
        return "credentials are handed out for https alone"
    if not remotes.https(host, asked.get("username", "")):
        return f"no remote of this workspace was at {host} when the session began"
    return ""


def question(asked: Mapping[str, str]) -> bytes:
    """The same question for `git credential fill`, with nothing in it but what a credential is found by."""
    return "".join(f"{name}={asked[name]}\n" for name in _ASKED if name in asked).encode() + b"\n"


def handed(found: Mapping[str, str]) -> bytes:
    """What the git inside reads: the credential and nothing about where it came from."""
    return "".join(f"{name}={found[name]}\n" for name in _HANDED if name in found).encode()
