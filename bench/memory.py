"""Recall by `memory.provider: local`: what it finds in the recall set, and what a question costs with many turns.

Run: python bench/memory.py recall [SEED]     (the set of bench/recall_set.py, or one drawn anew: words, vectors, both)
     python bench/memory.py prefetch [TURNS]  (one question against its floor, in turns; 100,000 by default)
     python bench/memory.py index [SECONDS]   (the share of a core that building the index takes; 30 s by default)

The weights are looked for in HERMES_TEST_BOX (a home that has them), else in HERMES_HOME.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.recall_set import SEED, Fact, RecallSet, recall_set
from hermes.config.paths import root_home
from hermes.context.memory.local.local_provider import SHARE, LocalProvider
from hermes.context.memory.local.sentence_model import DIMENSIONS, MAX_TOKENS
from hermes.context.memory.provider import ProviderHome
from hermes.state import SessionDB
from hermes.state.queries import Search, SearchFilter

FIRST = 5
LIMIT = 1.5  # of one query vector and one product


def provider_in(home: Path, db: SessionDB) -> LocalProvider:
    """The provider of a home, without its background thread and its rests."""
    box = os.environ.get("HERMES_TEST_BOX", "") or str(root_home(os.environ))
    return LocalProvider(ProviderHome(home, Path(box), {"recall_lines": FIRST}, db.store))


def filled(db: SessionDB, told: RecallSet) -> list[int]:
    """Put the turns of the set into the store; the ids of their user messages."""
    ids = []
    for number, turn in enumerate(told.turns):
        session = f"s{turn.session:02d}"
        if number == 0 or told.turns[number - 1].session != turn.session:
            db.create_session(session, source="cli")
        ids.append(db.append_message(session, role="user", content=turn.user, timestamp=turn.at))
        db.append_message(session, role="assistant", content=turn.assistant, timestamp=turn.at + 1)
    return ids


def scores(told: RecallSet, ids: Sequence[int], ask: Callable[[Fact], Sequence[int]]) -> tuple[float, float]:
    """The share of facts whose value is among the first five, and of changed ones whose old value comes before it."""
    hits = old_first = changed = 0
    for fact in told.facts:
        found = list(ask(fact))[:FIRST]
        hits += ids[fact.turn] in found
        if fact.old_value:
            changed += 1
            old, new = ids[fact.old_turn], ids[fact.turn]
            old_first += old in found and (new not in found or found.index(old) < found.index(new))
    return hits / len(told.facts), old_first / changed


def recall(seed: int) -> None:
    told = recall_set(seed)
    with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "state.db") as db:
        ids = filled(db, told)
        provider = provider_in(Path(folder), db)
        provider.rests = False
        while provider.index_some():
            pass

        def by_words(fact: Fact) -> list[int]:
            words = [word.strip("?,.'\"") for word in fact.question.split()]
            text = " OR ".join(f'"{word}"' for word in words if word)
            return [
                row["id"]
                for row in db.queries.search(Search(text=text, only=SearchFilter(roles=("user",)), limit=FIRST))
            ]

        def by_vectors(fact: Fact) -> list[int]:
            matrix, known = provider.index.matrix()
            order = np.argsort(-(matrix @ provider.model().vector(fact.question)))
            return [int(known["id"][place]) for place in order[:FIRST]]

        def by_both(fact: Fact) -> list[int]:
            return [one.turn.message_id for one in provider.recall(fact.question)]

        print(f"{len(told.facts)} facts, {len(told.turns)} turns: value among the first five, old value ahead of it")
        for name, ask in (("full-text", by_words), ("vectors", by_vectors), ("local", by_both)):
            first, old = scores(told, ids, ask)
            print(f"  {name:10} {first:6.1%}   {old:6.1%}")


def prefetch(turns: int) -> None:
    rng = np.random.default_rng(7)
    told = recall_set()
    question = " ".join([told.facts[0].question] * 12)
    with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "state.db") as db:
        provider = provider_in(Path(folder), db)
        _many(db, provider, turns, told)
        model = provider.model()
        tokens = min(MAX_TOKENS, len(model._tokenizer.encode(question).ids))
        matrix = rng.standard_normal((turns, DIMENSIONS), dtype=np.float32)
        provider.prefetch(question)

        def floor() -> None:
            matrix @ model.vector(question)

        floor_s: list[float] = []
        own_s: list[float] = []
        for _ in range(15):
            for work, into in ((floor, floor_s), (lambda: provider.prefetch(question), own_s)):
                began = time.perf_counter()
                work()
                into.append(time.perf_counter() - began)
        base, own = statistics.median(floor_s), statistics.median(own_s)
        print(f"{turns} turns, a question of {tokens} tokens: floor {base * 1e3:.1f} ms, prefetch {own * 1e3:.1f} ms")
        print(f"prefetch: {own / base:.2f} of the floor (at most {LIMIT})")


def index(seconds: float) -> None:
    """The processor time of this process while nothing but the index is built in it, against the clock."""
    told = recall_set()
    with tempfile.TemporaryDirectory() as folder, SessionDB(Path(folder) / "state.db") as db:
        for number in range(5):
            rows = [{"role": "user", "content": turn.user, "timestamp": turn.at} for turn in told.turns]
            db.import_sessions(
                [{"id": f"s{number}", "source": "cli", "started_at": told.turns[0].at, "messages": rows}]
            )
        db.queries.optimize_index()
        provider = provider_in(Path(folder), db)
        began = time.perf_counter()
        provider.prefetch(told.facts[0].question)
        asked_ms = (time.perf_counter() - began) * 1e3
        began, spent = time.perf_counter(), time.process_time()
        provider.initialize("bench")
        time.sleep(seconds)
        took, worked = time.perf_counter() - began, time.process_time() - spent
        provider.shutdown()
        count, share = provider.index.count, worked / took
        state = "all of them" if count >= len(told.turns) * 5 else "it was still at it"
        print(f"{count} turns indexed in {took:.1f} s, {state}; a question to the empty index took {asked_ms:.1f} ms")
        print(f"index: {share:.2f} of a core (at most {SHARE})")


def _many(db: SessionDB, provider: LocalProvider, turns: int, told: RecallSet) -> None:
    """A store and an index of so many turns; vectors of the set's sentences, each turned a little."""
    rng = np.random.default_rng(3)
    kinds = [provider.model().vector(turn.user) for turn in told.turns[:200]]
    with provider.index.writing() as is_ours:
        assert is_ours
        for start in range(0, turns, 1000):
            session = f"many{start}"
            said = [told.turns[number % len(told.turns)] for number in range(start, min(turns, start + 1000))]
            rows = [
                {"role": "user", "content": f"{turn.user} ({start + place})", "timestamp": turn.at + start + place}
                for place, turn in enumerate(said)
            ]
            db.import_sessions([{"id": session, "source": "cli", "started_at": said[0].at, "messages": rows}])
            kept = db.get_messages(session)
            for row in kept:
                texts = [row["content"]]
                vector = kinds[row["id"] % len(kinds)] + rng.standard_normal(DIMENSIONS).astype(np.float32) * 0.03
                provider.index.add(row["id"], row["timestamp"], session, texts, vector[None, :])
            provider.index.looked_at(kept[-1]["id"])
    db.queries.optimize_index()  # which a store does by itself, some time after it was written to


if __name__ == "__main__":
    if sys.argv[1:2] == ["index"]:
        index(float(sys.argv[2]) if len(sys.argv) > 2 else 30.0)
    elif sys.argv[1:2] == ["prefetch"]:
        prefetch(int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
    else:
        recall(int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
