"""Code of other languages by its tokens: names, literals and what they stand for, without running it."""

import re
from typing import NamedTuple

from hermes.tools.approval.text import words

_TOKENS = re.compile(
    r"""(?P<comment>\#(?!\{)[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>[bBrRuUfF]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)
       |`(?:[^`\\]|\\.)*`?|(?:qx|%x|qw|q|qq|%w)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]))
    |(?P<name>[A-Za-z_$@%][\w$]*)
    |(?P<number>\d+)
    |(?P<op>\S)""",
    re.VERBOSE | re.DOTALL,
)
_MAX_CODE = 65536
_MAKES_TEXT = frozenset(words("base64 bytes b64decode atob decode_base64 fromhex chr join"))
_NO_VALUES = frozenset(words("True False None true false null shell check recursive force os subprocess"))
_IMPORT = frozenset({"import", "require", "from"})
_ESCAPE = re.compile(
    r"\\x([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4,6})\}?|\\U([0-9a-fA-F]{8})|\\([0-7]{3})|\\(.)", re.DOTALL
)


class Token(NamedTuple):
    kind: str
    text: str


def tokens(code: str) -> list[Token]:
    found = []
    for match in _TOKENS.finditer(code[:_MAX_CODE]):
        kind = match.lastgroup or "op"
        if kind != "comment":
            found.append(Token(kind, match.group()))
    return found


def renamed(parts: list[Token]) -> list[Token]:
    """Modules under the names they are known by: `import subprocess as s`, `const s = require("child_process")`."""
    meant: dict[str, str] = {}
    for position in range(1, len(parts) - 1):
        token, before, after = parts[position], parts[position - 1], parts[position + 1]
        if token.text == "as" and before.kind == after.kind == "name":
            meant[after.text] = before.text
        elif token.text == "as" and before.text == "*" and position + 3 < len(parts):
            meant[after.text] = _module_name(parts[position + 3])
        elif token.text == "=" and before.kind == "name" and after.text in _IMPORT and position + 3 < len(parts):
            meant[before.text] = _module_name(parts[position + 3])
    if not meant:
        return parts
    return [Token("name", meant[part.text]) if part.kind == "name" and part.text in meant else part for part in parts]


def _module_name(token: Token) -> str:
    return value_of(token.text).removeprefix("node:").split("/")[0] if token.kind == "string" else token.text


def constants(parts: list[Token]) -> dict[str, str]:
    """Names that hold a literal: `c = "rm"`, `$c = 'rm' . ' -rf'`."""
    known: dict[str, str] = {}
    for position in range(len(parts) - 2):
        if parts[position].kind == "name" and parts[position + 1].text == "=" and parts[position + 2].text != "=":
            value, _ = _expression(parts, position + 2, known)
            if value is not None:
                known[parts[position].text] = value
    return known


def _expression(parts: list[Token], position: int, known: dict[str, str]) -> tuple[str | None, int]:
    """A chain of literals joined by `+` or `.`; None when anything else takes part."""
    text = ""
    seen = False
    while position < len(parts):
        token = parts[position]
        if token.kind == "string":
            text += value_of(token.text)
        elif token.kind == "name" and token.text in known:
            text += known[token.text]
        elif token.kind == "name" and token.text in _MAKES_TEXT:
            return None, position
        else:
            break
        seen = True
        position += 1
        if (
            position < len(parts)
            and parts[position].text in ("+", ".")
            and position + 1 < len(parts)
            and (parts[position + 1].kind == "string" or parts[position + 1].text in known)
        ):
            position += 1
        elif position < len(parts) and parts[position].kind == "string":
            continue
        else:
            break
    return (text if seen else None), position


def value_of(literal: str) -> str:
    body = literal.lstrip("bBrRuUfF") if literal[-1:] in "'\"" else literal
    for quote in ('"""', "'''", '"', "'", "`"):
        if body.startswith(quote):
            inner = body[len(quote) :].removesuffix(quote)
            return _ESCAPE.sub(_unescape, inner)
    found = re.match(r"(?:qq?|qw)\W(.*)\W\Z", body, re.DOTALL)
    return found[1] if found else body


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    if found[4]:
        return chr(int(found[4], 8))
    return {"n": "\n", "t": "\t", "\n": ""}.get(found[5], found[5])


def owner_of(parts: list[Token], position: int) -> str:
    """The object before `.name`, `::name` or `->name`."""
    before = position - 1
    while before >= 0 and parts[before].text in (".", ":", ">", "-", "?"):
        before -= 1
    if before == position - 1 or before < 0:
        return ""
    if parts[before].text == ")":
        inner = [token.text for token in parts[max(0, before - 4) : before + 1]]
        return "require(" if "require" in inner or "__import__" in inner else ("Path" if "Path" in inner else ")")
    return parts[before].text


def arguments(parts: list[Token], position: int, known: dict[str, str]) -> tuple[bool, list[str], bool]:
    """(is a list, the literal arguments, whether something in them is not literal)."""
    literals: list[str] = []
    depth = 0
    is_list = False
    dark = False
    index = position + 1
    bare = index < len(parts) and parts[index].text != "("
    while index < len(parts) and len(literals) < 32:
        token = parts[index]
        if token.text in "([{":
            depth += 1
            is_list = is_list or token.text == "["
        elif token.text in ")]}":
            depth -= 1
            if depth <= 0:
                break
        elif token.text in (";", "\n") and depth <= 0:
            break
        elif token.kind == "string" or (token.kind == "name" and token.text in known):
            value, after = _expression(parts, index, known)
            if value is not None:
                literals.append(value)
                index = max(after, index + 1)
                continue
        elif token.kind == "name" and not (index + 1 < len(parts) and parts[index + 1].text in ("=", ":")):
            if token.text not in _NO_VALUES:
                dark = True
            if bare and depth <= 0 and parts[index + 1 : index + 2] != [Token("op", ",")]:
                break
        index += 1
    return is_list, literals, dark
