"""Titles of sessions: asked for after the first exchange, beside whatever comes next; dropped when the agent goes."""

import logging
import re
import unicodedata

from hermes.config.sections.auxiliary import TitleTask
from hermes.errors import HermesError
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryQuestion
from hermes.ops import SessionChanged
from hermes.runtime.held_tasks import HeldTasks
from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.scope import TurnScope
from hermes.seams import EventStore

MAX_TITLE_CHARS = 80
MAX_QUOTED_CHARS = 1_000
TASK = "title_generation"
SYSTEM = (
    "Give a title to the conversation that the user quotes: three to seven words, in the language of the conversation, "
    "no quotation marks, no full stop. Answer with the title alone."
)
_MARKUP = "#*_`\"'“”„«» \t"
_log = logging.getLogger(__name__)


class Titles(Part):
    """Makes titles in tasks of its own. An answer never waits for one, and none outlives `close`."""

    def __init__(self, auxiliary: AuxiliaryClient, store: EventStore) -> None:
        self._auxiliary = auxiliary
        self._store = store
        self._held = HeldTasks()

    @classmethod
    def join(cls, agent: Joining) -> "Titles | None":
        return cls(agent.auxiliary, agent.services.store) if agent.options.session.auto_title else None

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        """Start on a title; whatever goes wrong with it is logged and changes nothing."""
        if turn.title or answer is None or not turn.said.strip() or not answer.strip():
            return
        self._held.begin(self._make(turn.session_id, turn.said, answer), f"title {turn.session_id}")

    async def close(self, *ended: str, wait_s: float = 0.0) -> None:
        """Give titles under way `wait_s` to be done; then drop them."""
        await self._held.close(wait_s)

    async def _make(self, session_id: str, asked: str, answered: str) -> None:
        task = self._auxiliary.task(TASK)
        assert isinstance(task, TitleTask)
        if not task.enabled:
            return
        system = f"{SYSTEM} The title is in {task.language}." if task.language else SYSTEM
        quoted = f"User: {asked[:MAX_QUOTED_CHARS]}\n\nAssistant: {answered[:MAX_QUOTED_CHARS]}"
        question = AuxiliaryQuestion(task=TASK, system=system, text=quoted, session_id=session_id, max_tokens=2_000)
        try:
            title = clean_title(await self._auxiliary.ask(question, TurnScope("title")))
            if title:
                await self._name(session_id, title)
        except HermesError as error:
            _log.info("no title for session %s: %s", session_id, error)

    async def _name(self, session_id: str, title: str) -> None:
        """Set the title where there is none; one that is taken gets a number."""
        record = await self._store.load(session_id, after=2**62)
        if record is None or record.title:
            return
        for number in range(1, 100):
            numbered = title if number == 1 else f"{title[: MAX_TITLE_CHARS - 5]} #{number}"
            try:
                await self._store.commit(SessionChanged(session_id, {"title": numbered}))
            except ValueError:  # another session has it
                continue
            return


def clean_title(text: str) -> str:
    """The first line of `text` without quotes, markup and invisible characters; empty when nothing is left."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    visible = "".join(char for char in line if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    bare = re.sub(r"^(title|titel)\s*:\s*", "", visible.strip(_MARKUP), flags=re.IGNORECASE).strip(_MARKUP)
    return re.sub(r"\s+", " ", bare).rstrip(".").strip()[:MAX_TITLE_CHARS].strip()


part = Titles
