"""What a command would do: the vocabulary of the analysis, and how much work one analysis may take."""

from enum import IntEnum
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from hermes.tools.approval.tables import rows


class Severity(IntEnum):
    """How far a decision about an effect may go."""

    NOTE = 0  # told, never asked about by default
    ASK = 1  # a person decides
    HARDLINE = 2  # never runs on a host, whoever says yes


PLUGIN_RULE = "plugin_rule:"  # how a kind begins that only a plugin's rule knows; it is its own key


@cache
def keys() -> dict[str, str]:
    """Effect kind -> the key a person approves; the key is also the description."""
    return dict(row.split(": ", 1) for row in rows("effects.txt"))


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
        return self.kind if self.kind.startswith(PLUGIN_RULE) else keys()[self.kind]


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
    assigns: bool = False  # it gives variables values, which may decide what its programs are and do

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
