"""Where a session's commands run: the backend of the settings, standing where the session stands."""

import logging
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import ToolError
from hermes.redact import Redactor
from hermes.runtime.options import AgentOptions
from hermes.runtime.setup.caller_questions import ask_caller
from hermes.runtime.setup.process import ProcessParts
from hermes.scope import TurnScope
from hermes.seams import Environment, EventStore
from hermes.tools.environments.factory import EnvironmentRequest, Overrides, create_environment
from hermes.tools.terminal.sudo import AskPassword

log = logging.getLogger(__name__)
NO_MESSAGES = 2**62  # a row id that no message reaches: only the head of the session is read


@runtime_checkable
class NamesSession(Protocol):
    """An environment that tells commands which session they run for."""

    async def goes_on_as(self, session_id: str, scope: TurnScope) -> None: ...


class Workplace(NamedTuple):
    """Whose environment it is to be; `stands_in` is where the session stood when it was last used."""

    session_id: str
    stands_in: str | None
    redactor: Redactor


def environment_for(
    options: AgentOptions, settings: Settings, process: ProcessParts, workplace: Workplace
) -> Environment:
    """The environment of the session."""
    section = settings.of(terminal.Section)
    known, session_id = workplace.stands_in or "", workplace.session_id
    if section.backend == "local" and not Path(known).is_dir():
        known = ""
    return create_environment(
        EnvironmentRequest(
            settings=section,
            supervisor=process.supervisor,
            home=settings.home,
            environ=settings.environ,
            secrets=settings.secrets,
            approvals=settings.mapping.get("approvals") or {},
            launch_folder=options.tools.cwd or str(Path.cwd()),
            task_id=session_id,
            session_id=session_id,
            overrides=Overrides(cwd=options.tools.cwd or known),
            run_blocking=process.pool.run,
            redactor=workplace.redactor,
            ask_password=_asking(options, process),
        )
    )


def _asking(options: AgentOptions, process: ProcessParts) -> AskPassword | None:
    callback = options.callbacks.sudo_password_callback
    if callback is None:
        return None
    who = f"[{options.parent.asked_by}] " if options.parent is not None else ""

    async def ask(prompt: str) -> str | None:
        try:
            said = await ask_caller(callback, process.pool, f"{who}{prompt}")
        except Exception:  # the border to the caller's code: nobody has answered
            log.exception("sudo_password_callback failed; the command runs without a password")
            return None
        return said or None

    return ask


async def stored_folder(options: AgentOptions, store: EventStore, session_id: str) -> str | None:
    """Where a session that may exist already stood; None for a new one, or when the caller says where."""
    if options.tools.cwd or not options.session.session_id:
        return None
    record = await store.load(session_id, NO_MESSAGES)
    return record.cwd if record is not None else None


async def reach(environment: Environment) -> str:
    """Make sure where the environment stands is known; one sentence when it cannot be reached."""
    try:
        await environment.ready()
    except ToolError as error:
        return f"The {environment.kind} backend cannot be reached now: {error}"
    return ""


async def rename_session(environment: Environment, session_id: str, scope: TurnScope) -> None:
    """Commands see the new id in HERMES_SESSION_ID; one that cannot be told is no reason to stop."""
    if not isinstance(environment, NamesSession):
        return
    try:
        await environment.goes_on_as(session_id, scope)
    except ToolError as error:
        log.warning("commands still see the old session id: %s", error)
