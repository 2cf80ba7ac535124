"""Read SQL by its own tokens: comments and strings are data, statements are judged."""

import re

from hermes.tools.approval.text import words

_TOKENS = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*|'(?:[^'\\]|''|\\.)*'?|\"(?:[^\"]|\"\")*\"?|`[^`]*`?|\$\$.*?(?:\$\$|\Z)|[A-Za-z_][\w$]*|\n|[^\s]",
    re.DOTALL,
)
_DROPS = frozenset(
    words(
        "table database schema view index user role tablespace keyspace collection function trigger owned "
        "materialized type sequence extension procedure column constraint"
    )
)


def judge_sql(text: str) -> list[tuple[str, str]]:
    """The destructive statements of `text`, as (effect kind, statement)."""
    found: list[tuple[str, str]] = []
    for tokens, shown in _statements(text):
        kind = _statement(tokens)
        if kind:
            found.append((kind, shown))
    return found


def _statements(text: str) -> list[tuple[list[str], str]]:
    statements: list[tuple[list[str], str]] = []
    words: list[str] = []
    start = 0
    for token in _TOKENS.finditer(text):
        part = token.group()
        if part == ";":
            statements.append((words, text[start : token.start()].strip()[:160]))
            words, start = [], token.end()
        elif part.startswith(("--", "/*")) or (part.startswith("#") and len(part) > 1):
            continue
        elif part == "\n" or part[0].isalnum() or part[0] == "_":
            words.append(part.lower())
        else:
            words.append(part[0])
    statements.append((words, text[start:].strip()[:160]))
    return statements


def _statement(words: list[str]) -> str:
    plain = [word for word in words if word != "\n"]
    if not plain:
        return ""
    verbs = {"explain", "begin", "with", "do", "execute", "call"}
    for position, word in enumerate(plain):
        following = plain[position + 1 : position + 4]
        if (
            word == "drop"
            and following
            and following[0] in _DROPS
            and (position == 0 or plain[0] in verbs or plain[0] == "alter")
        ):
            return (
                ""
                if following[0] in ("constraint", "column", "index")
                and plain[0] == "alter"
                and following[0] != "column"
                else "sql_drop"
            )
        if word == "truncate" and (position == 0 or plain[0] in verbs) and following and following[0] not in ("(", ","):
            return "sql_truncate"
        if word == "delete" and following[:1] == ["from"] and (position == 0 or plain[0] in verbs):
            return "" if _where_on_same_line(words) else "sql_delete"
    if plain[0] == "update" and "set" in plain and "where" not in plain:
        return "sql_delete"
    return ""


def _where_on_same_line(words: list[str]) -> bool:
    """A WHERE on a later line is easily lost when a statement is pasted line by line; the contract asks about it."""
    seen = False
    for position, word in enumerate(words):
        if word == "delete":
            seen = True
        elif seen and word == "\n":
            return False
        elif seen and word == "where":
            rest = [part for part in words[position + 1 :] if part != "\n"]
            return rest[:3] not in (["1", "=", "1"], ["true"]) and rest[:1] != ["true"]
    return False
