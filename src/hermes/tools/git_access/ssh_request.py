"""What git asks of ssh: read strictly, and said again in words of our own for the ssh that runs outside."""

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hermes.tools.git_access.remotes import GitSetting, Remotes

_COMMANDS = ("git-upload-pack", "git-receive-pack")
_SSH_PORT = 22
_PROTOCOL = re.compile(r"version=[0-9]")
_WORD = re.compile(r"[A-Za-z0-9._:%\[\]-]+")
# First in line, so that nothing in the person's own settings outweighs them: ssh keeps the first value that it meets.
_SAFE = (
    *("BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no"),
    *("ControlMaster=no", "Tunnel=no", "RequestTTY=no", "EscapeChar=none", "StdinNull=no"),
    "ForkAfterAuthentication=no",
)
_KEY_OPTIONS = ("identityfile=", "identitiesonly=")


class SshRequest(NamedTuple):
    """One connection that git wants: `command` on `path` of a machine."""

    user: str
    host: str
    port: str
    command: str
    path: str
    protocol: str = ""

    @property
    def target(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host


def read_request(words: Sequence[str], protocol: str) -> SshRequest | str:
    """The request in git's form, `[-4|-6] [-o SendEnv=GIT_PROTOCOL] [-p port] [user@]host command`; else why not."""
    left, port = list(words), ""
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in ("-4", "-6"):
            continue
        value = left.pop(0) if left else ""
        if option == "-p" and value.isdecimal():
            port = value
        elif (option, value) != ("-o", "SendEnv=GIT_PROTOCOL"):
            return f"the option {option} {value}".rstrip() + " is not one that git gives"
    if len(left) != 2:
        return "only git's own commands are carried over ssh, to one machine each"
    user, _, host = left[0].rpartition("@")
    if not _WORD.fullmatch(host) or host.startswith("-") or user.startswith("-"):
        return f"{left[0]!r} is no name of a machine"
    command, _, quoted = left[1].partition(" ")
    path = _unquoted(quoted)
    if command not in _COMMANDS or path is None:
        return f"only {' and '.join(_COMMANDS)} are carried over ssh"
    sent = protocol if _PROTOCOL.fullmatch(protocol) else ""
    return SshRequest(user, host.strip("[]"), port, command, path, sent)


def refusal(request: SshRequest, remotes: Remotes) -> str:
    """Why the request is not carried out; empty when it is."""
    if remotes.ssh(request.user, request.host, request.port, request.path):
        return ""
    return f"{request.target}:{request.path} was no remote of this workspace when the session began"


def ssh_argv(program: str, request: SshRequest, own_options: Sequence[str]) -> tuple[str, ...]:
    """The real ssh's command line. `own_options` are the person's."""
    safe = [word for option in _SAFE for word in ("-o", option)]
    port = ("-p", request.port) if request.port else ()
    sent = ("-o", "SendEnv=GIT_PROTOCOL") if request.protocol else ()
    command = f"{request.command} {_quoted(request.path)}"
    return (program, *safe, *own_options, *sent, *port, "--", request.target, command)


def looking_up(program: str, request: SshRequest, own_options: Sequence[str]) -> tuple[str, ...]:
    """A command line that only prints where ssh would connect to."""
    return (program, "-G", *own_options, "--", request.target)


def where_to(printed: str) -> tuple[str, int]:
    """Host and port in what `looking_up` prints."""
    said = dict(line.split(" ", 1) for line in printed.splitlines() if " " in line)
    port = said.get("port", "")
    return said.get("hostname", ""), int(port) if port.isdecimal() else _SSH_PORT


def own_options(settings: Sequence[GitSetting], environment_value: str) -> tuple[str, ...]:
    """What the person adds to ssh by GIT_SSH_COMMAND or `core.sshCommand`.

    Of what a repository's own settings say only the choice of a key counts: they may come from anywhere.
    """
    found = [one for one in settings if one.key == "core.sshcommand"]
    if environment_value:
        return _options(environment_value)
    if not found:
        return ()
    words = _options(found[-1].value)
    return words if found[-1].scope in ("system", "global") else _keys_of(words)


def _options(command: str) -> tuple[str, ...]:
    """The words after `ssh`; nothing where another program is named, which is for a person to look at."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ()
    return tuple(words[1:]) if words and words[0].rpartition("/")[2] == "ssh" else ()


def _keys_of(words: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for option, value in pairwise(words):
        if option == "-i" or (option == "-o" and value.lower().startswith(_KEY_OPTIONS)):
            kept += [option, value]
    return tuple(kept)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def _unquoted(text: str) -> str | None:
    """The one word that git quoted, or None: `'a'\\''b'` is `a'b`, and git writes `!` as `'\\!'`, too."""
    if not re.fullmatch(r"'[^']*'(?:\\['!]'[^']*')*", text):
        return None
    return re.sub(r"'\\(['!])'", r"\1", text[1:-1])
