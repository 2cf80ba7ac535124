"""The recall set is what its page says, and stays as it was before anything was ranked with it."""

import hashlib

from bench.recall_set import SESSIONS, recall_set

AS_COMMITTED = "e5e8c5cc641c3c03283fd93e86b3cc82d7bf324415bf43346e7a883094c51076"


def test_there_are_enough_facts_changes_and_sessions() -> None:
    made = recall_set()
    changed = [fact for fact in made.facts if fact.old_value]

    assert len(made.facts) >= 300
    assert len({turn.session for turn in made.turns}) == SESSIONS == 60
    assert len(changed) == len(made.facts) // 3
    assert sum(fact.in_other_words for fact in changed) == len(changed) // 2


def test_each_value_was_said_and_a_change_came_later() -> None:
    made = recall_set()
    for fact in made.facts:
        assert fact.value in made.turns[fact.turn].user
        if fact.old_value:
            assert fact.old_value in made.turns[fact.old_turn].user
            assert made.turns[fact.old_turn].at < made.turns[fact.turn].at


def test_the_set_was_not_touched() -> None:
    assert hashlib.sha256(repr(recall_set()).encode()).hexdigest() == AS_COMMITTED
