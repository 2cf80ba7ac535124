"""Commands that surely change nothing: every program in them is known to read, and is given no option that writes."""

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects_model import Analysis

_READERS = frozenset(
    words(
        "[ basename cat cd cmp cut date df diff dirname du echo egrep env false fgrep file find grep head hexdump id "
        "jq ls md5sum nl od printf ps pwd readlink realpath rg sha256sum sleep sort stat tail test tr tree true type "
        "uname uniq wc which whoami xxd"
    )
)
_WRITING_OPTIONS = {"sort": ("-o", "--o"), "tree": ("-o",), "find": ("-fprint", "-fls"), "git": ("--output",)}
_GIT_READERS = frozenset({"blame", "diff", "grep", "log", "ls-files", "rev-parse", "shortlog", "show", "status"})


def only_reads(analysis: Analysis) -> bool:
    """Whether the whole command is understood, and nothing in it changes a file or another machine."""
    effects = [effect for effect in analysis.effects if effect.kind != "network"]
    return not effects and not analysis.unknown and all(_reads(each.argv) for each in analysis.commands)


def _reads(argv: tuple[str, ...]) -> bool:
    program = argv[0].rpartition("/")[2] if argv else ""
    if any(word.startswith(_WRITING_OPTIONS.get(program, "\0")) for word in argv[1:]):
        return False
    if program == "uniq" and sum(not word.startswith("-") for word in argv[1:]) > 1:
        return False  # the second file is written
    return program in _READERS or (program == "git" and len(argv) > 1 and argv[1] in _GIT_READERS)
