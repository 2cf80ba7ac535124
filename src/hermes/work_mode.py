"""How far a session goes by itself: a word that a person changes while it works, and that the gate obeys.

*edits*: files of the workspace are changed, and what is dangerous is asked. *ask*: each edit is asked about first, with
its diff. *plan*: nothing is changed at all; what is found out becomes a plan, and "go" leaves it.
"""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from hermes.errors import UserError

WorkModeName: TypeAlias = Literal["edits", "ask", "plan"]
WORK_MODES: Final[tuple[WorkModeName, ...]] = get_args(WorkModeName)


class WorkMode:
    """The mode of one session. Whoever holds it reads the newest word; `changed` is called after each change."""

    __slots__ = ("_name", "changed", "resumes", "watched")

    def __init__(self, name: str = "edits", changed: Callable[[WorkModeName], None] | None = None) -> None:
        self._name = checked(name)
        self.resumes: WorkModeName = "edits"  # where "go" leads
        self.changed = changed
        self.watched: Callable[[str], bool] | None = None  # files whose edits are asked about in *edits*, too

    @property
    def name(self) -> WorkModeName:
        return self._name

    def for_file(self, path: str) -> WorkModeName:
        """The mode as it is for an edit of this file."""
        is_asked = self._name == "edits" and self.watched is not None and self.watched(path)
        return "ask" if is_asked else self._name

    def change(self, name: str) -> bool:
        """Take another mode from now on; False when it is the present one. `UserError` when there is none such."""
        wanted = checked(name)
        if wanted == self._name:
            return False
        if wanted == "plan":
            self.resumes = self._name
        self._name = wanted
        if self.changed is not None:
            self.changed(wanted)
        return True


def checked(name: str) -> WorkModeName:
    """`name`, when it is a mode."""
    if name in WORK_MODES:
        return name
    raise UserError(f"there is no mode {name!r}; the modes are {', '.join(WORK_MODES)}")
