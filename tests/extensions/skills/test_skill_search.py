"""Found when needed: among five hundred, by the words of a task; and a second skill on one subject is noticed."""

from pathlib import Path

import pytest

from hermes.extensions.skills.skill_file import SkillHead
from hermes.extensions.skills.skill_search import SearchText, SkillSearch, likeness, search, similar
from tests.extensions.skills.shelf import desk, put, skill_text
from tests.extensions.skills.tasks import fitting, others


def _skill(name: str, description: str, body: str = "", category: str = "") -> SearchText:
    file = f"/s/{category}/{name}/SKILL.md" if category else f"/s/{name}/SKILL.md"
    return SearchText(SkillHead(name=name, description=description, category=category, file=file, root="/s"), body)


def test_of_a_hundred_tasks_ninety_find_their_skill_among_the_first_three() -> None:
    rows = fitting()
    skills = [_skill(name, description, category=category) for name, category, description, _ in rows]
    skills += [_skill(name, description, category=category) for name, category, description in others(400)]
    assert (len(rows), len(skills)) == (100, 500)
    shelf = SkillSearch(skills)
    missed = [
        (name, task) for name, _, _, task in rows if name not in [found.head.name for found in shelf.find(task)[:3]]
    ]
    assert len(missed) <= 10, missed


def test_the_tool_finds_by_query_and_by_category(tmp_path: Path) -> None:
    for name, category, description, _ in fitting()[:30]:
        put(tmp_path / "skills" / category / name, skill_text(name, description))
    found = desk(tmp_path).listed("cheapest way to Lisbon by train")
    assert found["skills"][0] == {
        "name": "travel-booking",
        "description": "Compare flights and trains for a trip",
        "category": "personal",
    }
    kitchen = desk(tmp_path).listed(category="kitchen")
    assert [one["name"] for one in kitchen["skills"]] == ["meal-plan", "recipe-scaling"]
    assert kitchen["count"] == 2
    assert desk(tmp_path).listed("xyzzy plugh")["skills"] == []
    assert desk(tmp_path).listed("slow query", "kitchen")["skills"] == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("postgers", "postgres-slow-queries"),  # a slip of the pen
        ("k8s", "kubernetes-crashloop"),
        ("translating manuals", "translate-manual"),
        ("", None),
        ("the a of", None),
        ("証明書", None),
    ],
)
def test_words_are_met_halfway(query: str, name: str | None) -> None:
    skills = [_skill(each, description) for each, _, description, _ in fitting()]
    found = [one.head.name for one in search(query, skills)]
    assert found[:1] == ([name] if name else [])


def test_scripts_without_spaces_are_searched_too() -> None:
    skills = [_skill("a", "証明書を更新する"), _skill("b", "画像を整理する")]
    assert [one.head.name for one in search("サーバーの証明書", skills)] == ["a"]


BODY = "Build the image with docker build. Check its size with docker images. Remove caches and use a slim base image."


@pytest.mark.parametrize(
    ("name", "description", "body"),
    [
        ("docker-image-size", "Make a Docker image smaller", BODY),
        ("smaller-docker-images", "Make Docker images smaller", "Use a slim base."),
        ("shrink-container", "Reduce the size of containers", BODY.replace("Check", "Look at")),
        ("docker-size", "Make the size of a Docker image smaller", "Something else entirely, about layers and caches."),
    ],
)
def test_a_near_duplicate_is_known(name: str, description: str, body: str) -> None:
    known = [_skill("docker-image-size", "Make a Docker image smaller", BODY), _skill("other", "Bake bread", "Knead.")]
    assert [one.head.name for one in similar(_skill(name, description, body), known)] == ["docker-image-size"]


def test_different_skills_are_not_taken_for_one_another() -> None:
    rows = fitting()
    skills = [_skill(name, description) for name, _, description, _ in rows]
    pairs = [
        (one.head.name, other.head.name, likeness(one, other))
        for place, one in enumerate(skills)
        for other in skills[:place]
    ]
    assert [pair for pair in pairs if pair[2] >= 0.72] == []
