"""Which of the turns that may answer a question come first. Pure: vectors, words and times in, an order out.

Turns about one subject lie close together: its name alone makes most of their vector. So the names in the question
choose among the candidates by words, as full-text search does, and the vectors are compared without what these turns
have in common, which leaves what each says about the subject. A turn counts by its best sentence.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from hermes.context.memory.local.sentence_model import Vectors
from hermes.context.memory.local.turn_index import IndexedTurn

WORDS_WEIGHT = 0.3  # of full-text beside meaning, in units of how far the candidates lie apart
AGAIN_WEIGHT = 0.3  # for what resembles the best hit: a later change of it is often said in other words
LEAST_LIKE = 0.18  # below, a turn has nothing to do with the question, and nothing is better than that
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"(?<=\s)[^\W\d_]*[A-Z][^\W_]*(?:'s)?|\b\w*\d\w*\b|\b\w+[_./]\w+\b")
_COMMON = frozenset(
    re.findall(
        r"\S+",
        "a about after all an and any are as at be before been by can could did do does for from get had has have he "
        "her here him his how i if in into is it its just know let like may me more most must my no not of on once one "
        "or our out over please s say she should so some such t tell than that the their them then there these they "
        "this those to up us use was we were what when where which who whom whose why will with would you your",
    )
)


class RankedTurn(Struct, frozen=True):
    """A turn that was chosen, and why."""

    turn: IndexedTurn
    sentence: str
    likeness: float  # of the best sentence and the question, -1 to 1
    shared: tuple[str, ...]  # words of the question that the turn has


class Candidates(Struct, frozen=True):
    """Turns with the vectors of their sentences, in one piece: `owner` says whose each row is."""

    turns: Sequence[IndexedTurn]
    vectors: Vectors
    owner: Any


def stems(text: str) -> list[str]:
    """The words of a text that tell something, without their commonest endings."""
    words = [word for word in _WORD.findall(text.casefold()) if word not in _COMMON]
    return [re.sub(r"(?:ing|ed|es|s|ly)\Z", "", word) if len(word) > 4 else word for word in words]


def names_in(question: str) -> set[str]:
    """What looks like a name or a number in a question: it is to be in the answer, letter by letter."""
    return {stem for name in _NAME.findall(question) for stem in stems(name.removesuffix("'s"))}


def search_words(question: str) -> list[str]:
    """The words that full-text search is asked for: the names, or else the longest others."""
    names = list(dict.fromkeys(match.removesuffix("'s") for match in _NAME.findall(question)))
    others = [word for word in _WORD.findall(question) if word.casefold() not in _COMMON]
    return names[:4] or sorted(dict.fromkeys(others), key=len, reverse=True)[:4]


def ranked(question: str, vector: Vectors, candidates: Candidates, count: int) -> list[RankedTurn]:
    """At most `count` turns that have to do with the question, the likeliest first."""
    import numpy as np

    if not candidates.turns:
        return []
    owner, vectors = candidates.owner, candidates.vectors
    said = [text for turn in candidates.turns for text in turn.texts[: turn.count]]
    words = [frozenset(stems(text)) for text in said]
    names, asked = names_in(question), set(stems(question))
    likeness = vectors @ vector
    pool = np.array([bool(names & own) for own in words]) if names else np.ones(len(said), bool)
    if not pool.any():
        pool[:] = True
    middle = vectors[pool].mean(axis=0)
    apart = _unit(np, vectors - middle)
    score = _spread(apart @ _unit(np, vector - middle), pool)
    score += WORDS_WEIGHT * _spread(_overlap(np, asked, words), pool)
    best = int(np.argmax(np.where(pool, score, -np.inf)))
    score += AGAIN_WEIGHT * _spread(apart @ apart[best], pool)
    score = np.where(pool, score, score.min() - 1.0 + likeness)
    order = np.argsort(-score, kind="stable")
    chosen: dict[int, RankedTurn] = {}
    for row in order:
        place = int(owner[row])
        if place in chosen or (likeness[row] < LEAST_LIKE and not names & words[row]):
            continue
        shared = tuple(sorted(asked & words[row]))
        chosen[place] = RankedTurn(candidates.turns[place], said[row], float(likeness[row]), shared)
        if len(chosen) == count:
            break
    return list(chosen.values())


def _overlap(np: Any, asked: set[str], words: Sequence[frozenset[str]]) -> Any:
    """How much of the question each sentence has in it; a word that few sentences have counts more."""
    held = Counter(word for own in words for word in own & asked)
    weight = {word: math.log(1 + len(words) / count) for word, count in held.items()}
    return np.array([sum(weight[word] for word in own & asked) for own in words])


def _unit(np: Any, vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)


def _spread(values: Any, pool: Any) -> Any:
    """Values in units of how far those of the pool lie apart."""
    inside = values[pool]
    return (values - inside.mean()) / (inside.std() + 1e-9)
