"""Changes of a home's skills: what they come to is worked out first, looked through, and then made in one step."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, field, structs

from hermes.config import paths
from hermes.errors import UserError
from hermes.extensions.skills.lock_file import LockEntry, LockFile
from hermes.extensions.skills.skill_book import SkillBook, named
from hermes.extensions.skills.skill_file import (
    FILE,
    MAX_CHARS,
    MAX_DESCRIPTION_CHARS,
    MAX_NAME_CHARS,
    SkillHead,
    head_of,
    split_skill,
)
from hermes.extensions.skills.skill_folder import (
    LINKED,
    MAX_FILE_BYTES,
    MAX_TEXT_CHARS,
    files_below,
    folder_hash,
    inside,
    linked_files,
    read_folder,
)
from hermes.extensions.skills.skill_scan import ScanReaders, SkillFinding, is_refused, scan_skill
from hermes.extensions.skills.skill_search import BODY_CHARS, SearchText, similar

Action: TypeAlias = Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]
_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_NAME_CHARS - 1}}}")
_PREVIEW_CHARS = 500


class ChangeRefused(UserError):
    """A change that is not made; `details` is what the model may want to know beside the sentence."""

    def __init__(self, text: str, **details: object) -> None:
        super().__init__(text)
        self.details = details


class ManageRequest(Struct, frozen=True, kw_only=True):
    """What `skill_manage` is asked."""

    action: Action
    name: str
    content: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False
    category: str | None = None
    file_path: str | None = None
    file_content: str | None = None
    absorbed_into: str | None = None


class SkillChange(Struct, frozen=True, kw_only=True):
    """What becomes of a skill's files: texts that are written, names that go; all of them when `is_deleted`."""

    action: Action
    place: str
    name: str
    message: str
    written: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    is_deleted: bool = False
    answer: dict[str, object] = field(default_factory=dict)


class WriteFacts(Struct, frozen=True):
    """Who writes: the session, and the origin that the contract names."""

    session: str = ""
    write_origin: str = "assistant_tool"


class SkillWriter:
    """Plans and makes changes of the home's own skills. Blocking: small files on a local disk."""

    def __init__(self, book: SkillBook, readers: ScanReaders) -> None:
        self._book = book
        self._readers = readers
        self._lock = LockFile(book.own)

    def plan(self, asked: ManageRequest) -> SkillChange:
        """What the request comes to; `ChangeRefused` says why it cannot be done. Nothing is written."""
        match asked.action:
            case "create":
                return self._create(asked)
            case "edit":
                head = self._own(asked.name)
                content = _valid(asked.content, head.place)
                return _change(asked, head, f"Skill '{head.name}' updated.", {FILE: content}, path=head.place)
            case "patch":
                return self._patch(asked)
            case "write_file":
                return self._write_file(asked)
            case "remove_file":
                return self._remove_file(asked)
            case "delete":
                return self._delete(asked)

    def look_through(self, change: SkillChange) -> list[SkillFinding]:
        """What the skill would hold after the change that a person should know; `ChangeRefused` for a danger in it."""
        if change.is_deleted:
            return []
        written = {name: text.encode("utf-8", "surrogatepass") for name, text in change.written.items()}
        findings = scan_skill(written, self._readers)
        if is_refused(findings):
            told = [str(one) for one in findings if one.severity == "danger"]
            raise ChangeRefused(f"the skill was not written, because of what is in it: {told[0]}", findings=told)
        return findings

    def make(self, change: SkillChange, facts: WriteFacts) -> None:
        """Make the change, and note who made it. Every file is as it was when this raises."""
        with self._lock.changing() as entries:
            target = self._book.own / change.place
            if change.is_deleted:
                self._lock.archive_folder(change.place)
                entries.pop(change.place, None)
                return
            if change.action == "create":
                if target.exists():
                    raise ChangeRefused(f"there is a skill {change.place!r} already; patch it")
                self._lock.replace_folder(change.place, {name: text.encode() for name, text in change.written.items()})
                entries[change.place] = LockEntry(
                    kind="agent",
                    hash=current_hash(target),
                    at=time.time(),
                    session=facts.session,
                    write_origin=facts.write_origin,
                )
                return
            _write_one(target, change)
            if (entry := entries.get(change.place)) is not None:
                entries[change.place] = structs.replace(entry, hash=current_hash(target))

    # -- the six actions ---------------------------------------------------------------------------------------------

    def _create(self, asked: ManageRequest) -> SkillChange:
        check_name(asked.name, "name")
        if asked.category:
            check_name(asked.category, "category")
        content = _valid(asked.content, asked.name)
        heads = self._book.all()
        taken = {asked.name, split_name(content)}
        if already := next((head for head in heads if not taken.isdisjoint((head.name, head.folder_name))), None):
            raise ChangeRefused(
                f"there is a skill {already.name!r} already; read it with skill_view and patch it",
                similar=[already.name],
            )
        place = f"{asked.category}/{asked.name}" if asked.category else asked.name
        self._refuse_repeated(place, content, heads)
        answer: dict[str, object] = {"path": place, "skill_md": str(self._book.own / place / FILE)}
        if asked.category:
            answer["category"] = asked.category
        answer["hint"] = "write_file adds files below references/, templates/, scripts/ or assets/"
        return SkillChange(
            action="create",
            place=place,
            name=asked.name,
            message=f"Skill '{asked.name}' created. It is offered from the next session on.",
            written={FILE: content},
            answer=answer,
        )

    def _refuse_repeated(self, place: str, content: str, heads: Sequence[SkillHead]) -> None:
        parts = split_skill(content)
        file = str(self._book.own / place / FILE)
        new = SearchText(head_of(parts, file=file, root=str(self._book.own), category=""), parts.body[:BODY_CHARS])
        known = [SearchText(head, body_of(head)) for head in heads if not head.trouble]
        if alike := similar(new, known):
            names = [one.head.name for one in alike[:3]]
            raise ChangeRefused(
                f"this repeats the skill {names[0]!r}; read it with skill_view and patch it instead of making another",
                similar=[{"name": one.head.name, "likeness": one.score} for one in alike[:3]],
            )

    def _patch(self, asked: ManageRequest) -> SkillChange:
        head = self._own(asked.name)
        name = asked.file_path or FILE
        file = _inside(head.folder, name)
        if not asked.old_string or asked.new_string is None:
            raise ChangeRefused("patch needs old_string and new_string; new_string may be empty")
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise _no_file(head, name) from error
        except (OSError, UnicodeDecodeError) as error:
            raise ChangeRefused(f"{name!r} cannot be read as text: {error}") from error
        count = text.count(asked.old_string)
        if count == 0:
            raise ChangeRefused(f"old_string is not in {name!r}", file_preview=text[:_PREVIEW_CHARS])
        if count > 1 and not asked.replace_all:
            raise ChangeRefused(f"old_string is {count} times in {name!r}; make it longer, or set replace_all")
        new = text.replace(asked.old_string, asked.new_string)
        new = _valid(new, head.place) if name == FILE else _fitting(new, name)
        places = f"{count} places" if count > 1 else "1 place"
        return _change(asked, head, f"Patched {places} in '{name}' of skill '{head.name}'.", {name: new}, path=name)

    def _write_file(self, asked: ManageRequest) -> SkillChange:
        head = self._own(asked.name)
        name = _linked_name(asked.file_path)
        file = _inside(head.folder, name)
        if asked.file_content is None:
            raise ChangeRefused("write_file needs file_content")
        if file.is_dir():
            raise ChangeRefused(f"{name!r} is a folder; name a file in it")
        text = _fitting(asked.file_content, name)
        return _change(asked, head, f"File '{name}' written.", {name: text}, path=str(file))

    def _remove_file(self, asked: ManageRequest) -> SkillChange:
        head = self._own(asked.name)
        name = _linked_name(asked.file_path)
        if not _inside(head.folder, name).is_file():
            raise _no_file(head, name)
        message = f"File '{name}' removed from skill '{head.name}'."
        return SkillChange(action="remove_file", place=head.place, name=head.name, message=message, removed=(name,))

    def _delete(self, asked: ManageRequest) -> SkillChange:
        head = self._own(asked.name)
        entry = self._lock.entry(head.place)
        if entry is not None and entry.is_pinned:
            raise ChangeRefused(
                f"the skill {head.name!r} is pinned; a person can unpin it: hermes skills unpin {head.name}"
            )
        if asked.absorbed_into:
            into = named(asked.absorbed_into, self._book.all())
            if not into or into[0].file == head.file:
                raise ChangeRefused(f"absorbed_into names {asked.absorbed_into!r}, which is no other skill")
        message = f"Skill '{head.name}' deleted."
        return SkillChange(action="delete", place=head.place, name=head.name, message=message, is_deleted=True)

    def _own(self, name: str) -> SkillHead:
        """The home's own skill of this name, also one whose head is broken: it can be mended so."""
        heads = self._book.all()
        matches = named(name.strip(), heads)
        if not matches:
            names = [head.name for head in heads][:20]
            raise ChangeRefused(f"there is no skill {name!r}; create makes one", available_skills=names)
        if len(matches) > 1:
            raise ChangeRefused(
                f"{len(matches)} skills are called {name!r}; say which, as category/name",
                matches=[head.file for head in matches],
            )
        head = matches[0]
        if head.root != str(self._book.own):
            raise ChangeRefused(f"the skill {name!r} is in {head.root!r}, a folder of skills that is only read")
        return head


def split_name(content: str) -> str:
    """The name that a head gives itself."""
    return str(split_skill(content).head.get("name") or "")


def body_of(head: SkillHead) -> str:
    """The beginning of a skill's words; empty when it cannot be read now."""
    try:
        with Path(head.file).open(encoding="utf-8-sig", errors="replace") as file:
            text = file.read(2 * BODY_CHARS)
    except OSError:
        return ""
    return text[3:].partition("\n---")[2][:BODY_CHARS] if text.startswith("---") else text[:BODY_CHARS]


def _change(
    asked: ManageRequest, head: SkillHead, message: str, written: Mapping[str, str], **answer: object
) -> SkillChange:
    return SkillChange(
        action=asked.action, place=head.place, name=head.name, message=message, written=dict(written), answer=answer
    )


def current_hash(folder: Path) -> str:
    """What the files of a skill are now; empty where they cannot be taken together, as with links among them."""
    try:
        return folder_hash(read_folder(folder))
    except (UserError, OSError):
        return ""


def _write_one(folder: Path, change: SkillChange) -> None:
    """Each change is one file, and a file is replaced in one step."""
    for name, text in change.written.items():
        file = _inside(folder, name)
        paths.write_private(file, text)
        if text.startswith("#!"):
            file.chmod(0o700)
    for name in change.removed:
        file = _inside(folder, name)
        file.unlink(missing_ok=True)
        if file.parent != folder and not any(file.parent.iterdir()):
            file.parent.rmdir()


def _valid(content: str | None, place: str) -> str:
    """The text of a SKILL.md that says what it must; `ChangeRefused` names what is wrong with it."""
    if not content or not content.strip():
        raise ChangeRefused("content is needed: the whole SKILL.md, with its head between two lines of ---")
    if len(content) > MAX_CHARS:
        raise ChangeRefused(f"content has {len(content)} characters; {MAX_CHARS} are the most, so split it")
    try:
        content.encode("utf-8")
        parts = split_skill(content)
    except UnicodeEncodeError as error:
        raise ChangeRefused("content holds characters that are no text (lone surrogates)") from error
    except UserError as error:
        raise ChangeRefused(f"{place}: {error}") from error
    name, description = parts.head.get("name"), parts.head.get("description")
    if not isinstance(name, str) or not name.strip() or not isinstance(description, str) or not description.strip():
        raise ChangeRefused("the head must hold name and description, each a text")
    if len(name) > MAX_NAME_CHARS or len(description) > MAX_DESCRIPTION_CHARS:
        raise ChangeRefused(
            f"name may have {MAX_NAME_CHARS} characters and description {MAX_DESCRIPTION_CHARS}; say it in fewer"
        )
    if not parts.body.strip():
        raise ChangeRefused("there are no instructions below the head")
    return content


def _fitting(text: str, name: str) -> str:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ChangeRefused("the text holds characters that are no text (lone surrogates)") from error
    if size > MAX_FILE_BYTES or len(text) > MAX_TEXT_CHARS:
        raise ChangeRefused(f"{name!r} would have {len(text)} characters; {MAX_TEXT_CHARS} are the most")
    return text


def _linked_name(name: str | None) -> str:
    if not name or not name.strip():
        raise ChangeRefused("file_path is needed, below references/, templates/, scripts/ or assets/")
    if name.split("/")[0] not in LINKED or name.endswith("/") or os.path.normpath(name) != name:
        raise ChangeRefused(f"{name!r} is not below references/, templates/, scripts/ or assets/")
    if not name.isprintable() or any(part.startswith(".") for part in name.split("/")):
        raise ChangeRefused(f"{name!r} is not a name that a file of a skill may have")
    return name


def _inside(folder: Path, name: str) -> Path:
    try:
        return inside(folder, name)
    except UserError as error:
        raise ChangeRefused(str(error)) from error


def _no_file(head: SkillHead, name: str) -> ChangeRefused:
    there = linked_files(head.folder) or {"files": files_below(head.folder)}
    return ChangeRefused(f"there is no file {name!r} in the skill {head.name!r}", available_files=there)


def check_name(name: str, what: str) -> None:
    """`ChangeRefused` unless `name` can name a skill or a category."""
    if not _NAME.fullmatch(name):
        raise ChangeRefused(
            f"{name!r} cannot be a {what}: use a-z, digits, '.', '_' and '-', first a letter or digit, "
            f"at most {MAX_NAME_CHARS} characters"
        )
