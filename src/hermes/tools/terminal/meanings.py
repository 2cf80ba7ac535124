"""Exit codes that are answers, not failures: told beside the code, so that the model does not try again."""

from hermes.tools.terminal.words import program, segments

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
    parts = segments(command)
    name = program(parts[-1].words)[0] if parts else ""
    return _MEANINGS.get((name, exit_code)) or _OF_ANY.get(exit_code)
