"""Toolset distributions: the documented ones, and the user's own."""

import random
from pathlib import Path

import pytest

from hermes.batch import list_distributions, sample_toolsets_from_distribution
from hermes.compat import toolset_distributions
from hermes.errors import UserError

NAMES = (
    "default image_gen research science development safe balanced minimal terminal_only terminal_web creative reasoning"
    " browser_use browser_only browser_tasks terminal_tasks mixed_tasks"
)


def test_the_documented_distributions_are_there() -> None:
    assert list(list_distributions()) == NAMES.split()
    assert list_distributions()["science"].toolsets == {
        "web": 94,
        "terminal": 94,
        "file": 94,
        "vision": 65,
        "browser": 50,
        "image_gen": 15,
    }


def test_each_toolset_is_drawn_by_itself_and_never_none() -> None:
    one = list_distributions()["reasoning"]
    drawn = [one.draw(random.Random(seed)) for seed in range(4000)]
    assert all(drawn)
    for name, percent in (("file", 60), ("terminal", 20)):
        share = sum(name in each for each in drawn) / 40
        assert abs(share - percent) < 4, (name, share)


def test_nothing_drawn_is_the_most_likely_one() -> None:
    class Unlucky(random.Random):
        def random(self) -> float:
            return 0.9999

    assert list_distributions()["browser_tasks"].draw(Unlucky()) == ["browser"]


def test_an_unknown_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="there is no distribution 'x'"):
        sample_toolsets_from_distribution("x")
    with pytest.raises(ValueError, match="'x'"):
        toolset_distributions.sample_toolsets_from_distribution("x")
    assert toolset_distributions.validate_distribution("minimal")
    assert toolset_distributions.get_distribution("minimal") == {
        "description": "the web alone",
        "toolsets": {"web": 100.0},
    }


def test_own_distributions_are_read_from_the_home(hermes_home: Path) -> None:
    (hermes_home / "distributions.yaml").write_text(
        "mine:\n  description: my own\n  toolsets: {file: 100, terminal: 10}\nminimal: {file: 100}\n"
    )
    assert list_distributions()["mine"].description == "my own"
    assert sample_toolsets_from_distribution("minimal") == ["file"]
    (hermes_home / "distributions.yaml").write_text("bad: {file: 200}\n")
    with pytest.raises(UserError, match=r"bad\.file is a percentage between 0 and 100, not 200"):
        list_distributions()
