"""Make a command's text safe to parse: one encoding, no invisible characters."""

import re
import unicodedata

MAX_BYTES = 64 * 1024

UNKNOWN = "\0"
"""Stands inside a resolved word for text that only the running shell knows."""

SECRET = UNKNOWN * 3
"""The same for the value of a variable whose name says that it is a credential."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
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

    bash would keep a zero-width character inside a word, where it turns `rm` into a program that does not exist; the
    model meant `rm`, so that is judged, too (see `readings`).
    """
    if command.isascii():
        if "\0" not in command and "\x1b" not in command and "\r" not in command:
            return command
    else:
        command = _INVISIBLE.sub("", _encodable(command))
    if "\x1b" in command:
        command = _ANSI.sub("", command)
    return command.replace("\0", "").replace("\r\n", "\n")


def readings(command: str) -> list[str]:
    """The different ways to read `command`, each of which is judged: as bash does, cleaned, and folded to plain text.

    Cleaning alone would let text hide: an unseen character before `#` makes it no comment, one between a backslash and
    the end of the line keeps two lines apart, and an escape for a terminal may reach over the rest of the text. The
    grammar knows no `<>`, which opens a file for writing, too. The last one is what is compared with rules.
    """
    as_it_is = command.replace("\0", "").replace("\r\n", "\n")
    appended = [as_it_is.replace("<>", ">>")] if "<>" in as_it_is else []
    if as_it_is.isascii() and "\x1b" not in as_it_is:
        return [*appended, as_it_is]
    as_it_is = _encodable(as_it_is)
    cleaned = clean(command)
    return list(dict.fromkeys((*map(_encodable, appended), as_it_is, cleaned, folded(cleaned))))


def _encodable(command: str) -> str:
    return _RESERVED.sub("\ufffd", command.encode("utf-8", "replace").decode("utf-8"))


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


def other_readings(text: str) -> list[str]:
    """Other ways to read text that a script makes for another shell, as in `readings`; marks stay."""
    found = [] if text.isascii() else [_UNSEEN.sub("", text)]
    if "\\\n" in text:
        found.append(join_lines(text))
    if "<>" in text:
        found.append(text.replace("<>", ">>"))
    return [other for other in found if other != text]
