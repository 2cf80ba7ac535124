"""Parse bash with tree-sitter, in pieces small enough that no input can stall it."""

import re
import threading
from collections.abc import Iterator
from functools import cache

import tree_sitter
import tree_sitter_bash
from tree_sitter import Node

from hermes.tools.approval.effects_model import Budget

PIECE = 3072  # bytes; error recovery in the grammar is quadratic, so no piece may be longer
_ENOUGH = 1024  # bytes; statements are gathered up to this size
_TOKENS = 3  # that are told apart in one step
_MAX_PIPES = 120
_MAX_HEREDOCS = 24
LIFTED = "\ue0ff"  # followed by an index and the same mark: a long literal kept out of the parse

_TOKEN = re.compile(
    r"""(?P<comment>(?:(?<=[\s;&|()])|\A)\#[^\n]*)
    |(?P<escape>\\.)
    |(?P<single>'[^']*'?)
    |(?P<double>"(?:[^"\\]|\\.)*"?)
    |(?P<heredoc><<-?[ \t]*(?:'[^'\n]*'|"[^"\n]*"|\\?[\w.!-]+))
    |(?P<open>[({])
    |(?P<close>[)}])
    |(?P<cut>;;|&&|\|\||[;&\n](?!>))
    |(?P<word>[A-Za-z_]+)
    |(?P<space>[ \t]+)
    |(?P<other>[^\s\\'"<(){};&|\#A-Za-z_]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ODD_HEREDOC = re.compile(r"<<-?[ \t]*\S*[^\x00-\x7f]")
_OPENERS = frozenset({"if", "for", "while", "until", "case", "select"})
_CLOSERS = frozenset({"fi", "done", "esac"})


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_bash.language())


_PARSERS = threading.local()  # a parser must not be shared between threads


def _parser() -> tree_sitter.Parser:
    parser: tree_sitter.Parser | None = getattr(_PARSERS, "bash", None)
    if parser is None:
        parser = _PARSERS.bash = tree_sitter.Parser(_language())
    return parser


def parse(source: str) -> Node | None:
    """The root node of `source`, or None when the grammar cannot be trusted with it. Offsets count characters.

    The grammar's scanner asks the C library for the class of each character and reads outside its tables for some that
    are not ASCII, so it is shown a stand-in for those; the words are always read from the real text. A here-document
    whose end is not ASCII could then end too early, and is refused.
    """
    if source.count("|") > _MAX_PIPES or source.count("<<") > _MAX_HEREDOCS:
        return None
    if not source.isascii():
        if _ODD_HEREDOC.search(source):
            return None
        source = _NOT_ASCII.sub("%", source)
    return _parser().parse(source.encode()).root_node


def pieces(text: str, lifted: list[str], budget: Budget) -> Iterator[str | None]:
    """Split a long script into statements to parse one by one; None stands for one that is too long.

    Long literals (quoted strings, bodies of here-documents) are moved to `lifted` and replaced by a mark.
    """
    if len(text) <= PIECE:
        yield text
        return
    piece: list[str] = []
    size = 0
    for number, (token, is_cut) in enumerate(_tokens(text, lifted)):
        budget.spend(number % _TOKENS == 0)  # a bool is a number of steps, too
        piece.append(token)
        size += len(token)
        if is_cut and size >= _ENOUGH:
            yield "".join(piece) if size <= PIECE else None
            piece, size = [], 0
    yield "".join(piece) if size <= PIECE else None


def _tokens(text: str, lifted: list[str]) -> Iterator[tuple[str, bool]]:
    depth = 0
    at_command = True
    bodies: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None  # `other` takes any character
        kind, part = found.lastgroup or "other", found.group()
        position = found.end()
        if kind in ("single", "double"):
            part = _lift(kind, part, lifted)
        elif kind == "heredoc":
            bodies.append(_delimiter(part))
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        elif kind == "word" and at_command:
            depth = max(0, depth + (part in _OPENERS) - (part in _CLOSERS))
        if part == "\n" and bodies:
            body, position = _bodies(text, position, bodies, lifted)
            part += body
            bodies = []
        is_cut = kind == "cut" and depth == 0 and not bodies
        yield part, is_cut
        if kind != "space":
            at_command = kind in ("cut", "open", "close") or part in ("do", "then", "else", "elif", "!", "|")


def _lift(kind: str, token: str, lifted: list[str]) -> str:
    if len(token) < 120 or token[-1] not in "'\"" or (kind == "double" and ("$" in token or "`" in token)):
        return token
    lifted.append(token[1:-1] if kind == "single" else re.sub(r'\\([\\"\n$`])', r"\1", token[1:-1]))
    return f"'{LIFTED}{len(lifted) - 1}{LIFTED}'"


def _delimiter(token: str) -> tuple[str, bool]:
    word = token.removeprefix("<<").removeprefix("-").strip()
    return word.strip("'\"\\"), word[0] in "'\"\\"


def _bodies(text: str, position: int, bodies: list[tuple[str, bool]], lifted: list[str]) -> tuple[str, int]:
    out: list[str] = []
    for end, is_literal in bodies:
        found = re.compile(rf"^\t*{re.escape(end)}[ \t]*$", re.MULTILINE).search(text, position)
        stop = found.start() if found else len(text)
        body = text[position:stop]
        if body and (is_literal or not ("$" in body or "`" in body)):
            lifted.append(body)
            body = f"{LIFTED}{len(lifted) - 1}{LIFTED}\n"
        close = found.end() if found else len(text)
        out.append(body + text[stop:close] + ("\n" if found else ""))
        position = min(len(text), close + 1)
    return "".join(out), position


__all__ = ["LIFTED", "Node", "parse", "pieces"]
