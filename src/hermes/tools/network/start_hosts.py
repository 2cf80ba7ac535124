"""Hosts that pass because the machine was set up for them: remotes of the workspace, and package indexes.

Read once, before the session's first command, and from the person's own files alone: nothing in the workspace names an
index that passes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from hermes.errors import ConfigError
from hermes.tools.git_access.start_remotes import config_file, remote_urls
from hermes.tools.network.host_rules import HostRule, read_rule

_URL = re.compile(r"(?:sparse\+)?(?:https?|git|ssh)://[^\s\"'<>,|\\]+", re.IGNORECASE)
_SCP = re.compile(r"(?:[^@/:\s]+@)?([A-Za-z0-9_.-]+):(?!//)\S+")
_MOST_BYTES = 256 << 10
_VARIABLES = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL"),
    *("NPM_CONFIG_REGISTRY", "npm_config_registry", "YARN_NPM_REGISTRY_SERVER", "GOPROXY", "CARGO_REGISTRY_INDEX"),
)
_FILES = (
    *(".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".npmrc", ".yarnrc", ".yarnrc.yml"),
    *(".cargo/config.toml", ".cargo/config", ".gemrc", ".config/go/env", ".m2/settings.xml", ".condarc"),
)
_SYSTEM_FILES = ("/etc/pip.conf", "/etc/npmrc", "/usr/etc/npmrc", "/etc/uv/uv.toml")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}


def remote_hosts(workspace: str) -> tuple[HostRule, ...]:
    """The hosts of the workspace's remotes. Blocking: it reads a small file."""
    urls = [url for urls in remote_urls(_text(config_file(Path(workspace)))).values() for url in urls]
    return tuple(dict.fromkeys(_rules(urls)))


def index_hosts(home: str, environ: Mapping[str, str]) -> tuple[HostRule, ...]:
    """The package indexes of the person's own settings. Blocking: it reads some small files."""
    texts = [environ.get(name, "") for name in _VARIABLES]
    texts += [_text(Path(file)) for file in _SYSTEM_FILES]
    texts += [_text(Path(home, name)) for name in _FILES] if home else []
    urls = [found for text in texts for line in _lines(text) for found in _URL.findall(line)]
    return tuple(dict.fromkeys(_rules(urls)))


def _rules(urls: Iterable[str]) -> Iterator[HostRule]:
    for url in urls:
        place = _place(url)
        if place is not None:
            try:
                yield read_rule(place)
            except ConfigError:
                continue  # not a host that could be asked for


def _place(url: str) -> str | None:
    if "://" not in url:
        found = None if url.startswith(("/", ".", "~")) else _SCP.fullmatch(url)
        return f"{found[1]}:22" if found else None
    try:
        parts = urlsplit(url.removeprefix("sparse+"))
        port = parts.port or _PORTS.get(parts.scheme.rpartition("+")[2], 0)
    except ValueError:
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    # A star is no part of a name there, and would be a rule for many.
    return f"{host}:{port}" if host and port and "*" not in host else None


def _lines(text: str) -> list[str]:
    """The lines that say something: comments name hosts, too."""
    return [line for line in text.splitlines() if not line.lstrip().startswith(("#", ";", "//"))]


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace") if file.is_file() else ""
    except OSError:
        return ""
