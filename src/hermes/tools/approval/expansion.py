"""What the lexer asks of the script being followed: parameters, substitutions, home folders."""

import re

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.lexer import ShellValues, expand_one
from hermes.tools.approval.params import parameter
from hermes.tools.approval.run_state import DARK, NOTHING, AnalysisRun, CommandOutput, Scope

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
