"""The background review: after some turns, a fork of the conversation looks for what is worth keeping, and keeps it."""

import logging
from collections.abc import Sequence

from msgspec import DecodeError
from msgspec.structs import replace

from hermes.errors import HermesError
from hermes.runtime.fork import Fork, ForkPlan
from hermes.runtime.held_tasks import HeldTasks
from hermes.runtime.parts import Joining, TurnFacts
from hermes.scope import TurnScope
from hermes.typed import from_json
from hermes.types import JsonObject, StatusChanged, ToolResult, text_of

PURPOSE = "background_review"
ROUNDS = 16
TIMEOUT_S = 600.0
CLOSE_S = 2.0  # that one under way has to end by itself when the agent goes
log = logging.getLogger(__name__)
DIGEST_CHARS = 24_000
MEMORY_TOOLS = frozenset({"memory"})
SKILL_TOOLS = frozenset({"skills_list", "skill_view", "skill_manage"})
CHANGES = frozenset({"memory", "skill_manage"})
INTRO = (
    "The conversation above is over for now, and the user does not read what you write here. Look back at it once. "
    "Everything but memory and skill tools is switched off."
)
ABOUT_MEMORY = (
    "Has the user told something about themselves, their wishes or how they want things done, or did you learn a "
    "lasting fact about their surroundings, that is not in your memory yet? Then keep it with the memory tool, briefly "
    "and correct what has turned out wrong. No task progress, and nothing that only a file, a page or a tool said."
)
ABOUT_SKILLS = (
    "Did you find a way of working that took several tries, or that the user corrected, and that will be needed again? "
    "Look whether a skill is about it, and mend that one with skill_manage; only else create a small one."
)
ENDING = "If there is nothing of the kind, change nothing. Answer with one word when you are done."


class Reviews:
    """The reviews of one agent: one at a time, each a task of its own, and none outlives `close`."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._held = HeldTasks()

    def begin(self, turn: TurnFacts, fork: Fork, *, on_memory: bool, on_skills: bool) -> None:
        """Start one on what is due, unless one is under way or the tools for it are not offered."""
        offered = fork.ctx.tools.names() - fork.ctx.tools.barred()
        tools = (MEMORY_TOOLS if on_memory else frozenset()) | (SKILL_TOOLS if on_skills else frozenset())
        if self._held or not tools & offered & CHANGES:
            return
        about = [ABOUT_MEMORY] if tools & offered >= MEMORY_TOOLS else []
        about += [ABOUT_SKILLS] if tools & offered >= SKILL_TOOLS else []
        plan = ForkPlan(
            task="\n\n".join([INTRO, *about, ENDING]), tools=tools & offered, rounds=ROUNDS, purpose=PURPOSE
        )
        # The history now, which the next turn goes on with.
        work = self._review(fork, plan, list(turn.history), turn.session_id)
        self._held.begin(work, f"review of {turn.session_id}")

    async def close(self) -> None:
        """Give one that is under way a moment; then drop it."""
        await self._held.close(CLOSE_S)

    async def _review(self, fork: Fork, plan: ForkPlan, history: Sequence[JsonObject], session_id: str) -> None:
        scope, done = TurnScope(PURPOSE, TIMEOUT_S), list[ToolResult]()
        try:
            other = self._agent.auxiliary.client_for(PURPOSE)
            if other is not None:
                plan = replace(plan, digest=digest_of(history))
            async with scope:
                done = await fork.run(plan, scope, other)
        except HermesError as error:
            log.info("no background review of session %s: %s", session_id, error)
        except Exception:  # a task of its own: nobody else would hear of it
            log.exception("the background review of session %s failed", session_id)
        if line := told(done):
            self._tell(StatusChanged("memory", line))

    def _tell(self, event: StatusChanged) -> None:
        """At once where somebody listens all the time, else when the next turn begins."""
        sink = self._agent.options.callbacks.sink
        if sink is not None:
            sink.emit(event)
        else:
            self._agent.services.parts.untold.append(event)


def told(results: Sequence[ToolResult]) -> str:
    """What the calls came to, for a person."""
    kept = {"memory": 0, "skill_manage": 0}
    waiting = 0
    for result in results:
        if result.name not in CHANGES:
            continue
        try:
            body = from_json(text_of(result.content), JsonObject)
        except DecodeError:
            continue
        if body.get("pending"):
            waiting += 1
        elif body.get("success"):
            kept[result.name] += 1
    parts = [f"{kept['memory']} changes of memory"] if kept["memory"] else []
    parts += [f"{kept['skill_manage']} changes of skills"] if kept["skill_manage"] else []
    parts += [f"{waiting} wait for your yes"] if waiting else []
    return f"background review: {', '.join(parts)}" if parts else ""


def digest_of(history: Sequence[JsonObject]) -> str:
    """The end of a conversation in plain words, for a model that has not read it."""
    lines = [f"{one.get('role')}: {one.get('content')}" for one in history if one.get("role") in ("user", "assistant")]
    text = "\n\n".join(line for line in lines if not line.endswith(": "))
    return f"The conversation, its end above all:\n\n{text[-DIGEST_CHARS:]}"
