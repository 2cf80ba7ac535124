"""Whether skills can be read, and whether hooks may run."""

from collections import Counter
from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.extensions.shell_hooks import configured, not_accepted
from hermes.extensions.skills.lock_file import LockFile
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_desk import changed_since
from hermes.extensions.skills.skill_proposals import SkillProposals
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    book = SkillBook(settings)
    heads = book.all()
    broken = [head for head in heads if head.trouble]
    count = len(heads) - len(broken)
    yield ok(f"{count} skill{'s' * (count != 1)}")
    for head in broken:
        yield warning(f"the skill {head.place} is left out: {head.trouble}")
    names = Counter(head.name for head in heads)
    for name, count in names.items():
        if count > 1:
            yield warning(f"{count} skills are called {name!r}; each is loaded as category/name")
    yield from _kept(book)
    try:
        hooks, idle = configured(settings), not_accepted(settings)
    except UserError as error:
        yield problem(str(error), "hermes config edit")
        return
    if hooks:
        yield ok(f"{len(hooks) - len(idle)} of {len(hooks)} hooks may run")
    for one in idle:
        yield warning(f"the hook {one.hook.command!r} ({one.event}) does not run: nobody has allowed it", "hermes")


def _kept(book: SkillBook) -> Iterable[Finding]:
    """Whether installed skills are as they were taken, and whether something waits for a decision."""
    lock = LockFile(book.own)
    try:
        changed = [why for head in book.usable() if (why := changed_since(lock, book, head))]
        waiting = SkillProposals(book.own).waiting()
    except UserError as error:
        yield problem(str(error), "hermes skills check")
        return
    for why in changed:
        yield warning(why, "hermes skills check")
    if waiting:
        yield warning(f"{len(waiting)} changes of skills wait for your yes", "hermes skills review")


CHECK = Check(title="Skills and hooks", run=run)
