"""Read SQL by its own tokens: comments and strings are data, statements are judged."""

import itertools
import re
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.tables import word_list

_TOKENS = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*|'(?:[^'\\]|''|\\.)*'?|\"(?:[^\"]|\"\")*\"?|`[^`]*`?"
    r"|\$(?P<tag>[A-Za-z_]*)\$(?P<body>.*?)(?:\$(?P=tag)\$|\Z)|[A-Za-z_][\w$]*|\d+|\n|[^\s]",
    re.DOTALL,
)
_VERSIONED = re.compile(r"/\*M?!\d*")  # a comment that MySQL runs
_STARTS = frozenset(words("explain begin with do execute call prepare declare if"))
_KEPT = frozenset(words("constraint index default not expression identity primary foreign check key"))
_CONSTANT = frozenset(words("' \" $ true false null not is = < > ! ( ) + - * / % and between like in"))
_MAX_DEPTH = 3


class Statement(NamedTuple):
    words: list[str]  # in lower case; a string is its quote, a line break itself
    bodies: list[str]  # what stands between dollar quotes
    strings: list[str]  # the texts in single quotes, in their order
    shown: str


def judge_sql(text: str, depth: int = 0) -> list[tuple[str, str]]:
    """The destructive statements of `text`, as (effect kind, statement)."""
    found: list[tuple[str, str]] = []
    for statement in _statements(_VERSIONED.sub(" ", text)):
        kind = _statement(statement.words) or _runs_text(statement, depth)
        if kind:
            found.append((kind, statement.shown))
        elif depth < _MAX_DEPTH and {"do", "execute"} & set(statement.words):
            for body in statement.bodies:
                found += judge_sql(body, depth + 1)
    return found


def unfamiliar(text: str) -> str:
    """The first word of a statement that nobody uses every day (shutdown, purge, reset, revoke), else ""."""
    for statement in _statements(text):
        plain = [word for word in statement.words if word != "\n"]
        if (
            len(plain) > 1
            and plain[0].isalpha()
            and plain[0] not in word_list("sql.familiar")
            and plain[1] not in ("=", ":", "/", ".")
        ):
            return plain[0]
        if len(plain) == 1 and plain[0] in ("shutdown", "purge", "reset", "flush"):
            return plain[0]
    return ""


def _statements(text: str) -> list[Statement]:
    statements: list[Statement] = []
    words: list[str] = []
    bodies: list[str] = []
    strings: list[str] = []
    start = 0
    for token in _TOKENS.finditer(text):
        part = token.group()
        if part == ";":
            statements.append(Statement(words, bodies, strings, text[start : token.start()].strip()[:160]))
            words, bodies, strings, start = [], [], [], token.end()
        elif part.startswith(("--", "/*")) or (part.startswith("#") and len(part) > 1):
            continue
        elif part == "\n" or part[0].isalnum() or part[0] == "_":
            words.append(part.lower())
        else:
            words.append(part[0])
            bodies += [token["body"]] if token["body"] else []
            strings += [part.strip("'").replace("''", "'")] if part[0] == "'" else []
    return [*statements, Statement(words, bodies, strings, text[start:].strip()[:160])]


def _runs_text(statement: Statement, depth: int) -> str:
    """SQL that is made by SQL: one whole literal is judged, a text that is put together could be anything."""
    plain = [word for word in statement.words if word != "\n"]
    if depth >= _MAX_DEPTH or not plain:
        return ""
    if plain[0] in (":", "@", UNKNOWN):  # a variable of the client, or of the shell, where a verb belongs
        return "sql_made" if plain[0] != "@" or len(plain) == 1 else ""
    for position, word in enumerate(plain):
        after = plain[position + 1 : position + 3]
        if word in ("execute", "exec") and after[:1] in (["immediate"], ["("], ["sp_executesql"]):
            text = plain[position + 2 :]
        elif (word == "execute" and depth and after) or (word == "from" and position == 2 and plain[0] == "prepare"):
            text = plain[position + 1 :]
        else:
            continue
        if text[:1] == ["n"]:
            text = text[1:]
        if text[:1] == ["'"] and (len(text) < 2 or text[1] in (")", ",", "using", "into", "end")):
            texts = (judge_sql(made, depth + 1) for made in statement.strings)
            return next((kind for found in texts for kind, _ in found), "")
        if text[:1] != ["$"]:  # what stands between dollar quotes is judged as a body
            return "sql_made"
    return ""


def _statement(words: list[str]) -> str:
    plain = [word for word in words if word != "\n"]
    if not plain:
        return ""
    if plain[0] == "match" and "delete" in plain:
        return "sql_delete"
    if plain[0] == "alter":
        return _alter(plain)
    for position, word in enumerate(plain):
        if position and plain[0] not in _STARTS:
            break
        following = plain[position + 1 : position + 2]
        if word == "drop" and following and (following[0] in word_list("sql.drops") or not position):
            return "sql_drop"
        if word == "truncate" and following and following[0] not in ("(", ","):
            return "sql_truncate"
        if word == "delete" and following == ["from"]:
            return "" if _is_limited(words, on_one_line=True) else "sql_delete"
    if plain[0] == "update" and "set" in plain and not _is_limited(words, on_one_line=False):
        return "sql_delete"
    return ""


def _alter(plain: list[str]) -> str:
    """Columns and whole objects go with their data; constraints, indexes and defaults do not."""
    for word, following in itertools.pairwise(plain):
        if (word == "drop" and following not in _KEPT) or (
            word in ("delete", "update") and following in ("where", plain[-1])
        ):
            return "sql_drop"
    return ""


def _is_limited(words: list[str], *, on_one_line: bool) -> bool:
    """Whether a WHERE leaves something out.

    After DELETE, one on a later line is easily lost when the statement is pasted line by line; the contract asks about
    it.
    """
    verb = words.index("delete") if on_one_line else 0
    if "where" not in words[verb:]:
        return False
    place = words.index("where", verb)
    if on_one_line and "\n" in words[verb:place]:
        return False
    rest = [word for word in words[place + 1 :] if word != "\n"]
    parts: list[list[str]] = [[]]
    for word in rest:
        if word == "or":
            parts.append([])
        else:
            parts[-1].append(word)
    return not any(_is_always(part) for part in parts)


def _is_always(condition: list[str]) -> bool:
    """Whether a condition says nothing about the row: constants alone, or a column equal to itself."""
    if len(condition) == 3 and condition[1] == "=" and condition[0] == condition[2]:
        return True
    return all(word in _CONSTANT or word.isdigit() for word in condition)
