"""The state of one analysis: what the script has set, written and done so far."""

from collections.abc import Callable
from typing import NamedTuple

from hermes.tools.approval.glob import plain
from hermes.tools.approval.model import Effect, Severity, SimpleCommand
from hermes.tools.approval.text import UNKNOWN

MAX_DEPTH = 10
_MAX_EFFECTS = 200
TOO_MUCH = "the script does more than can be followed"


class Out(NamedTuple):
    """What is known of a stream: its text (None when only running would tell) and where it came from.

    Labels: `remote` (downloaded), `decoded` (turned from an encoding), `private` (a credential or private file),
    `environment`, `file` (an existing file, unchanged), `settings` (lines a well-known program prints to be evaluated),
    `endless` (never comes to an end), `dark` (printed by a program of which nothing is known).
    """

    text: str | None = None
    labels: frozenset[str] = frozenset()


NOTHING = Out("")
DARK = Out()
Functions = dict[str, tuple[tuple[object, str], ...]]  # by name, the bodies it may have, each with its source


class Scope:
    """Variables, functions and working directory of one shell or subshell."""

    __slots__ = ("aliases", "args", "choices", "cwd", "functions", "labels", "stack", "variables")

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.variables: dict[str, tuple[str, ...]] = {}
        self.choices: dict[str, tuple[tuple[str, ...], ...]] = {}  # of variables that may have several values, all
        self.labels: dict[str, frozenset[str]] = {}
        self.functions: Functions = {}
        self.aliases: dict[str, str] = {}
        self.args: tuple[str, ...] = ()
        self.stack: tuple[str, ...] = ()

    def put(self, name: str, values: tuple[str, ...]) -> None:
        """Give a variable its one value."""
        self.variables[name] = values
        self.choices.pop(name, None)

    def take(self, inner: "Scope", but: set[str]) -> None:
        """Take over what was set in `inner`, but for these names."""
        for name in inner.variables.keys() - but:
            if self.variables.get(name) != inner.variables[name]:
                self.put(name, inner.variables[name])

    def fork(self) -> "Scope":
        child = Scope(self.cwd)
        child.variables = self.variables.copy()
        child.choices = self.choices.copy()
        child.labels = self.labels.copy()
        child.functions = self.functions.copy()
        child.aliases = self.aliases.copy()
        child.args = self.args
        child.stack = self.stack
        return child


class Cmd(NamedTuple):
    """One simple command on its way to the effects."""

    name: str
    args: list[str]
    scope: Scope
    stdin: Out
    via: tuple[str, ...]
    run: "Run"

    @property
    def line(self) -> str:
        """The command as a person reads it, unknown parts as `…`."""
        return plain(" ".join([self.name, *self.args])).replace(UNKNOWN, "…")[:200]

    def add(
        self,
        kind: str,
        paths: tuple[str, ...] = (),
        *,
        hosts: tuple[str, ...] = (),
        severity: Severity = Severity.ASK,
        path_class: str = "",
    ) -> None:
        """Record an effect that the command as a whole has."""
        self.run.add(kind, self.line, paths, hosts=hosts, severity=severity, path_class=path_class)

    def nested(self, argv: list[str], stdin: Out | None = None) -> Out:
        """Judge the command that this one starts."""
        return self.run.start(argv, self.scope, self.stdin if stdin is None else stdin, (*self.via, self.name))

    def shell(self, text: str, stdin: Out | None = None) -> Out:
        """Judge a script that this command hands to a shell."""
        return self.run.script(text, self.scope.fork(), self.stdin if stdin is None else stdin, (*self.via, self.name))


Handlers = dict[str, Callable[[Cmd], Out | None]]  # by program, what records its effects and tells its output


class Places(NamedTuple):
    """Where the command runs; every path is judged against these."""

    workspace: str
    home: str
    own_home: str  # the runtime's own folder
    real: Callable[[str], str] | None = None  # follows links on disk, when the caller can see it


class Run:
    """One analysis: budget, findings, and the files the script itself makes."""

    def __init__(self, places: Places, size: int) -> None:
        self.places = places
        self.steps = 256 + size // 2
        self.bytes_left = 4 * size + 32768
        self.depth = 0
        self.effects: list[Effect] = []
        self.commands: list[SimpleCommand] = []
        self.unknowns: list[str] = []
        self.scripts: list[str] = []
        self.files: dict[str, Out] = {}
        self.sinks: dict[str, str] = {}  # what reads the other end of `>(…)`, by its path
        self.links: dict[str, str] = {}
        self.found: set[str] = set()  # files that are there: patterns that the script writes, and what `find` hands on
        self.executables: set[str] = set()
        self.cloned: list[str] = []  # folders that the script itself downloads
        self.lifted: list[str] = []
        self.traps: list[tuple[str, Scope]] = []  # what runs at the end, with the values of then
        self.substituted: frozenset[str] = frozenset()  # labels that command substitutions brought into the words
        self.script: Callable[[str, Scope, Out, tuple[str, ...]], Out]  # follows a text
        self.start: Callable[[list[str], Scope, Out, tuple[str, ...]], Out]  # judges one command

    def add(
        self,
        kind: str,
        detail: str,
        paths: tuple[str, ...] = (),
        *,
        hosts: tuple[str, ...] = (),
        severity: Severity = Severity.ASK,
        path_class: str = "",
    ) -> None:
        """Record an effect, once."""
        effect = Effect(kind, severity, detail, paths, hosts, path_class, len(self.commands) - 1)
        if len(self.effects) < _MAX_EFFECTS:
            if effect not in self.effects[-8:]:
                self.effects.append(effect)
        elif severity > Severity.NOTE:
            self.effects[-1] = effect

    def unknown(self, reason: str) -> None:
        """Say that a part was not understood: asked about, never taken as safe."""
        if reason not in self.unknowns and len(self.unknowns) < 20:
            self.unknowns.append(reason)
            self.add("unknown", reason)

    def is_cloned(self, path: str) -> bool:
        return any(path.startswith(folder + "/") for folder in self.cloned)

    def spend(self) -> bool:
        """Take one step of the budget; False when it is used up."""
        self.steps -= 1
        if self.steps < 0:
            self.unknown(TOO_MUCH)
            return False
        return True
