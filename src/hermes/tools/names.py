"""Repair a tool name that a model wrote slightly wrong."""

import re
from collections.abc import Iterable

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CLOSE = 0.85
_LONGEST = 128


def repair_name(name: str, known: Iterable[str]) -> str | None:
    """The known tool that `name` means, or None. A near miss counts only when it points to exactly one tool."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    if name in names:
        return name
    text = name.strip()
    if not text or len(text) > _LONGEST:
        return None
    snake = re.sub(r"[\s-]+", "_", _CAMEL.sub("_", text)).lower()
    for guess in (text, text.lower(), re.sub(r"[\s-]+", "_", text.lower()), snake):
        for candidate in (guess, guess.removesuffix("_tool")):
            if candidate in names:
                return candidate
    from difflib import get_close_matches  # noqa: PLC0415 - most names are right

    near = get_close_matches(snake, sorted(names), n=2, cutoff=_CLOSE)
    return near[0] if len(near) == 1 else None
