"""What somebody is asked: the action, what it would do, and the kinds of yes on offer."""

import re
from typing import Any, Literal

from msgspec import Struct

from hermes.seams import Action
from hermes.tools.approval.decide import Verdict
from hermes.tools.approval.effects_model import Analysis, Severity

Answer = Literal["once", "task", "session", "always", "deny"]

_MAX_LINES = 200
_MAX_PATHS = 12
# What a terminal acts on, hides, joins or turns around instead of showing it: controls, bidirectional marks, characters
# without width, tags, variation selectors, lone surrogates and private use.
_SPOOFING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e01ef\U000f0000-\U0010ffff]"
)
_VERBS = {"write": "writes", "delete": "deletes", "network": "contacts"}


class ApprovalQuestion(Struct, frozen=True, kw_only=True):
    """What a person, or the smart mode's model, is shown."""

    action: Action
    analysis: Analysis
    verdict: Verdict
    asked_by: str = ""  # the child whose question it is, in words; empty is the agent itself

    @property
    def command(self) -> str:
        """The text in question: a command, a path, an address or a script."""
        return self.action.text

    @property
    def description(self) -> str:
        """What is dangerous about it, in the words that name the approval."""
        return f"[{self.asked_by}] {self.verdict.reason}" if self.asked_by else self.verdict.reason

    @property
    def tool(self) -> str:
        return self.action.tool

    @property
    def cwd(self) -> str:
        return self.action.cwd

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers that count, the most careful yes first; anything else is a no."""
        return (*self.verdict.scopes, "deny")

    @property
    def allow_permanent(self) -> bool:
        return "always" in self.verdict.scopes

    @property
    def lines(self) -> tuple[str, ...]:
        """What would happen, line by line: dangers first, then what is written, deleted and contacted."""
        return tuple(_told(self.analysis, self.verdict))


def facts_of(question: ApprovalQuestion) -> dict[str, Any]:
    """The question as plain data, with what it would do line by line."""
    keys = list(question.verdict.keys)
    return {
        "command": question.command,
        "pattern_key": keys[0] if keys else question.description,
        "pattern_keys": keys,
        "description": question.description,
        "effects": list(question.lines),
        "choices": list(question.choices),
        "tool": question.tool,
        "cwd": question.cwd,
        **({"asked_by": question.asked_by} if question.asked_by else {}),
        **({"diff": diff} if (diff := question.action.details.get("diff")) else {}),
        **_of_command(question.action),
    }


def _of_command(action: Action) -> dict[str, Any]:
    """Of a question about a place or the border: the command that it is asked for, and why."""
    if not action.details.get("runs_again"):
        return {}
    return {"for_command": action.details.get("command", ""), "why": action.details.get("why", "")}


def visible(text: str) -> str:
    """`text` with everything a terminal would act on or hide written out, so that what is read is what would run."""
    return _SPOOFING.sub(lambda found: _written_out(found.group()), text.replace("\t", "    "))


def shown_command(text: str) -> str:
    """`text` indented for a question; a very long one is cut, and says so."""
    lines = visible(text).split("\n")
    kept = lines if len(lines) <= _MAX_LINES else [*lines[:_MAX_LINES], f"… and {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(f"    {line}" for line in kept)


def _written_out(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _told(analysis: Analysis, verdict: Verdict) -> list[str]:
    lines: list[str] = []
    for effect in verdict.effects:
        if effect.severity > Severity.NOTE:
            touched = _listed((*effect.paths, *effect.hosts))
            lines.append(f"{effect.key}: {effect.detail}{touched}")
    for kind, verb in _VERBS.items():
        found = [effect for effect in analysis.effects if effect.kind == kind and effect.severity is Severity.NOTE]
        named = dict.fromkeys(name for effect in found for name in (*effect.paths, *effect.hosts))
        if named:
            lines.append(f"{verb}{_listed(tuple(named)).removesuffix(')').replace(' (', ' ', 1)}")
    return [visible(line).replace("\n", " ") for line in dict.fromkeys(lines)]


def _listed(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MAX_PATHS} more" if len(names) > _MAX_PATHS else ""
    return f" ({', '.join(names[:_MAX_PATHS])}{more})"
