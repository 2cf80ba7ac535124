"""Make a command's text safe to parse: one encoding, no invisible characters."""

import re
import unicodedata

MAX_BYTES = 64 * 1024

UNKNOWN = "\0"
"""Stands inside a resolved word for text that only the running shell knows."""

SECRET = UNKNOWN * 3
"""The same for the value of a variable whose name says that it is a credential."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_INVISIBLE = re.compile(
    "[\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]"
)
_UNSEEN = re.compile(_INVISIBLE.pattern.replace("\0", "", 1))
_RESERVED = re.compile("[\ue000-\ue0ff]")  # our own marks for active glob characters
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u0085\u2028\u2029]")


def words(table: str) -> list[str]:
    """The words of a table that is written as one text."""
    return table.split()


def quoted(word: str) -> str:
    """The word as a shell reads it back."""
    return "'" + word.replace("'", "'\\''") + "'"


def clean(command: str) -> str:
    """Return `command` without NULs, invisible characters and terminal escapes; total for any string.

    bash drops NULs itself and would keep a zero-width character inside a word, where it turns `rm` into a program that
    does not exist; the model meant `rm`, so that is what is judged.
    """
    if command.isascii():
        if "\0" not in command and "\x1b" not in command and "\r" not in command:
            return command
    else:
        command = command.encode("utf-8", "replace").decode("utf-8")
        command = _RESERVED.sub("\ufffd", command)
        command = _INVISIBLE.sub("", command)
    command = command.replace("\0", "")
    if "\x1b" in command:
        command = _ANSI.sub("", command)
    return command.replace("\r\n", "\n")


def folded(command: str) -> str:
    """`command` with full-width and look-alike forms folded to plain characters (NFKC) and odd spaces to spaces."""
    if command.isascii():
        return command
    return _ODD_SPACE.sub(" ", unicodedata.normalize("NFKC", command))


def join_lines(text: str) -> str:
    """`text` with lines that end in a backslash joined to the next, as bash reads them outside comments."""
    pieces: list[str] = []
    for part in text.split("\\\n"):
        if pieces:
            backslashes = len(pieces[-1]) - len(pieces[-1].rstrip("\\"))
            pieces.append(part if backslashes % 2 == 0 else "\\\n" + part)
        else:
            pieces.append(part)
    return "".join(pieces)


def without_invisible(text: str) -> str:
    """Text that a script makes for another shell, without characters that nobody sees; marks stay."""
    return text if text.isascii() else _UNSEEN.sub("", text)
