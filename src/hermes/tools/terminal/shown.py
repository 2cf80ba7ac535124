"""What the model is shown of a command's output: plain text, bounded, its end in full."""

import re

MAX_CHARS = 50_000
HEAD_SHARE = 0.4

# CSI and its private forms, OSC with its text up to BEL or ST, other string sequences, and the two-byte escapes.
_ANSI = (
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
_LINE_END = r"\r+(?=\n|\Z)"
_REDRAWN = r"(?m)^[^\n]*\r"


def plain(text: str) -> str:
    """`text` without terminal control sequences; of a line that was redrawn, its last state."""
    return re.sub(_REDRAWN, "", re.sub(_LINE_END, "", re.sub(_ANSI, "", text)))


def text_of(log: bytes) -> str:
    """A log as text: decoded with replacement, without terminal control sequences."""
    return plain(log.decode("utf-8", "replace"))


def cut(text: str, limit: int = MAX_CHARS) -> tuple[str, bool]:
    """`text`, or its first 40 % and last 60 % of `limit` around a line that says what is missing."""
    if len(text) <= limit:
        return text, False
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    left_out = len(text) - head - tail
    marker = f"\n\n... [{left_out} characters of {len(text)} left out] ...\n\n"
    return f"{text[:head]}{marker}{text[-tail:]}", True
