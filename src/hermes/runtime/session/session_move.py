"""What goes along when a session goes on under another id: task list, large results, yeses, the name in the shell."""

import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from hermes.config import paths
from hermes.context.marks import END, PREFIX, TASKS
from hermes.context.summary import extended, is_summary
from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import Environment
from hermes.tools.results.shelf import FileShelf
from hermes.typed import from_json
from hermes.types import Message, text_of

if TYPE_CHECKING:
    from hermes.runtime.setup.assembly import Assembly

log = logging.getLogger(__name__)


@runtime_checkable
class NamesSession(Protocol):
    """An environment that tells commands which session they run for."""

    async def goes_on_as(self, session_id: str, scope: TurnScope) -> None: ...


def carry_tasks(before: Sequence[Message], kept: list[Message], memo: dict[str, Any]) -> list[Message]:
    """`kept` with the open tasks, where the result that holds them was left out."""
    from hermes.tools.builtin.todo import MEMO, open_items  # noqa: PLC0415 - only a compression needs it

    items = open_items(memo[MEMO] if MEMO in memo else restored_tasks(before))
    if not items or open_items(restored_tasks(kept)) == items:
        return kept
    block = f"{TASKS}\n{msgspec.json.encode(items).decode()}"
    place = next((place for place, message in enumerate(kept) if is_summary(message)), None)
    if place is None:
        return [Message(role="user", content=f"{PREFIX}\n\n{block}"), *kept]
    return [*kept[:place], extended(kept[place], block), *kept[place + 1 :]]


def restored_tasks(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The task list as a history left it: in its newest result, or in a summary that came after that."""
    from hermes.tools.builtin.todo import restore  # noqa: PLC0415 - only who has tasks needs it

    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role == "tool" and message.tool_name == "todo" and (found := restore((message,))):
            return found
        if is_summary(message) and TASKS in (text := text_of(message.content)):
            return _tasks_in(text)
    return []


def _tasks_in(text: str) -> list[dict[str, str]]:
    line = text.partition(END)[0].rpartition(TASKS)[2].strip()
    try:
        return from_json(line, list[dict[str, str]])
    except msgspec.DecodeError as error:
        log.warning("the task list in a summary cannot be read: %s", error)
        return []


async def carry_results(parts: "Assembly", old: str, new: str) -> Callable[[], Awaitable[None]]:
    """Link large results to the new session, so that its handles open; the function undoes that."""
    home, shelf = parts.settings.home, parts.services.shelf
    source, target = paths.results_dir(home, old), paths.results_dir(home, new)
    await parts.services.pool.run(_link_all, source, target)
    if isinstance(shelf, FileShelf):
        shelf.move_to(target)

    async def undo() -> None:
        if isinstance(shelf, FileShelf):
            shelf.move_to(source)
        await parts.services.pool.run(shutil.rmtree, target, True)

    return undo


def _link_all(source: Path, target: Path) -> None:
    """Every finished result of one folder in the other, without copying where the file system can do that."""
    if not source.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in source.iterdir():
        if file.name.startswith(".") or (target / file.name).exists():
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copy2(file, target / file.name)


async def carry_grants(parts: "Assembly", old: str, new: str) -> None:
    """What a person allowed for the session stays allowed."""
    from hermes.tools.approval.grants import HomeGrants, approvals_file  # noqa: PLC0415 - only a compression needs it

    home = parts.settings.home
    if approvals_file(home).exists():
        await parts.services.pool.run(HomeGrants(home).carry, old, new)


async def rename_session(environment: Environment, session_id: str, scope: TurnScope) -> None:
    """Commands see the new id in HERMES_SESSION_ID; one that cannot be told is no reason to stop."""
    if not isinstance(environment, NamesSession):
        return
    try:
        await environment.goes_on_as(session_id, scope)
    except ToolError as error:
        log.warning("commands still see the old session id: %s", error)
