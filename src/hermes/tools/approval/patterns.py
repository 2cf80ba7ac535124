"""The published list: one regular expression per danger, as a second net under the parse tree.

The expressions are searched in a flattened form of the command (`flatten`): quotes and escapes are gone, quoted phrases
with blanks in them are folded to one word so that a quoted command does not stand where a command would, and each
command starts after a separator. No expression may try again from each place of a long text: repeats are counted.
"""

import re

from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.command_text import MAX_BYTES, clean, folded
from hermes.tools.approval.effects_model import Severity

_AT = (
    r"(?:^|[;&|\n({]|\$\(|`|\b(?:then|do|else|sudo|exec|nohup|env|command|time|setsid|xargs)\s)"
    r"\s*(?:[a-z_]\w*=\S*\s+)*(?:/\S*/)?"
)
_END = r"(?=[\s;&|)]|$)"

DANGEROUS_PATTERNS: list[tuple[str, str]] = [
    (_AT + r"rm\s+(?:\S+\s+){0,64}?-(?:[a-z]*r[a-z]*|-recursive)" + _END, "recursive delete"),
    (
        _AT + r"rm\s+(?:-\S+\s+)*(?:/(?!tmp/|var/tmp/|dev/shm/|home/|users/|workspace/|root/)[a-z*]|/\s*$|~/?\s*$)",
        "delete in root path",
    ),
    (_AT + r"mkfs(?:\.\w+)?\s+\S", "format filesystem"),
    (_AT + r"dd\s+(?:\S+\s+){0,64}?of=(?!/dev/(?:null|stdout|stderr))\S", "disk copy"),
    (r">\s*/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|r?disk\d|md\d)\w*", "write to block device"),
    (_AT + r"drop\s+(?:table|database|schema)\b", "SQL DROP"),
    (_AT + r"truncate\s+table\b", "SQL TRUNCATE"),
    (_AT + r"delete\s+from\s+\S+\s*(?:;|$|\n)", "SQL DELETE without WHERE"),
    (r">{1,2}\s*(?:/private)?/etc/\S", "overwrite system config"),
    (_AT + r"tee\s+(?:-\S+\s+)*(?:/private)?/etc/", "overwrite system config"),
    (_AT + r"systemctl\s+(?:-\S+\s+)*(?:stop|restart|disable|mask)\b", "stop, restart or disable a system service"),
    (
        _AT + r"(?:curl|wget)\s[^\n;&]{0,999}\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:/\S*/)?(?:ba|z|k|da)?sh" + _END,
        "pipe remote content to shell",
    ),
    (_AT + r"(?:ba|z|k|da)?sh\s+<\(\s*(?:curl|wget)\b", "pipe remote content to shell"),
    (
        _AT + r"(?:base64|base32|xxd)\s[^\n;&|]{0,300}-(?:d|-decode|r)\b[^\n;&]{0,300}\|\s*(?:ba|z|k|da)?sh" + _END,
        "decoded or generated text run as code",
    ),
    (r"(?<![\w:.])([\w:.]{1,64})\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&\s*\}", "fork bomb"),
    (_AT + r"kill\s+(?:-\S+\s+)*-1" + _END, "kill all processes"),
    (_AT + r"(?:pkill|killall)\s+(?:\S+\s+){0,64}?-(?:9|kill|sigkill|s\s+(?:9|kill))\b", "force kill processes"),
    (
        _AT + r"chmod\s+(?:-\S+\s+)*(?:0?[0-7]{2}[2367]|[ugoa]*[oa][ugoa]*\+[rx]*w)\S*" + _END,
        "world/other-writable permissions",
    ),
    (
        r">{1,2}\s*(?:~|\$home)/\.(?:bashrc|zshrc|profile|bash_profile|ssh/|netrc)",
        "overwrite shell rc or credential file",
    ),
    (r">{1,2}\s*(?:~|\$home)/\.hermes/", "write the runtime's own files"),
    (_AT + r"xargs\s+(?:-\S+\s+)*rm\b", "xargs with rm"),
    (_AT + r"find\s[^\n;&|]{0,999}\s-(?:delete|exec(?:dir)?\s+(?:/\S*/)?rm)\b", "find -delete or -exec rm"),
    (
        _AT
        + r"git\s+(?:-\S+\s+)*(?:reset\s+(?:\S+\s+){0,64}?--hard"
        + r"|push\s+(?:\S+\s+){0,64}?(?:--force\S*|-f)|clean\s+-\w*f)"
        + _END,
        "git history or work discarded",
    ),
    (_AT + r"(?:shutdown|reboot|halt|poweroff)" + _END, "system shutdown or reboot"),
    (_AT + r"(?:init|telinit)\s+[06]" + _END, "system shutdown or reboot"),
]
"""(regular expression, description); the description is the key of the approval."""

HARDLINE_PATTERNS: list[tuple[str, str]] = [
    (
        _AT + r"rm\s+(?:-\S+\s+)*(?:/|/\*|~/?|\$home/?|/(?:home|root|etc|usr|var|bin|sbin|boot|lib)(?:/\*?)?)" + _END,
        "recursive delete",
    ),
    (_AT + r"mkfs(?:\.\w+)?\s+\S", "format filesystem"),
    (_AT + r"dd\s+(?:\S+\s+){0,64}?of=/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|r?disk\d)", "disk copy"),
    (r">\s*/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|r?disk\d)\w*", "write to block device"),
    (r"(?<![\w:.])([\w:.]{1,64})\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&\s*\}", "fork bomb"),
    (_AT + r"kill\s+(?:-\S+\s+)*-1" + _END, "kill all processes"),
    (_AT + r"(?:shutdown|reboot|halt|poweroff)" + _END, "system shutdown or reboot"),
    (_AT + r"(?:init|telinit)\s+[06]" + _END, "system shutdown or reboot"),
    (_AT + r"systemctl\s+(?:-\S+\s+)*(?:poweroff|reboot|halt|kexec)\b", "system shutdown or reboot"),
]

_FLAGS = re.IGNORECASE | re.DOTALL
_COMPILED = [(re.compile(pattern, _FLAGS), key) for pattern, key in DANGEROUS_PATTERNS]
_HARD = [(re.compile(pattern, _FLAGS), key) for pattern, key in HARDLINE_PATTERNS]
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


def search(command: str) -> str | None:
    """The key of the first dangerous pattern that matches, or None."""
    return _first(_COMPILED, command)


def search_hardline(command: str) -> str | None:
    """The key of the first hardline pattern that matches, or None."""
    return _first(_HARD, command)


def _first(compiled: list[tuple[re.Pattern[str], str]], command: str) -> str | None:
    text = flatten(command)
    if not _HINT.search(text.lower()):
        return None
    return next((key for pattern, key in compiled if pattern.search(text)), None)


def detect_dangerous_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None, str | None]:
    """`(True, key, key)` when a person must be asked, else `(False, None, None)`; the key describes the danger."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    key = dangers[0].key if dangers else _net(command)
    return (True, key, key) if key else (False, None, None)


def detect_hardline_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None]:
    """`(True, description)` for what never runs on a host, whatever was approved, else `(False, None)`."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    if dangers and dangers[0].severity is Severity.HARDLINE:
        return True, dangers[0].key
    key = search_hardline(command) if len(command) <= MAX_BYTES else None
    return (True, key) if key else (False, None)


def _net(command: str) -> str | None:
    return search(command) if len(command) <= MAX_BYTES else None
