"""The shell commands behind `search_files`, and the reading of what they print. Only the page asked for is printed."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

# Stand between path, line number and text; no sane path has them.
_MATCH_MARK = "\x1f"
_CONTEXT_MARK = "\x1e"
MAX_CONTENT_CHARS = 500
# grep -Z ends the path with a NUL, the number with a colon in a match and a dash in context.
_GREP_MARKS = r"sed -e 's/\x00\([0-9]*\):/\x1f\1\x1f/' -e 's/\x00\([0-9]*\)-/\x1e\1\x1e/'"
_GLOB_CHARACTERS = frozenset("*?[{")

Kind: TypeAlias = Literal["content", "files_only", "count", "files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to look for. `folder` is where it runs; `target` is "." or one file in it, or "-" for standard input."""

    kind: Kind
    pattern: str
    folder: str
    target: str = "."
    file_glob: str = ""
    limit: int = 50
    offset: int = 0
    context: int = 0


class FoundLines(NamedTuple):
    """The page that was printed, how many entries there are in all, and what went wrong."""

    lines: list[str]
    total: int
    sum: int  # of the numbers at the end of lines; for counts
    errors: str


def command(search: SearchRequest, rg: str | None) -> str:
    """One line of shell. `rg` is the program to use; None takes what the environment has, ripgrep or grep and find."""
    if rg is not None:
        body = _with_rg(search, shlex.quote(rg))
    else:
        body = f"if command -v rg >/dev/null 2>&1; then {_with_rg(search, 'rg')}; else {_with_grep(search)}; fi"
    # A subshell, so that neither the folder nor the option lasts in the session.
    return f"( set -o pipefail; export LC_ALL=C; cd {shlex.quote(search.folder)} && {{ {body}; }} )"


def read(output: str) -> FoundLines:
    """What a command of `command` printed. Lines without our tags come from a program's error output."""
    lines, errors, total, numbers = [], [], 0, 0
    for line in output.split("\n"):
        if line.startswith("M\t"):
            lines.append(line[2:].removesuffix("\r"))
        elif line.startswith("T\t"):
            _, count, summed = line.split("\t")
            total, numbers = int(count), int(summed)
        elif line.strip():
            errors.append(line)
    return FoundLines(lines, total, numbers, "\n".join(errors))


def matches_of(found: FoundLines, context: int) -> Iterator[dict[str, object]]:
    """Each match as path, line and text, with the lines around it when context was asked for."""
    rows = [row for row in map(_row, found.lines) if row is not None]
    for index, row in enumerate(rows):
        if not row.is_match:
            continue
        match: dict[str, object] = {"path": row.path, "line": row.line, "content": row.text}
        if context:
            around = [
                other for other in rows[max(0, index - 2 * context) : index + 2 * context + 1] if other is not row
            ]
            near = [other for other in around if other.path == row.path and abs(other.line - row.line) <= context]
            match["before"] = [f"{other.line}|{other.text}" for other in near if other.line < row.line]
            match["after"] = [f"{other.line}|{other.text}" for other in near if other.line > row.line]
        yield match


def counts_of(found: FoundLines) -> dict[str, int]:
    pairs = (line.rpartition(":") for line in found.lines)
    return {_path(path): int(count) for path, _, count in pairs if count.isdigit()}


def files_of(found: FoundLines) -> list[str]:
    return [_path(line) for line in found.lines]


class _Row(NamedTuple):
    path: str
    line: int
    text: str
    is_match: bool


def _row(line: str) -> _Row | None:
    mark = _MATCH_MARK if _MATCH_MARK in line else _CONTEXT_MARK
    path, _, rest = line.partition(mark)
    number, _, text = rest.partition(mark)
    if not number.isdigit():
        return None  # the line between two groups of context
    return _Row(_path(path), int(number), text[:MAX_CONTENT_CHARS], mark == _MATCH_MARK)


def _path(text: str) -> str:
    return text.removeprefix("./")


def _with_rg(search: SearchRequest, rg: str) -> str:
    words = [rg, "--no-config", "--no-messages", "--color=never"]
    globs = [search.file_glob] if search.file_glob else []
    if search.kind == "files":
        words += ["--files", "--sortr=modified"]
        globs = _name_globs(search.pattern)
    elif search.kind == "files_only":
        words += ["--files-with-matches"]
    elif search.kind == "count":
        words += ["--count", "--include-zero", "--with-filename"]
    else:
        words += ["--line-number", "--with-filename", "--no-heading", f"--max-columns={MAX_CONTENT_CHARS}"]
        words += ["--max-columns-preview", r"--field-match-separator='\x1f'", r"--field-context-separator='\x1e'"]
        if search.context:
            words += [f"--context={search.context}", "--sort=path"]
    words += [f"--glob={shlex.quote(glob)}" for glob in globs]
    if search.kind != "files":
        words += ["-e", shlex.quote(search.pattern)]
    words += ["--", shlex.quote(search.target)] if search.kind != "files" else []
    return f"{' '.join(words)} | {_sorted(search)}{_page(search)}"


def _with_grep(search: SearchRequest) -> str:
    if search.kind == "files":
        names = _name_globs(search.pattern)
        tests = " -o ".join(_find_test(glob) for glob in names)
        listing = rf"find . -name '.?*' -prune -o -type f \( {tests} \) -printf '%T@ %p\n' 2>/dev/null"
        return f"{listing} | sort -rn | cut -d' ' -f2- | {_page(search)}"
    words = ["grep", "-rIEs", "--exclude-dir='.?*'"]
    if search.file_glob:
        words.append(f"--include={shlex.quote(search.file_glob)}")
    words += {"files_only": ["-l"], "count": ["-cH"]}.get(search.kind, ["-nHZ"])
    if search.kind == "content" and search.context:
        words.append(f"-C{search.context}")
    words += ["-e", shlex.quote(search.pattern), "--", shlex.quote(search.target)]
    marks = f" | {_GREP_MARKS}" if search.kind == "content" else ""
    return f"{' '.join(words)}{marks} | {_sorted(search)}{_page(search)}"


def _find_test(glob: str) -> str:
    if "/" in glob:
        return f"-path {shlex.quote('./' + glob.lstrip('/').replace('**/', '*'))}"
    return f"-name {shlex.quote(glob)}"


def _name_globs(pattern: str) -> list[str]:
    """The globs for a file name: any part of it without wildcards, at any depth with a folder."""
    if not _GLOB_CHARACTERS & set(pattern):
        return [f"*{pattern}*"] if "/" not in pattern else [f"**/{pattern.lstrip('/')}*"]
    if "/" in pattern and not pattern.startswith(("/", "**/")):
        return [pattern, f"**/{pattern}"]
    return [pattern]


def _sorted(search: SearchRequest) -> str:
    """Put entries in order, so that pages fit together: ripgrep prints in the order its threads finish."""
    if search.kind == "files" or search.context:
        return ""
    if search.kind == "content":
        return r"sort -s -t $'\x1f' -k1,1 -k2,2n | "
    return "sort | "


def _page(search: SearchRequest) -> str:
    """Print the entries of the page with a tag, then how many there were."""
    first, last = search.offset, search.offset + search.limit
    if search.kind == "content" and search.context:
        rule = (
            f'index($0, "\\037") {{n++; if (n > {first} && n <= {last}) print "M\\t" $0; next}} '
            f'n >= {first} && n <= {last} {{print "M\\t" $0}}'
        )
    else:
        rule = f'{{n++}} n > {first} && n <= {last} {{print "M\\t" $0}}'
        if search.kind == "count":
            rule = "{s += $NF} " + rule
    separator = "-F: " if search.kind == "count" else ""
    return f"awk {separator}'{rule} END {{printf \"T\\t%d\\t%d\\n\", n, s}}'"
