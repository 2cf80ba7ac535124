"""Find skills by the words of a task, and tell when a new one says what an old one says already. Pure."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache

from msgspec import Struct

from hermes.extensions.skills.skill_file import SkillHead


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BODY_CHARS = 2_000  # of a skill's words; what it is for is said at its beginning
_WEIGHTS = {"name": 4.0, "tags": 3.0, "description": 2.5, "category": 1.0, "body": 0.35}
_SATURATION = 2.0
_ALIKE = 0.72  # from here on a new skill is an old one in other words
_ALIKE_WORDS = 6  # fewer words than that say too little to compare
_WORD = re.compile(r"[^\W_]+(?:\+\+|#)?", re.UNICODE)
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COMMON = _words(
    """a about after all also am an and any are as at be been before but by can could did do does each for from get go
    had has have help here how i if in into is it its just like make me more my need new no not of off on one or our
    out over please should skill so some than that the their them then there these they this to up us use user using
    very want was we were what when where which while who will with without would you your"""
)
# What people say in a task, and what a skill is called: each group is one word.
_SAME = (
    ("spreadsheet", "csv", "tsv", "excel", "xlsx"),
    ("k8s", "kubernetes", "kubectl"),
    ("js", "javascript"),
    ("ts", "typescript"),
    ("py", "python"),
    ("repo", "repository"),
    ("config", "configuration", "configure", "settings"),
    ("db", "database"),
    ("auth", "authentication", "login"),
    ("docs", "documentation", "document"),
    ("picture", "image", "photo"),
    ("mail", "email"),
    ("delete", "remove"),
    ("bug", "defect", "fault"),
    ("env", "environment"),
)
_ENDS = (
    *("ational", "ations", "ation", "ments", "ment", "ingly", "ings", "ing", "ions", "ion"),
    *("ers", "er", "ies", "ied", "edly", "ed", "es", "ly", "s", "e"),
)


class FoundSkill(Struct, frozen=True):
    """A skill and how well it fits; larger is better."""

    head: SkillHead
    score: float


class SearchText(Struct, frozen=True):
    """A skill as it is searched: its head and the beginning of its words."""

    head: SkillHead
    body: str = ""


@lru_cache(maxsize=4096)  # the same heads are searched again and again
def stems(text: str) -> tuple[str, ...]:
    """The words of `text` that tell something, without their endings; pairs of characters where there are no spaces."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _WIDE.search(word):
            found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
        elif word not in _COMMON and (len(word) > 1 or word.isdigit()):
            found.append(_term(word))
    return tuple(found)


@lru_cache(maxsize=65_536)  # few words, again and again
def _term(word: str) -> str:
    stem = _stem(word)
    return _SYNONYM.get(word) or _SYNONYM.get(stem) or stem


class SkillSearch:
    """Skills that are searched more than once."""

    def __init__(self, skills: Sequence[SearchText]) -> None:
        self._skills = skills
        self._tables = [_weights(skill) for skill in skills]
        self._spread = Counter(word for table in self._tables for word in table)

    def find(self, query: str) -> list[FoundSkill]:
        """Those that have something to do with `query`, best first; equals in the order they were given."""
        wanted = Counter(_known(word, self._spread) for word in stems(query))
        total = len(self._tables)
        scored = [(_score(wanted, table, self._spread, total), place) for place, table in enumerate(self._tables)]
        best = sorted((one for one in scored if one[0] > 0), key=lambda one: (-one[0], one[1]))
        return [FoundSkill(self._skills[place].head, round(score, 4)) for score, place in best]


def search(query: str, skills: Sequence[SearchText]) -> list[FoundSkill]:
    """The skills that have something to do with `query`, best first."""
    return SkillSearch(skills).find(query)


def similar(new: SearchText, skills: Sequence[SearchText]) -> list[FoundSkill]:
    """The skills that `new` repeats, the most alike first: in what they are for, or in what they tell to do."""
    found = [FoundSkill(skill.head, round(likeness(new, skill), 3)) for skill in skills]
    return sorted((one for one in found if one.score >= _ALIKE), key=lambda one: -one.score)


def likeness(one: SearchText, other: SearchText) -> float:
    """From 0, nothing in common, to 1, the same words."""
    purpose = _overlap(_purpose(one.head), _purpose(other.head))
    words, others = set(stems(one.body)), set(stems(other.body))
    if min(len(words), len(others)) < _ALIKE_WORDS:
        return purpose
    told = len(words & others) / min(len(words), len(others))
    # The same steps under another name repeat it as much as the same purpose with other steps.
    return max(purpose, told if told > 0.85 else 0.0, 0.55 * purpose + 0.45 * told)


def _purpose(head: SkillHead) -> set[str]:
    return {*stems(head.name.replace("-", " ").replace("_", " ")), *stems(head.description)}


def _overlap(ones: set[str], others: set[str]) -> float:
    if not ones or not others:
        return 0.0
    common = len(ones & others)
    if min(len(ones), len(others)) < 3:
        return common / len(ones | others)
    return common / math.sqrt(len(ones) * len(others))


def _weights(skill: SearchText) -> Mapping[str, float]:
    head = skill.head
    texts = {
        "name": f"{head.name} {head.folder_name}".replace("-", " ").replace("_", " ").replace(".", " "),
        "tags": " ".join((*head.tags, *head.commands)),
        "description": head.description,
        "category": head.category.replace("/", " ").replace("-", " "),
        "body": skill.body[:BODY_CHARS],
    }
    table: dict[str, float] = {}
    for field, text in texts.items():
        for word, count in Counter(stems(text)).items():
            table[word] = table.get(word, 0.0) + _WEIGHTS[field] * min(count, 3) ** 0.5
    return table


def _score(wanted: Counter[str], table: Mapping[str, float], spread: Mapping[str, int], total: int) -> float:
    score = 0.0
    for word, times in wanted.items():
        if weight := table.get(word):
            rarity = math.log(1 + (total - spread[word] + 0.5) / (spread[word] + 0.5))
            score += times**0.5 * rarity * weight / (weight + _SATURATION)
    return score


def _known(word: str, spread: Mapping[str, int]) -> str:
    """`word`, or the word of some skill that it may be a slip of the pen for."""
    if word in spread or len(word) < 5:
        return word
    near = get_close_matches(word, [other for other in spread if other[0] == word[0]], n=1, cutoff=0.82)
    return near[0] if near else word


def _stem(word: str) -> str:
    for end in _ENDS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            short = word[: -len(end)]
            if end in ("ies", "ied"):
                return f"{short}y"
            if (
                end in ("ing", "ed", "er", "ers")
                and len(short) > 3
                and short[-1] == short[-2]
                and short[-1] not in "lsz"
            ):
                short = short[:-1]  # planning is of plan
            return short
    return word


_SYNONYM = {name: _stem(group[0]) for group in _SAME for one in group for name in (one, _stem(one))}
