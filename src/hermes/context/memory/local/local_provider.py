"""The provider `local`: recalls what was said in earlier sessions, from the session store and an index beside it."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from hermes.config import paths
from hermes.context.memory.local.sentence_model import SentenceModel, missing_parts
from hermes.context.memory.local.turn_index import TurnIndex, sentences_of, session_number
from hermes.context.memory.local.turn_order import Candidates, RankedTurn, ranked, search_words
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.old_entries import Superseded
from hermes.context.memory.provider import MemoryProvider, ProviderHome
from hermes.context.memory.recall_report import RecallReport, keep_report, report_file
from hermes.context.memory.session_words import own_words
from hermes.dicts import content_from_json
from hermes.errors import StoreError
from hermes.state.queries import MessageFilter, Search, SearchFilter, SessionQueries
from hermes.types import text_of

COARSE = 120  # turns that the matrix proposes
FOUND = 30  # messages that full-text search proposes
SPARE = 5  # turns beyond those that are shown, in the place of what has gone or was replaced
BATCH = 100
SHARE = 0.25  # of one core, for the index
MAX_LINE_CHARS = 300
log = logging.getLogger("hermes")


class LocalProvider(MemoryProvider):
    """Reads the session store; writes nothing but its own index, which can be made again."""

    name = "local"

    def __init__(self, home: ProviderHome) -> None:
        self._home = home.home
        self._root = home.root
        self._queries: SessionQueries | None = getattr(home.store, "queries", None)
        self._lines = int(home.settings.get("recall_lines") or 5)
        self.index = TurnIndex(paths.cache_dir(home.home) / "recall")
        self._model: SentenceModel | None = None
        self._loading = threading.Lock()  # guards _model
        self._stop = threading.Event()
        self._news = threading.Event()
        self._indexer: threading.Thread | None = None
        self.rests = True  # between two messages; benches that index beforehand do without

    def is_available(self) -> bool:
        return self._queries is not None and not missing_parts(self._root)

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Begin to index in the background; nobody waits for it."""
        if self._indexer is None and self._queries is not None:
            self._indexer = threading.Thread(target=self._keep_up, name="memory index", daemon=True)
            self._indexer.start()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    # -- recall ------------------------------------------------------------------------------------------------------

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        chosen = self.recall(query, session_id)
        self._note(session_id, query, chosen)
        return "\n".join(f"- {_day(one.turn.at)}: {_line(one)}" for one in chosen)

    def recall(self, query: str, session_id: str = "") -> list[RankedTurn]:
        """The turns that answer best, newest first."""
        if not query.strip() or not self.index.count:
            return []
        matrix, known = self.index.matrix()
        found: list[int] = []
        # Beside the vectors: both spend their time outside of Python.
        by_words = threading.Thread(target=lambda: found.extend(self._by_words(query)), daemon=True)
        by_words.start()
        vector = self.model().vector(query)
        import numpy as np

        likeness = matrix @ vector
        few = min(COARSE, len(likeness))
        places = set(np.argpartition(likeness, len(likeness) - few)[len(likeness) - few :].tolist())
        by_words.join()
        places |= _places(np, known["id"], found)
        own = session_number(session_id) if session_id else 0
        kept = [place for place in sorted(places) if int(known["session"][place]) != own]
        candidates = self._candidates(np, kept)
        chosen = ranked(query, vector, candidates, self._lines + SPARE)
        return self._still_true(chosen)

    def model(self) -> SentenceModel:
        with self._loading:
            if self._model is None:
                self._model = SentenceModel(self._root)
            return self._model

    def _by_words(self, query: str) -> list[int]:
        """The newest messages that full-text search finds; none where it fails, which is told in the log."""
        words = search_words(query)
        if not words or self._queries is None:
            return []
        text = " OR ".join(f'"{word}"' for word in words)
        search = Search(text=text, only=SearchFilter(roles=("user",)), sort="newest", limit=FOUND)
        try:
            return [int(row["id"]) for row in self._queries.search(search)]
        except StoreError as error:
            log.warning("full-text search for recall failed: %s", error)
            return []

    def _candidates(self, np: Any, places: Sequence[int]) -> Candidates:
        turns = self.index.turns(places)
        rows = np.concatenate([np.arange(turn.first, turn.first + turn.count) for turn in turns] or [np.zeros(0, int)])
        owner = np.repeat(np.arange(len(turns)), [turn.count for turn in turns])
        return Candidates(turns, self.index.sentences(rows.astype(np.int64)), owner)

    def _still_true(self, chosen: Sequence[RankedTurn]) -> list[RankedTurn]:
        """Without what was deleted from the store since, and what the memory has replaced."""
        assert self._queries is not None
        ids = [one.turn.message_id for one in chosen]
        rows = {row["id"]: row for row in self._queries.messages(MessageFilter(ids=ids), ("id", "content"))}
        superseded = Superseded.of(MemoryFiles(self._home).history.read())
        true = [
            one
            for one in chosen
            if (row := rows.get(one.turn.message_id)) is not None
            and one.sentence[:40] in " ".join(_said(row).split())
            and not superseded.holds(" ".join(one.turn.texts), one.turn.at)
        ]
        # Of two lines about the same thing the newer one holds, so it comes first.
        return sorted(true[: self._lines], key=lambda one: -one.turn.at)

    # -- why ---------------------------------------------------------------------------------------------------------

    def _note(self, session_id: str, query: str, chosen: Sequence[RankedTurn]) -> None:
        lines = [
            f"{_day(one.turn.at)}: {_line(one)} (likeness {one.likeness:.2f}"
            f"{', shares ' + ', '.join(one.shared) if one.shared else ''})"
            for one in chosen
        ]
        keep_report(report_file(self._home, session_number(session_id)), RecallReport(query[:MAX_LINE_CHARS], lines))

    # -- the index ---------------------------------------------------------------------------------------------------

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        self._news.set()

    def shutdown(self) -> None:
        self._stop.set()
        self._news.set()

    def _keep_up(self) -> None:
        """Index what is new, rest three times as long as the work took, and wait for more."""
        try:
            while not self._stop.is_set():
                self._news.clear()
                while self.index_some() and not self._stop.is_set():
                    pass
                self._news.wait()
        except Exception:  # a thread that nobody waits for: what ends it must be seen
            log.exception("the index for recall has stopped")

    def index_some(self) -> bool:
        """Index the next messages, at no more than `SHARE` of a core; False when there are none, or somebody else does.

        The processor time of the whole process counts, so that threads of the algebra library do as well.
        """
        assert self._queries is not None
        with self.index.writing() as is_ours:
            if not is_ours:
                return False
            where = MessageFilter(above=self.index.last_message, roles=("user",), limit=BATCH)
            rows = self._queries.messages(where, ("id", "session_id", "content", "timestamp"))
            for row in rows:
                began = time.process_time()
                said = sentences_of(_said(row))
                if said:
                    self._add(row, said)
                if self.rests and self._stop.wait((time.process_time() - began) * (1 / SHARE - 1)):
                    return False
            if rows:
                self.index.looked_at(int(rows[-1]["id"]))
            return bool(rows)

    def _add(self, row: dict[str, Any], said: list[str]) -> None:
        import numpy as np

        model = self.model()
        vectors = np.stack([model.vector(one) for one in said])
        self.index.add(int(row["id"]), float(row["timestamp"] or 0.0), str(row["session_id"]), said, vectors)


def _places(np: Any, ids: Any, messages: Sequence[int]) -> set[int]:
    """Where in the index these messages are; those that it does not have yet are left out."""
    if not messages:
        return set()
    found = np.array(sorted(messages), dtype=np.int64)
    places = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
    return {int(place) for place, message in zip(places, found, strict=True) if ids[place] == message}


def _said(row: dict[str, Any]) -> str:
    """What the person wrote in a message, without the files and skills that came with it."""
    return own_words(text_of(content_from_json(row["content"])))


def _line(one: RankedTurn) -> str:
    """The sentence with what stands around it, on one line."""
    whole = " ".join(one.turn.texts)
    return whole if len(whole) <= MAX_LINE_CHARS else one.sentence[:MAX_LINE_CHARS]


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))
