"""Find what text from files says to the model behind the person's back: orders to disobey, and characters nobody sees.

A text match is a smoke alarm, not a border: what a model may do is decided by the gate, whatever it was told.
"""

import re
import unicodedata
from functools import cache
from itertools import islice
from typing import Literal, TypeAlias

from msgspec import Struct

Scope: TypeAlias = Literal["anywhere", "context", "memory"]  # each has the rules of those before it
INVISIBLE = re.compile("[\u200b-\u200d\u2060\u2062-\u2064\ufeff\u202a-\u202e\u2066-\u2069]")

_SOME = r"(?:\W+\w+){0,8}?\W+"  # up to eight other words between two key words
# Each with words of which one is in every text that it finds, since to look for a word costs next to nothing. All is
# lower case, as is the text that is looked through.
_RULES: dict[Scope, tuple[tuple[str, tuple[str, ...], str], ...]] = {
    "anywhere": (
        ("ignore-instructions", ("ignore",), rf"\bignore{_SOME}(?:previous|all|above|prior){_SOME}instructions\b"),
        (
            "disregard-rules",
            ("disregard",),
            rf"\bdisregard{_SOME}(?:your|all|any){_SOME}(?:instructions|rules|guidelines)\b",
        ),
        ("prompt-override", ("override",), r"\bsystem\s+prompt\s+override\b"),
        (
            "no-restrictions",
            ("act",),
            rf"\bact\s+as\s+(?:if|though)\s+you{_SOME}no\s+(?:restrictions|limits|rules)\b",
        ),
        ("hide-from-user", ("tell",), rf"\bdo\s+not{_SOME}tell{_SOME}the\s+user\b"),
        ("hidden-block", ("<div", "< div"), r"<\s*div[^>]{0,200}?\bstyle\s*=[^>]{0,200}?display\s*:\s*none"),
        ("translate-execute", ("translate",), rf"\btranslate{_SOME}and\s+(?:execute|run|eval)\b"),
        (
            "send-secret",
            ("curl", "wget"),
            r"\b(?:curl|wget)\b[^\n]{0,400}?\$\{?\w{0,60}?(?:key|token|secret|password|credential|api)",
        ),
        ("read-secret", ("cat",), r"\bcat\s+[^\n]{0,200}?(?:\.env\b|credentials|\.netrc|\.pgpass|\.npmrc|\.pypirc)"),
    ),
    "context": (
        ("new-role", ("now",), r"\byou\s+are\s+now\s+(?:a|an|the)\b"),
        ("pretend", ("pretend",), rf"\bpretend{_SOME}to\s+be\b"),
        ("leak-prompt", ("prompt",), rf"\boutput{_SOME}system\s+prompt\b"),
        (
            "answer-freely",
            ("without",),
            rf"\b(?:answer|respond|reply){_SOME}without{_SOME}(?:restrictions|limitations|filters)\b",
        ),
        ("false-update", ("been",), r"\byou\s+have\s+been\s+(?:updated|upgraded|patched)\s+to\b"),
        ("new-name", ("yourself",), r"\bname\s+yourself\b"),
        (
            "remote-control",
            ("node", "beacon", "control", "cobalt", "metasploit", "meterpreter", "c2"),
            (
                r"\bregister(?:\s+\w+){0,3}\s+as\s+a\s+node\b|\bbeacon\s+to\b|\bcommand[-\s]and[-\s]control\b"
                r"|\b(?:cobalt\s+strike|metasploit|meterpreter|sliver\s+c2|havoc\s+c2)\b"
            ),
        ),
        ("unset-guard", ("unset",), r"\bunset\s+(?:hermes|claude|openai|anthropic|codex)_\w+"),
    ),
    "memory": (
        ("send-out", ("http",), rf"\b(?:send|post|upload){_SOME}to\s+https?://"),
        ("print-history", ("print",), rf"\bprint{_SOME}(?:conversation|chat\s+history)\b"),
        ("ssh-access", ("ssh", "authorized_keys"), r"authorized_keys|~/\.ssh\b"),
        ("home-secrets", (".hermes",), r"~/\.hermes/\.env\b"),
        (
            "edit-rules",
            ("agents.md", "claude.md", ".cursorrules", ".hermes"),
            (
                r"\b(?:edit|change|modify|update|write|append)\b(?:\W+\w+){0,8}?\W*?"
                r"(?:agents\.md|claude\.md|\.cursorrules|\.hermes/(?:config\.yaml|soul\.md))"
            ),
        ),
        (
            "key-in-text",
            ("key", "token", "secret", "password"),
            r"""(?:key|token|secret|password)\w{0,40}\s*[=:]\s*["'][^"'\s]{20,}["']""",
        ),
    ),
}
_ORDER: tuple[Scope, ...] = ("anywhere", "context", "memory")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IN_COMMENT = re.compile(r"(?<![-\w])(?:ignore|override|system|secret|hidden)\b")  # `prettier-ignore` is for a program


class InjectionFinding(Struct, frozen=True):
    """What was found first, and where."""

    rule: str  # its short name, or `U+200B` for a character that nobody sees
    line: int
    words: str  # the beginning of what matched

    def __str__(self) -> str:
        told = f"the invisible character {self.rule}" if self.rule.startswith("U+") else f"{self.rule}: {self.words!r}"
        return f"line {self.line}, {told}"


def scan(text: str, scope: Scope = "context") -> InjectionFinding | None:
    """The first thing in `text` that no file should say to a model; None when there is nothing.

    Full-width letters count as plain ones. A byte order mark at the very beginning is none of the invisible characters.
    """
    hidden = INVISIBLE.search(text, 1 if text.startswith("\ufeff") else 0)
    if hidden is not None:
        return InjectionFinding(f"U+{ord(hidden.group()):04X}", _line(text, hidden.start()), "")
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    found = [
        (match.start(), name, match.group())
        for each in _ORDER[: _ORDER.index(scope) + 1]
        for name, words, rule in _RULES[each]
        if any(word in plain for word in words) and (match := _compiled(rule).search(plain))
    ]
    if "<!--" in plain:
        comments = (match for match in _COMMENT.finditer(plain) if _IN_COMMENT.search(match.group()))
        found += [(match.start(), "hidden-comment", match.group()) for match in islice(comments, 1)]
    if not found:
        return None
    place, rule_name, matched = min(found)
    return InjectionFinding(rule_name, _line(plain, place), " ".join(matched.split())[:60])


def blocked(name: str, finding: InjectionFinding) -> str:
    """What the model reads in place of a file, or of an entry, in which something was found."""
    return f"[BLOCKED: {name} was left out, because it may be an attempt to take control ({finding})]"


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


@cache
def _compiled(rule: str) -> re.Pattern[str]:
    return re.compile(rule)
