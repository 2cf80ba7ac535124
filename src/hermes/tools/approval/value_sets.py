"""What a script may have set at one point: after a branch, the values of every way that leads there."""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.paths import classify
from hermes.tools.approval.run_state import AnalysisRun, CommandOutput, Functions, Scope

_MENTIONED = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*|[@*\d])", re.ASCII)
_MAX_VALUES = 8
_MAX_WAYS = 12
_ENTRIES = 8  # that are copied in one step
_DANGEROUS = ("root", "top", "system", "own", "credential", "disk")


class ValueSets(NamedTuple):
    """A copy of all that a branch can change."""

    variables: dict[str, tuple[str, ...]]
    choices: dict[str, tuple[tuple[str, ...], ...]]
    functions: Functions
    aliases: dict[str, str]
    args: tuple[str, ...]
    cwd: str
    files: dict[str, CommandOutput]


def moment(scope: Scope, run: AnalysisRun) -> ValueSets:
    held = len(scope.variables) + len(scope.choices) + len(scope.functions) + len(scope.aliases) + len(run.files)
    run.budget.spend(1 + held // _ENTRIES)
    return ValueSets(
        scope.variables.copy(),
        scope.choices.copy(),
        scope.functions.copy(),
        scope.aliases.copy(),
        scope.args,
        scope.cwd,
        run.files.copy(),
    )


def back_to(then: ValueSets, scope: Scope, run: AnalysisRun) -> None:
    scope.variables, scope.choices = then.variables.copy(), then.choices.copy()
    scope.functions, scope.aliases = then.functions.copy(), then.aliases.copy()
    scope.args, scope.cwd, run.files = then.args, then.cwd, then.files.copy()


def merge(ways: list[ValueSets], scope: Scope, run: AnalysisRun) -> None:
    """Go on from where `ways` meet: what differs between them has several values."""
    first = ways[0]
    run.budget.spend(1 + sum(len(way.variables) + len(way.files) for way in ways) // _ENTRIES)
    back_to(ways[-1], scope, run)
    if any(way[:2] != first[:2] for way in ways[1:]):
        for name in dict.fromkeys(name for way in ways for name in way.variables):
            found = (way.choices.get(name) or (way.variables.get(name, ("",)),) for way in ways)
            _choose(scope, name, tuple(dict.fromkeys(itertools.chain.from_iterable(found))))
    if any(way.args != first.args for way in ways) or any("@" in way.choices for way in ways):
        several = (way.choices.get("@") or (way.args,) for way in ways)
        _choose(scope, "@", tuple(dict.fromkeys(itertools.chain.from_iterable(several))))
    for way in ways[:-1]:
        if way[2:] == ways[-1][2:]:
            continue
        for word, bodies in way.functions.items():
            scope.functions[word] = tuple(dict.fromkeys((*scope.functions.get(word, ()), *bodies)))
        for word, body in way.aliases.items():
            if scope.aliases.setdefault(word, body) != body:
                scope.aliases[word] = "${_}"
        for path, out in way.files.items():
            have = run.files.setdefault(path, out)
            if have != out:
                text = None if have.text is None or out.text is None else f"{have.text}\n{out.text}"
                run.files[path] = CommandOutput(text, have.labels | out.labels)
        if way.cwd != scope.cwd and classify(way.cwd, run.places) in _DANGEROUS:
            scope.cwd = way.cwd  # the folder where most can be lost


def _choose(scope: Scope, name: str, values: tuple[tuple[str, ...], ...]) -> None:
    if len(values) > _MAX_VALUES:
        values = (*values[: _MAX_VALUES - 1], (UNKNOWN,))
    if len(values) > 1:
        scope.choices[name] = values
    else:
        scope.choices.pop(name, None)


def chosen(text: str, scope: Scope) -> list[str]:
    """The names in `text` that have several values."""
    names = dict.fromkeys("@" if name in "*@" or name.isdigit() else name for name in _MENTIONED.findall(text))
    return [key for key in scope.choices if key in names or key.partition("[")[0] in names]


def each_way(
    names: list[str], scope: Scope, run: AnalysisRun, follow: Callable[[], CommandOutput]
) -> list[CommandOutput]:
    """Follow a statement once for each combination of the values of `names`; go on from where they meet."""
    start = moment(scope, run)
    values: Iterable[tuple[tuple[str, ...], ...]] = itertools.islice(
        itertools.product(*(start.choices[name] for name in names)), _MAX_WAYS + 1
    )
    outputs: list[CommandOutput] = []
    ways: list[ValueSets] = []
    for number, picked in enumerate(values):
        back_to(start, scope, run)
        for name, value in zip(names, picked, strict=True):
            scope.choices.pop(name, None)
            given = (UNKNOWN,) if number == _MAX_WAYS else value
            if name == "@":
                scope.args = given
            else:
                scope.variables[name] = given
        outputs.append(follow())
        ways.append(moment(scope, run))
    merge(ways or [start], scope, run)
    return outputs
