"""Skills that come with Hermes: none is active unless chosen; a chosen one is a copy that follows unless edited."""

import time
from pathlib import Path

from msgspec import structs

from hermes.errors import UserError
from hermes.extensions.skills.lock_file import LockEntry, LockFile
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_change import current_hash
from hermes.extensions.skills.skill_file import FILE, SkillHead, read_skill
from hermes.extensions.skills.skill_folder import folder_hash, read_folder

FOLDER = Path(__file__).parent / "bundled"


def bundled_skills() -> list[SkillHead]:
    """All of them, sorted by name."""
    return [read_skill(str(file), str(FOLDER)) for file in sorted(FOLDER.glob(f"*/{FILE}"))]


def choose(book: SkillBook, name: str, folder: Path = FOLDER) -> Path:
    """Copy a bundled skill into the home; `UserError` when there is none of that name, or one is there already."""
    source = folder / name
    if "/" in name or not (source / FILE).is_file():
        names = ", ".join(head.name for head in bundled_skills())
        raise UserError(f"there is no bundled skill {name!r}; there are: {names}")
    lock, target = LockFile(book.own), book.own / name
    with lock.changing() as entries:
        if target.exists():
            raise UserError(f"there is a skill {name!r} already; remove it first: hermes skills remove {name}")
        files = read_folder(source)
        lock.replace_folder(name, files)
        digest = folder_hash(files)
        entries[name] = LockEntry(kind="bundled", hash=digest, taken=digest, at=time.time(), source="bundled")
    return target


def follow(book: SkillBook, folder: Path = FOLDER) -> list[str]:
    """Replace chosen copies that nobody has edited by newer ones; what is kept although there is a newer one is told.

    Each newer one is told once, until it changes again.
    """
    lock = LockFile(book.own)
    told: list[str] = []
    stale = {place: entry for place, entry in lock.entries().items() if _is_stale(place, entry, folder)}
    if not stale:
        return []
    with lock.changing() as entries:
        for place, seen in stale.items():
            entry, target = entries.get(place), book.own / place
            if entry != seen or not target.is_dir():
                continue
            files = read_folder(folder / place)
            digest = folder_hash(files)
            if current_hash(target) == entry.taken:
                lock.replace_folder(place, files)
                entries[place] = structs.replace(entry, hash=digest, taken=digest, at=time.time(), commit="")
            else:
                entries[place] = structs.replace(entry, commit=digest)
                how = f"compare: hermes skills diff {place}; take it: hermes skills reset {place}"
                told.append(f"there is a newer {place!r}, and yours was edited, so it is kept ({how})")
    return told


def _is_stale(place: str, entry: LockEntry, folder: Path) -> bool:
    """Whether the bundled skill is another than the one that was taken, and than the one that was told of."""
    if entry.kind != "bundled" or not (folder / place / FILE).is_file():
        return False
    return folder_hash(read_folder(folder / place)) not in (entry.taken, entry.commit)
