"""The index names every page, and no link of any page leads nowhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = set(_LINK.findall(index))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= listed, f"not in docs/README.md: {sorted(pages - listed)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target in _LINK.findall(text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_map_for_contributors_names_every_room_and_no_file_that_is_gone() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "hermes"
    rooms = {folder.name for folder in source.iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    assert rooms == set(re.findall(r"^  (\w+)/ ", text, flags=re.MULTILINE))
    named = re.findall(r"`((?:\w+/)*\w+(?:/|\.py))`", text) + re.findall(r"\b\w+\.py\b(?=.*vocabulary)", text)
    assert named
    assert [path for path in named if not (source / path).exists()] == []


def test_the_screens_in_the_readme_are_real_ones() -> None:
    real = (ROOT / "docs/screens/first-hour/110-dark.txt").read_text(encoding="utf-8")
    shown = re.findall(
        r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(shown) == 2
    assert [text for text in shown if text.strip("\n") not in real] == []
