"""A configured server, ready to be reached: variables filled in, and what is wrong with it in a sentence."""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from hermes.config.mcp_server import McpServer
from hermes.config.values import BadValue, fit, plain
from hermes.errors import UserError

_REFERENCE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "cmd.exe", "powershell", "pwsh"})
_EGRESS = re.compile(r"\b(?:curl|wget|nc|ncat|netcat|socat)\b|/dev/(?:tcp|udp)/")
_PERSISTENCE = re.compile(
    r"authorized_keys|sudoers|\bcrontab\b|/etc/cron|/var/spool/cron|\.(?:bash|zsh)(?:rc|_profile|env)\b|\.profile\b"
)
_INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR")
TOOLSET = "mcp-"
SAFE_MODE = "HERMES_SAFE_MODE"


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One server as it will be reached. `trouble` says why it cannot be; then nothing is tried."""

    name: str
    entry: McpServer
    trouble: str = ""

    @property
    def toolset(self) -> str:
        return f"{TOOLSET}{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether it is a program that is started here."""
        return bool(self.entry.command)

    @property
    def place(self) -> str:
        """Its command line, or its address without what may be secret."""
        if self.is_local:
            return shlex.join([self.entry.command, *self.entry.args])
        parts = urlsplit(self.entry.url)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @property
    def identity(self) -> str:
        """What makes it this server and no other; what it offered is kept as long as this stays."""
        entry = self.entry
        facts = "\0".join((entry.command, *entry.args, entry.cwd, entry.url, entry.transport))
        return hashlib.sha256(facts.encode("utf-8", "replace")).hexdigest()[:16]


def server_configs(
    entries: Mapping[str, Any], lookup: Callable[[str], str | None], *, with_disabled: bool = False
) -> list[ServerConfig]:
    """The servers of `mcp_servers`, by name; those that are switched off only when asked for."""
    made = [server_config(str(name), entry, lookup) for name, entry in sorted(entries.items())]
    return [one for one in made if one.entry.enabled or with_disabled]


def server_config(name: str, entry: Any, lookup: Callable[[str], str | None]) -> ServerConfig:
    """The server of an entry, typed or as the file has it; a `${NAME}` or `${env:NAME}` that is not set stays."""
    try:
        filled: McpServer = fit(_filled(plain(entry), lookup), McpServer)
    except BadValue as bad:
        return ServerConfig(name=name, entry=McpServer(), trouble=f"{'.'.join(bad.path)}: {bad.problem}")
    return ServerConfig(name=name, entry=filled, trouble=_trouble(filled))


def entry_from_json(block: Mapping[str, Any]) -> McpServer:
    """An entry as other products write it in `mcpServers`; `UserError` for what cannot be one."""
    known = set(McpServer.__struct_fields__)
    renamed = {"serverUrl": "url", "httpUrl": "url", "disabled": "", "type": "", "alwaysAllow": "", "autoApprove": ""}
    made: dict[str, Any] = {}
    for name, value in block.items():
        if name in known:
            made[name] = value
        elif renamed.get(name):
            made[renamed[name]] = value
        elif name not in renamed and name not in ("description", "icon", "iconPath", "name", "gallery", "envFile"):
            raise UserError(f"the key {name!r} of this block means nothing here; leave it out")
    kind = str(block.get("type") or block.get("transport") or "")
    made.pop("transport", None)
    if kind == "sse" and "url" in made:
        made["transport"] = "sse"
    if block.get("disabled") is True:
        made["enabled"] = False
    if isinstance(made.get("args"), str):
        made["args"] = shlex.split(made["args"])
    made["env"] = {str(name): str(value) for name, value in (made.get("env") or {}).items()}
    try:
        return fit(made, McpServer)
    except BadValue as bad:
        raise UserError(f"{'.'.join(bad.path) or 'the block'}: {bad.problem}") from bad


def child_environment(config: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """All that a started server sees: a few variables of the person's, and those of its entry."""
    env = {name: value for name in _INHERITED if (value := environ.get(name))}
    env |= {name: value for name, value in environ.items() if name.startswith("XDG_")}
    env |= config.entry.env
    folder = os.path.dirname(config.entry.command)  # noqa: PTH120 - text, possibly of no file
    if folder:
        env["PATH"] = os.pathsep.join(filter(None, (folder, env.get("PATH", os.defpath))))
    return env


def toolset_for(name: str, servers: Iterable[str]) -> str | None:
    """The toolset of the configured server that `name` means: `mcp-weather`, or `weather` for short."""
    for server in servers:
        if name in (server, f"{TOOLSET}{server}"):
            return f"{TOOLSET}{server}"
    return None


def with_tools(entry: McpServer, include: tuple[str, ...], exclude: tuple[str, ...]) -> McpServer:
    """The entry with another choice of tools."""
    return replace(entry, tools=replace(entry.tools, include=include, exclude=exclude))


def _filled(value: Any, lookup: Callable[[str], str | None]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: lookup(found[1]) or found[2] or found[0], value)
    if isinstance(value, Mapping):
        return {name: _filled(item, lookup) for name, item in value.items()}
    return [_filled(item, lookup) for item in value] if isinstance(value, list | tuple) else value


def _trouble(entry: McpServer) -> str:
    if not entry.command and not entry.url:
        return "it has neither a command nor a url"
    if entry.command and entry.url:
        return "it has both a command and a url; one of them has to go"
    if entry.command:
        return _dangerous(entry)
    try:
        parts = urlsplit(entry.url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    return "" if is_address else f"{entry.url!r} is no http or https address"


def _dangerous(entry: McpServer) -> str:
    """Why a command line is refused before it starts: a shell that fetches, or that makes itself at home."""
    line = " ".join(entry.args)
    if PurePosixPath(entry.command).name.lower() not in _SHELLS:
        return ""
    if found := _EGRESS.search(line):
        return f"it is a shell that fetches ({found[0]!r}); start the server's own program"
    if found := _PERSISTENCE.search(line):
        return f"it is a shell that changes what runs by itself ({found[0]!r}); start the server's own program"
    return ""
