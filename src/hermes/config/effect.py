"""When a changed setting begins to act, in words for whoever changed it."""

from hermes.config.audit import section_names, section_type
from hermes.config.section import SectionBase, keys_of, struct_inside

# What a session is given once and keeps: its tools are stored with it, so that the front of its requests never moves.
_KEPT_BY_SESSIONS = ("toolsets", "platform_toolsets", "tools")

IDLE = "This version does not act on it."
NEW_SESSIONS = "New sessions use it; those that exist keep the tools they began with, less what it leaves out."
NEXT_START = "The next hermes uses it; one that is running keeps the old value until it is started again."


def when_it_acts(key: str) -> str:
    """One sentence about a dotted key that was just set or removed."""
    if is_idle(key):
        return IDLE
    if any(key == name or key.startswith(f"{name}.") for name in _KEPT_BY_SESSIONS):
        return NEW_SESSIONS
    return NEXT_START


def is_idle(key: str) -> bool:
    """Whether this version knows the key and does nothing with it."""
    head, *rest = key.split(".")
    kind: type[SectionBase] | None = section_type(head if head in section_names() else "top")
    for part in rest if head in section_names() else [head, *rest]:
        found = next((each for each in keys_of(kind) if each.name == part), None) if kind else None
        if found is None:
            return False  # a name of the user's own, below a mapping
        if found.pending:
            return True
        kind = struct_inside(found.type)[0]
    return False
