"""Skills on a disk of a test's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.config.load import load_settings
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_desk import SkillDesk
from hermes.runtime.setup.skill_setup import skill_services


def put(folder: Path, text: str = "Do it well.\n", **files: str) -> Path:
    """A skill in `folder`; further files by name, with `__` for a slash and `_dot_` for a dot."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    for name, content in files.items():
        file = folder / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder / "SKILL.md"


def skill_text(name: str, description: str = "Does a thing.", body: str = "Do it well.", **head: Any) -> str:
    """A SKILL.md with this head."""
    import json

    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()]
    return "\n".join(["---", f"name: {name}", f"description: {json.dumps(description)}", *lines, "---", "", body, ""])


def book(home: Path, environ: Mapping[str, str] | None = None, platform: str = "cli", **section: Any) -> SkillBook:
    flags = {f"skills.{name}": value for name, value in section.items()}
    return SkillBook(load_settings(home, environ=environ or {}, flags=flags), platform)


def desk(home: Path, environ: Mapping[str, str] | None = None, session: str = "s-1", **section: Any) -> SkillDesk:
    kept = book(home, environ, **section)
    return SkillDesk(kept, skill_services(kept.settings), session)
