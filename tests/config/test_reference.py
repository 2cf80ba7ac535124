"""docs/configuration.md says what the sections say."""

from pathlib import Path

from hermes.config.audit import every_key
from hermes.config.reference import reference, renewed

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page), "run: python -m hermes.config.reference"


def test_every_key_has_its_row() -> None:
    text = reference()
    assert not [key for key in every_key() if f"| `{key}` |" not in text]
