"""Tables grow by adding a file; entries load when asked for."""

import sys
from pathlib import Path

import pytest

from hermes.tables import Table


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table[str]:
    package = tmp_path / "sample_table"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_hidden.py").write_text("raise AssertionError('never imported')")
    (package / "long_name.py").write_text('"""Say something long.\n\nMore."""\nENTRY = "long"\n')
    (package / "help_.py").write_text('"""Help."""\nENTRY = "help"\n')
    (package / "broken.py").write_text('"""Fails when imported."""\nraise ValueError("broken")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("sample_table")]:
        monkeypatch.delitem(sys.modules, name)
    return Table("sample_table", "ENTRY")


def test_names_and_summaries_come_without_importing(table: Table[str]) -> None:
    assert table.names() == ["broken", "help", "long-name"]
    assert table.summary("long-name") == "Say something long."
    assert table.summary("broken") == "Fails when imported."


def test_an_entry_is_loaded_by_its_name_and_a_broken_one_costs_only_itself(table: Table[str]) -> None:
    assert (table.load("help"), table.load("long-name")) == ("help", "long")
    with pytest.raises(ValueError, match="broken"):
        table.load("broken")
    with pytest.raises(KeyError):
        table.load("missing")


def test_an_entry_from_elsewhere_can_be_taken_out_again_and_a_file_cannot(table: Table[str]) -> None:
    table.add("extra", "from a plugin")
    table.remove("extra")
    assert table.names() == ["broken", "help", "long-name"]
    with pytest.raises(KeyError):
        table.remove("help")


def test_an_entry_from_elsewhere_is_added_once(table: Table[str]) -> None:
    table.add("extra", "from a plugin")
    assert table.load("extra") == "from a plugin"
    with pytest.raises(ValueError, match="already"):
        table.add("extra", "again")
    table.add("help", "taken")
    with pytest.raises(ValueError, match="already"):
        table.names()
