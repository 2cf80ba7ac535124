"""Take a skill from elsewhere: what it is and what is in it is shown first, and counts once a person says so."""

import difflib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from hermes.errors import UserError
from hermes.extensions.skills.lock_file import Kind, LockEntry, LockFile
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_change import check_name, current_hash
from hermes.extensions.skills.skill_file import FILE, SkillHead, head_of, split_skill
from hermes.extensions.skills.skill_folder import folder_hash, read_folder
from hermes.extensions.skills.skill_scan import ScanReaders, SkillFinding, is_refused, scan_skill
from hermes.extensions.skills.skill_source import FetchedSkill, SkillSource

MOST_DIFF_LINES = 400


class SkillOffer(Struct, frozen=True, kw_only=True):
    """A skill, or a new state of one, that a person is to decide about."""

    place: str
    head: SkillHead
    files: dict[str, bytes]
    entry: LockEntry
    findings: tuple[SkillFinding, ...]
    diff: str = ""  # against what counts now; empty for a skill that is new
    is_update: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether it holds something that no skill needs; taking it takes a person's word for it."""
        return is_refused(self.findings)

    @property
    def is_same(self) -> bool:
        return self.is_update and not self.diff


class SkillInstaller:
    """Offers and takes skills for a home. Offering writes nothing."""

    def __init__(self, book: SkillBook, readers: ScanReaders) -> None:
        self.book = book
        self.lock = LockFile(book.own)
        self._readers = readers

    def offer(self, source: SkillSource, fetched: FetchedSkill, *, name: str = "", category: str = "") -> SkillOffer:
        """What taking the skill would come to; `UserError` when it is no skill, or its place is taken."""
        named = name or _fitting_name(fetched)
        check_name(named, "name")
        if category:
            check_name(category, "category")
        place = f"{category}/{named}" if category else named
        if (self.book.own / place).exists():
            raise UserError(f"there is a skill {place!r} already; remove it first, or give this one another --name")
        if other := next((one for one in self.book.all() if one.name == named), None):
            raise UserError(f"there is a skill {other.place!r} of that name; give this one another --name")
        return self._offered(place, source, fetched, "installed")

    def update(self, head: SkillHead, fetched: FetchedSkill) -> SkillOffer:
        """What a newer state of an installed skill would change."""
        entry = self.installed(head)
        source = SkillSource(address=entry.source, ref=entry.ref, path=entry.path)
        offer = self._offered(head.place, source, fetched, entry.kind)
        old = read_folder(head.folder)
        return structs.replace(offer, diff=folder_diff(old, fetched.files), is_update=True)

    def take(self, offer: SkillOffer) -> None:
        """Make the skill count as it was offered."""
        with self.lock.changing() as entries:
            if not offer.is_update and (self.book.own / offer.place).exists():
                raise UserError(f"there is a skill {offer.place!r} by now; nothing was changed")
            self.lock.replace_folder(offer.place, offer.files)
            entries[offer.place] = offer.entry

    def trust(self, head: SkillHead) -> LockEntry:
        """Take an installed skill as it is now on disk."""
        self.installed(head)
        digest = current_hash(head.folder)
        if not digest:
            raise UserError(
                f"the files of {head.name!r} cannot be taken together: there is a link among them, or too much"
            )
        findings = self.scan(head)
        with self.lock.changing() as entries:
            entry = structs.replace(entries[head.place], hash=digest, seen=_seen(findings), at=time.time())
            entries[head.place] = entry
        return entry

    def remove(self, head: SkillHead) -> None:
        """Take a skill of the home away."""
        if head.root != str(self.book.own):
            raise UserError(f"{head.name!r} is in {head.root!r}, a folder of skills that is only read")
        with self.lock.changing() as entries:
            self.lock.remove_folder(head.place)
            entries.pop(head.place, None)

    def pin(self, head: SkillHead, *, is_pinned: bool) -> None:
        """Keep the agent from deleting a skill, or let it again."""
        with self.lock.changing() as entries:
            old = entries.get(head.place) or LockEntry(kind="own", hash=current_hash(head.folder))
            entries[head.place] = structs.replace(old, is_pinned=is_pinned)

    def scan(self, head: SkillHead) -> list[SkillFinding]:
        """What is in a skill of this machine; a folder that cannot be taken together is a finding, too."""
        try:
            return scan_skill(read_folder(head.folder), self._readers)
        except UserError as error:
            return [SkillFinding("notice", "not looked through", FILE, 1, str(error))]

    def installed(self, head: SkillHead) -> LockEntry:
        """Where an installed skill comes from; `UserError` for any other."""
        entry = self.lock.entry(head.place) if head.root == str(self.book.own) else None
        if entry is None or entry.kind != "installed":
            raise UserError(f"{head.name!r} was not installed from elsewhere, so there is nothing to follow")
        return entry

    def _offered(self, place: str, source: SkillSource, fetched: FetchedSkill, kind: Kind) -> SkillOffer:
        text = _text(fetched.files.get(FILE))
        parts = split_skill(text)
        if not parts.body.strip():
            raise UserError(f"{FILE} holds no instructions")
        own = self.book.own
        category = place.rpartition("/")[0]
        head = head_of(parts, file=str(own / place / FILE), root=str(own), category=category)
        findings = (*scan_skill(fetched.files, self._readers), *_wishes(head))
        digest = folder_hash(fetched.files)
        entry = LockEntry(
            kind=kind,
            hash=digest,
            taken=digest,
            at=time.time(),
            source=source.address,
            ref=source.ref,
            commit=fetched.commit,
            path=fetched.path or source.path,
            seen=_seen(findings),
        )
        return SkillOffer(place=place, head=head, files=dict(fetched.files), entry=entry, findings=findings)


def folder_diff(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    """What changes, file by file, as a unified diff; files that are no text by their size alone."""
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        ones, others = _lines(before), _lines(after)
        if ones is None or others is None:
            lines.append(f"Binary file {name}: {len(before or b'')} -> {len(after or b'')} bytes")
            continue
        ends = ("/dev/null" if before is None else f"a/{name}", "/dev/null" if after is None else f"b/{name}")
        lines += difflib.unified_diff(ones, others, *ends, lineterm="")
    return "\n".join(lines)


def shown_diff(diff: str) -> Sequence[str]:
    """The lines of a diff that a person is shown; what is cut is said."""
    lines = diff.splitlines()
    return lines if len(lines) <= MOST_DIFF_LINES else [*lines[:MOST_DIFF_LINES], f"… {len(lines)} lines in all"]


def _lines(data: bytes | None) -> list[str] | None:
    try:
        return (data or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


def _text(data: bytes | None) -> str:
    if data is None:
        raise UserError(f"there is no {FILE} in it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{FILE} is not UTF-8: {error}") from error


def _fitting_name(fetched: FetchedSkill) -> str:
    """The name that the skill gives itself where it can be one, else that of its folder."""
    own = str(split_skill(_text(fetched.files.get(FILE))).head.get("name") or "")
    plain = "-".join(own.lower().split())
    try:
        check_name(plain, "name")
    except UserError:
        return "-".join(Path(fetched.name).name.lower().split())
    return plain


def _wishes(head: SkillHead) -> tuple[SkillFinding, ...]:
    """The variables that its commands would be given: who takes the skill lends them."""
    names = ", ".join(one.name for one in head.variables)
    return (SkillFinding("notice", "commands are given variables of yours", FILE, 1, names),) if names else ()


def _seen(findings: Sequence[SkillFinding]) -> tuple[str, ...]:
    return tuple(str(one) for one in findings)
