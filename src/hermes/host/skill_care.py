"""Look after the skills of a home: what is there, where it came from, what is used, what is newer elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.extensions.skills.bundled_skills import FOLDER, bundled_skills
from hermes.extensions.skills.lock_file import LockEntry
from hermes.extensions.skills.skill_book import SkillBook, missing_commands, named
from hermes.extensions.skills.skill_change import SkillWriter
from hermes.extensions.skills.skill_desk import changed_since
from hermes.extensions.skills.skill_file import SkillHead
from hermes.extensions.skills.skill_folder import read_folder
from hermes.extensions.skills.skill_install import SkillInstaller, SkillOffer, folder_diff, shown_diff
from hermes.extensions.skills.skill_proposals import SkillProposal, SkillProposals
from hermes.extensions.skills.skill_scan import SkillFinding
from hermes.extensions.skills.skill_source import SkillSource, fetch, newest_commit, source_of
from hermes.extensions.skills.usage_log import SkillUsage, UsageLog
from hermes.own_git import OwnGit
from hermes.runtime.setup.skill_setup import scan_readers
from hermes.seams import Supervisor
from hermes.types import JsonObject

_FOR_GIT = (
    *("PATH", "HOME", "LANG", "USER", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)


class SkillFacts(Struct, frozen=True, kw_only=True):
    """All that a person is told of one skill."""

    head: SkillHead
    origin: str  # own, agent, installed, bundled, external
    trouble: str = ""  # why it is not offered
    entry: LockEntry | None = None
    usage: SkillUsage = SkillUsage()

    def as_json(self) -> JsonObject:
        """For programs."""
        entry = self.entry
        facts: dict[str, Any] = {
            "name": self.head.name,
            "place": self.head.place,
            "category": self.head.category or None,
            "description": self.head.description,
            "file": self.head.file,
            "origin": self.origin,
            "enabled": not self.trouble,
            "trouble": self.trouble or None,
            "loads": self.usage.loads,
            "failures": self.usage.failures,
            "last_used": self.usage.last or None,
        }
        if entry is not None:
            shown = ("source", "ref", "commit", "path", "session", "write_origin", "hash", "is_pinned")
            facts |= {name: value for name in shown if (value := getattr(entry, name))}
        return facts


class SkillState(Struct, frozen=True):
    """What a check of one skill has found."""

    head: SkillHead
    changed: str  # why it does not count now; empty when it does
    newer: str  # the commit that it could follow
    findings: tuple[SkillFinding, ...]


class SkillCare:
    """What `hermes skills` does, free of any terminal. `supervisor` starts git; what is here needs none."""

    def __init__(self, settings: Settings, supervisor: Supervisor | None = None) -> None:
        self.book = SkillBook(settings)
        self.installer = SkillInstaller(self.book, scan_readers())
        self.usage = UsageLog(self.book.own)
        self.proposals = SkillProposals(self.book.own)
        self._settings = settings
        self._supervisor = supervisor

    def facts(self) -> list[SkillFacts]:
        """Every skill that is there."""
        entries, totals = self.installer.lock.entries(), self.usage.totals()
        return [self._facts(head, entries.get(head.place), totals) for head in self.book.all()]

    def of(self, name: str) -> SkillFacts:
        """The skill of this name, usable or not."""
        head = self.head(name)
        return self._facts(head, self.installer.lock.entry(head.place), self.usage.totals())

    def head(self, name: str) -> SkillHead:
        """The skill of this name, usable or not; `UserError` when there is none, or more than one."""
        heads = self.book.all()
        found = named(name.strip("/"), heads)
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(head.place for head in found)
            raise UserError(f"{len(found)} skills are called {name!r}; say which: {places}")
        self.book.find(name)  # says which there are
        raise UserError(f"there is no skill {name!r}")

    def unchosen(self) -> list[SkillHead]:
        """The bundled skills that nobody has chosen."""
        there = {head.place for head in self.book.all()}
        return [head for head in bundled_skills() if head.name not in there]

    async def offer(self, address: str, ref: str, path: str, *, name: str = "", category: str = "") -> SkillOffer:
        """A skill from elsewhere, looked through; nothing is written."""
        source = source_of(address, ref, path)
        return self.installer.offer(source, await fetch(source, self._git), name=name, category=category)

    async def newer(self, head: SkillHead) -> SkillOffer:
        """What an installed skill is at its source now."""
        entry = self.installer.installed(head)
        source = SkillSource(address=entry.source, ref=entry.ref, path=entry.path)
        return self.installer.update(head, await fetch(source, self._git))

    async def check(self, head: SkillHead, *, is_offline: bool = False) -> SkillState:
        """Whether its files are those that were taken, what is in them, and whether there is something newer."""
        entry = self.installer.lock.entry(head.place) if head.root == str(self.book.own) else None
        newer = ""
        if entry is not None and entry.kind == "installed" and not is_offline:
            newer = await self._newer(entry)
        findings = tuple(self.installer.scan(head)) if not head.trouble else ()
        return SkillState(head, head.trouble or changed_since(self.installer.lock, self.book, head), newer, findings)

    def bundled_diff(self, head: SkillHead) -> str:
        """What was edited in a copy of a bundled skill."""
        return folder_diff(read_folder(FOLDER / self._bundled(head)), read_folder(head.folder))

    def reset(self, head: SkillHead) -> None:
        """Make an edited copy of a bundled skill the bundled one again."""
        from hermes.extensions.skills.bundled_skills import choose

        name = self._bundled(head)
        self.installer.remove(head)
        choose(self.book, name)

    def lacks(self, head: SkillHead) -> list[str]:
        """What has to be set up before the skill works."""
        lookup = self._settings.lookup
        variables = [one.name for one in head.variables if not one.optional and not lookup(one.name)]
        return [*variables, *missing_commands(head, self._settings.environ)]

    def shown(self, proposal: SkillProposal) -> Sequence[str]:
        """A change that waits, as a diff against what is there now, and what was found in it."""
        change = proposal.change
        target = self.book.own / change.place
        old = read_folder(target) if target.is_dir() else {}
        new = {} if change.is_deleted else {**old, **{name: text.encode() for name, text in change.written.items()}}
        new = {name: data for name, data in new.items() if name not in change.removed}
        findings = SkillWriter(self.book, scan_readers()).look_through(change)
        return [*shown_diff(folder_diff(old, new)), *told(findings)]

    def take(self, proposal: SkillProposal) -> None:
        """Make a change that a person said yes to."""
        writer = SkillWriter(self.book, scan_readers())
        writer.look_through(proposal.change)
        writer.make(proposal.change, proposal.facts)
        self.proposals.drop(proposal.number)

    def _bundled(self, head: SkillHead) -> str:
        entry = self.installer.lock.entry(head.place)
        if entry is None or entry.kind != "bundled" or not (FOLDER / head.place).is_dir():
            raise UserError(f"{head.name!r} is no copy of a bundled skill")
        return head.place

    async def _newer(self, entry: LockEntry) -> str:
        source = SkillSource(address=entry.source, ref=entry.ref, path=entry.path)
        if not source.is_git:
            return ""
        try:
            newest = await newest_commit(source, self._git)
        except UserError as error:
            return f"unknown, {error}"
        return newest if newest and newest != entry.commit else ""

    def _facts(self, head: SkillHead, entry: LockEntry | None, totals: "dict[str, SkillUsage]") -> SkillFacts:
        is_own = head.root == str(self.book.own)
        entry = entry if is_own else None
        origin = "external" if not is_own else entry.kind if entry is not None else "own"
        why = self.book.why_not(head) or (changed_since(self.installer.lock, self.book, head) if entry else "")
        usage = totals.get(head.name, SkillUsage())
        return SkillFacts(head=head, origin=origin, trouble=why, entry=entry, usage=usage)

    def _git(self, folder: Path) -> OwnGit:
        if self._supervisor is None:
            raise UserError("nothing can be started here, so no repository can be looked at")
        environ = {name: value for name in _FOR_GIT if (value := self._settings.environ.get(name))}
        return OwnGit(self._supervisor, environ, folder, fetches=True)


def told(findings: Sequence[SkillFinding]) -> list[str]:
    """Findings for a person, one line each."""
    return [str(one) for one in findings]
