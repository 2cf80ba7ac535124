"""Background processes: what they have to tell goes to the model, and they end with their session."""

import logging
from collections.abc import Awaitable

from hermes.config.sections import terminal
from hermes.errors import ToolError
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.seams import Environment
from hermes.tools.environments.background import Background, background_of

log = logging.getLogger(__name__)


class BackgroundNews(Part):
    """Asks the environment before a turn and after each round of tools."""

    limit_s = 60.0  # the environment may be far away, and a process takes some time to end

    def __init__(self, environment: Environment, *, is_kept: bool) -> None:
        self._environment = environment
        self._is_kept = is_kept  # what still runs when a session ends
        self._news = ""  # processes tell it once, so it is kept until a turn has stored it

    @classmethod
    def join(cls, agent: Joining) -> "BackgroundNews":
        return cls(agent.services.environment, is_kept=agent.settings.of(terminal.Section).keep_background)

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        is_quiet = turn.is_new or (not self._news and self._is_silent(*turn.earlier, turn.session_id))
        return None if is_quiet else self._heard_meanwhile(turn)

    def news(self, *session_ids: str) -> Awaitable[str] | None:
        return None if self._is_silent(*session_ids) else self._told(*session_ids)

    def _is_silent(self, *session_ids: str) -> bool:
        if not getattr(self._environment, "has_background", True):
            return True
        background: Background | None = getattr(self._environment, "background", None)
        return background is not None and background.is_silent(*session_ids)

    async def _told(self, *session_ids: str) -> str:
        try:
            told = await background_of(self._environment).notices(*session_ids)
        except ToolError as error:
            return f"[Background processes cannot be asked: {error}]"
        return "\n".join(told)

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        self._news = ""

    async def close(self, *ended: str) -> None:
        if self._is_kept or not getattr(self._environment, "has_background", True):
            return
        for session_id in ended:
            try:
                count = await background_of(self._environment).end_session(session_id)
            except ToolError as error:
                log.warning("background processes of %s could not be stopped: %s", session_id, error)
            else:
                if count:
                    log.info("stopped %s background process(es) of %s", count, session_id)

    async def _heard_meanwhile(self, turn: TurnFacts) -> str:
        news = await self._told(*turn.earlier, turn.session_id)
        self._news = "\n".join(filter(None, (self._news, news)))
        return self._news


part = BackgroundNews
