"""Variables that a script sets: their values, and what programs make of them later: code, commands, arguments."""

import re
import shlex

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.paths import classify, resolve
from hermes.tools.approval.run_state import NOTHING, AnalysisRun, Command, Scope, kept
from hermes.tools.approval.tables import by_name, word_list
from hermes.tools.approval.word_patterns import plain

# Variables whose value programs run as a command; and those from which they take folders, options or files of code.
_EXEC_VARIABLES = re.compile(
    r"(?:\w*_)?(?:PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|SSH|RSH|COMMAND|EXTERNAL_DIFF|OPENER|SHELL_CMD|HELPER)|MANPAGER|PS0|LESSOPEN|LESSCLOSE|"
    r"PROMPT_COMMAND|BASH_ENV|ENV|npm_config_(?:script_)?shell"
)
_LOADING_VARIABLES = re.compile(
    r"(?:LD|DYLD)_\w+|\w*(?:PATH|LIB|OPTS?|OPTIONS|STARTUP|_ENV|CLASSPATH|AGENT|HOOKS?|PLUGINS?|MODULES|INIT|CONFIG|RC)|ENV|GIT_CONFIG\w*|ANSIBLE_\w+"
)
_NAMES_A_FILE = frozenset(words("PYTHONSTARTUP R_PROFILE R_PROFILE_USER NODE_REPL_EXTERNAL_MODULE"))
_KEYED = re.compile("[\\[\ue05b]([^]]*)\\]=(.*)", re.DOTALL)


def bind(
    target: str,
    values: tuple[str, ...],
    scope: Scope,
    run: AnalysisRun,
    *,
    labels: frozenset[str] = frozenset(),
    is_list: bool = False,
) -> None:
    """Assign a variable as the script does: `name`, `name+`, `name[index]`, `name=([key]=value)`."""
    run.assigns = True
    name, bracket, index = target.rstrip("+").partition("[")
    known = scope.variables.get(name, ())
    if bracket:
        values = _element(name, plain(index).rstrip("]"), values[0] if values else "", scope)
    elif is_list and any(map(_KEYED.match, values)):
        scope.put(name, known if target.endswith("+") else ())
        for value in kept(values):
            found = _KEYED.match(value)
            values = _element(name, plain(found[1] if found else ""), found[2] if found else value, scope)
            scope.put(name, values)
    elif target.endswith("+"):
        values = (*known, *values) if is_list else ((known[0] if known else "") + values[0], *known[1:])
    scope.put(name, tuple(value[:4096] + UNKNOWN if len(value) > 4096 else value for value in kept(values)))
    if labels:
        scope.labels[name] = labels
    first = values[0] if values else ""
    if (name == "HISTFILE" and first in ("", "/dev/null")) or (name in ("HISTSIZE", "HISTFILESIZE") and first == "0"):
        run.add("defence_off", f"switch off the shell history ({name})")
    if name.startswith("HERMES_YOLO") or name == "HERMES_HOME":
        run.add("own_runtime", f"set {name}", severity=Severity.ASK)
    if name == "HOME" and UNKNOWN not in first and _is_elsewhere(first, scope, run):
        run.add("own_runtime", "make another folder the home of what follows", severity=Severity.ASK)
    if _is_injection(name, first, scope, run):
        run.add("inline_code", f"programs load code from {plain(first)} ({name})", (plain(first),))
    _carries_code(name, first, scope, run)
    if "$(" in first or "`" in first:
        # `${x@P}`, a prompt or an arithmetic expression would run what stands in the text.
        run.script(f'echo "{first}"', scope.fork(), NOTHING, (name,))
    elif first.strip(UNKNOWN) and _EXEC_VARIABLES.fullmatch(name) and first not in word_list("assignments.no_command"):
        run.script(first.replace(UNKNOWN, "${_}"), scope.fork(), NOTHING, (name,))
        if first.startswith("/") and classify(resolve(first, scope, run), run.places) == "temp":
            run.add("inline_code", f"programs start {plain(first)} ({name})", (plain(first),))


def _is_elsewhere(folder: str, scope: Scope, run: AnalysisRun) -> bool:
    """A home that is neither the person's own nor one for trying things out."""
    path = resolve(folder, scope, run)
    return path != run.places.home and classify(path, run.places) not in ("temp", "workspace")


def _carries_code(name: str, value: str, scope: Scope, run: AnalysisRun) -> None:
    """`LUA_INIT`, `PERL5DB`, `PYTHONSTARTUP`: interpreters run what the variable holds, or the file that it names."""
    if not value or name not in by_name("code"):
        return
    (language,) = by_name("code")[name]
    from hermes.tools.approval.effects.code import inline  # code sets variables, too
    from hermes.tools.approval.text_with_commands import look_at_text  # as above

    cmd = Command(language, [name], scope, NOTHING, (name,), run)
    made = run.files.get(resolve(value.removeprefix("@"), scope, run))
    if made is not None and (made.text is None or made.labels & {"remote", "decoded"}):
        run.add("decoded_code", f"{language} runs {plain(value)}, which was only just written ({name})")
    elif language == "vim":
        look_at_text(cmd, value)
    elif made is not None or name not in _NAMES_A_FILE:
        inline(cmd, (made.text if made is not None else value) or "")


def _is_injection(name: str, value: str, scope: Scope, run: AnalysisRun) -> bool:
    """Whether programs that start from here on would load code, or be found, where anybody may write."""
    if name in ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"):
        return bool(value) and not value.startswith(("/usr/", "/lib"))
    if "/" not in value or not _LOADING_VARIABLES.fullmatch(name):
        return False
    return any(
        classify(resolve(part, scope, run), run.places) == "temp" or part.startswith("/dev/fd/")
        for part in re.split(r"[:=,; ]|(?<=-[IrM])", value)
        if part[:1] == "/"
    )


def _element(name: str, index: str, value: str, scope: Scope) -> tuple[str, ...]:
    slots = list(scope.variables.get(name, ()))
    if index.isdigit() and int(index[:4]) < 64:
        slots += [""] * (int(index) + 1 - len(slots))
        slots[int(index)] = value
    else:
        slots.append(value)
        scope.put(f"{name}[{index}]", (value,))
    return tuple(slots)


def given(program: str, args: list[str], scope: Scope, run: AnalysisRun) -> list[str]:
    """The words of a command with those that its variable (for some also one by verb) adds to them."""
    variable = by_name("arguments")[program][0]
    verb = next((arg for arg in args if arg[:1] != "-"), "")
    before = [
        word
        for name in (variable, f"{variable}_{verb}")
        for text in scope.variables.get(name, ())
        for word in _split(text)
    ]
    if UNKNOWN in before:
        run.unknown(f"{program} takes words from {variable} that are only known when it runs")
    return [*args, *before] if verb and variable.startswith("TF_") else [*before, *args]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return [UNKNOWN]
