"""Names that go on with what is typed, whatever is in the folder and whatever is typed."""

import os
from pathlib import Path

import pytest

from hermes.host.path_completion import paths_below


def test_names_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff\xfe")).touch()
    assert list(paths_below(tmp_path, "n")) == ["notes.txt"]


@pytest.mark.parametrize("typed", ["a\0b/", "~nobody-of-this-name/x", "gone/x", "x" * 5_000 + "/y"])
def test_what_names_no_folder_has_nothing_to_go_on_with(tmp_path: Path, typed: str) -> None:
    assert list(paths_below(tmp_path, typed)) == []
