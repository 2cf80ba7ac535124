"""What `$…` yields, as far as the script itself tells: parameters, substitutions, home folders."""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

from hermes.tools.approval.command_text import SECRET, UNKNOWN
from hermes.tools.approval.lexer import ShellValues, expand_one
from hermes.tools.approval.run_state import DARK, MAX_VALUES, NOTHING, AnalysisRun, CommandOutput, Scope
from hermes.tools.approval.word_patterns import plain

_BODY = re.compile(
    r"(!|\#(?=[\w@*]))?([A-Za-z_]\w*|\d+|[@*#?$!_-])(\[(?:[^\[\]]|\[[^\]]*\])*\])?(.*)\Z", re.ASCII | re.DOTALL
)
_SLICE = re.compile(r":\s*\(?(-?\d+)\)?(?:\s*:\s*(-?\d+))?\Z")
_OPERATORS = (":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,")
_DIGITS = frozenset(
    {"RANDOM", "SECONDS", "LINENO", "UID", "EUID", "BASHPID", "$", "#", "?", "!", "SHLVL", "COLUMNS", "LINES"}
)
_MAX_PATTERN = 64
_MAX_CUT = 1024

Expand = Callable[[str], str]


_CREDENTIAL = re.compile(
    r"(?:\A|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|CREDENTIALS?|DSN|PAT)(?:_|\d|\Z)", re.IGNORECASE
)


def parameter(body: str, scope: Scope, run: AnalysisRun, expand: Expand) -> ShellValues:
    """The value of `${body}`. What comes from outside the script is unknown."""
    found = _BODY.match(body)
    if found is None:
        return ShellValues((UNKNOWN,))
    mark, name, index, rest = found.groups()
    if mark == "!" and index in ("[@]", "[*]"):
        return _keys(name, scope)
    if mark == "!":
        inner = lookup(name, scope, run).texts
        if len(inner) != 1 or UNKNOWN in inner[0] or not inner[0].isidentifier():
            return ShellValues((UNKNOWN,))
        name = inner[0]
    if index and ("$(" in index or "`" in index):
        expand(index)
    values = _indexed(name, index and expand(index) if index and "$" in index else index, scope, run)
    if mark == "#":
        return ShellValues((str(len(values.texts)) if values.is_list else str(len("".join(values.texts))),))
    if not rest:
        return values
    return _operator(rest, name, values, scope, run, expand)


def lookup(name: str, scope: Scope, run: AnalysisRun) -> ShellValues:
    """A variable's value; `$@` and arrays are lists."""
    if scope.choices and ("@" if name == "*" or name.isdigit() else name) in scope.choices:
        return ShellValues((UNKNOWN,), is_list=name in ("@", "*"))
    if name in ("@", "*"):
        return ShellValues(scope.args, is_list=True)
    if name.isdigit():
        number = int(name[:4])
        if number == 0:
            return ShellValues(scope.variables.get("0", ("bash",)))
        return ShellValues((scope.args[number - 1],) if number <= len(scope.args) else ("",))
    if name in scope.variables:
        return ShellValues(scope.variables[name][:1] or ("",))
    return ShellValues((_outside(name, scope, run),))


def _outside(name: str, scope: Scope, run: AnalysisRun) -> str:
    if name == "PPID":  # what started the shell: the runtime, or its keeper
        run.substituted |= {"own"}
        return UNKNOWN
    if name in _DIGITS:
        return "0" if name == "?" else "7"
    known = {
        "IFS": " \t\n",
        "HOME": run.places.home,
        "PWD": scope.cwd,
        "HERMES_HOME": run.places.own_home,
        "TMPDIR": "/tmp",  # noqa: S108 - a class of paths, nothing is opened
        "XDG_CONFIG_HOME": run.places.home + "/.config",
        "BASH": "/bin/bash",
        "SHELL": "/bin/bash",
    }
    return known.get(name) or (SECRET if _CREDENTIAL.search(name) else UNKNOWN)


def _indexed(name: str, index: str | None, scope: Scope, run: AnalysisRun) -> ShellValues:
    if index is None:
        return lookup(name, scope, run)
    known = scope.variables.get(name)
    inner = plain(index)[1:-1]
    if known is None or name in scope.choices:
        return ShellValues((UNKNOWN,))
    if inner in ("@", "*"):
        return ShellValues(known, is_list=True)
    if re.fullmatch(r"-?\d{1,4}", inner):
        number = int(inner)
        beyond = UNKNOWN if len(known) > MAX_VALUES else ""
        return ShellValues((known[number] if -len(known) <= number < len(known) else beyond,))
    return ShellValues(scope.variables.get(f"{name}[{inner}]", (UNKNOWN,)))


def _keys(name: str, scope: Scope) -> ShellValues:
    known = scope.variables.get(name)
    if known is None or name in scope.choices:
        return ShellValues((UNKNOWN,))
    keys = [key[len(name) + 1 : -1] for key in scope.variables if key.startswith(f"{name}[")]
    return ShellValues(tuple(keys or map(str, range(len(known)))), is_list=True)


def _operator(rest: str, name: str, values: ShellValues, scope: Scope, run: AnalysisRun, expand: Expand) -> ShellValues:
    sliced = _SLICE.match(rest)
    if sliced:
        offset = int(sliced[1][:6]) - (1 if name in ("@", "*") and int(sliced[1][:6]) > 0 else 0)
        return _slice(values, offset, sliced[2])
    head = rest[:2] if rest[:2] in _OPERATORS else rest[:1]
    operand = rest[len(head) :]
    if head.lstrip(":") in ("-", "=", "+", "?"):
        return _default(head.lstrip(":"), name, values, scope, expand(operand))
    if head in ("^^", ",,", "^", ","):
        return ShellValues(tuple(_case(head, text) for text in values.texts), values.is_list)
    if head[0] in "#%":
        pattern = expand(operand)
        run.budget.spend(sum(len(text) * (2 + len(text) // 64) for text in values.texts if len(text) <= _MAX_CUT) // 8)
        return ShellValues(tuple(_trim(head, text, pattern) for text in values.texts), values.is_list)
    if head[0] == "/":
        pattern, replacement = _replacement(operand)
        pattern, replacement = expand(pattern), expand(replacement)
        run.budget.spend(sum(len(text) for text in values.texts if len(text) <= _MAX_CUT) // 8)
        return ShellValues(tuple(_replace(head, text, pattern, replacement) for text in values.texts), values.is_list)
    if head == "@":
        return _as_prompt(values, run) if operand == "P" else values
    expand(operand)
    return ShellValues((UNKNOWN,))


def _as_prompt(values: ShellValues, run: AnalysisRun) -> ShellValues:
    """`${x@P}`: what stands in the text is expanded once more, with the commands in it."""
    if any(UNKNOWN in text for text in values.texts):
        run.unknown("text that is only known when it runs is expanded as a prompt, with the commands in it")
    if any("$" in text or "`" in text or "\\" in text for text in values.texts):
        run.unknown("text with commands in it is expanded as a prompt")
        return ShellValues((UNKNOWN,), values.is_list)
    return values


def _default(operator: str, name: str, values: ShellValues, scope: Scope, operand: str) -> ShellValues:
    text = "".join(values.texts)
    is_known = UNKNOWN not in text
    if operator == "+":
        return (
            ShellValues((operand,)) if text else ShellValues(("",))
        )  # one from outside may be set: what it adds is judged
    if operator == "?" or (is_known and text):
        return values
    if operator == "=":
        scope.put(name, (operand,))
    # A variable from outside may be set or not; the default is what the script shows, so that is what is judged.
    return ShellValues((operand,)) if is_known or operand else ShellValues((UNKNOWN,))


def _slice(values: ShellValues, offset: int, length: str | None) -> ShellValues:
    count = int(length[:6]) if length else None

    def one(text: str) -> str:
        if UNKNOWN in text:
            return UNKNOWN
        cut = text[offset:] if offset >= 0 or -offset <= len(text) else ""
        if count is None:
            return cut
        return cut[:count] if count >= 0 else cut[: len(cut) + count]

    if values.is_list:
        return ShellValues(values.texts[offset:][:count], is_list=True)
    return ShellValues(tuple(one(text) for text in values.texts))


def _case(operator: str, text: str) -> str:
    changed = text.upper() if operator[0] == "^" else text.lower()
    return changed if len(operator) == 2 else changed[:1] + text[1:]


def _replacement(operand: str) -> tuple[str, str]:
    position = 0
    while position < len(operand):
        if operand[position] == "\\":
            position += 1
        elif operand[position] == "/":
            return operand[:position], operand[position + 1 :]
        position += 1
    return operand, ""


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str] | None:
    # A pattern with several stars can take more than linear time to match; such a word stays unknown.
    if len(pattern) > _MAX_PATTERN or pattern.count("*") > 2 or UNKNOWN in pattern:
        return None
    body = translate(pattern)
    return re.compile(body.removesuffix(r"\Z"), re.DOTALL)


def _trim(operator: str, text: str, pattern: str) -> str:
    regex = _regex(plain(pattern))
    if regex is None or UNKNOWN in text or len(text) > _MAX_CUT:
        return UNKNOWN
    sizes = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    for size in sizes:
        part = text[:size] if operator[0] == "#" else text[len(text) - size :]
        if regex.fullmatch(part):
            return text[size:] if operator[0] == "#" else text[: len(text) - size]
    return text


def _replace(operator: str, text: str, pattern: str, replacement: str) -> str:
    regex = _regex(plain(pattern))
    if regex is None or UNKNOWN in text or len(text) > _MAX_CUT:
        return UNKNOWN
    if not pattern:
        return text
    if operator == "/#":
        found = regex.match(text)
        return replacement + text[found.end() :] if found else text
    return regex.sub(lambda _: replacement, text, count=0 if operator == "//" else 1)


_NAME = re.compile(r"[#!]?(\w+)")
_SUM = re.compile(r"\s*\d{1,6}(\s*[+*-]\s*\d{1,6}){0,4}\s*\Z")
_MARK = re.compile("\ue0ff(\\d+)\ue0ff")


class Expansions:
    """The lexer's view of one scope."""

    def __init__(self, run: AnalysisRun, via: tuple[str, ...], scope: Scope) -> None:
        self.run = run
        self.via = via
        self.scope = scope

    def parameter(self, body: str) -> ShellValues:
        values = parameter(body, self.scope, self.run, lambda raw: expand_one(raw, self))
        if self.scope.labels:
            name = _NAME.match(body)
            if name and name[1] in self.scope.labels:
                self.run.substituted |= self.scope.labels[name[1]]
        return values

    def substitution(self, script: str) -> str:
        before = self.run.substituted
        out = self.run.script(script, self.scope.fork(), NOTHING, (*self.via, "$()"))
        if "endless" in out.labels:
            self.run.add("exhaustion", "hold in memory what never comes to an end")
        # `dark`: printed by a program of which nothing is known.
        self.run.substituted = before | (out.labels or ({"dark"} if out.text is None else frozenset()))
        return UNKNOWN if out.text is None or "either" in out.labels else out.text.rstrip("\n")

    def process(self, script: str, direction: str) -> str:
        stdin: CommandOutput = NOTHING if direction == "<" else DARK
        out = self.run.script(script, self.scope.fork(), stdin, (*self.via, f"{direction}()"))
        path = f"/dev/fd/{63 + len(self.run.files)}"
        self.run.files[path] = out if direction == "<" else NOTHING
        if direction == ">":
            self.run.sinks[path] = script
        return path

    def arithmetic(self, body: str) -> str:
        if "$(" in body or "`" in body:
            expand_one(body, self)
        return str(_sum(body)) if _SUM.match(body) else UNKNOWN

    def home(self, user: str) -> str:
        if user == "":
            known = self.scope.variables.get("HOME")
            if known is None:
                return self.run.places.home
            return known[0] if len(known) == 1 and "HOME" not in self.scope.choices else UNKNOWN
        if user == "+":
            return self.scope.cwd if "PWD" not in self.scope.variables else UNKNOWN
        if user == "-" or user.lstrip("+-").isdigit():  # `~1` is a folder of pushd's
            return UNKNOWN
        return "/root" if user == "root" else f"/home/{user}"

    def literal(self, mark: str) -> str:
        lifted = self.run.lifted
        return _MARK.sub(lambda found: lifted[int(found[1])] if int(found[1]) < len(lifted) else "", mark)

    def separators(self) -> str:
        known = self.scope.variables.get("IFS")
        return known[0] if known and known[0] else " \t\n"


def _sum(body: str) -> int:
    total = 0
    for term in re.findall(r"[+-]?[\d*]+", re.sub(r"\s", "", body)):
        product = -1 if term.startswith("-") else 1
        for factor in term.lstrip("+-").split("*"):
            product *= int(factor or "1")
        total += product
    return total
