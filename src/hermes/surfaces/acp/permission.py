"""Questions of a session as permission requests of the editor. The one gate, with another way to ask."""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import PurePath

from msgspec import MsgspecError

from hermes.host.wire.frames import WireError
from hermes.surfaces.acp.call_view import text_content
from hermes.surfaces.acp.connection import EditorConnection, EditorGone
from hermes.surfaces.acp.protocol import (
    CallAsked,
    CallContent,
    DiffContent,
    Location,
    PermissionOption,
    PermissionParams,
    PermissionReply,
)
from hermes.tools.approval.visible_text import visible
from hermes.typed import convert
from hermes.types import JsonObject, Question

TIMEOUT_S = 60.0
SENSITIVE_NAMES = frozenset({".env", ".env.local", ".env.production", "id_rsa", "id_ed25519"})
SENSITIVE_FOLDERS = frozenset({".git", ".ssh"})
DENY = "deny"
_OPTIONS: dict[str, PermissionOption] = {
    "once": PermissionOption("allow_once", "allow_once", "Allow once"),
    "session": PermissionOption("allow_session", "allow_always", "Allow for session"),
    "always": PermissionOption("allow_always", "allow_always", "Allow always"),
}
_NO = (PermissionOption("deny", "reject_once", "Deny"), PermissionOption("deny_always", "reject_always", "Deny always"))
_EDIT = (PermissionOption("allow_once", "allow_once", "Allow edit"), PermissionOption("deny", "reject_once", "Deny"))
log = logging.getLogger(__name__)


def is_sensitive(path: str) -> bool:
    """Whether an edit of this file is asked about in every mode."""
    parts = PurePath(path).parts
    return bool(parts) and (parts[-1] in SENSITIVE_NAMES or not SENSITIVE_FOLDERS.isdisjoint(parts))


def is_inside(path: str, cwd: str) -> bool:
    """Whether a file lies in the workspace or in a temporary folder."""
    real = os.path.realpath(path)
    roots = (os.path.realpath(cwd), os.path.realpath(tempfile.gettempdir()))
    return any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots)


class PermissionDesk:
    """Puts the questions of one session to its editor; whatever is not a yes from there is a no."""

    def __init__(self, connection: EditorConnection, acp_id: str, cwd: Callable[[], str]) -> None:
        self._connection = connection
        self._acp_id = acp_id
        self._cwd = cwd
        self._commands = self._edits = 0

    async def ask(self, question: Question) -> str:
        """One of the question's choices."""
        if question.kind not in ("approval", "edit"):
            return DENY  # a password or a free answer: the protocol has no way to ask for it
        params = PermissionParams(self._acp_id, self._call(question), self._options(question))
        try:
            said = convert(
                await self._connection.ask("session/request_permission", params, TIMEOUT_S), PermissionReply
            ).outcome
        except (WireError, EditorGone, TimeoutError, MsgspecError) as error:
            log.info("a permission was not given: %s", str(error) or type(error).__name__)
            return DENY
        if said.outcome != "selected" or said.option_id not in {option.option_id for option in params.options}:
            return DENY
        return next((choice for choice, option in _OPTIONS.items() if option.option_id == said.option_id), DENY)

    def _options(self, question: Question) -> tuple[PermissionOption, ...]:
        if question.kind == "edit" and "edit" in question.shown:
            return _EDIT
        return (*(_OPTIONS[choice] for choice in question.choices if choice in _OPTIONS), *_NO)

    def _call(self, question: Question) -> CallAsked:
        details, edit = question.details, question.shown.get("edit")
        if question.kind == "edit" and edit is not None:
            self._edits += 1
            path = str(edit["path"])
            return CallAsked(
                tool_call_id=f"edit-approval-{self._edits}",
                kind="edit",
                status="pending",
                title=visible(f"{_who(details)}Approve edit: {path}"),
                content=(DiffContent(path, str(edit["new_text"]), edit["old_text"]),),
                raw_input={"tool": details.get("tool") or "", "arguments": {"path": path}},
                locations=(Location(path),),
            )
        self._commands += 1
        command = str(details.get("command") or question.text)
        return CallAsked(
            tool_call_id=f"perm-check-{self._commands}",
            kind="execute" if question.kind == "approval" else "edit",
            status="pending",
            title=visible(f"{question.text}: {command}" if command != question.text else command),
            content=_words(question, command),
            raw_input={"command": command, "description": question.text},
        )


def _words(question: Question, command: str) -> tuple[CallContent, ...]:
    effects = question.details.get("effects") or ()
    said = [question.text, *(str(effect) for effect in effects if isinstance(effect, str)), f"$ {command}"]
    return text_content(visible("\n".join(dict.fromkeys(said))))


def _who(details: JsonObject) -> str:
    return f"[{details['asked_by']}] " if details.get("asked_by") else ""
