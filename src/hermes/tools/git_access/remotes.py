"""The remotes a workspace had when the session began: pure, from what `git config --list` said then."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

_SCP = re.compile(r"(?:(?P<user>[^@/:\s]+)@)?(?P<host>\[[^\]/]+\]|[^/:@\s-][^/:@\s]*):(?P<path>[^\s].*)", re.DOTALL)
_URL_KEY = re.compile(r"remote\..+\.(?:url|pushurl)|submodule\..+\.url", re.DOTALL)
_REWRITE_KEY = re.compile(r"url\.(.+)\.(insteadof|pushinsteadof)", re.DOTALL)
_SSH_SCHEMES = ("ssh", "git+ssh", "ssh+git")


class GitSetting(NamedTuple):
    """One line of `git config --list --show-scope --show-origin`."""

    scope: str  # system, global, local, worktree or command
    origin: str  # the file that says so, as git names it
    key: str  # section and name in lower case, the middle as it was written
    value: str


class GitAddress(NamedTuple):
    """Where a remote is, in the words in which git asks for it."""

    kind: Literal["ssh", "https"]
    user: str
    host: str
    port: str
    path: str


class Remotes(NamedTuple):
    """What the workspace's repository, its modules and its worktrees talked to at the start."""

    addresses: frozenset[GitAddress] = frozenset()

    def ssh(self, user: str, host: str, port: str, path: str) -> bool:
        """Whether `path` on that machine was a remote."""
        return GitAddress("ssh", user, host.lower(), port, path) in self.addresses

    def https(self, host: str, user: str = "") -> bool:
        """Whether a remote was on that host (`name` or `name:port`), for this user where one is named."""
        name, _, port = host.lower().partition(":")
        found = [one for one in self.addresses if one.kind == "https" and (one.host, one.port) == (name, port)]
        return any(not user or not one.user or one.user == user for one in found)


def read_settings(listed: bytes) -> list[GitSetting]:
    """The lines of `git config --list --show-scope --show-origin -z`."""
    fields = listed.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        key, _, value = entry.partition("\n")
        found.append(GitSetting(scope, origin, key, value))
    return found


def remotes_of(settings: Iterable[GitSetting]) -> Remotes:
    """The remotes that these settings name, with the rewriting of addresses that they ask for."""
    kept = list(settings)
    rules = [(one.value, rule) for one in kept if (rule := _REWRITE_KEY.fullmatch(one.key))]
    rewrites = [(value, rule[1], rule[2] == "pushinsteadof") for value, rule in rules]
    urls = [url for one in kept if _URL_KEY.fullmatch(one.key) for url in _spellings(one.value, rewrites)]
    return Remotes(frozenset(found for url in urls if (found := read_address(url)) is not None))


def read_address(url: str) -> GitAddress | None:
    """The machine and path that git would ask for; None for a folder, or a kind that needs no credential."""
    if "://" in url:
        try:
            parts = urlsplit(url)
            port = str(parts.port or "")
        except ValueError:
            return None
        host, user = (parts.hostname or "").lower(), unquote(parts.username or "")
        if not host:
            return None
        if parts.scheme == "https":
            return GitAddress("https", user, host, port, parts.path)
        if parts.scheme in _SSH_SCHEMES:
            path = unquote(parts.path)
            return GitAddress("ssh", user, host, port, path[1:] if path.startswith("/~") else path)
        return None
    found = _SCP.fullmatch(url)
    if found is None or url.startswith(("/", ".")):
        return None
    return GitAddress("ssh", found["user"] or "", found["host"].strip("[]").lower(), "", found["path"])


def _spellings(url: str, rewrites: Sequence[tuple[str, str, bool]]) -> list[str]:
    """`url` itself, and what it becomes for a fetch and for a push: the longest prefix wins, as git has it."""
    found = [url]
    for for_push in (False, True):
        fitting = [(old, new) for old, new, pushes in rewrites if pushes == for_push and old and url.startswith(old)]
        if fitting:
            old, new = max(fitting, key=lambda pair: len(pair[0]))
            found.append(new + url[len(old) :])
    return found
