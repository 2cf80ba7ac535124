"""The published list: one regular expression per danger, as a second net under the parse tree.

The expressions are searched in a flattened form of the command (`flatten`): quotes and escapes are gone, quoted phrases
with blanks in them are folded to one word so that a quoted command does not stand where a command would, and each
command starts after a separator. No expression may try again from each place of a long text: repeats are counted.
"""

import re
from functools import cache

from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.command_text import MAX_BYTES, clean, folded
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.tables import rows

_AT = (
    r"(?:^|[;&|\n({]|\$\(|`|\b(?:then|do|else|sudo|exec|nohup|env|command|time|setsid|xargs)\s)"
    r"\s*(?:[a-z_]\w*=\S*\s+)*(?:/\S*/)?"
)
_END = r"(?=[\s;&|)]|$)"

# Nothing of the list can match without one of these; most commands stop here.
_HINT = re.compile(
    r"\b(?:rm|mkfs|dd|drop|truncate|delete|tee|systemctl|base(?:64|32)|xxd|p?kill(?:all)?|chmod|xargs|find|shutdown|reboot|halt"
    r"|poweroff|init|telinit|reset|push|clean)\b|>\s*[/~$]|\(\)|sh\b"
)
_PART = re.compile(
    r"""(?P<heredoc><<-?[ \t]*(?P<quote>['"\\]?)(?P<end>[\w.-]+)['"]?)
    |(?P<comment>(?:(?<=\s)|\A)\#[^\n]*)
    |\\(?P<escaped>.|\n)
    |'(?P<single>[^']*)'?
    |"(?P<double>(?:[^"\\]|\\.)*)"?
    |(?P<ifs>\$\{?IFS\}?)
    |(?P<text>[^\\'"$<\#]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_MAX = 8192
_MAX_ENDS = 24


def flatten(command: str) -> str:
    """`command` as plain text, without a parser: quotes, escapes, comments and here-documents are gone."""
    text = folded(clean(command)[:_MAX])[:_MAX]
    out: list[str] = []
    ends: list[str] = []
    position = 0
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            break
        position = found.end()
        kind = found.lastgroup
        if kind == "escaped":
            out.append("" if found["escaped"] == "\n" else found["escaped"])
        elif kind in ("single", "double"):
            # A quoted phrase is one word of data; only its blanks and separators could make it look like a command.
            out.append(re.sub(r"[\s;&|(){}<>`]+", "_", found[kind]))
        elif kind == "ifs":
            out.append(" ")
        elif kind == "text":
            part = found["text"]
            if ends and "\n" in part:
                position = _skip_bodies(text, found.start() + part.index("\n"), ends)
                part = part[: part.index("\n")] + "\n"
                ends = []
            out.append(part)
        elif found["end"]:
            ends.append(found["end"])
    return "".join(out)


def _skip_bodies(text: str, position: int, ends: list[str]) -> int:
    for end in ends[:_MAX_ENDS]:
        found = re.compile(rf"^\t*{re.escape(end)}\s*$", re.MULTILINE).search(text, position)
        position = found.end() if found else len(text)
    return position


@cache
def published(*, is_hard: bool) -> list[tuple[str, str]]:
    """(regular expression, description) of the list, or of its hard rules; the description is the approval's key."""
    listed = (row.replace("<at>", _AT).replace("<end>", _END).partition(": ") for row in rows("patterns.txt"))
    return [(pattern, key.removesuffix("!")) for key, _, pattern in listed if key.endswith("!") is is_hard]


@cache
def _compiled(*, is_hard: bool) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE | re.DOTALL), key) for pattern, key in published(is_hard=is_hard)]


def search(command: str, *, is_hard: bool = False) -> str | None:
    """The key of the first pattern that matches, or None."""
    if len(command) > MAX_BYTES or not _HINT.search((text := flatten(command)).lower()):
        return None
    return next((key for pattern, key in _compiled(is_hard=is_hard) if pattern.search(text)), None)


def detect_dangerous_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None, str | None]:
    """`(True, key, key)` when a person must be asked, else `(False, None, None)`; the key describes the danger."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    key = dangers[0].key if dangers else search(command)
    return (True, key, key) if key else (False, None, None)


def detect_hardline_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None]:
    """`(True, description)` for what never runs on a host, whatever was approved, else `(False, None)`."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    if dangers and dangers[0].severity is Severity.HARDLINE:
        return True, dangers[0].key
    key = search(command, is_hard=True)
    return (True, key) if key else (False, None)
