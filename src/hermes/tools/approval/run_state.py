"""The state of one analysis: what the script has set, written and done so far."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects_model import Budget, Effect, Severity, SimpleCommand
from hermes.tools.approval.word_patterns import plain

MAX_DEPTH = 10
MAX_VALUES = 64
_LINE = 200
_MAX_COMMANDS = 500
_MAX_SCRIPTS = 50
_MAX_EFFECTS = 200


class CommandOutput(NamedTuple):
    """What is known of a stream: its text (None when only running would tell) and where it came from.

    Labels: `remote` (downloaded), `decoded` (turned from an encoding), `private` (a credential or private file),
    `environment`, `file` (an existing file, unchanged), `settings` (lines a well-known program prints to be evaluated),
    `endless` (never comes to an end), `dark` (printed by a program of which nothing is known).
    """

    text: str | None = None
    labels: frozenset[str] = frozenset()


def kept(values: Sequence[str]) -> tuple[str, ...]:
    """The values of a list that are told apart; where there are more, an unknown one stands for the rest."""
    return tuple(values) if len(values) <= MAX_VALUES else (*values[:MAX_VALUES], UNKNOWN)


NOTHING = CommandOutput("")
DARK = CommandOutput()
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


class Command(NamedTuple):
    """One simple command on its way to the effects."""

    name: str
    args: list[str]
    scope: Scope
    stdin: CommandOutput
    via: tuple[str, ...]
    run: "AnalysisRun"

    @property
    def line(self) -> str:
        """The command as a person reads it, unknown parts as `…`."""
        words, size = [self.name], 0
        for word in self.args:
            words.append(word)
            size += len(word) + 1
            if size > _LINE:  # a command may have thousands, and the line is asked for again and again
                break
        return plain(" ".join(words)).replace(UNKNOWN, "…")[:_LINE]

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

    def nested(self, argv: list[str], stdin: CommandOutput | None = None) -> CommandOutput:
        """Judge the command that this one starts."""
        return self.run.start(argv, self.scope, self.stdin if stdin is None else stdin, (*self.via, self.name))

    def shell(self, text: str, stdin: CommandOutput | None = None) -> CommandOutput:
        """Judge a script that this command hands to a shell."""
        return self.run.script(text, self.scope.fork(), self.stdin if stdin is None else stdin, (*self.via, self.name))


Handlers = dict[
    str, Callable[[Command], CommandOutput | None]
]  # by program, what records its effects and tells its output


class Places(NamedTuple):
    """Where the command runs; every path is judged against these."""

    workspace: str
    home: str
    own_home: str  # the runtime's own folder
    real: Callable[[str], str] | None = None  # follows links on disk, when the caller can see it
    pushes_home: Callable[[str], bool] | None = None  # whether a remote was the workspace's when the session began


class AnalysisRun:
    """One analysis: budget, findings, and the files the script itself makes."""

    def __init__(self, places: Places, budget: Budget) -> None:
        self.places = places
        self.budget = budget
        self.depth = 0
        self.effects: list[Effect] = []
        self.commands: list[SimpleCommand] = []
        self.unknowns: list[str] = []
        self.scripts: list[str] = []
        self.files: dict[str, CommandOutput] = {}
        self.sinks: dict[str, str] = {}  # what reads the other end of `>(…)`, by its path
        self.links: dict[str, str] = {}
        self.real_paths: dict[str, str] = {}  # where paths lead on disk, once looked at
        self.found: set[str] = set()  # files that are there: patterns that the script writes, and what `find` hands on
        self.executables: set[str] = set()
        self.cloned: list[str] = []  # folders that the script itself downloads
        self.lifted: list[str] = []
        self.assigns = False  # whether it gives a variable a value
        self.traps: list[tuple[str, Scope]] = []  # what runs at the end, with the values of then
        self.substituted: frozenset[str] = frozenset()  # labels that command substitutions brought into the words
        self.script: Callable[[str, Scope, CommandOutput, tuple[str, ...]], CommandOutput]  # follows a text
        self.start: Callable[[list[str], Scope, CommandOutput, tuple[str, ...]], CommandOutput]  # judges one command

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
        elif severity > self.effects[-1].severity:
            self.effects[-1] = effect

    def unknown(self, reason: str) -> None:
        """Say that a part was not understood: asked about, never taken as safe."""
        if reason not in self.unknowns and len(self.unknowns) < 20:
            self.unknowns.append(reason)
            self.add("unknown", reason)

    def gave_up(self, reason: str) -> None:
        """Say that the judgement came to no end: first of all, however much was found until then."""
        self.unknowns.append(reason)
        if len(self.effects) >= _MAX_EFFECTS:
            del self.effects[-2]  # the last one may be the worst
        self.effects.insert(0, Effect("intricate", Severity.ASK, reason))

    def list_command(self, command: SimpleCommand) -> None:
        """Note a command. Past the last one that is listed no rule could tell what does what, so that asks."""
        if len(self.commands) < _MAX_COMMANDS:
            self.commands.append(command)
        else:
            self.unknown("it runs more commands than are listed")

    def list_script(self, path: str) -> None:
        """Note a script file that is run, so that it can be read."""
        if len(self.scripts) < _MAX_SCRIPTS:
            self.scripts.append(path)
        elif path not in self.scripts:
            self.unknown("it runs more scripts than are read")

    def is_cloned(self, path: str) -> bool:
        return any(path.startswith(folder + "/") for folder in self.cloned)
