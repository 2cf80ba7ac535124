"""A SKILL.md: its head, its words, and what it says it needs. Reading one runs nothing."""

import os
import re
import stat
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.errors import UserError
from hermes.extensions.skills.kept_index import SKILL_FILE

FILE = SKILL_FILE
MAX_CHARS = 100_000
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
_MAX_HEAD_CHARS = 20_000
_MAX_DEPTH = 40
_MAX_LISTED = 64  # items of any list in a head
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
_SCALARS = (str, int, float)  # a list in a list may be one that YAML's references make endless


class Variable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variable of the environment that the commands of a skill need."""

    name: str
    prompt: str = ""
    help: str = ""
    required_for: str = ""
    optional: bool = False


class SkillHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known of a skill without its words. `trouble` is what is wrong with one that cannot be used."""

    name: str
    file: str  # absolute
    root: str  # the folder of skills it was found in
    category: str = ""  # the folders between, joined by a slash
    description: str = ""
    version: str = ""
    author: str = ""
    platforms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    requires_tools: tuple[str, ...] = ()
    requires_toolsets: tuple[str, ...] = ()
    fallback_for_tools: tuple[str, ...] = ()
    fallback_for_toolsets: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    credential_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    setup_help: str = ""
    trouble: str = ""

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    @property
    def folder_name(self) -> str:
        return self.file.rsplit("/", 2)[1]

    @property
    def place(self) -> str:
        """Where it is below its root: unique there, and what the lock file calls it."""
        return f"{self.category}/{self.folder_name}" if self.category else self.folder_name

    @property
    def slash(self) -> str:
        """The word that calls it in a conversation."""
        return self.folder_name if " " in self.name else self.name


class SkillText(Struct, frozen=True):
    """The text of a SKILL.md in its parts."""

    head: Mapping[str, Any]
    body: str


def read_skill(file: str, root: str) -> SkillHead:
    """What the file says; one that cannot be used comes back with its trouble in one sentence."""
    folder = Path(file).parent
    category = "/".join(folder.relative_to(root).parts[:-1])
    try:
        text = read_text(Path(file))
        return head_of(split_skill(text), file=file, root=root, category=category)
    except UserError as error:
        return SkillHead(name=folder.name, file=file, root=root, category=category, trouble=str(error))


def read_text(file: Path) -> str:
    """The text of a SKILL.md; `UserError` when it cannot be read, leads out of its folder, or is too long."""
    try:
        if not os.path.realpath(file).startswith(f"{os.path.realpath(file.parent)}/"):
            raise UserError(f"the skill {file} is a link that leads out of its folder")
        info = file.stat()
        size = info.st_size
        if not stat.S_ISREG(info.st_mode):
            raise UserError(f"the skill {file} is no regular file")
        if size > 4 * MAX_CHARS:  # before it is read: it may be of any size
            raise _too_long(file, f"{size // 1000} kB")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the skill {file}: {error}") from error
    if len(text) > MAX_CHARS:
        raise _too_long(file, f"{len(text)} characters")
    return text


def split_skill(text: str) -> SkillText:
    """The head between two lines of dashes, and what follows it; `UserError` in one sentence when it is no head."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    if not text.startswith("---"):
        return SkillText({}, text)
    import yaml  # for skills that are not in the cache

    head, dashes, body = text[3:].partition("\n---")
    if len(head) > _MAX_HEAD_CHARS:
        raise UserError(f"the head has more than {_MAX_HEAD_CHARS} characters")
    if _depth(head) > _MAX_DEPTH:
        raise UserError(f"the head is no valid YAML for a skill: it is nested more than {_MAX_DEPTH} deep")
    try:
        found = yaml.safe_load(head) if dashes else None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UserError(f"the head is no valid YAML: {_yaml_trouble(error)}") from error
    if not isinstance(found, Mapping):
        raise UserError("the head must be keys and values between two lines of ---")
    return SkillText(found, body.partition("\n")[2])


def head_of(text: SkillText, *, file: str, root: str, category: str) -> SkillHead:
    """The head as it is used; what is written in another way than expected counts as left out."""
    head = text.head
    own = _mapping(_mapping(head.get("metadata")).get("hermes"))
    older = _mapping(head.get("prerequisites"))
    setup = _mapping(head.get("setup"))
    variables = _variables(head, older, setup)
    helps = [one.help for one in variables if one.help]
    return SkillHead(
        name=_name(head, Path(file).parent.name),
        file=file,
        root=root,
        category=category,
        description=one_line(_text(head.get("description")) or _first_line(text.body))[:MAX_DESCRIPTION_CHARS],
        version=one_line(_text(head.get("version")))[:40],
        author=one_line(_text(head.get("author")))[:100],
        platforms=tuple(each.lower() for each in _texts(head.get("platforms"))),
        tags=_texts(own.get("tags") or head.get("tags")),
        related=_texts(own.get("related_skills")),
        requires_tools=_texts(own.get("requires_tools")),
        requires_toolsets=_texts(own.get("requires_toolsets")),
        fallback_for_tools=_texts(own.get("fallback_for_tools")),
        fallback_for_toolsets=_texts(own.get("fallback_for_toolsets")),
        variables=variables,
        credential_files=_texts(head.get("required_credential_files"), "path"),
        commands=_texts(older.get("commands")),
        setup_help=one_line(_text(setup.get("help")) or next(iter(helps), ""))[:500],
    )


def one_line(text: str) -> str:
    """`text` in one line, without characters that nobody sees."""
    kept = "".join(char for char in text if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    return " ".join(kept.split())


def _name(head: Mapping[str, Any], folder: str) -> str:
    named = _text(head.get("name")).strip()
    return named if _SHOWN_NAME.fullmatch(named) else folder


def _variables(head: Mapping[str, Any], older: Mapping[str, Any], setup: Mapping[str, Any]) -> tuple[Variable, ...]:
    """From the present key and the two older ones; a name that is none is left out."""
    listed = [
        *_listed(head.get("required_environment_variables")),
        *_listed(older.get("env_vars")),
        *_listed(setup.get("collect_secrets")),
    ]
    found: dict[str, Variable] = {}
    for one in listed:
        each = _mapping(one) or {"name": _text(one)}
        name = _text(each.get("name") or each.get("env_var"))
        if _VARIABLE.fullmatch(name):
            told = {
                "prompt": each.get("prompt"),
                "help": each.get("help") or each.get("url") or each.get("provider_url"),
                "required_for": each.get("required_for"),
            }
            texts = {key: one_line(_text(value))[:300] for key, value in told.items()}
            found.setdefault(name, Variable(name=name, optional=each.get("optional") is True, **texts))
    return tuple(found.values())


def _texts(value: Any, key: str = "name") -> tuple[str, ...]:
    found = [_text(_mapping(one).get(key) if isinstance(one, Mapping) else one) for one in _listed(value)]
    return tuple(dict.fromkeys(cut for text in found if (cut := one_line(text)[:200])))


def _text(value: Any) -> str:
    return str(value) if isinstance(value, _SCALARS) and not isinstance(value, bool) else ""


def _listed(value: Any) -> list[Any]:
    return value[:_MAX_LISTED] if isinstance(value, list) else [] if value is None else [value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body.splitlines())
    return next((line for line in lines if line and not line.startswith(("#", "```", "---"))), "")


def _depth(text: str) -> int:
    """How deep brackets are nested at most; the parser takes seconds for thousands."""
    depth = most = 0
    for char in text:
        depth += 1 if char in "[{" else -1 if char in "]}" else 0
        most = max(most, depth)
    return most


def _yaml_trouble(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    said = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"{where}{one_line(str(said))[:200]}"


def _too_long(file: Path, size: str) -> UserError:
    return UserError(f"the skill {file} has {size}; {MAX_CHARS} characters are the most, so split it")
