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


_SEARCHERS = ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack")
_MEANINGS: dict[tuple[str, int], str] = {
    **{(name, 1): "no matches found (not an error)" for name in _SEARCHERS},
    ("diff", 1): "the inputs differ (not an error)",
    ("colordiff", 1): "the inputs differ (not an error)",
    ("cmp", 1): "the inputs differ (not an error)",
    ("find", 1): "some folders could not be read; what was found is complete otherwise",
    ("test", 1): "the condition is false (not an error)",
    ("[", 1): "the condition is false (not an error)",
    ("[[", 1): "the condition is false (not an error)",
    ("curl", 6): "the host name could not be resolved",
    ("curl", 7): "the host could not be reached",
    ("curl", 22): "the server answered with an HTTP error (400 or above)",
    ("curl", 28): "the transfer timed out",
    ("git", 1): "for git diff, grep and the like: differences or no matches; otherwise a failure",
}
_OF_ANY: dict[int, str] = {
    126: "found but not executable, or the working directory could not be entered",
    127: "command not found",
    137: "killed (SIGKILL), possibly for want of memory",
    139: "crashed (SIGSEGV)",
    143: "terminated (SIGTERM)",
}


def meaning_of(command: str, exit_code: int) -> str | None:
    """What `exit_code` says, judged on the last command of the line; None when it says nothing special."""
    if exit_code == 0:
        return None
    from hermes.tools.terminal.simple_commands import program, segments  # background processes do without

    parts = segments(command)
    name = program(parts[-1].words)[0] if parts else ""
    return _MEANINGS.get((name, exit_code)) or _OF_ANY.get(exit_code)
