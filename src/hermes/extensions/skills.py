"""Skills: folders with a SKILL.md, whose words are given to the model when somebody asks for them by name."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.config.settings import Settings
from hermes.errors import UserError

FILE = "SKILL.md"
DEEPEST = 3  # skills/[category/[category/]]name
MAX_CHARS = 100_000
NAMED = 12  # names told in an error
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}


class Skill(Struct, frozen=True, kw_only=True):
    """One skill. `variables` are those it says its commands need."""

    name: str
    description: str
    file: Path
    body: str
    platforms: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    def text(self, session_id: str = "", *, is_template: bool = True) -> str:
        """The skill as the model reads it."""
        folder = self.file.parent
        body = self.body
        if is_template:
            body = body.replace("${HERMES_SKILL_DIR}", str(folder)).replace("${HERMES_SESSION_ID}", session_id)
        return f'<skill name="{self.name}" folder="{folder}">\n{body.strip()}\n</skill>'


class Skills:
    """The skills of a home: its own first, then those of `skills.external_dirs`. Files are read when asked for."""

    def __init__(self, settings: Settings, platform: str = "cli") -> None:
        self._section = settings.of(Section)
        folders = (Path(os.path.expanduser(folder)) for folder in self._section.external_dirs)  # noqa: PTH111 - no error for an unknown user
        self.folders = (paths.skills_dir(settings.home), *folders)
        self._off = {*self._section.disabled, *self._section.platform_disabled.get(platform, ())}

    def files(self) -> dict[str, Path]:
        """The SKILL.md of each skill by the name of its folder; those that are switched off are not among them."""
        found: dict[str, Path] = {}
        for folder in self.folders:
            for file in _files(folder, DEEPEST):
                if file.parent.name not in self._off:
                    found.setdefault(file.parent.name, file)
        return found

    def load(self, name: str) -> Skill:
        """The skill of this name; `UserError` says which there are, or what is wrong with its file."""
        wanted = name.strip().rpartition("/")[2]
        files = self.files()
        if wanted in self._off:
            raise UserError(f"the skill {wanted!r} is switched off; see: hermes config explain skills.disabled")
        if wanted not in files:
            raise UserError(f"there is no skill {wanted!r}{_hint(wanted, list(files), self.folders[0])}")
        skill = read(files[wanted])
        system = _SYSTEMS.get(sys.platform, sys.platform)
        if skill.platforms and system not in skill.platforms:
            raise UserError(f"the skill {wanted!r} is for {', '.join(skill.platforms)}, and this is {system}")
        return skill

    def text(self, skills: Sequence[Skill], session_id: str) -> str:
        """These skills as one part of the prompt."""
        is_template = self._section.template_vars
        parts = [skill.text(session_id, is_template=is_template) for skill in skills]
        return "\n\n".join(["The user has loaded these skills; follow them where they fit the task.", *parts])


def read(file: Path) -> Skill:
    """What a SKILL.md says; `UserError` names the file and what is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the skill {file}: {error}") from error
    if len(text) > MAX_CHARS:
        raise UserError(f"the skill {file} has {len(text)} characters; {MAX_CHARS} are the most, so split it")
    head, body = _split(text, file)
    return Skill(
        name=file.parent.name,
        description=str(head.get("description") or ""),
        file=file,
        body=body,
        platforms=tuple(str(each) for each in _listed(head.get("platforms"))),
        variables=_variables(head),
    )


def _files(folder: Path, deeper: int) -> Iterator[Path]:
    try:
        below = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:  # no such folder, or not ours to read: there are no skills in it
        return
    for each in below:
        if (each / FILE).is_file():
            yield each / FILE
        elif deeper > 1:
            yield from _files(each, deeper - 1)


def _split(text: str, file: Path) -> tuple[Mapping[str, Any], str]:
    """The head between two lines of dashes, and what follows it."""
    if not text.startswith("---"):
        return {}, text
    import yaml  # for skills that have a head

    head, dashes, body = text[3:].partition("\n---")
    try:
        found = yaml.safe_load(head) if dashes else None
    except yaml.YAMLError as error:
        raise UserError(f"the head of the skill {file} is no valid YAML: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(found, Mapping):
        raise UserError(f"the head of the skill {file} must be keys and values between two lines of ---")
    return found, body.partition("\n")[2]


def _variables(head: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that its commands need, from the present key and from the older one."""
    older = head.get("prerequisites")
    listed = [
        *_listed(head.get("required_environment_variables")),
        *_listed(older.get("env_vars") if isinstance(older, Mapping) else None),
    ]
    names = [str(each.get("name") or "") if isinstance(each, Mapping) else str(each) for each in listed]
    return tuple(dict.fromkeys(name for name in names if re.fullmatch(_VARIABLE, name)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _hint(wanted: str, names: list[str], folder: Path) -> str:
    near = get_close_matches(wanted, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not names:
        return f"; put one into {folder / wanted / FILE}"
    more = ", …" if len(names) > NAMED else ""
    return f"; there are: {', '.join(names[:NAMED])}{more}"
