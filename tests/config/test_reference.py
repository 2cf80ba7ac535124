"""docs/configuration.md says what the sections say."""

import json
import re
from pathlib import Path

from hermes.config.audit import every_key
from hermes.config.load import load_settings
from hermes.config.reference import reference, renewed
from hermes.config.values import plain

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page), "run: python -m hermes.config.reference"


def test_every_key_has_its_row() -> None:
    text = reference()
    assert not [key for key in every_key() if f"| `{key}` |" not in text]


def test_every_default_is_the_one_in_force(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, environ={})
    rows = re.findall(r"^\| `([a-z_.]+)` \| `(.+?)` \|", reference(), re.MULTILINE)  # NAME stands for the user's own
    assert len(rows) > 100
    wrong = [key for key, default in rows if plain(settings.get(key)) != json.loads(default.replace("\\|", "|"))]
    assert wrong == []
