"""`Confinement`: what a session's programs may write, read and never find, as one frozen struct of real paths.

A rule covers its path and everything below; of several, the deepest counts, and of two for one path the later. What no
rule covers may be read. Paths are real ones: whoever asks resolves links first, and whoever plans did so once.
"""

import posixpath
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

from msgspec import Struct, structs

Level: TypeAlias = Literal["full", "files", "none"]
"""What enforces it: namespaces around each program, rules of the kernel on files alone, or nothing."""
Policy: TypeAlias = Literal["read-only", "workspace", "open"]
Access: TypeAlias = Literal["write", "read", "hidden"]
RuleKind: TypeAlias = Literal[
    "workspace",  # the folder the session works in, and the git folders that belong to it
    "temp",
    "cache",  # packages and build results, Hermes' own for this workspace
    "granted",  # by the settings, --add-dir, /add-dir or a yes
    "protected",  # other programs believe it: hooks, .hermes, interpreters
    "self-running",  # other programs run it by themselves: .envrc, editor tasks, CI files
    "git-config",
    "system",
    "secret",
    "hermes",  # the runtime's own files, and those of other sessions
    "socket",
]
LEVELS: tuple[Level, ...] = get_args(Level)
POLICIES: tuple[Policy, ...] = get_args(Policy)


class PathRule(Struct, frozen=True):
    """What may be done at `path` and below, and why, in words for a person."""

    path: str
    access: Access
    kind: RuleKind
    why: str = ""


class Bind(Struct, frozen=True):
    """Programs find `source` at `target`. Both are there before the first command; a folder over a folder, else a file.

    At level *full* only. What is bound over cannot be renamed or replaced inside, only written in place.
    """

    source: str
    target: str
    writable: bool = False


class Limits(Struct, frozen=True, kw_only=True):
    """How much one call may use; 0 is no limit."""

    processes: int = 0
    memory_mb: int = 0
    open_files: int = 0
    temp_mb: int = 0


class Confinement(Struct, frozen=True, kw_only=True):
    """What the programs of one session may touch. Planned once, before its first command; see `plan`."""

    level: Level
    policy: Policy = "workspace"
    workspace: str
    home: str = ""
    rules: tuple[PathRule, ...] = ()
    binds: tuple[Bind, ...] = ()
    temp: str = ""  # the session's private temporary folder, as the runtime sees it
    network: bool = True  # the machine's own
    namespaces: tuple[int, ...] = ()  # descriptors of the session's own network, which whoever made it keeps open
    limits: Limits = Limits()
    env: dict[str, str] = {}  # variables that programs get beside their own: where temp and caches are
    without: tuple[str, ...] = ()  # variables that would lead them to what they cannot see
    bwrap: str = ""  # the program of level full, found outside every writable folder
    why: str = ""  # why the level is no higher, in one sentence

    def rule_for(self, path: str) -> PathRule | None:
        """The rule that decides about a real, absolute path; None where there is none."""
        found: PathRule | None = None
        for rule in self.rules:
            if is_below(path, rule.path) and (found is None or len(rule.path) >= len(found.path)):
                found = rule
        return found

    def may_write(self, path: str) -> bool:
        """Whether programs may change, make or remove what is at a real, absolute path."""
        rule = self.rule_for(path)
        return rule is not None and rule.access == "write"

    def may_see(self, path: str) -> bool:
        """Whether programs find what is at a real, absolute path."""
        rule = self.rule_for(path)
        return rule is None or rule.access != "hidden"

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that may be written, in the order of the rules."""
        return tuple(dict.fromkeys(rule.path for rule in self.rules if rule.access == "write"))

    def of_kind(self, *kinds: RuleKind) -> tuple[PathRule, ...]:
        """The rules of these kinds."""
        return tuple(rule for rule in self.rules if rule.kind in kinds)

    def with_rules(self, *more: PathRule) -> "Confinement":
        """The same with further rules, which come last and so win over those for the same paths."""
        return structs.replace(self, rules=(*self.rules, *more))

    def with_root(self, folder: str, why: str) -> "Confinement":
        """The same with one more real folder (or file) that may be written."""
        return self.with_rules(PathRule(folder, "write", "granted", why))

    def read_only(self) -> "Confinement":
        """The same without leave to change anything of the person's; what the session brings along stays its own."""
        kinds = ("workspace", "granted")
        kept = tuple(
            structs.replace(rule, access="read") if rule.access == "write" and rule.kind in kinds else rule
            for rule in self.rules
        )
        return structs.replace(self, rules=kept)

    def with_binds(self, *more: Bind) -> "Confinement":
        """The same with further binds."""
        return structs.replace(self, binds=(*self.binds, *more))

    def seen_at(self, path: str) -> str:
        """Where the runtime finds what programs find at `path`: the same, but for the private temporary folder."""
        if self.level != "full" or not self.temp:
            return path
        for folder in TEMP_FOLDERS:
            if is_below(path, folder) and self.rule_for(path) == self.rule_for(folder):
                return posixpath.normpath(posixpath.join(self.temp, posixpath.relpath(path, folder)))
        return path


TEMP_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - the names by which programs know them


class PlanRequest(Struct, frozen=True, kw_only=True):
    """What a confinement is planned from: settings, variables of the person's, and folders of Hermes' own."""

    workspace: str
    policy: Policy = "workspace"
    home: str = ""
    hermes_home: str = ""
    environ: Mapping[str, str] = {}
    writable: tuple[str, ...] = ()  # terminal.sandbox_writable, --add-dir
    safe_roots: tuple[str, ...] = ()  # HERMES_WRITE_SAFE_ROOT: writes stay below one of them
    sockets: tuple[str, ...] = ()  # those that are granted by name
    network: bool = True
    limits: Limits = Limits()
    temp: str = ""
    caches: str = ""  # the folder of Hermes' own caches for this workspace
    shared: tuple[str, ...] = ()  # folders of the session's own that its commands write: the shell's state
    shown: tuple[str, ...] = ()  # folders of the session's own that its commands read


class Enforcement(Struct, frozen=True):
    """What this machine can enforce."""

    level: Level
    bwrap: str = ""
    why: str = ""  # why it is no more


class Outside(Struct, frozen=True):
    """A start without confinement, by the name it has in `outside.STARTS`."""

    name: str


AnyConfinement: TypeAlias = Confinement | Outside


class AfterCommand(Protocol):
    """Called after every command of a session, before its result is told; for files that are compared or taken over."""

    def __call__(self, confinement: Confinement) -> Awaitable[Sequence[str]]:
        """Sentences for the model and the person about what was put back, dropped or asked; usually none."""
        ...


@runtime_checkable
class ConfinedEnvironment(Protocol):
    """An environment whose programs are confined; those of other machines and containers are not."""

    @property
    def after_command(self) -> list[AfterCommand]: ...
    async def confinement(self) -> Confinement:
        """The session's plan, made at the first call."""
        ...

    def widen(self, wider: Confinement) -> None:
        """Let later programs have `wider`, made from the present one."""
        ...


@runtime_checkable
class SaysWhatIsWritable(Protocol):
    """An environment that knows, before anything is planned, what to tell the model about writing."""

    @property
    def writing_hint(self) -> str: ...


@runtime_checkable
class TellsNetwork(Protocol):
    """An environment that knows which network its programs have, and what came of it so far."""

    async def reach(self) -> str:
        """`open`, `ask` or `off`, as it is held here."""
        ...

    @property
    def network_lines(self) -> tuple[str, ...]: ...


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, both as they are spelled."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def outermost(folders: Iterable[str]) -> list[str]:
    """Each folder once, and none that lies in another."""
    kept: list[str] = []
    for folder in sorted(set(folders)):
        if not kept or not is_below(folder, kept[-1]):
            kept.append(folder)
    return kept
