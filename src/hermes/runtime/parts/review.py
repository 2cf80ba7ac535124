"""The background review's clock: it counts turns and rounds, and says when a review is due."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hermes.config.sections.auxiliary import Section as Auxiliary
from hermes.config.sections.memory import Section as Memory
from hermes.config.sections.skills import Section as Skills
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext
    from hermes.runtime.review import Reviews
    from hermes.runtime.session.history import History


class ReviewClock(Part):
    """Reviews run beside whatever comes next, and never delay an answer."""

    def __init__(self, agent: Joining, memory_every: int, skills_every: int) -> None:
        self._agent = agent
        self._memory_every = memory_every
        self._skills_every = skills_every
        self._turns: int | None = None  # since memory was written or reviewed; from the history of a cold start
        self._rounds = 0  # of tools, since a skill was changed or reviewed
        self._reviews: Reviews | None = None

    @classmethod
    def join(cls, agent: Joining) -> "ReviewClock | None":
        memory, skills = agent.settings.of(Memory), agent.settings.of(Skills).creation_nudge_interval
        has_memory = not agent.options.session.skip_memory and (memory.memory_enabled or memory.user_profile_enabled)
        turns = memory.nudge_interval if has_memory else 0
        is_on = agent.options.parent is None and agent.settings.of(Auxiliary).background_review.enabled
        return cls(agent, turns, skills) if is_on and (turns or skills) else None

    def history_read(self, history: "History") -> None:
        if self._memory_every:
            if self._turns is None:
                before = sum(1 for one in history.dicts if one.get("role") == "user")
                self._turns = before % self._memory_every
            self._turns += 1

    def news(self, *session_ids: str) -> Awaitable[str] | None:
        self._rounds += 1
        return None

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> None:
        if call.asked.name == "memory":
            self._turns = 0
        elif call.asked.name == "skill_manage":
            self._rounds = 0

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        on_memory = bool(self._memory_every) and (self._turns or 0) >= self._memory_every
        on_skills = bool(self._skills_every) and self._rounds >= self._skills_every
        if not (on_memory or on_skills) or not (answer or "").strip() or turn.fork is None:
            return
        if self._agent.options.tools.work_mode.name == "plan":  # nothing is written then; it is due in a later turn
            return
        from hermes.runtime.review import Reviews  # paid by the first one

        self._turns, self._rounds = 0 if on_memory else self._turns, 0 if on_skills else self._rounds
        self._reviews = self._reviews or Reviews(self._agent)
        self._reviews.begin(turn, turn.fork(), on_memory=on_memory, on_skills=on_skills)

    async def close(self, *ended: str) -> None:
        if self._reviews is not None:
            await self._reviews.close()


part = ReviewClock
