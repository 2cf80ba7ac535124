"""Orders in a skill that go against the person who keeps it: to hide, to disobey, to take along, to stay. Pure.

A skill is all orders; these are the ones that no way of working needs, beyond those that no text from a file may give.
"""

import re
import unicodedata
from collections.abc import Iterator

_UP_TO = r"(?:[^\w\n]+\w+){0,8}?[^\w\n]+"  # up to eight other words between two key words
_RULES: dict[str, str] = {
    "disobey": (
        rf"\b(?:forget|override)\b{_UP_TO}(?:previous|prior|above|earlier|all|any|your|system)\b"
        rf"(?:[^\w\n]+\w+){{0,4}}?[^\w\n]+(?:instructions?|rules|guidelines|prompt|policy|policies)\b"
        r"|\b(?:developer|dan|jailbreak)\s+mode\b"
    ),
    "hide": (
        rf"\b(?:do\s+not|don't|never|without)\b{_UP_TO}?(?:tell|telling|mention|mentioning|inform|informing|show|showing"
        rf"|reveal|revealing|notify|notifying|disclose)\b{_UP_TO}?(?:the\s+)?(?:user|human|person|owner|anyone|anybody)\b"
        r"|\b(?:silently|secretly|covertly)\s+(?:\w+\s+){0,3}?(?:send|upload|run|execute|install|post|copy|add|append|write)\b"
        r"|\bkeep\s+(?:this|it)\s+(?:a\s+)?(?:secret|hidden)\s+from\b"
    ),
    "unguard": (
        r"\b(?:disable|turn\s+off|switch\s+off|bypass|skip|circumvent|remove)\b"
        r"[^.\n]{0,40}\b(?:approvals?|confirmations?|sandbox(?:ing)?|safety|guardrails?|permission\s+(?:checks?|prompts?))\b"
        r"|--yolo\b|\bapprovals\.mode\b|\bHERMES_(?:YOLO|ACCEPT_HOOKS)\b"
        r"|\bauto[- ]?approve\b[^.\n]{0,40}\b(?:all|every|any)\b"
        r"|\b(?:run|execute)\b[^.\n]{0,60}\bwithout\s+(?:asking|confirmation|approval|permission)\b"
    ),
    "take secrets": (
        rf"\b(?:send|post|upload|exfiltrate|transmit|forward|leak|e-?mail|paste|submit|report|include|put|embed)\b{_UP_TO}?"
        r"(?:api\s+keys?|tokens?|passwords?|credentials?|secrets?|private\s+keys?|ssh\s+keys?|environment\s+variables"
        r"|\.env\b|id_rsa|cookies|chat\s+history|conversation|memory\s+files?|system\s+prompt)\b"
        r"[^\n]{0,120}(?:\bto\b|\binto\b|\bat\b|\bin\b)[^\n]{0,40}(?:https?://|webhook|@|server|endpoint|url|query\s+string|issue|gist|pastebin)"
        r"|(?:~|\$HOME|/root|/home/\w+)/\.(?:ssh/(?:id_|\*)|aws/credentials|netrc|hermes/\.env|config/gh/hosts|docker/config\.json)"
        r"|!\[[^\]\n]*\]\(https?://[^)\n]*(?:\{\w+\}|\$\{?\w+|<\w+>)[^)\n]*\)"
    ),
    "stay": (
        r"\b(?:add|append|write|copy|insert|save|put|store)\b[^.\n]{0,80}"
        r"(?:SOUL\.md|AGENTS\.md|CLAUDE\.md|\.cursorrules|MEMORY\.md|USER\.md|authorized_keys|\.bashrc|\.zshrc|\.profile"
        r"|\.hermes/config|crontab|(?:your|the\s+agent's)\s+(?:long[- ]term\s+)?memory)"
        r"|\b(?:load|use|follow|apply|invoke|run)\s+this\s+skill\b[^.\n]{0,40}"
        r"\b(?:every|all|any)\s+(?:task|session|request|conversation|message|prompt)s?\b"
    ),
}
_PATTERNS = {name: re.compile(rule, re.IGNORECASE) for name, rule in _RULES.items()}
_COMMENT = re.compile(
    r"<!--(.*?)(?:-->|\Z)|^\[(?://|comment|_)\]:\s*#?\s*[(\"'](.*?)[)\"']\s*$", re.DOTALL | re.MULTILINE
)
_ORDER_WORDS = re.compile(
    r"\b(?:ignore|override|system\s+prompt|secret(?:ly)?|hidden|assistant|you\s+must|you\s+should|execute)\b",
    re.IGNORECASE,
)
_INVISIBLE_HTML = re.compile(
    r"<[^>\n]{0,200}?\bstyle\s*=[^>\n]{0,200}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0"
    r"|opacity\s*:\s*0(?![.\d])|color\s*:\s*(?:white|#fff))|<[^>\n]{0,200}\shidden(?:\s|>|=)",
    re.IGNORECASE,
)


def orders_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, rule and words of each kind of order; of one kind the first alone. Full-width letters count as plain."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    joined = re.sub(r"(?<=\w)\n(?=\w)", " ", plain)  # an order broken over two lines is one; no place moves by this
    for name, pattern in _PATTERNS.items():
        if found := pattern.search(joined):
            yield _line(plain, found.start()), name, " ".join(found[0].split())[:100]
    for comment in _COMMENT.finditer(plain):
        words = comment[1] or comment[2] or ""
        if _ORDER_WORDS.search(words):
            yield _line(plain, comment.start()), "a comment that is not shown", " ".join(words.split())[:100]
            break
    if block := _INVISIBLE_HTML.search(plain):
        yield _line(plain, block.start()), "a block that is not shown", " ".join(block[0].split())[:100]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
