"""Find, take, check and remove skills: ways of working that the agent loads when it needs them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.extensions.skills.skill_file import SkillHead
    from hermes.extensions.skills.skill_install import SkillOffer
    from hermes.host.skill_care import SkillCare, SkillState

Result = TypeVar("Result")
ORIGINS = ("all", "own", "agent", "installed", "bundled", "external")
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
forced = click.option("--force", is_flag=True, help="Take it in spite of dangers that were found.")


@click.group("skills", cls=Menu, invoke_without_command=True)
@click.pass_context
def skills(ctx: click.Context) -> None:
    """Look after skills: ways of working that the agent loads when it needs them. Without a command, list them.

    A skill is a folder with a SKILL.md in HERMES_HOME/skills. Put one there by hand, take one from a folder or a git
    address, or choose one of those that come with Hermes.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@skills.command("list")
@click.option("--source", type=click.Choice(ORIGINS), default="all", show_default=True, help="Where they come from.")
@click.option("--enabled-only", is_flag=True, help="Leave out those that are not offered.")
@as_json
@click.pass_obj
def list_(cli: Cli, source: str = "all", enabled_only: bool = False, as_json: bool = False) -> None:
    """List the skills that are there, and those that could be chosen."""
    care = _care(cli)
    found = [one for one in care.facts() if source in ("all", one.origin) and not (enabled_only and one.trouble)]
    if as_json:
        cli.out.json([one.as_json() for one in found])
        return
    if found:
        rows = [[one.head.place, one.origin, one.usage.loads, one.trouble or one.head.description] for one in found]
        cli.out.table(["SKILL", "FROM", "LOADED", "WHAT FOR"], rows, flexible=3)
    else:
        what = "such skills" if source != "all" or enabled_only else "skills"
        cli.out.note(f"There are no {what} in {care.book.own}.")
    unchosen = care.unchosen() if source in ("all", "bundled") else []
    if unchosen:
        cli.out.note(f"Come with Hermes, not chosen: {', '.join(head.name for head in unchosen)}")
        cli.out.note(f"Take one: hermes skills install {unchosen[0].name}")


@skills.command("search")
@click.argument("query", nargs=-1, required=True)
@as_json
@click.pass_obj
def search(cli: Cli, query: tuple[str, ...], as_json: bool) -> None:
    """Find skills by the words of a task, as the agent does."""
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.runtime.setup.skill_setup import skill_services

    care = _care(cli)
    found = SkillDesk(care.book, skill_services(care.book.settings)).listed(" ".join(query))["skills"]
    if as_json:
        cli.out.json(found)
    elif found:
        cli.out.table(["SKILL", "WHAT FOR"], [[one["name"], one["description"]] for one in found], flexible=1)
    else:
        cli.out.note("No skill has these words.")


@skills.command("view")
@click.argument("name")
@click.argument("file", required=False, default="")
@click.pass_obj
def view(cli: Cli, name: str, file: str) -> None:
    """Show a skill as it is written, or one of its files."""
    from hermes.extensions.skills.skill_folder import read_inside

    head = _care(cli).head(name)
    try:
        data = read_inside(head.folder, file or "SKILL.md")
    except OSError as error:
        raise UserError(f"there is no file {file!r} in {name!r}") from error
    cli.out.write(data.decode("utf-8", "replace"))


@skills.command("inspect")
@click.argument("what", metavar="NAME|SOURCE")
@click.option("--ref", default="", help="Branch, tag or commit of a git address.")
@click.option("--path", default="", help="Folder of the skill in the repository.")
@as_json
@click.pass_obj
def inspect(cli: Cli, what: str, ref: str, path: str, as_json: bool) -> None:
    """Tell what a skill is and what is in it, also of one that was not taken yet. Nothing is written or run."""
    from hermes.extensions.skills.skill_folder import files_below
    from hermes.extensions.skills.skill_source import is_address
    from hermes.host.skill_care import told

    care = _care(cli)
    if is_address(what):
        offer = _run(cli, lambda made: made.offer(what, ref, path))
        facts: dict[str, Any] = {
            "name": offer.head.name,
            "description": offer.head.description,
            "source": offer.entry.source,
        }
        facts |= {"commit": offer.entry.commit, "files": sorted(offer.files), "findings": told(offer.findings)}
    else:
        one = care.of(what)
        facts = one.as_json() | {"files": files_below(one.head.folder), "lacks": care.lacks(one.head)}
        facts |= {"findings": told(care.installer.scan(one.head)) if not one.head.trouble else []}
    if as_json:
        cli.out.json(facts)
        return
    findings = facts.pop("findings")
    for key, value in facts.items():
        if value not in (None, "", []):
            cli.out.line(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    for line in findings:
        cli.out.line(line)


@skills.command("install")
@click.argument("source", metavar="SOURCE")
@click.option("--name", default="", help="What it is to be called here.")
@click.option("--category", default="", help="The folder it goes into.")
@click.option("--ref", default="", help="Branch, tag or commit of a git address.")
@click.option("--path", default="", help="Folder of the skill in the repository.")
@forced
@yes
@click.pass_obj
def install(cli: Cli, /, source: str, force: bool, yes: bool, **options: str) -> int:
    """Take a skill from a folder, a git address, or from those that come with Hermes.

    What is in it is shown first: commands that would be asked about, hosts it contacts, hidden characters, orders to
    the agent. A git address is pinned to its commit; `hermes skills update` shows what would change.
    """
    from hermes.extensions.skills.bundled_skills import FOLDER, choose
    from hermes.extensions.skills.skill_source import is_address

    if not is_address(source) and (FOLDER / source / "SKILL.md").is_file():
        cli.out.line(f"{choose(_care(cli).book, source)}")
        return Exit.ANSWERED
    wanted = {"ref": options["ref"], "path": options["path"]}
    offer = _run(cli, lambda made: made.offer(source, **wanted, name=options["name"], category=options["category"]))
    return _decide(cli, offer, force=force, yes=yes)


@skills.command("update")
@click.argument("name", required=False, default="")
@forced
@yes
@click.pass_obj
def update(cli: Cli, name: str, force: bool, yes: bool) -> int:
    """Show what changed at the sources of installed skills, and take it when you say so."""
    care = _care(cli)
    heads = [care.head(name)] if name else [one.head for one in care.facts() if one.origin == "installed"]
    code: int = Exit.ANSWERED
    for head, offer in zip(heads, _run(cli, lambda made: _newer(made, heads)), strict=True):
        if isinstance(offer, UserError):
            cli.out.error(f"{head.place}: {offer}")
            code = Exit.FAILED
        elif offer.is_same:
            cli.out.line(f"{head.place}: nothing has changed")
        else:
            code = max(code, _decide(cli, offer, force=force, yes=yes))
    if not heads:
        cli.out.note("No skill was installed from elsewhere.")
    return code


@skills.command("remove")
@click.argument("name")
@yes
@click.pass_obj
def remove(cli: Cli, name: str, yes: bool) -> None:
    """Delete a skill of the home, with its files."""
    care = _care(cli)
    head = care.head(name)
    if not yes:
        click.confirm(f"Delete {head.folder}?", abort=True, err=True)
    care.installer.remove(head)
    care.usage.forget(head.name)
    cli.out.line(f"{head.place} is removed.")


@skills.command("check")
@click.argument("name", required=False, default="")
@click.option("--offline", is_flag=True, help="Do not look at the sources.")
@as_json
@click.pass_obj
def check(cli: Cli, name: str, offline: bool, as_json: bool) -> int:
    """Look skills through: are they as they were taken, what is in them, is there something newer.

    Ends with 1 when a skill does not count as it is, or holds something dangerous.
    """
    from hermes.extensions.skills.skill_scan import is_refused
    from hermes.host.skill_care import told

    care = _care(cli)
    heads = [care.head(name)] if name else care.book.all()
    states = _run(cli, lambda made: _checked(made, heads, is_offline=offline))
    if as_json:
        rows = [{"name": one.head.place, "changed": one.changed, "newer": one.newer} for one in states]
        cli.out.json([{**row, "findings": told(one.findings)} for row, one in zip(rows, states, strict=True)])
    else:
        for one in states:
            is_fine = not (one.changed or one.newer or one.findings)
            cli.out.line(f"{one.head.place}: {'as it should be' if is_fine else one.changed or 'counts'}")
            if one.newer:
                cli.out.told(f"  newer at its source: {one.newer[:12]}; see: hermes skills update {one.head.place}")
            for line in told(one.findings):
                cli.out.line(f"  {line}")
    return Exit.FAILED if any(one.changed or is_refused(one.findings) for one in states) else Exit.ANSWERED


@skills.command("trust")
@click.argument("name")
@yes
@click.pass_obj
def trust(cli: Cli, name: str, yes: bool) -> None:
    """Take an installed skill as it is on disk now, after you have seen what is in it."""
    from hermes.host.skill_care import told

    care = _care(cli)
    head = care.head(name)
    care.installer.installed(head)
    for line in told(care.installer.scan(head)):
        cli.out.line(line)
    if not yes:
        click.confirm(f"Take {head.place} as it is now?", abort=True, err=True)
    care.installer.trust(head)
    cli.out.line(f"{head.place} counts as it is now.")


@skills.command("stats")
@as_json
@click.pass_obj
def stats(cli: Cli, as_json: bool) -> None:
    """Tell which skills are used, which never, and which failed after they were loaded."""
    facts = sorted(_care(cli).facts(), key=lambda one: (-one.usage.loads, one.head.place))
    if as_json:
        cli.out.json([one.as_json() for one in facts])
        return
    rows = [[one.head.place, one.origin, one.usage.loads, one.usage.failures, _day(one.usage.last)] for one in facts]
    if rows:
        cli.out.table(["SKILL", "FROM", "LOADED", "FAILED", "LAST"], rows, flexible=0)
    never = [one for one in facts if not one.usage.loads]
    made = [one for one in never if one.origin == "agent"]
    cli.out.note(f"{len(facts)} skills, {len(never)} never loaded, {len(made)} of those made by the agent.")


@skills.command("pin")
@click.argument("name")
@click.pass_obj
def pin(cli: Cli, name: str) -> None:
    """Keep the agent from deleting a skill."""
    care = _care(cli)
    care.installer.pin(care.head(name), is_pinned=True)
    cli.out.line(f"{name} is pinned.")


@skills.command("unpin")
@click.argument("name")
@click.pass_obj
def unpin(cli: Cli, name: str) -> None:
    """Let the agent delete a skill again."""
    care = _care(cli)
    care.installer.pin(care.head(name), is_pinned=False)
    cli.out.line(f"{name} is not pinned.")


@skills.command("diff")
@click.argument("name")
@click.pass_obj
def diff(cli: Cli, name: str) -> None:
    """Show what was edited in a copy of a bundled skill."""
    care = _care(cli)
    cli.out.line(care.bundled_diff(care.head(name)) or "nothing was edited")


@skills.command("reset")
@click.argument("name")
@yes
@click.pass_obj
def reset(cli: Cli, name: str, yes: bool) -> None:
    """Make an edited copy of a bundled skill the bundled one again."""
    care = _care(cli)
    head = care.head(name)
    if not yes:
        click.confirm(f"Lose what was edited in {head.folder}?", abort=True, err=True)
    care.reset(head)
    cli.out.line(f"{head.place} is the bundled one again.")


@skills.command("review")
@click.argument("number", type=int, required=False)
@click.option("--take", "decision", flag_value="take", help="Make the change.")
@click.option("--drop", "decision", flag_value="drop", help="Forget it.")
@as_json
@click.pass_obj
def review(cli: Cli, number: int | None, decision: str | None, as_json: bool) -> None:
    """Decide about changes by the agent that wait, because their words came from outside.

    Without a number they are listed; with one, the change is shown, and made or forgotten when you say so.
    """
    care = _care(cli)
    waiting = care.proposals.waiting()
    if number is None:
        if as_json:
            cli.out.json([{"number": one.number, "line": one.line, "at": one.at} for one in waiting])
            return
        for one in waiting:
            cli.out.line(one.line)
        if not waiting:
            cli.out.note("Nothing waits.")
        return
    proposal = care.proposals.one(number)
    cli.out.line(proposal.line)
    for line in care.shown(proposal):
        cli.out.line(f"  {line}")
    if decision is None and cli.out.is_terminal:
        decision = "take" if click.confirm("Make this change?", default=False, err=True) else None
    if decision == "take":
        care.take(proposal)
        cli.out.line(proposal.change.message)
    elif decision == "drop":
        care.proposals.drop(number)
        cli.out.line(f"{number} is forgotten.")
    else:
        cli.out.note(f"It waits: hermes skills review {number} --take, or --drop")


skills.add_command(remove, "uninstall")
skills.add_command(check, "audit")


def _decide(cli: Cli, offer: "SkillOffer", *, force: bool, yes: bool) -> int:
    """Show what is offered and ask; nothing counts before the answer."""
    from hermes.extensions.skills.skill_install import shown_diff

    at = f" at {offer.entry.commit[:12]}" if offer.entry.commit else ""
    cli.out.line(f"{offer.place}: {offer.head.description or 'no description'}")
    cli.out.line(f"from {offer.entry.source}{at}; {len(offer.files)} files: {', '.join(sorted(offer.files)[:12])}")
    for line in shown_diff(offer.diff):
        cli.out.line(f"  {line}")
    for finding in offer.findings:
        colour = "red" if finding.severity == "danger" else "yellow"
        cli.out.line(cli.out.style(str(finding), colour))
    if offer.is_refused and not force:
        cli.out.error(f"{offer.place} is not taken, because of the dangers above; --force takes it all the same")
        return Exit.FAILED
    if not yes:
        if not cli.out.is_terminal:
            cli.out.error("there is no terminal to ask in; look at the above, then say --yes")
            return Exit.FAILED
        if not click.confirm("Take it?", default=False, err=True):
            cli.out.note("Nothing was changed.")
            return Exit.FAILED
    care = _care(cli)
    care.installer.take(offer)
    cli.out.line(f"{offer.place} is {'updated' if offer.is_update else 'installed'}; sessions that begin now have it.")
    return Exit.ANSWERED


def _care(cli: Cli) -> "SkillCare":
    from hermes.host.skill_care import SkillCare  # `hermes --help` loads none of this

    return SkillCare(cli.settings())


async def _newer(care: "SkillCare", heads: "Sequence[SkillHead]") -> "list[SkillOffer | UserError]":
    """What each is at its source; a source that cannot be reached keeps nobody from the others."""
    found: list[SkillOffer | UserError] = []
    for head in heads:
        try:
            found.append(await care.newer(head))
        except UserError as error:
            found.append(error)
    return found


async def _checked(care: "SkillCare", heads: "Sequence[SkillHead]", *, is_offline: bool) -> "list[SkillState]":
    return [await care.check(head, is_offline=is_offline) for head in heads]


def _run(cli: Cli, work: "Callable[[SkillCare], Awaitable[Result]]") -> Result:
    """Do something that may start git."""
    from hermes.host.skill_care import SkillCare
    from hermes.runtime.setup.process import ProcessParts

    async def main() -> Result:
        parts = ProcessParts()
        try:
            return await work(SkillCare(cli.settings(), parts.supervisor))
        finally:
            await parts.close()

    return asyncio.run(main())


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at)) if at else "never"


COMMAND = skills
