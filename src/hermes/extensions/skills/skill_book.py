"""The skills of a home: found on disk as it is now, and by the names that people and models use for them."""

import logging
import os
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.extensions.skills.kept_index import CATEGORY_FILE, Stamp, skill_files, skill_roots
from hermes.extensions.skills.skill_file import FILE, SkillHead, read_skill, read_text
from hermes.typed import from_json

NAMED = 12  # names told in an error
_FORMAT = 1
_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
log = logging.getLogger(__name__)


class NoSkill(UserError):
    """No skill, or none that can be used, by that name; `details` is what a program may want to know."""

    def __init__(self, text: str, **details: object) -> None:
        super().__init__(text)
        self.details = details


class _KnownSkill(Struct, frozen=True):
    stamp: Stamp  # of the SKILL.md
    head: SkillHead


class _Cache(Struct, frozen=True):
    """What was read before, so that a start with hundreds of skills reads one file."""

    format: int
    known: dict[str, _KnownSkill]


class Offered(Struct, frozen=True):
    """The tools and toolsets of a session: some skills are only for those who have, or lack, one of them."""

    tools: frozenset[str]
    toolsets: frozenset[str]


class SkillBook:
    """The skills of a home: its own first, then those of `skills.external_dirs`. Each look sees the disk as it is."""

    def __init__(self, settings: Settings, platform: str = "cli") -> None:
        self.settings = settings
        self.section = settings.of(Section)
        self.own = paths.skills_dir(settings.home)
        self.roots = skill_roots(self.own, self.section)
        self._off = {*self.section.disabled, *self.section.platform_disabled.get(platform, ())}
        self._cache = paths.cache_dir(settings.home) / "skills.json"

    def all(self) -> list[SkillHead]:
        """Every skill that is there, usable or not, sorted by category and name; those of the home hide others'."""
        known = self._read_cache()
        found: dict[str, _KnownSkill] = {}
        for root in self.roots:
            for file, stamp in skill_files(root):
                old = known.get(file)
                fits = old is not None and old.stamp == stamp and old.head.root == root
                found[file] = old if old is not None and fits else _KnownSkill(stamp, read_skill(file, root))
        if found.keys() != known.keys() or any(known.get(file) is not one for file, one in found.items()):
            self._write_cache(found)
        heads = [one.head for one in found.values()]
        mine = {head.name for head in heads if head.root == self.roots[0]}
        shown = [head for head in heads if head.root == self.roots[0] or head.name not in mine]
        return sorted(shown, key=lambda head: (head.category, head.name, head.file))

    def usable(self, offered: Offered | None = None) -> list[SkillHead]:
        """Those that can be loaded here; with `offered`, those that are meant for such a session."""
        heads = [head for head in self.all() if not self.why_not(head)]
        return heads if offered is None else [head for head in heads if _is_meant_for(head, offered)]

    def why_not(self, head: SkillHead) -> str:
        """Why a skill is not offered; empty when it is."""
        if head.trouble:
            return head.trouble
        if self.is_off(head):
            return f"the skill {head.name!r} is disabled (switched off); see: hermes config explain skills.disabled"
        if not is_for_this_system(head):
            return f"the skill {head.name!r} is for {', '.join(head.platforms)}, and this is {this_system()}"
        return ""

    def is_off(self, head: SkillHead) -> bool:
        """Whether the settings switch it off, by one of its names."""
        return bool(self._off) and not self._off.isdisjoint((head.name, head.folder_name, head.place))

    def find(self, name: str) -> SkillHead:
        """The skill of this name; `NoSkill` says which there are, or what is wrong with it."""
        if ":" in name and (theirs := self._of_plugin(name.strip())) is not None:
            return theirs
        wanted, heads = name.strip().strip("/"), self.all()
        matches = named(wanted, heads)
        if len(matches) > 1:
            usable = [head for head in matches if not self.why_not(head)]
            matches = usable if len(usable) == 1 else matches
        if not matches:
            raise self._unknown(wanted, [head for head in heads if not self.why_not(head)])
        if len(matches) > 1:
            paths_of = [head.file for head in matches]
            raise NoSkill(f"{len(matches)} skills are called {wanted!r}; say which, as category/name", matches=paths_of)
        head = matches[0]
        if why := self.why_not(head):
            details = {} if head.trouble or self.is_off(head) else {"readiness_status": "unsupported"}
            raise NoSkill(why, **details)
        return head

    def _of_plugin(self, name: str) -> SkillHead | None:
        """The skill `<plugin>:<name>`; it is in no list."""
        from hermes.extensions.plugins.plugin_set import is_asked_for, plugins_of  # for names that look like one

        if not is_asked_for(self.settings):
            return None
        file = plugins_of(self.settings.home).skill(name, self.settings)
        return read_skill(str(file), str(file.parent.parent)) if file is not None else None

    def text(self, head: SkillHead, session_id: str = "") -> str:
        """The whole SKILL.md as the model reads it, variables filled in; `NoSkill` when it cannot be read now."""
        try:
            text = read_text(Path(head.file))
        except UserError as error:
            raise NoSkill(str(error)) from error
        if not self.section.template_vars:
            return text
        text = text.replace("${HERMES_SKILL_DIR}", str(head.folder))
        return text.replace("${HERMES_SESSION_ID}", session_id) if session_id else text

    def category_words(self, heads: Iterable[SkillHead]) -> dict[str, str]:
        """What the DESCRIPTION.md of each category says."""
        found: dict[str, str] = {}
        for root, category in sorted({(head.root, head.category) for head in heads if head.category}):
            file = f"{root}/{category}/{CATEGORY_FILE}"
            if category not in found and os.access(file, os.R_OK):
                words = read_skill(file, f"{root}/{category}").description
                found |= {category: words} if words else {}
        return found

    def _unknown(self, wanted: str, heads: Sequence[SkillHead]) -> NoSkill:
        from difflib import get_close_matches  # paid by a name that nobody has

        names = [head.name for head in heads]
        near = get_close_matches(wanted, names, n=1)
        if near:
            hint = f"; did you mean {near[0]!r}?"
        elif not names:
            hint = f"; put one into {self.own / (wanted or 'NAME') / FILE}"
        else:
            hint = f"; there are: {', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"
        return NoSkill(
            f"there is no skill {wanted!r}{hint}",
            available_skills=names[:20],
            hint="skills_list with a query finds a skill by what it is for",
        )

    def _read_cache(self) -> Mapping[str, _KnownSkill]:
        try:
            cache = from_json(self._cache.read_bytes(), _Cache)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            log.info("the cache of skills cannot be used and is made anew: %s", error)
            return {}
        return cache.known if cache.format == _FORMAT else {}

    def _write_cache(self, known: dict[str, _KnownSkill]) -> None:
        try:
            data = msgspec.json.encode(_Cache(_FORMAT, known)).decode()
            paths.write_private(self._cache, data)
        except (UserError, ValueError) as error:  # a name that is no text, or a disk that is full: it costs time only
            log.info("the cache of skills was not written: %s", error)


def named(wanted: str, heads: Sequence[SkillHead]) -> list[SkillHead]:
    """The skills that may be meant: by `category/name` or `category:name`, else by a name alone."""
    full = wanted.replace(":", "/")
    if "/" in full:
        return [head for head in heads if full in (head.place, f"{head.category}/{head.name}".strip("/"))]
    return [head for head in heads if wanted in (head.name, head.folder_name)]


def this_system() -> str:
    """This machine, in the words of a head's `platforms`."""
    return _SYSTEMS.get(sys.platform, sys.platform)


def is_for_this_system(head: SkillHead) -> bool:
    return not head.platforms or this_system() in head.platforms


def missing_commands(head: SkillHead, environ: Mapping[str, str]) -> list[str]:
    """The programs it needs that are not on the person's PATH."""
    path = environ.get("PATH")
    return [name for name in head.commands if shutil.which(name, path=path) is None]


def _is_meant_for(head: SkillHead, offered: Offered) -> bool:
    if not offered.tools.issuperset(head.requires_tools) or not offered.toolsets.issuperset(head.requires_toolsets):
        return False
    is_there = not offered.tools.isdisjoint(head.fallback_for_tools)
    return not is_there and offered.toolsets.isdisjoint(head.fallback_for_toolsets)


def names_of(heads: Collection[SkillHead]) -> dict[str, SkillHead]:
    """The words that call them in a conversation; of two skills of one name neither has it."""
    words = Counter(head.slash for head in heads)
    return {head.slash: head for head in heads if words[head.slash] == 1}
