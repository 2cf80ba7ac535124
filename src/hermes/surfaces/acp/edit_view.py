"""What a call has changed, as the diffs that an editor draws: one for each part of a file that is other now."""

import os.path
import re
from collections.abc import Iterator

from msgspec import MsgspecError

from hermes.surfaces.acp.call_view import locations_of
from hermes.surfaces.acp.protocol import CallContent, DiffContent
from hermes.typed import from_json
from hermes.types import CallFinished, JsonObject, text_of

_PART = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_FILE = "/dev/null"


def edits_of(event: CallFinished, cwd: str) -> tuple[CallContent, ...]:
    """The diffs of a call; empty where it changed no file, or nothing is known of it."""
    if event.call.name not in ("write_file", "patch") or event.result.status != "ok":
        return ()
    details = event.result.details
    diff = details.get("diff") or _told(text_of(event.result.content)).get("diff")
    if not isinstance(diff, str) or not diff:
        return ()
    known = details.get("files_changed") or [place.path for place in locations_of(event.call.name, event.args, cwd)]
    parts = list(_parts(diff.split("\n")))
    names = list(dict.fromkeys(name for name, _, _ in parts))
    whole = dict(zip(names, map(str, known), strict=True)) if len(known) == len(names) else {}
    return tuple(DiffContent(whole.get(name) or _whole(name, cwd), new, old) for name, old, new in parts)


def _parts(lines: list[str]) -> Iterator[tuple[str, str | None, str]]:
    """Each changed part with the name of its file: the lines before, None for a new file, and those after."""
    at, name, is_new = 0, "", False
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- ") and at < len(lines) and lines[at].startswith("+++ "):
            source, target = line[4:], lines[at][4:]
            is_new = source == _NO_FILE
            name = (source if target == _NO_FILE else target)[2:]
            at += 1
        elif part := _PART.match(line):
            old, new, at = _part(lines, at, int(part[1] or 1), int(part[2] or 1))
            yield name, None if is_new else old, new


def _part(lines: list[str], at: int, left_old: int, left_new: int) -> tuple[str, str, int]:
    """The lines of a part before and after, and where it ends. What was cut off is missing in both."""
    old: list[str] = []
    new: list[str] = []
    while at < len(lines) and (left_old > 0 or left_new > 0 or lines[at].startswith("\\")):
        sign, text = lines[at][:1], lines[at][1:] + "\n"
        if sign == "\\":  # the line before has no end
            for side in (old, new) if lines[at - 1][:1] == " " else (old,) if lines[at - 1][:1] == "-" else (new,):
                side[-1] = side[-1].removesuffix("\n")
        elif sign in (" ", "-", "+"):
            if sign != "+":
                old.append(text)
                left_old -= 1
            if sign != "-":
                new.append(text)
                left_new -= 1
        else:
            break
        at += 1
    return "".join(old), "".join(new), at


def _whole(name: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, name))  # noqa: PTH118 - words, not files


def _told(text: str) -> JsonObject:
    try:
        return from_json(text.encode(), JsonObject)
    except (MsgspecError, UnicodeError):
        return {}
