"""What the three tools of skills and `/skill-name` answer, for one session."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, to_builtins

from hermes.errors import UserError
from hermes.extensions.skills.lock_file import LockFile
from hermes.extensions.skills.skill_book import NoSkill, Offered, SkillBook, missing_commands, names_of
from hermes.extensions.skills.skill_change import (
    ChangeRefused,
    ManageRequest,
    SkillChange,
    SkillWriter,
    WriteFacts,
    body_of,
    current_hash,
)
from hermes.extensions.skills.skill_file import SkillHead
from hermes.extensions.skills.skill_folder import files_below, linked_files, read_inside
from hermes.extensions.skills.skill_proposals import SkillProposal, SkillProposals
from hermes.extensions.skills.skill_scan import ScanReaders
from hermes.extensions.skills.skill_search import SearchText, search
from hermes.extensions.skills.usage_log import UsageLog
from hermes.types import JsonObject

MOST_LISTED = 100
MOST_FOUND = 10
MOST_STACKED = 5  # names at the beginning of one message


class SkillServices(Struct, frozen=True, kw_only=True):
    """What other capabilities lend: who judges commands, which variables no skill is given, and what waits instead."""

    readers: Callable[[], ScanReaders]
    own_keys: Callable[[], frozenset[str]]


SourceOf: TypeAlias = Callable[[str], str]  # where words came from; empty when they are the person's or nobody's


class LoadedSkill(Struct, frozen=True):
    """A skill that was given to the model, and the variables that its commands may see from now on."""

    name: str
    variables: tuple[str, ...]


class SkillDesk:
    """Answers in the contract's form. Blocking: small files on a local disk, so call it in a thread.

    `loaded` is what was loaded so far, in order; whoever runs commands passes the variables on.
    """

    def __init__(self, book: SkillBook, services: SkillServices, session_id: str = "") -> None:
        self.book = book
        self.session_id = session_id
        self.usage = UsageLog(book.own)
        self.loaded: dict[str, LoadedSkill] = {}
        self.untold: list[str] = []  # what a person should hear at the end of the turn
        self._loads: list[str] = []
        self._services = services
        self._lock = LockFile(book.own)

    # -- finding -----------------------------------------------------------------------------------------------------

    def listed(self, query: str = "", category: str = "", offered: Offered | None = None) -> JsonObject:
        """`skills_list`: all, those of a category, or those that fit the words of a task, best first."""
        heads = self.book.usable(offered)
        categories = sorted({head.category for head in heads if head.category})
        if not heads:
            return {"success": True, "skills": [], "categories": [], "count": 0, "message": self._none()}
        if category:
            wanted = category.strip("/")
            heads = [head for head in heads if head.category == wanted or head.category.startswith(f"{wanted}/")]
        if query.strip():
            found = search(query, [SearchText(head, body_of(head)) for head in heads])
            heads = [one.head for one in found[:MOST_FOUND]]
            hint = "best first; skill_view(name) loads one" if heads else "no skill has these words; try others"
        else:
            hint = "skill_view(name) loads one; query finds by the words of a task"
        shown = heads[:MOST_LISTED]
        if len(shown) < len(heads):
            hint = f"the first {len(shown)} of {len(heads)}; name a category, or give a query. {hint}"
        skills = [{"name": _callable_name(head, heads), **_described(head)} for head in shown]
        return {"success": True, "skills": skills, "categories": categories, "count": len(heads), "hint": hint}

    def _none(self) -> str:
        broken = [head.trouble for head in self.book.all() if head.trouble]
        return f"there are no skills in {self.book.own}" + (f"; {broken[0]}" if broken else "")

    # -- loading -----------------------------------------------------------------------------------------------------

    def view(self, name: str, file_path: str = "") -> JsonObject:
        """`skill_view`: a skill, or one of its files. Loading a skill runs nothing."""
        try:
            head = self.trusted(name)
            if file_path:
                return self._file(head, file_path)
            content = self.book.text(head, self.session_id)
        except NoSkill as error:
            return {"success": False, "error": str(error), **error.details}
        except UserError as error:
            return {"success": False, "error": str(error)}
        self.note_loaded(head)
        return {**self._facts(head), "content": content}

    def slash_words(self, said: str) -> str:
        """What goes to the model beside a message that begins with `/name`; empty when it names no skill."""
        names, usable = leading_names(said), self.book.usable()
        heads = {**{head.place: head for head in usable}, **names_of(usable)}
        texts: list[str] = []
        for name in names:
            if name not in heads:
                break
            why = changed_since(self._lock, self.book, heads[name])
            texts.append(f"[Not loaded: {why}]" if why else self.text_of(heads[name]))
        if not texts:
            return ""
        note = "The user has invoked these skills for this message; follow them."
        return "\n\n".join([f"[{note}]", *texts])

    def text_of(self, head: SkillHead) -> str:
        """A skill's words, its folder and its files as one block, for a message or a prompt; it counts as loaded."""
        self.note_loaded(head)
        return skill_block(self.book, head, self.session_id)

    def trusted(self, name: str) -> SkillHead:
        """The skill of this name, if its files are those that a person has seen; `NoSkill` else."""
        head = self.book.find(name)
        why = changed_since(self._lock, self.book, head)
        if why:
            raise NoSkill(why)
        return head

    def note_loaded(self, head: SkillHead) -> None:
        """Count it, and let its variables pass to the commands of this session."""
        self.usage.loaded(head.name, self.session_id)
        self._loads.append(head.name)
        self.loaded[head.name] = LoadedSkill(head.name, self.passing(head))

    @property
    def loads(self) -> int:
        """How many skills were loaded so far, each time counted."""
        return len(self._loads)

    def loads_since(self, count: int) -> Sequence[str]:
        """The names of those loaded after the first `count`."""
        return self._loads[count:]

    def restore(self, names: Sequence[str]) -> None:
        """Take up what the session had loaded before; a skill that is not there any more passes nothing."""
        for name in names:
            with suppress(NoSkill):
                head = self.trusted(name)
                self.loaded.setdefault(head.name, LoadedSkill(head.name, self.passing(head)))

    def passing(self, head: SkillHead) -> tuple[str, ...]:
        """The declared variables that are set, without the keys of models' providers."""
        names = [one.name for one in head.variables if self.book.settings.lookup(one.name)]
        own = self._services.own_keys() if names else frozenset()
        return tuple(name for name in names if name not in own)

    def _facts(self, head: SkillHead) -> JsonObject:
        files = linked_files(head.folder)
        lookup, environ = self.book.settings.lookup, self.book.settings.environ
        missing = [one.name for one in head.variables if not one.optional and not lookup(one.name)]
        gone = [path for path in head.credential_files if not Path(os.path.expanduser(path)).exists()]  # noqa: PTH111
        programs = missing_commands(head, environ)
        needs = bool(missing or gone or programs)
        facts: JsonObject = {
            "success": True,
            "name": head.name,
            "description": head.description,
            "tags": list(head.tags),
            "related_skills": list(head.related),
            "path": f"{head.place}/SKILL.md",
            "skill_dir": str(head.folder),
            "linked_files": files or None,
            "usage_hint": "skill_view(name, file_path) shows one of linked_files" if files else None,
            "required_environment_variables": [to_builtins(one) for one in head.variables],
            "required_commands": list(head.commands),
            "missing_required_environment_variables": missing,
            "missing_credential_files": gone,
            "missing_required_commands": programs,
            "setup_needed": needs,
            "setup_skipped": False,
            "readiness_status": "setup_needed" if needs else "available",
        }
        if needs:
            facts["setup_note"] = _setup_note(missing, gone, programs)
        return facts | ({"setup_help": head.setup_help} if head.setup_help else {})

    def _file(self, head: SkillHead, name: str) -> JsonObject:
        try:
            data = read_inside(head.folder, name)
        except FileNotFoundError:
            there = linked_files(head.folder) or {"files": files_below(head.folder)}
            error = f"there is no file {name!r} in the skill {head.name!r}"
            return {"success": False, "error": error, "available_files": there}
        except OSError as error:
            return {"success": False, "error": f"{name!r} cannot be read: {error.strerror}"}
        facts: JsonObject = {"success": True, "name": head.name, "file": name}
        try:
            return {**facts, "content": data.decode("utf-8"), "file_type": Path(name).suffix}
        except UnicodeDecodeError:
            told = f"[a binary file of {len(data)} bytes at {head.folder / name}]"
            return {**facts, "content": told, "is_binary": True}

    # -- changing ----------------------------------------------------------------------------------------------------

    def manage(self, asked: ManageRequest, facts: WriteFacts, source_of: SourceOf) -> JsonObject:
        """`skill_manage`: the change is looked through before it is made; words from outside wait for a person."""
        writer = SkillWriter(self.book, self._services.readers())
        try:
            change = writer.plan(asked)
            findings = writer.look_through(change)
            if source := self._outside(asked, source_of):
                return self._proposed(change, facts, source)
            writer.make(change, facts)
        except ChangeRefused as error:
            return {"success": False, "error": str(error), **error.details}
        except UserError as error:
            return {"success": False, "error": str(error)}
        if change.is_deleted:
            self.usage.forget(change.name)
        return done(change, [str(one) for one in findings])

    def _outside(self, asked: ManageRequest, source_of: SourceOf) -> str:
        if self.book.section.write_approval:
            return "the agent; skills.write_approval is on"
        words = [text for text in (asked.content, asked.new_string, asked.file_content) if text]
        return source_of("\n".join(words)) if words else ""

    def _proposed(self, change: SkillChange, facts: WriteFacts, source: str) -> JsonObject:
        waiting = SkillProposals(self.book.own).add(
            SkillProposal(number=0, at=time.time(), source=source, change=change, facts=facts)
        )
        self.untold.append(f"a skill needs your yes: {waiting.line}; see: hermes skills review")
        error = (
            f"not written yet: these words come from {source} and not from the user, so it needs the user's yes. It "
            "waits as a proposal that the user sees; go on without it, and do not try again in other words"
        )
        return {"success": False, "pending": True, "error": error}


def done(change: SkillChange, findings: Sequence[str]) -> JsonObject:
    """The contract's answer to a change that was made."""
    answer: JsonObject = {"success": True, "message": change.message, **change.answer}
    return answer | ({"findings": list(findings)} if findings else {})


def changed_since(lock: LockFile, book: SkillBook, head: SkillHead) -> str:
    """Why a skill that came from elsewhere does not count now; empty when it does, or is the person's own."""
    entry = lock.entry(head.place) if head.root == str(book.own) else None
    if entry is None or entry.kind != "installed" or current_hash(head.folder) == entry.hash:
        return ""
    return (
        f"the skill {head.name!r} from {entry.source} was changed since a person took it, so it is not used; "
        f"a person can look at it with 'hermes skills check {head.name}' and take it as it is with "
        f"'hermes skills trust {head.name}'"
    )


def skill_block(book: SkillBook, head: SkillHead, session_id: str) -> str:
    """A skill for a message or a prompt: its words, where it is, and what else is there."""
    files = [name for names in linked_files(head.folder).values() for name in names]
    more = f"\n\nFiles of this skill: {', '.join(files)}" if files else ""
    return f'<skill name="{head.name}" folder="{head.folder}">\n{_body(book.text(head, session_id))}{more}\n</skill>'


def leading_names(said: str) -> list[str]:
    """The `/names` that a message begins with, without their slashes; five at most."""
    names: list[str] = []
    for word in said.split(maxsplit=MOST_STACKED)[:MOST_STACKED]:
        if not word.startswith("/") or len(word) < 2:
            break
        names.append(word[1:])
    return names


def _body(text: str) -> str:
    if not text.startswith("---"):
        return text.strip()
    return text[3:].partition("\n---")[2].partition("\n")[2].strip()


def _described(head: SkillHead) -> Mapping[str, Any]:
    return {"description": head.description, "category": head.category or None}


def _callable_name(head: SkillHead, heads: Sequence[SkillHead]) -> str:
    """Its name; of two skills of one name, each with its category."""
    twice = head.category and sum(1 for other in heads if other.name == head.name) > 1
    return f"{head.category}/{head.name}" if twice else head.name


def _setup_note(variables: Sequence[str], files: Sequence[str], programs: Sequence[str]) -> str:
    parts = [
        f"not set: {', '.join(variables)} (hermes config set NAME VALUE)" if variables else "",
        f"not there: {', '.join(files)}" if files else "",
        f"not installed: {', '.join(programs)}" if programs else "",
    ]
    return "; ".join(part for part in parts if part)
