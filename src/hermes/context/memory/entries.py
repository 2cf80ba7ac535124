"""The entries of one memory file and what an operation makes of them. Pure: no file is touched here.

A file is its entries with a line `§` between them. Its limit counts the characters of the whole file.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Target: TypeAlias = Literal["memory", "user"]
Action: TypeAlias = Literal["add", "replace", "remove"]
TARGETS: Final[tuple[Target, ...]] = ("memory", "user")
ACTIONS: Final[tuple[Action, ...]] = ("add", "replace", "remove")
SEPARATOR = "\n§\n"
PREVIEW_CHARS = 80
BAR = "═" * 46
HEADINGS: dict[Target, str] = {
    "memory": "MEMORY (your personal notes)",
    "user": "USER PROFILE (who the user is)",
}
FILES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
_ODD_SEPARATOR = re.compile(r"^[ \t]*§[ \t]*$", re.MULTILINE)


class Operation(Struct, frozen=True, kw_only=True):
    """One change that is asked for."""

    action: Action
    content: str = ""
    old_text: str = ""


class EntryChange(Struct, frozen=True):
    """One change that was made: an entry that went, one that came, or one in the place of the other."""

    action: Action
    new: str
    old: str


class EntryRefusal(Exception):
    """An operation that cannot be done; the text says why, `facts` what the model needs to do better."""

    def __init__(self, text: str, **facts: object) -> None:
        super().__init__(text)
        self.text = text
        self.facts = facts


def parsed(text: str) -> list[str]:
    """The entries of a file, stripped; blank ones and repetitions are left out."""
    found = [entry.strip() for entry in re.split(r"\r?\n§\r?\n", text.removeprefix("\ufeff").strip())]
    return list(dict.fromkeys(entry for entry in found if entry))


def joined(entries: Sequence[str]) -> str:
    """The file of these entries."""
    return SEPARATOR.join(entries)


def size_of(entries: Sequence[str]) -> int:
    """The characters of their file."""
    return sum(map(len, entries)) + len(SEPARATOR) * max(0, len(entries) - 1)


def usage(entries: Sequence[str], limit: int, *, percent: bool = True) -> str:
    """How full the file is, in words."""
    used = size_of(entries)
    told = f"{used:,}/{limit:,}"
    return f"{min(100, used * 100 // limit)}% — {told} chars" if percent else told


def block(target: Target, entries: Sequence[str], limit: int) -> str:
    """What stands in the system prompt; nothing when there are no entries."""
    if not entries:
        return ""
    return f"{BAR}\n{HEADINGS[target]} [{usage(entries, limit)}]\n{BAR}\n{joined(entries)}"


def odd(text: str, limit: int) -> str:
    """What in a file the memory tool would not have written, or nothing."""
    if any(len(entry) > limit for entry in parsed(text)):
        return "it holds an entry that is longer than the whole limit"
    between = text.strip().split(SEPARATOR)
    if any(_ODD_SEPARATOR.search(entry) for entry in between):
        return "it holds a separator with something beside it"
    return ""


def applied(
    entries: Sequence[str], operations: Sequence[Operation], limit: int, full: Callable[[list[str]], dict[str, object]]
) -> tuple[list[str], list[EntryChange]]:
    """The entries after all operations, and what changed; measured at the end. `full` adds to what a full file says."""
    now, changes = list(entries), list[EntryChange]()
    for operation in operations:
        change = _step(now, operation, limit)
        if change is not None:
            changes.append(change)
    if changes and size_of(now) > limit and size_of(now) > size_of(entries):
        over = size_of(now)
        raise EntryRefusal(
            f"the file would have {over:,} characters, and its limit is {limit:,}: merge or remove entries first "
            "(replace one by a shorter one, or remove one, in the same call as `operations`), then add",
            current_entries=list(entries),
            usage=usage(entries, limit, percent=False),
            **full(list(entries)),
        )
    return now, changes


def _step(now: list[str], operation: Operation, limit: int) -> EntryChange | None:
    content, old_text = operation.content.strip(), operation.old_text.strip()
    if operation.action == "add":
        if not content:
            raise EntryRefusal("there is nothing to add: `content` is empty")
        if content in now:
            return None
        now.append(content)
        return EntryChange("add", content, "")
    if not old_text:
        raise EntryRefusal(
            f"{operation.action} needs `old_text`: a part of the entry that no other entry has",
            current_entries=list(now),
            usage=usage(now, limit, percent=False),
        )
    if operation.action == "replace" and not content:
        raise EntryRefusal("replace needs `content`; to delete the entry, use remove")
    found = [place for place, entry in enumerate(now) if old_text in entry]
    if not found:
        raise EntryRefusal(f"no entry has {old_text!r} in it", current_entries=list(now))
    if len(found) > 1:
        previews = [now[place][:PREVIEW_CHARS] + ("..." if len(now[place]) > PREVIEW_CHARS else "") for place in found]
        raise EntryRefusal(f"{len(found)} entries have {old_text!r} in them; give more of the one", matches=previews)
    old = now[found[0]]
    if operation.action == "remove":
        del now[found[0]]
        return EntryChange("remove", "", old)
    if content == old:
        return None
    if content in now:
        del now[found[0]]
        return EntryChange("remove", "", old)
    now[found[0]] = content
    return EntryChange("replace", content, old)
