"""The policy as data: what config.yaml says about asking, and the grants that people gave."""

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct, field

from hermes.config.host_entry import plain_name
from hermes.errors import ConfigError
from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.effects_model import Analysis, Effect, SimpleCommand

Mode = Literal["manual", "smart", "off"]
EVERYWHERE = "*"  # the place of a grant that names none, as those made by the contract's functions do
FOLDER = "folder:"  # how the place of a grant begins that holds for a folder and all below it
GrantScope = Literal["once", "task", "session", "always"]


class PolicyRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of the policy. A field left out matches everything.

    `allow` covers a command when every part of it is covered; `ask` and `deny` apply when any part matches.
    """

    action: Literal["allow", "ask", "deny"]
    name: str = ""
    tool: str = "*"
    command: str = ""  # words, each a glob: "git push *"; a shorter rule matches a longer command
    paths: tuple[str, ...] = ()  # globs on the paths touched
    hosts: tuple[str, ...] = ()  # globs on the hosts contacted
    effect: str = ""  # a key such as "recursive delete"
    outside: bool = False  # of `allow`: a command that the rule covers whole runs outside the border
    match: tuple[str, ...] = ()  # commands that the rule must match, checked when the policy is loaded
    not_match: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.name or f"{self.action} {self.command or self.effect or self.tool}"


class ContainerPolicy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What counts inside a container that has nothing of the host mounted."""

    inside: Literal["allow", "check"] = "allow"


class Policy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The `approvals` section of config.yaml, and `command_allowlist` beside it."""

    mode: Mode = "manual"
    timeout: float = 60
    gateway_timeout: float = 300
    cron_mode: Literal["deny", "approve"] = "deny"
    deny: tuple[str, ...] = ()  # globs on the whole command
    rules: tuple[PolicyRule, ...] = ()
    containers: ContainerPolicy = field(default_factory=ContainerPolicy)
    allowlist: tuple[str, ...] = ()  # `key @ place`, a key everywhere, or a glob on a whole command of one part


class Grant(Struct, frozen=True, kw_only=True):
    """A yes somebody gave. `once` and `task` hold for what was shown; the others for a kind of effect and place."""

    scope: GrantScope
    key: str
    path_class: str = ""
    binding: str = ""  # command, cwd and script contents; for once and task
    session_id: str = ""
    task_id: str = ""
    id: str = ""


def check_examples(policy: Policy) -> None:
    """Raise `ConfigError` for the first rule whose `match` or `not_match` example contradicts it."""
    for rule in policy.rules:
        if rule.outside and (rule.action != "allow" or not rule.command):
            raise ConfigError(f"approvals.rules: {rule.label!r} says outside, which is for allow with a command")
        for example in rule.match:
            if not rule_matches(rule, analyse(example), tool="terminal"):
                raise ConfigError(f"approvals.rules: {rule.label!r} does not match its example {example!r}")
        for example in rule.not_match:
            if rule_matches(rule, analyse(example), tool="terminal"):
                raise ConfigError(f"approvals.rules: {rule.label!r} matches {example!r}, which it says it must not")


def rule_matches(rule: PolicyRule, analysis: Analysis, *, tool: str) -> bool:
    """Whether the rule speaks about this action."""
    if not fnmatchcase(tool, rule.tool):
        return False
    if rule.action == "allow":
        return _covers(rule, analysis)
    if rule.command and not any(words_match(rule.command, command) for command in analysis.commands):
        return False
    if rule.effect and not any(effect.key == rule.effect for effect in analysis.effects):
        return False
    if rule.paths and not any(_any_glob(path, rule.paths) for path in analysis.paths):
        return False
    return not rule.hosts or any(_names_host(rule, name) for host in analysis.hosts for name in _spellings(host))


def _covers(rule: PolicyRule, analysis: Analysis) -> bool:
    if analysis.unknown or not analysis.commands:
        return False
    if rule.command and not all(words_match(rule.command, command) for command in analysis.commands):
        return False
    return effects_within(rule, analysis.effects)


def effects_within(rule: PolicyRule, effects: Sequence[Effect]) -> bool:
    """Whether everything the effects touch lies within the rule's paths, hosts and effect."""
    dangers = [effect for effect in effects if effect.severity > 0]
    if rule.effect and any(effect.key != rule.effect for effect in dangers):
        return False
    if rule.paths and not all(_any_glob(path, rule.paths) for effect in effects for path in effect.paths):
        return False
    return not rule.hosts or all(_names_host(rule, host) for effect in effects for host in effect.hosts)


def words_match(pattern: str, command: SimpleCommand) -> bool:
    """`git push *` against resolved words; the program may be named by its path."""
    wanted = pattern.split()
    have = [command.argv[0].rsplit("/", 1)[-1], *command.argv[1:]]
    if len(wanted) > len(have) and wanted[len(have) :] != ["*"]:
        return False
    return all(fnmatchcase(word, glob) for word, glob in zip(have, wanted, strict=False))


def _spellings(host: str) -> tuple[str, ...]:
    """A host, and the same without its port, as rules name it."""
    name, colon, port = host.rpartition(":")
    return (host, name.strip("[]")) if colon and port.isdecimal() else (host,)


def _names_host(rule: PolicyRule, host: str) -> bool:
    return any(fnmatchcase(_as_asked(host), _as_asked(glob)) for glob in rule.hosts)


def _as_asked(host: str) -> str:
    """A host, or a glob on some, as programs ask for it: in lower case, in letters of ASCII, without the last dot."""
    try:
        return plain_name(host.encode("idna").decode("ascii"))
    except UnicodeError:  # a part of it is too long, or empty
        return plain_name(host)


def _any_glob(text: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(text, glob) or (glob.endswith("/**") and text.startswith(glob[:-2])) for glob in globs)


def binding(command: str, cwd: str, scripts: Mapping[str, bytes] | None = None) -> str:
    """What a `once` or `task` yes is bound to: the command, where it runs, and the script files it runs."""
    digest = hashlib.sha256(f"{command}\0{cwd}".encode("utf-8", "replace"))
    for path in sorted(scripts or {}):
        digest.update(b"\0" + path.encode("utf-8", "replace") + b"\0" + hashlib.sha256((scripts or {})[path]).digest())
    return digest.hexdigest()


def allowlist_entry(key: str, place: str) -> str:
    """How a yes for good is written in `command_allowlist`: the kind of effect, and the place it was shown for."""
    return f"{key} @ {place}" if place else key


def covers_place(granted: str, place: str) -> bool:
    """Whether a grant for one place holds for another: the same, everywhere, or a folder around it."""
    if granted.startswith(FOLDER) and place.startswith(FOLDER):
        return f"{place}/".startswith(f"{granted.rstrip('/')}/")
    return granted in (place, EVERYWHERE)


def path_class(effect: Effect) -> str:
    """The class a session or always grant is limited to: the workspace, temp, or one named root."""
    if effect.path_class.startswith("host:"):  # a yes is for this host and no other
        return effect.path_class
    if effect.path_class in ("workspace", "temp") or not effect.paths:
        return effect.path_class if effect.paths else ""
    first = effect.paths[0]
    if effect.path_class == "border":  # a yes opens the file's folder and nothing else
        return f"{FOLDER}{posixpath.dirname(first)}"
    parts = first.split("/")
    return "root:" + "/".join(parts[:3] if first.startswith("/") else parts[:2])
