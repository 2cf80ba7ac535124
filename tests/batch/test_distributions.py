"""Toolset distributions: the documented ones, and the user's own."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.batch import list_distributions, sample_toolsets_from_distribution
from hermes.compat import batch_runner, toolset_distributions, trajectory_compressor
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


@pytest.mark.parametrize("text", ["mine: {terminal: 100\n", "- terminal\n"])
def test_what_is_wrong_with_the_file_is_told_as_of_this_file(hermes_home: Path, text: str) -> None:
    (hermes_home / "distributions.yaml").write_text(text)
    with pytest.raises(UserError, match=r"distributions\.yaml") as refused:
        list_distributions()
    assert "config edit" not in str(refused.value)
    assert "model:" not in str(refused.value)


def test_a_toolset_that_does_not_exist_is_told(hermes_home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (hermes_home / "distributions.yaml").write_text("mine: {terminal: 100, wbe: 30}\n")
    assert list_distributions()["mine"].unknown_toolsets() == ["wbe"]
    sample_toolsets_from_distribution("mine")
    assert "the distribution 'mine' names 'wbe'" in caplog.text
    assert not any(one.unknown_toolsets() for name, one in list_distributions().items() if name != "mine")


@pytest.mark.parametrize("main", [batch_runner.main, trajectory_compressor.main, toolset_distributions.main])
def test_the_old_programs_tell_how_they_are_used(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: python -m hermes.compat.")


def test_the_old_programs_say_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert batch_runner.main(["--dataset_file=x", "--batch_size=0", "--run_name=x"]) == 2
    assert "0 is less than 1" in capsys.readouterr().err
    assert batch_runner.main(["--dataset_file=x", "--run_name=x"]) == 2
    assert "--batch_size is needed" in capsys.readouterr().err
    assert toolset_distributions.main([]) == 0
    assert "terminal_web" in capsys.readouterr().out
