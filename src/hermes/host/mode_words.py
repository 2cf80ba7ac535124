"""What a person does to the mode of a session with one key, or one word."""

from typing import Any

from hermes.work_mode import WORK_MODES, WorkMode, WorkModeName

_GO = frozenset({"go", "go.", "go!"})


def next_mode(name: WorkModeName) -> WorkModeName:
    """The mode that one key leads to."""
    return WORK_MODES[(WORK_MODES.index(name) + 1) % len(WORK_MODES)]


def hear(mode: WorkMode, said: Any) -> None:
    """Leave *plan* when the person says "go" and no more."""
    if mode.name == "plan" and isinstance(said, str) and said.strip().lower() in _GO:
        mode.change(mode.resumes)
