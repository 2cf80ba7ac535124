"""What eats a machine up: processes, memory or disk space without end, in the forms that people write."""

import re

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.grammar import Node
from hermes.tools.approval.run_state import AnalysisRun, Command, CommandOutput, Functions
from hermes.tools.approval.tables import word_list

_SOURCES = frozenset(f"{how}/dev/{name}" for name in ("zero", "urandom", "random", "full") for how in ("", "if="))
_SWALLOWERS = frozenset(words("tail sort tac grep egrep xargs mapfile readarray shuf sponge parallel"))
_BACKGROUND = re.compile(r"(?<![&>\d])&(?![&>\d])")
_ENDLESS = re.compile(
    r"while\s+(?::|true|\[\s+1\s+\]|\[\[\s+1\s+\]\]|\(\(\s*1\s*\)\))\s*[;\n]|until\s+(?:false|!\s*true|!\s*:)\s*[;\n]|for\s*\(\([^;]*;\s*;"
)
_WAITS = re.compile(
    r"\b(?:wait|read|break|exit|return|inotifywait|fswatch|select)\b|\bsleep\b[^&|;\n)]*(?:[;\n]|&&|\|\|)"
)
_GROWS = re.compile(
    r"\+=|>>|>\|?\s*[\"']?[^&\s;]*[$`]|\b(?:touch|mkdir|cp|mktemp|fallocate|dd|tee|truncate)\s|\b(\w+)=[\"']?\$\{?\1\b"
    r"|\bset\s+--\s.*\$@"
)
_MANY = re.compile(r"(?<![\w.:])\d{3,}(?![\w.:])")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_CALLED = re.compile(r"[^\s;&|{}()<>\"'$`]+")
_MAX_BODY = 400
_TOO_MANY = 500
_SIZE = re.compile(r"-?(?:c|n|-bytes=|-lines=)?=?(\d+)([kKMGTPEZY]?)i?B?\Z")
_UNITS = {unit: 1024**power for power, unit in enumerate(["", "K", "M", "G", "T", "P", "E", "Z", "Y"])}
_TOO_LARGE = 10 * 1024**3


def fork_bomb(run: AnalysisRun, name: str) -> None:
    run.add("fork_bomb", f"{name} starts itself without end", severity=Severity.HARDLINE)


def exhausts(run: AnalysisRun, how: str) -> None:
    run.add("exhaustion", how)


def judge_function(run: AnalysisRun, name: str, inner: str, functions: Functions) -> None:
    """A function that starts itself in the background, or twice."""
    calls = len(re.findall(rf"(?:^|[\s;&|{{(]){re.escape(name)}(?=[\s;&|)}}]|$)", inner))
    is_multiplied = calls > 1 and "|" in inner
    if is_multiplied or (_BACKGROUND.search(inner) and (calls or _calls_back(name, inner, functions))):
        fork_bomb(run, name)


def _calls_back(name: str, inner: str, functions: Functions) -> bool:
    """Whether a function that the body of `name` calls calls `name` again."""
    others = (
        known
        for word in dict.fromkeys(_CALLED.findall(inner[:_MAX_BODY]))
        if word != name
        for known in functions.get(word, ())
    )
    return any(
        isinstance(body, Node) and name in _CALLED.findall(source[body.start_byte : body.end_byte][:_MAX_BODY])
        for body, source in others
    )


def judge_loop(run: AnalysisRun, whole: str, *, is_long: bool = False) -> None:
    """A loop without end that waits for nothing, or one that leaves hundreds of programs behind."""
    head, _, body = whole.partition("do")
    loose = _QUOTED.sub("", whole)
    if _ENDLESS.match(whole):
        if _WAITS.search(loose):
            return
        if _BACKGROUND.search(loose):
            fork_bomb(run, "a loop without end")
        elif _GROWS.search(whole):
            exhausts(run, "a loop without end that makes more and more")
    elif (
        _BACKGROUND.search(body)
        and not re.search(r"\bwait\b", body)
        and (is_long or any(int(number[:9]) >= _TOO_MANY for number in _MANY.findall(head.replace("..", " "))))
    ):
        exhausts(run, "hundreds of programs are started at once")


def judge_stream(cmd: Command, out: CommandOutput) -> CommandOutput:
    """Follow a stream without end: cut by `head`, handed on by filters, swallowed whole by others."""
    if cmd.name == "xargs" and "many" in cmd.stdin.labels and re.search(r"-P ?(?:0|\d{3,})\b", " ".join(cmd.args)):
        exhausts(cmd.run, f"hundreds of programs are started at once: {cmd.line}")
    is_source = cmd.name == "yes" or not _SOURCES.isdisjoint(cmd.args)
    if not is_source and "endless" not in cmd.stdin.labels:
        return CommandOutput(out.text, out.labels - {"endless"}) if "endless" in out.labels else out
    if cmd.name in _SWALLOWERS:
        exhausts(cmd.run, f"it never comes to an end: {cmd.line}")
    if cmd.name not in word_list("exhaustion.streamers") or _is_cut(cmd):
        return CommandOutput(out.text, out.labels - {"endless"})
    if cmd.name == "tee" and any(not arg.startswith(("-", "/dev/")) for arg in cmd.args):
        exhausts(cmd.run, f"it never comes to an end: {cmd.line}")
    return CommandOutput(None, out.labels | {"endless"})


def _is_cut(cmd: Command) -> bool:
    if cmd.name == "dd":
        return any(arg.startswith("count=") for arg in cmd.args)
    if cmd.name != "head":
        return False
    sizes = [found for arg in cmd.args if (found := _SIZE.match(arg))]
    return not any(UNKNOWN in arg for arg in cmd.args) and all(
        int(number[:18]) * _UNITS[unit.upper()] < _TOO_LARGE for number, unit in (found.groups() for found in sizes)
    )
