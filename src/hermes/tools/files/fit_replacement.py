"""Fit a replacement to the place it goes to: the file's line endings, indentation and spelling of what stays."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from hermes.tools.files.encoding import line_endings
from hermes.tools.files.text_match import Match, indents_of
from hermes.tools.files.tokens import Line, TextToken, has_newline

# Above this, aligning old and new line by line may take long; then only equal lines at both ends are aligned.
_MAX_ALIGNED_LINES = 2000
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_ESCAPED = re.compile(r"\\[nrt\"'\\]|[\"']")


def with_endings(new: str, ending: str) -> str:
    """`new` with every line break written as `ending`."""
    bare = new.replace("\r\n", "\n")
    return bare if ending == "\n" else bare.replace("\n", ending)


def ending_at(text: str, match: Match) -> str:
    """The line ending in use at `match`: inside it, else in the file."""
    if "\r" not in text:
        return "\n"
    inside = text[match.start : match.end]
    return line_endings(inside if "\n" in inside or "\r" in inside else text).main.value


def fitted(text: str, match: Match, old: list[Line], new: list[Line]) -> str:
    """The replacement for `match`: lines and tokens that old and new share are taken from the file as they are."""
    fit = _Fit(text, match, old, new)
    pieces = list(match.pieces)
    if fit.is_at_unended_line:
        # The newline that the file's last line lacks is there for as long as lines are put together.
        pieces[-1] = (*pieces[-1][:-1], pieces[-1][-1] + fit.ending)
    parts: list[str] = []
    for tag, a0, a1, b0, b1 in _opcodes(old, new):
        if tag == "equal":
            parts += ("".join(row) for row in pieces[a0:a1])
        elif a1 - a0 == b1 - b0:
            changed = zip(old[a0:a1], pieces[a0:a1], new[b0:b1], strict=True)
            parts += (fit.line(ours, row, theirs) for ours, row, theirs in changed)
        else:
            parts += ("".join(fit.token(token) for token in line) for line in new[b0:b1])
    written = "".join(parts)
    return _without_final_newline(written) if fit.is_at_unended_line else written


class _Fit:
    """What the match has shown about how this file writes what the model wrote otherwise."""

    def __init__(self, text: str, match: Match, old: list[Line], new: list[Line]) -> None:
        self.ending = r"\n" if _has_written_out_breaks(old, match) else ending_at(text, match)
        self.indents = indents_of(old, match) or {}
        self.old_unit = _unit([line[0].text for line in (*old, *new) if line[0].kind == "indent"])
        self.file_unit = _unit(list(self.indents.values())) or _file_unit(text)
        self.spelling = _spelling(old, match)
        asked_newline, found_newline = has_newline(old[-1][-1]), match.pieces[-1][-1].endswith(("\n", "\r", "\\n"))
        self.is_at_unended_line = asked_newline and not found_newline

    def line(self, old: Line, pieces: Sequence[str], new: Line) -> str:
        """One changed line: the tokens it keeps are the file's own."""
        parts: list[str] = []
        for tag, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            parts += pieces[a0:a1] if tag == "equal" else (self.token(token) for token in new[b0:b1])
        return "".join(parts)

    def token(self, token: TextToken) -> str:
        """One token that is new here."""
        match token.kind:
            case "indent":
                return self._indent(token.text)
            case "break":
                return with_endings(token.text, self.ending) if has_newline(token) else token.text
            case "words":
                return _ESCAPED.sub(lambda found: self.spelling.get(found.group(), found.group()), token.text)

    def _indent(self, wanted: str) -> str:
        if wanted in self.indents:
            return self.indents[wanted]
        if all(theirs == ours for ours, theirs in self.indents.items()):
            return wanted
        bases = [ours for ours in self.indents if wanted.startswith(ours)]
        if bases:
            base = max(bases, key=len)
            return self.indents[base] + self._deeper(wanted[len(base) :])
        # Less deep than all that is known: take off as much as the file's writing of the shallowest one has.
        base = min(self.indents, key=len, default="")
        missing, rest = divmod(len(base) - len(wanted), max(len(self.old_unit), 1))
        theirs = self.indents.get(base, "")
        return theirs[: max(len(theirs) - missing * len(self.file_unit) - rest, 0)]

    def _deeper(self, extra: str) -> str:
        if not self.old_unit or not self.file_unit:
            return extra
        depth, rest = divmod(len(extra), len(self.old_unit))
        return self.file_unit * depth + extra[len(extra) - rest :]


def _opcodes(old: list[Line], new: list[Line]) -> list[tuple[str, int, int, int, int]]:
    if len(old) + len(new) <= _MAX_ALIGNED_LINES:
        return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    a1, b1 = len(old) - tail, len(new) - tail
    return [("equal", 0, head, 0, head), ("replace", head, a1, head, b1), ("equal", a1, len(old), b1, len(new))]


def _spelling(old: list[Line], match: Match) -> dict[str, str]:
    """How the file writes each escape or quote of `old`, where it always writes it in one other way."""
    seen: dict[str, set[str]] = {}
    for line, pieces in zip(old, match.pieces, strict=True):
        for token, piece in zip(line, pieces, strict=True):
            if token.kind == "words" and _ESCAPED.fullmatch(token.text):
                seen.setdefault(token.text, set()).add(piece)
    single = {ours: next(iter(theirs)) for ours, theirs in seen.items() if len(theirs) == 1}
    # A curly double quote opens or closes, so one that was seen does not tell how to write another.
    return {ours: theirs for ours, theirs in single.items() if theirs != ours and (theirs.isascii() or ours == "'")}


def _has_written_out_breaks(old: list[Line], match: Match) -> bool:
    r"""Whether the file has `\n` in letters where the model broke the line."""
    pieces = [row[-1] for line, row in zip(old, match.pieces, strict=True) if has_newline(line[-1])]
    return bool(pieces) and all(piece.endswith(r"\n") for piece in pieces)


def _unit(indents: list[str]) -> str:
    """The smallest step between indentations; empty when there is only one depth."""
    if any("\t" in indent for indent in indents):
        return "\t"
    depths = sorted({len(indent) for indent in indents})
    steps = [deeper - shallower for shallower, deeper in pairwise(depths)]
    return " " * min(steps, default=0)


def _file_unit(text: str) -> str:
    """The indentation step that this file uses most, judged by its first part."""
    indents = _INDENTED.findall(text, 0, 200_000)
    if not indents:
        return ""
    tabs = sum(indent[0] == "\t" for indent in indents)
    if tabs * 2 >= len(indents):
        return "\t"
    depths = [len(indent) for indent in indents]
    steps = Counter(abs(a - b) for a, b in zip(depths, [0, *depths], strict=False) if a != b)
    return " " * steps.most_common(1)[0][0] if steps else "    "


def _without_final_newline(text: str) -> str:
    for ending in ("\r\n", "\n", "\r"):
        if text.endswith(ending):
            return text[: -len(ending)]
    return text
