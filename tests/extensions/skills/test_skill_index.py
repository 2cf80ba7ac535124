"""The index: the form of the contract while it fits, and never more than a thousand tokens."""

import random

import pytest

from hermes.extensions.skills.skill_file import SkillHead
from hermes.extensions.skills.skill_index import MAX_TOKENS, about_tokens, skill_index
from tests.extensions.skills.tasks import fitting, others


def _head(name: str, category: str = "", description: str = "") -> SkillHead:
    return SkillHead(name=name, category=category, description=description, file=f"/s/{name}/SKILL.md", root="/s")


def test_a_few_skills_are_listed_as_the_contract_says() -> None:
    heads = [_head("two", "acat", "Two things."), _head("abc", "zcat", "Abc."), _head("lone", "", "x" * 80)]
    told = skill_index(heads, {"zcat": "Z matters"}, {})
    assert told.partition("<available_skills>")[2] == (
        f"\n  acat:\n    - two: Two things.\n  lone:\n    - lone: {'x' * 57}...\n  zcat: Z matters\n    - abc: Abc.\n"
        "</available_skills>"
    )
    assert skill_index([], {}, {}) == ""


def test_then_names_alone_then_counts_and_how_to_search() -> None:
    rows = fitting()
    heads = [_head(name, category, description) for name, category, description, _ in rows]
    names = skill_index(heads, {}, {})
    assert "  kitchen: meal-plan, recipe-scaling\n" in names
    assert "Scale a recipe" not in names
    many = [*heads, *(_head(name, category, description) for name, category, description in others(400))]
    counts = skill_index(many, {}, {"recipe-scaling": 9, "disk-full": 3})
    assert "  kitchen: 2 skills, among them recipe-scaling" in counts or "recipe-scaling" in counts
    assert "disk-full" in counts
    assert 'skills_list(query="the words of the task")' in counts


@pytest.mark.parametrize("seed", range(20))
def test_it_never_costs_more_than_a_thousand_tokens(seed: int) -> None:
    chance = random.Random(seed)
    letters = "abcdefghij-" if seed % 3 else "漢字仮名交文章説明書"
    count, folders = chance.choice([1, 30, 120, 500, 2000]), chance.choice([1, 3, 40, 700])

    def word(most: int) -> str:
        return "".join(chance.choice(letters) for _ in range(chance.randint(1, most)))

    heads = [
        _head(f"{word(64)}{number}"[-64:], chance.choice(["", f"{word(20)}{number % folders}"]), word(300))
        for number in range(count)
    ]
    uses = {head.name: chance.randint(0, 50) for head in heads if chance.random() < 0.3}
    text = skill_index(heads, {}, uses)
    assert about_tokens(text) <= MAX_TOKENS
    assert text.count("<available_skills>") == text.count("</available_skills>") == 1
    assert text == skill_index(heads, {}, uses)
