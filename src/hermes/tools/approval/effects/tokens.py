"""Code of other languages by its tokens: names, literals and what they stand for, without running it."""

import re
from typing import NamedTuple

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects_model import Budget

_TOKENS = re.compile(
    r"""(?P<comment>\#(?!\{)[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>[bBrRuUfF]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|"(?:[^"\\#]|\\.|\#\{[^{}\n]{0,200}\}|\#)*"?|'(?:[^'\\]|\\.)*'?)
       |`(?:[^`\\]|\\.)*`?|(?:qx|%x|qw|q|qq|%w)(?:\{[^}]{0,999}\}|\([^)]{0,999}\)|/[^/]{0,999}/|\[[^\]]{0,999}\]))
    |(?P<name>[A-Za-z_$@%][\w$]*)
    |(?P<number>\d[\d_]*)
    |(?P<op>\S)""",
    re.VERBOSE | re.DOTALL,
)
_MAX_LITERALS = 64
_MAX_TEXT = 16384
_MAKES_TEXT = frozenset(words("base64 bytes b64decode atob decode_base64 fromhex chr join"))
_NO_VALUES = frozenset(words("True False None true false null shell check recursive force os subprocess"))
_ESCAPE = re.compile(
    r"\\x([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4,6})\}?|\\U([0-9a-fA-F]{8})|\\([0-7]{3})|\\(.)", re.DOTALL
)


class CodeToken(NamedTuple):
    kind: str
    text: str


def tokens(code: str, budget: Budget) -> list[CodeToken]:
    found = []
    for match in _TOKENS.finditer(code):
        kind = match.lastgroup or "op"
        budget.spend(3)  # to be told apart, and looked at by each rule
        if kind != "comment":
            found.append(CodeToken(kind, match.group()))
    return found


def _module_name(token: CodeToken) -> str:
    if token.kind != "string":
        return token.text
    name = value_of(token.text).removeprefix("node:")
    return "promises" if name == "fs/promises" else "fs" if name == "fs-extra" else name


def constants(parts: list[CodeToken]) -> dict[str, str]:
    """Names that hold a literal: `c = "rm"`, `$c = 'rm' . ' -rf'`."""
    known: dict[str, str] = {}
    for position in range(len(parts) - 2):
        if parts[position].kind == "name" and parts[position + 1].text == "=" and parts[position + 2].text != "=":
            value, _ = _expression(parts, position + 2, known)
            if value is not None:
                known[parts[position].text] = value
    return known


def _expression(parts: list[CodeToken], position: int, known: dict[str, str]) -> tuple[str | None, int]:
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
        if len(text) > _MAX_TEXT:
            return None, position
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


def owner_of(parts: list[CodeToken], position: int) -> str:
    """The object before `.name`, `::name` or `->name`; a module that is required in place under its own name."""
    before = position - 1
    if before < 0:
        return ""
    pair = "".join(token.text for token in parts[max(0, before - 1) : before + 1])
    if parts[before].text == ".":
        before -= 1
        if before >= 0 and parts[before].text == "?":
            before -= 1
    elif pair in ("::", "->"):
        before -= 2
    else:
        return ""
    if before < 0:
        return ""
    if parts[before].text == ")":
        inner = parts[max(0, before - 3) : before + 1]
        if len(inner) == 4 and inner[0].text in ("require", "import") and inner[2].kind == "string":
            return _module_name(inner[2])
        return ")"
    return parts[before].text if parts[before].kind == "name" else ")"


def aliases(parts: list[CodeToken], owners: frozenset[str]) -> frozenset[str]:
    """The names that stand for one of `owners`: `f = fs`, `f = require("fs")`, `{promises: p} = require("fs")`."""
    found: set[str] = set()
    for position in range(1, len(parts) - 1):
        start = position - 1
        if parts[position].text == "=" and _is_owner(parts, position + 1, owners):
            while parts[position - 1].text == "}" and start > 0 and parts[start].text != "{":
                start -= 1
        elif parts[position].text == "from" and _module_name(parts[position + 1]) in owners:
            while start > 0 and parts[start].text != "import" and position - start < _MAX_LITERALS:
                start -= 1
        else:
            continue
        found.update(token.text for token in parts[start:position] if token.kind == "name")
    return frozenset(found)


def _is_owner(parts: list[CodeToken], position: int, owners: frozenset[str]) -> bool:
    texts = [token.text for token in parts[position : position + 3]]
    if texts[:2] == ["require", "("]:
        return len(texts) > 2 and _module_name(parts[position + 2]) in owners | {"promises"}
    return texts[0] in owners and not {".", "(", "["} & set(texts[1:2])


def first_argument(parts: list[CodeToken], position: int, known: dict[str, str]) -> str | None:
    """The literal that stands first behind the name at `position`; None when that is something else."""
    start = position + 1
    while start < len(parts) and parts[start].text in ("(", "["):
        start += 1
    value, after = _expression(parts, start, known)
    ends = (
        after >= len(parts) or parts[after].text in (",", ")", ";", "]", "}", "|", "=") or parts[after].kind == "name"
    )
    return value if ends else None


_BEFORE_PATTERN = re.compile(
    r"(?:\A|[(,;{}!&|~=?:]|\b(?:if|unless|and|or|not|split|grep|when|return|while|until|match|print))\s*\Z"
)
_LITERALS = re.compile(
    r"(?P<kept>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|\b(?:qx|qq|qw|q)(?:\{[^}]{0,400}\}|\([^)]{0,400}\)|\[[^\]]{0,400}\])"
    r"|%[xwqQ](?:\{[^}]{0,400}\}|\([^)]{0,400}\)|\[[^\]]{0,400}\]))"
    r"|(?P<perl>\b(?:(?:s|tr|y)(?P<a>[/#|!,~@%])(?:\\.|(?!(?P=a))[^\\]){0,400}(?P=a)(?:\\.|(?!(?P=a))[^\\]){0,400}(?P=a)[a-z]*"
    r"|(?:m|qr)(?P<b>[/#|!,~@%])(?:\\.|(?!(?P=b))[^\\]){0,400}(?P=b)[a-z]*"
    r"|(?:s|tr|y)\{[^}]{0,400}\}\s*\{[^}]{0,400}\}[a-z]*|(?:m|qr)\{[^}]{0,400}\}[a-z]*))"
    r"|(?P<slash>/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n]){0,60}\]|[^/\\\n\[]){1,400}/[a-z]*)",
    re.DOTALL,
)


def without_patterns(code: str, language: str) -> str:
    """The code with an empty string for each of its search patterns: what stands in them is no code."""
    if language not in ("perl", "ruby", "node", "nodejs", "bun", "deno"):
        return code

    def one(found: re.Match[str]) -> str:
        is_pattern = (found["perl"] and language == "perl") or (
            found["slash"] and _BEFORE_PATTERN.search(code[max(0, found.start() - 12) : found.start()])
        )
        return '""' if is_pattern else found[0]

    return _LITERALS.sub(one, code)


def arguments(parts: list[CodeToken], position: int, known: dict[str, str]) -> tuple[bool, list[str], bool]:
    """(is a list, the literal arguments, whether something in them is not literal)."""
    literals: list[str] = []
    depth = 0
    is_list = False
    dark = False
    index = position + 1
    bare = index < len(parts) and parts[index].text != "("
    while index < len(parts):
        token = parts[index]
        if len(literals) >= _MAX_LITERALS:
            return is_list, literals, True
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
        elif token.text in ("my", "our", "local"):
            dark = True
        elif token.kind == "name" and not (index + 1 < len(parts) and parts[index + 1].text in ("=", ":")):
            if token.text not in _NO_VALUES:
                dark = True
            if bare and depth <= 0 and parts[index + 1 : index + 2] != [CodeToken("op", ",")]:
                break
        index += 1
    return is_list, literals, dark
