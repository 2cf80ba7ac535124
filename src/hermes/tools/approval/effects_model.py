"""What a command would do: the vocabulary of the analysis, and how much work one analysis may take."""

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct


class Severity(IntEnum):
    """How far a decision about an effect may go."""

    NOTE = 0  # told, never asked about by default
    ASK = 1  # a person decides
    HARDLINE = 2  # never runs on a host, whoever says yes


KEYS: dict[str, str] = {
    "recursive_delete": "recursive delete",
    "delete_outside": "delete in root path",
    "mass_delete": "delete many files at once",
    "unresolved_delete": "delete of a path that could not be resolved",
    "xargs_delete": "xargs with rm",
    "find_delete": "find -delete or -exec rm",
    "destroy_data": "destroy file contents",
    "move_away": "move files out of reach",
    "sync_delete": "sync that deletes at the destination",
    "format": "format filesystem",
    "disk_copy": "disk copy",
    "block_device": "write to block device",
    "disk_layout": "change disk layout",
    "sql_drop": "SQL DROP",
    "sql_truncate": "SQL TRUNCATE",
    "sql_delete": "SQL DELETE without WHERE",
    "sql_made": "SQL that is only known when it runs",
    "database_destroy": "destroy a database",
    "system_config": "overwrite system config",
    "system_delete": "delete system files",
    "service_control": "stop, restart or disable a system service",
    "remote_code": "pipe remote content to shell",
    "decoded_code": "decoded or generated text run as code",
    "fork_bomb": "fork bomb",
    "exhaustion": "use up disk, memory or processes",
    "mass_kill": "kill all processes",
    "force_kill": "force kill processes",
    "self_kill": "kill the runtime's own processes",
    "own_runtime": "control the runtime itself",
    "own_files": "write the runtime's own files",
    "world_writable": "world/other-writable permissions",
    "open_permissions": "permissions changed on system or private files",
    "chown_root": "recursive chown to root",
    "user_files": "overwrite shell rc or credential file",
    "project_env": "overwrite project env/config",
    "cron_write": "change scheduled jobs",
    "git_history": "git history or work discarded",
    "chmod_run": "chmod +x followed by immediate execution",
    "sudo_flags": "sudo with privilege flag",
    "sudo_stdin": "sudo password from stdin",
    "container_stop": "stop or remove containers",
    "infrastructure": "infrastructure destruction",
    "packages": "remove essential packages",
    "publish": "publish or withdraw a package",
    "accounts": "change user accounts",
    "defence_off": "firewall, audit or history switched off",
    "exfiltration": "private files or credentials sent out",
    "reverse_shell": "shell handed to the network",
    "shutdown": "system shutdown or reboot",
    "inline_code": "inline code with effects that could not be resolved",
    "unknown": "command could not be understood",
    "intricate": "text that is too intricate to be judged",
    "unknown_program": "program that is not known here",
    "write_outside": "write outside the workspace",
    "runs_later": "change what other programs run by themselves",
    "push_elsewhere": "push to a remote that the workspace did not have",
    "made_here": "run what was made in this session",
    "write": "write a file",
    "network": "contact a host",
    "delete": "delete a file",
}
"""Effect kind -> the key a person approves; the key is also the description."""
PLUGIN_RULE = "plugin_rule:"  # how a kind begins that only a plugin's rule knows; it is its own key


class Effect(NamedTuple):
    """One thing a command would do, with what it touches."""

    kind: str
    severity: Severity
    detail: str
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    path_class: str = ""  # the widest class of `paths`: workspace, temp, home, system, ...
    source: int = -1  # index of the command in `Analysis.commands` that has this effect

    @property
    def key(self) -> str:
        return self.kind if self.kind.startswith(PLUGIN_RULE) else KEYS[self.kind]


class SimpleCommand(NamedTuple):
    """One command the shell would start, with its words resolved."""

    argv: tuple[str, ...]
    cwd: str
    via: tuple[str, ...] = ()  # the wrappers it was found behind: sudo, xargs, bash -c, ...


class Analysis(Struct, frozen=True):
    """What `analyse` found. `severity` is the worst effect; an unknown part always counts as ASK."""

    command: str
    normalised: str
    commands: tuple[SimpleCommand, ...]
    effects: tuple[Effect, ...]
    unknown: tuple[str, ...]
    scripts: tuple[str, ...] = ()  # script files the command would run

    @property
    def severity(self) -> Severity:
        return max((effect.severity for effect in self.effects), default=Severity.NOTE)

    @property
    def dangers(self) -> tuple[Effect, ...]:
        """The effects a person would be asked about, worst first."""
        found = [effect for effect in self.effects if effect.severity > Severity.NOTE]
        return tuple(sorted(found, key=lambda effect: -effect.severity))

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for effect in self.effects for path in effect.paths))

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(host for effect in self.effects for host in effect.hosts))


STEPS = 34_000  # a step is two to three microseconds on a quiet core; see bench/approval.py
TOO_INTRICATE = "it is too intricate to be judged in reasonable time, so a person must decide"


class TooIntricate(Exception):
    """The budget is used up. Only the outermost caller catches it: what was being judged is not known to be safe."""


class Budget:
    """The steps that are left, shared by all that takes part in one judgement: shell, Python, other code, scripts.

    A judge takes a step for each thing it looks at, and more where one look costs more (a text that is copied, a tree
    that is walked). Running out is an exception and no result, so that no caller in between can go on as if a part had
    been found harmless.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take `steps`; raise `TooIntricate` when there are not as many left, now and ever after."""
        self.left -= steps
        if self.left < 0:
            raise TooIntricate
