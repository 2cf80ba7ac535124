"""Changes of a live session between its turns: the last exchange taken back, other settings, another folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.host.host_errors import SessionBusy
from hermes.host.session_text import said
from hermes.models.providers.resolve import ModelQuery, resolve

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession

_WRITABLE = "terminal.sandbox_writable"


async def undo(session: "LiveSession") -> tuple[str, int]:
    """Set the last exchange aside; what was asked in it, and how many messages that were."""
    rows = await session.in_thread(session.db.list_recent_user_messages, session.session_id, 1)
    if not rows:
        raise UserError("nothing was asked in this session yet")
    done = await session.in_thread(session.db.rewind_to_message, session.session_id, rows[0]["id"])
    return said(rows[0]).strip(), int(done["rewound"])


def changed_settings(session: "LiveSession", flags: Mapping[str, Any]) -> Settings:
    """The settings with these keys on top, dots as two underscores; `SessionBusy` while a turn runs."""
    refuse_when_busy(session)
    changed = {name.replace("__", "."): value for name, value in flags.items()}
    if (border := session.agent.border) is not None and (opened := border.opened_folders):
        known = changed.get(_WRITABLE) or session.settings.of(terminal.Section).sandbox_writable
        changed[_WRITABLE] = list(dict.fromkeys([*known, *opened]))  # planned anew, what a person opened stays open
    settings = session.settings.with_flags(changed)
    resolve(settings, ModelQuery())
    return settings


def refuse_when_busy(session: "LiveSession") -> None:
    """`SessionBusy` while a turn runs."""
    if session.is_busy:
        raise SessionBusy("this can be changed when the turn has ended; stop it, or wait for its end")


async def folder_for(session: "LiveSession", wanted: str) -> str:
    """The folder that `wanted` means, noted as the one that the session works in; `UserError` when there is none."""
    folder: str = await session.in_thread(folder_of, session.cwd, wanted)
    if await session.exists():
        await session.in_thread(session.db.update_session_cwd, session.session_id, folder)
    return folder


def folder_of(here: str, wanted: str) -> str:
    """The folder that `wanted` means, seen from `here`; `UserError` when there is none. Blocking."""
    folder = Path(here, Path(wanted).expanduser())
    if not folder.is_dir():
        raise UserError(f"there is no folder {str(folder)!r}")
    return str(folder)
