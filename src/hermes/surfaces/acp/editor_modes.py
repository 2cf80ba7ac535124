"""The modes that editors offer, as modes of a session, and what an editor need not be asked about in them."""

from typing import Final, Literal, TypeAlias

from hermes.surfaces.acp.permission import is_inside, is_sensitive
from hermes.surfaces.acp.protocol import ModeState, NamedChoice
from hermes.types import JsonObject, Question
from hermes.work_mode import WorkModeName

EditorMode: TypeAlias = Literal["default", "accept_edits", "dont_ask", "plan"]
MODES: Final[tuple[NamedChoice, ...]] = (
    NamedChoice("default", "Ask", "Every edit is shown and asked about first."),
    NamedChoice("accept_edits", "Accept edits", "Edits in the workspace are made unasked, others are asked about."),
    NamedChoice("dont_ask", "Don't ask", "Edits are made unasked; dangerous commands are still asked about."),
    NamedChoice("plan", "Plan", "Nothing is changed; the answer is a plan."),
)
POLICY = "edit_approval_policy"
UNASKED: Final = frozenset({"write outside the workspace"})  # all that may be said against an edit made unasked
_WORK: Final[dict[EditorMode, WorkModeName]] = {
    "default": "ask",
    "accept_edits": "edits",
    "dont_ask": "edits",
    "plan": "plan",
}
_POLICIES: Final[dict[str, EditorMode]] = {
    "ask": "default",
    "workspace_session": "accept_edits",
    "session": "dont_ask",
}


def mode_named(name: str) -> EditorMode | None:
    return next((mode for mode in _WORK if mode == name), None)


def mode_of_policy(value: object) -> EditorMode | None:
    return _POLICIES.get(value) if isinstance(value, str) else None


def work_mode_of(mode: EditorMode) -> WorkModeName:
    return _WORK[mode]


def mode_of(mode: WorkModeName) -> EditorMode:
    """The first mode of the editor that works so."""
    return next(theirs for theirs, ours in _WORK.items() if ours == mode)


def mode_state(mode: EditorMode) -> ModeState:
    return ModeState(mode, MODES)


def config_options(mode: EditorMode) -> tuple[JsonObject, ...]:
    """What `session/set_config_option` can set, and what is set."""
    current = next((policy for policy, named in _POLICIES.items() if named == mode), "ask")
    choices = (("ask", "Ask"), ("workspace_session", "Not in the workspace"), ("session", "Not in this session"))
    return (
        {
            "type": "select",
            "id": POLICY,
            "name": "Ask before edits",
            "currentValue": current,
            "options": [{"value": value, "name": name} for value, name in choices],
        },
    )


def is_waved_through(mode: EditorMode, question: Question, cwd: str) -> bool:
    """Whether the person has said beforehand that such an edit may be made."""
    edit = question.shown.get("edit")
    if question.kind != "edit" or edit is None:  # a command that wants to write somewhere is a command
        return False
    path = str(edit.get("path") or "")
    if not path or is_sensitive(path) or not UNASKED.issuperset(question.details.get("pattern_keys", ())):
        return False  # it would be run by others, say: more than an edit
    return mode == "dont_ask" or (mode == "accept_edits" and is_inside(path, cwd))
