"""What a skill would have the agent do, told before it counts: commands, sends, hidden characters, orders. Pure.

A scan is a smoke alarm and no border: what a command may do is decided by the gate when it runs, whoever wrote it. But
a person who is asked whether to take a skill should see what is in it, and nobody reads five hundred lines for that.
"""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from hermes.extensions.skills.hidden_text import hidden_in
from hermes.extensions.skills.skill_orders import orders_in


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


Severity: TypeAlias = Literal["danger", "notice"]
MOST_FINDINGS = 40
_MAX_SCANNED_CHARS = 400_000  # of one file
# What the gate calls an effect, of those that no way of working needs: each is a reason not to take the skill.
_DANGERS = _words(
    """accounts block_device chown_root cron_write decoded_code defence_off disk_copy disk_layout
    exfiltration exhaustion fork_bomb format mass_kill open_permissions own_files own_runtime remote_code reverse_shell
    self_kill system_config system_delete user_files sudo_stdin"""
)
_NOT_FOR_TEXT = frozenset({"unknown", "unknown_program", "intricate", "inline_code", "write"})  # of examples in prose
_FENCE = re.compile(
    r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n]*\n(.*?)(?:^\1\2[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_SPAN = re.compile(r"`([^`\n]{4,400})`")
_SHELL = frozenset({"", "bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "ksh"})
_PYTHON = frozenset({"python", "py", "python3", "ipython"})
_PROMPT = re.compile(r"^[ \t]*[$#%>][ \t]+")
_RISKY_LINE = re.compile(
    r"\b(?:curl|wget|nc|ncat|socat|base64|eval|bash|sh|zsh|powershell|pwsh|iwr|iex|scp|rsync|ssh|rm|dd|mkfs|chmod|tee)\b|/dev/tcp/"
)
_BLOB = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,}={0,2}")
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa", b"\xcf\xfa\xed\xfe", b"\x00asm")
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
_PACKED_NAMES = (".pyc", ".so", ".dylib", ".dll", ".exe", ".jar", ".whl", ".deb", ".rpm", ".app", ".dmg", ".pkl")
_JS = re.compile(
    r"(?:child_process|execSync|spawnSync|\bexec\(|\bsystem\(|Net::HTTP|fetch\(|https?\.request|XMLHttpRequest)"
)
_JS_SECRET = re.compile(r"process\.env\b|ENV\[|\.ssh/|\.aws/|\.netrc|\.env\b|id_rsa|credentials")


class CommandEffect(Struct, frozen=True):
    """What a text that is run would do, in the words of whoever judges commands."""

    kind: str
    words: str
    is_hardline: bool = False
    hosts: tuple[str, ...] = ()


class ScanReaders(Struct, frozen=True):
    """Those who judge: commands of a shell, Python, and what no text may say to a model. All are pure."""

    command: Callable[[str], Sequence[CommandEffect]]
    code: Callable[[str], Sequence[CommandEffect]]
    orders: Callable[[str], Sequence[tuple[int, str, str]]]  # line, rule and words


class SkillFinding(Struct, frozen=True):
    """Something in a skill that a person should know."""

    severity: Severity
    rule: str
    file: str
    line: int
    words: str  # what stands there, in short

    def __str__(self) -> str:
        return f"{self.severity}: {self.file}:{self.line}: {self.rule}: {self.words}"


def scan_skill(files: Mapping[str, bytes], readers: ScanReaders) -> list[SkillFinding]:
    """What is found in these files, dangers first; the same thing at the same place once."""
    found: dict[tuple[str, str, int], SkillFinding] = {}
    for name in sorted(files):
        for one in _scan_file(name, files[name], readers):
            found.setdefault((one.rule, one.file, one.line), one)
    ordered = sorted(found.values(), key=lambda one: (one.severity != "danger", one.file, one.line))
    return ordered[:MOST_FINDINGS]


def is_refused(findings: Iterable[SkillFinding]) -> bool:
    """Whether something is among them that no skill needs."""
    return any(one.severity == "danger" for one in findings)


def _scan_file(name: str, data: bytes, readers: ScanReaders) -> Iterator[SkillFinding]:
    if data.startswith(_PROGRAMS) or name.lower().endswith(_PACKED_NAMES):
        yield SkillFinding("danger", "a program that nobody can read", name, 1, f"{len(data)} bytes")
        return
    if data.startswith(_PACKED):
        yield SkillFinding("danger", "an archive that hides what is in it", name, 1, f"{len(data)} bytes")
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" not in data:
            yield SkillFinding("notice", "not UTF-8", name, 1, f"{len(data)} bytes")
        return
    if len(text) > _MAX_SCANNED_CHARS:
        yield SkillFinding("notice", "too long to be looked through", name, 1, f"{len(text)} characters")
        text = text[:_MAX_SCANNED_CHARS]
    for line, words in hidden_in(text):
        yield SkillFinding("danger", "hidden characters", name, line, words)
    for line, rule, words in (*readers.orders(text), *orders_in(text)):
        yield SkillFinding("danger", f"an order to the agent ({rule})", name, line, words)
    yield from _effects(name, text, readers)
    yield from _decoded(name, text, readers)


def _effects(name: str, text: str, readers: ScanReaders) -> Iterator[SkillFinding]:
    first, ending = text.partition("\n")[0], name.rpartition(".")[2].lower()
    if ending == "py" or (first.startswith("#!") and "python" in first):
        yield from _told(name, 1, text, readers.code(text), is_whole=True)
    elif ending in ("sh", "bash", "zsh") or (first.startswith("#!") and "sh" in first):
        yield from _told(name, 1, text, readers.command(text), is_whole=True)
    elif ending in ("js", "ts", "mjs", "rb", "pl", "php"):
        yield from _foreign(name, text)
    else:
        yield from _examples(name, text, readers)
    yield from _risky_lines(name, text, readers)


def _examples(name: str, text: str, readers: ScanReaders) -> Iterator[SkillFinding]:
    """The blocks and spans of code in a text."""
    for block in _FENCE.finditer(text):
        line, language, code = text.count("\n", 0, block.start(4)) + 1, block[3].lower().strip("{}."), block[4]
        if language in _PYTHON:
            yield from _told(name, line, code, readers.code(code))
        elif language in _SHELL:
            yield from _told(name, line, code, readers.command(_typed(code)))
    for span in _SPAN.finditer(_FENCE.sub(_blank, text)):
        if " " in span[1].strip():
            line = text.count("\n", 0, span.start()) + 1
            yield from _told(name, line, span[1], readers.command(span[1]))


def _risky_lines(name: str, text: str, readers: ScanReaders) -> Iterator[SkillFinding]:
    """Commands that stand neither in a block nor in a script of a known kind: only what is dangerous is told."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) < 4000 and _RISKY_LINE.search(line):
            bare = _PROMPT.sub("", line).strip(" \t\"'`-*,")
            for part in (bare, bare.partition(": ")[2].strip(" \"'`,")):
                told = _told(name, number, line, readers.command(part)) if part else ()
                yield from (one for one in told if one.severity == "danger")


def _told(
    name: str, line: int, code: str, effects: Sequence[CommandEffect], *, is_whole: bool = False
) -> Iterator[SkillFinding]:
    for effect in effects:
        if effect.kind in _NOT_FOR_TEXT and not (is_whole and effect.kind != "write"):
            continue
        severity: Severity = "danger" if effect.kind in _DANGERS or effect.is_hardline else "notice"
        hosts = f" ({', '.join(effect.hosts)})" if effect.hosts else ""
        words = " ".join(_line_of(code, effect).split())[:120]
        yield SkillFinding(severity, f"{effect.words}{hosts}", name, line, words)


def _line_of(code: str, effect: CommandEffect) -> str:
    """The line that shows it, where a host or a program tells which that is; else the first one with words in it."""
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    by_host = (line for line in lines if any(host and host in line for host in effect.hosts))
    return next(by_host, next(iter(lines), ""))


def _foreign(name: str, text: str) -> Iterator[SkillFinding]:
    """Languages that nobody here reads: what starts programs or sends, and worse when it reads secrets as well."""
    calls = _JS.search(text)
    if calls is None:
        return
    line = text.count("\n", 0, calls.start()) + 1
    if secret := _JS_SECRET.search(text):
        yield SkillFinding("danger", "private files or credentials sent out", name, line, f"{calls[0]} … {secret[0]}")
    else:
        yield SkillFinding("notice", "starts programs or contacts hosts", name, line, calls[0])


def _decoded(name: str, text: str, readers: ScanReaders) -> Iterator[SkillFinding]:
    """What base64 hides: text with orders or commands in it. A picture is none."""
    for blob in _BLOB.finditer(text):
        try:
            inner = b64decode(blob[0][: len(blob[0]) // 4 * 4], validate=True).decode("utf-8")
        except (BadBase64, ValueError):
            continue
        if not inner.isprintable() and not inner.replace("\n", "").isprintable():
            continue
        line = text.count("\n", 0, blob.start()) + 1
        bad = [
            *readers.orders(inner),
            *orders_in(inner),
            *(one for one in readers.command(inner) if one.kind in _DANGERS),
        ]
        if bad:
            yield SkillFinding("danger", "orders or commands hidden in base64", name, line, inner[:80])
        elif " " in inner:
            yield SkillFinding("notice", "a text in base64", name, line, inner[:80])


def _typed(block: str) -> str:
    """What a person would type of a block that shows a dialogue with a shell; any other block as it is."""
    lines = block.splitlines()
    if any(line.lstrip().startswith("$ ") for line in lines):
        return "\n".join(_PROMPT.sub("", line) for line in lines if line.lstrip().startswith(("$ ", "> ")))
    return block


def _blank(block: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", block[0])
