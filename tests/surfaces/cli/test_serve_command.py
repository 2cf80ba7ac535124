"""`hermes serve` where it is typed as other programs have it."""

import pytest

from tests.surfaces.cli.conftest import Run


@pytest.mark.parametrize("word", ["status", "stop"])
def test_a_word_in_place_of_an_option_is_told_which_option_it_is(run: Run, word: str) -> None:
    done = run("serve", word)
    assert done.returncode == 2
    assert f"Did you mean: hermes serve --{word}" in done.stderr
