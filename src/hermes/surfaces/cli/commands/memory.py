"""See, change and undo what is remembered, and decide what waits."""

import sys
import time
from typing import TYPE_CHECKING, Any, cast

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.context.memory.entries import Target
    from hermes.context.memory.memory_book import MemoryBook
    from hermes.context.memory.provider_faults import KeptFault

TARGET = click.Choice(["memory", "user"])


@click.group("memory", cls=Menu, invoke_without_command=True)
@click.pass_context
def memory(ctx: click.Context) -> None:
    """See, change and undo what is remembered, and decide what waits. Without a command, tell how full it is.

    \b
    Two small files are in the prompt of each session: MEMORY.md, the agent's notes, and USER.md, what it knows of you.
    Every change is in a history. What the agent wants to keep of words that came from a file, a page or a tool waits
    until you say yes.

    \b
    Examples:
      hermes memory list
      hermes memory review
      hermes memory forget "lives in Lisbon"
      hermes memory undo
      hermes memory setup local
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@memory.command("status")
@as_json
@click.pass_obj
def status(cli: Cli, as_json: bool = False) -> None:
    """Tell how full the files are, what waits, and who recalls."""
    book = _book(cli)
    provider, trouble = _provider(cli)
    if as_json:
        facts: dict[str, Any] = {"provider": provider, "provider_trouble": trouble}
        facts["provider_faults"] = [fault.sentence() for fault in _faults(cli, provider)]
        facts["proposals"] = len(book.proposals.waiting())
        facts["files"] = {
            target: {"entries": len(book.files.entries(target)), "usage": book.files.usage(target)}
            for target in _targets("all")
        }
        cli.out.json(facts)
        return
    for line in book.status():
        cli.out.line(line)
    if not provider:
        cli.out.told("recall from earlier sessions: nobody; hermes memory setup local begins with it")
    else:
        cli.out.line(
            f"recall from earlier sessions: {provider}{f', which does not work: {trouble}' if trouble else ''}"
        )
        for fault in _faults(cli, provider):
            cli.out.line(f"  {fault.sentence()}")


@memory.command("list")
@click.option("--target", type=TARGET, help="One file only.")
@as_json
@click.pass_obj
def list_(cli: Cli, target: str | None, as_json: bool) -> None:
    """List the entries, with who wrote them and when."""
    import msgspec

    from hermes.context.memory.memory_book import when

    found = _book(cli).entries(cast("Target | None", target))
    if as_json:
        cli.out.json([msgspec.to_builtins(one) for one in found])
        return
    if not found:
        cli.out.note("Nothing is remembered yet.")
        return
    rows = [[one.name, when(one.since) if one.since else "", one.by, one.used, one.text] for one in found]
    cli.out.table(["ENTRY", "SINCE", "BY", "USED", "TEXT"], rows, flexible=4)


@memory.command("show")
@click.argument("target", type=TARGET, default="memory")
@as_json
@click.pass_obj
def show(cli: Cli, target: str, as_json: bool) -> None:
    """Print a file as the agent reads it."""
    from hermes.context.memory.entries import joined

    book = _book(cli)
    entries = book.files.entries(cast("Target", target))
    if as_json:
        cli.out.json(entries)
    elif entries:
        cli.out.line(joined(entries))
    else:
        cli.out.note(f"{book.files.path(cast('Target', target))} has no entries.")


@memory.command("edit")
@click.argument("target", type=TARGET, default="memory")
@click.pass_obj
def edit(cli: Cli, target: str) -> None:
    """Open a file in your editor; what you change is taken as it is."""
    from hermes.config import paths

    book = _book(cli)
    file = book.files.path(cast("Target", target))
    editor = cli.environ.get("VISUAL") or cli.environ.get("EDITOR")
    if not editor and not (sys.stdin.isatty() and cli.out.is_terminal):
        raise UserError(f"there is no terminal for an editor; the file is {file}, entries have a line § between them")
    before = len(book.history())
    paths.made(file.parent)
    if not file.exists():
        paths.write_private(file, "")
    click.edit(filename=str(file), editor=editor)
    changed = len(book.history()) - before
    cli.out.line(f"{changed} change{'s' * (changed != 1)} by you; {book.files.usage(cast('Target', target))}")


@memory.command("history")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many changes.")
@as_json
@click.pass_obj
def history(cli: Cli, limit: int, as_json: bool) -> None:
    """Tell what was changed when, by whom, in which session, newest first."""
    import msgspec

    from hermes.context.memory.memory_book import history_lines

    records = _book(cli).history()[-limit:]
    if as_json:
        cli.out.json([msgspec.to_builtins(one) for one in reversed(records)])
        return
    for line in history_lines(records):
        cli.out.line(line)
    if not records:
        cli.out.note("Nothing was ever remembered here.")


@memory.command("undo")
@click.argument("number", type=int, required=False)
@click.pass_obj
def undo(cli: Cli, number: int | None) -> None:
    """Take back the newest change, or the one of this number of `hermes memory history`."""
    cli.out.line(_book(cli).undo(number))


@memory.command("forget")
@click.argument("words", nargs=-1, required=True)
@click.pass_obj
def forget(cli: Cli, words: tuple[str, ...]) -> None:
    """Remove an entry, named as in `hermes memory list` or by some of its words; it is not recalled any more either."""
    cli.out.line(_book(cli).forget(" ".join(words)))


@memory.command("review")
@click.option("--list", "is_list", is_flag=True, help="Tell what waits, and decide nothing.")
@click.option("--take", "taken", type=int, multiple=True, metavar="NUMBER", help="Keep this one.")
@click.option("--drop", "dropped", type=int, multiple=True, metavar="NUMBER", help="Throw this one away.")
@as_json
@click.pass_obj
def review(cli: Cli, is_list: bool, taken: tuple[int, ...], dropped: tuple[int, ...], as_json: bool) -> None:
    """Decide about what the agent wants to keep of words that are not yours; asked one by one in a terminal."""
    import msgspec

    book = _book(cli)
    for number in taken:
        cli.out.line(book.take(number))
    for number in dropped:
        cli.out.line(book.drop(number))
    if taken or dropped:
        return
    waiting = book.proposals.waiting()
    if as_json:
        cli.out.json([msgspec.to_builtins(one) for one in waiting])
        return
    if not waiting:
        cli.out.note("Nothing waits.")
        return
    is_asked = not is_list and sys.stdin.isatty()
    for one in waiting:
        cli.out.line(one.line)
        if not is_asked:
            continue
        said = click.prompt("Keep it", type=click.Choice(["y", "n", "later"]), default="later", err=True)
        if said != "later":
            cli.out.line(book.take(one.number) if said == "y" else book.drop(one.number))
    if not is_asked and not is_list:
        cli.out.note("Decide with: hermes memory review --take NUMBER or --drop NUMBER")


@memory.command("setup")
@click.argument("provider", required=False)
@click.pass_obj
def setup(cli: Cli, provider: str | None) -> None:
    """Choose who recalls from earlier sessions: local (on this machine) or honcho (a service)."""
    from hermes.config.write import set_key
    from hermes.context.memory.provider import PROVIDERS

    names = PROVIDERS.names()
    if provider is None:
        provider = str(click.prompt("Who recalls", type=click.Choice(names), default="local", err=True))
    if provider not in names:
        raise UserError(f"there is no memory provider {provider!r}; there are: {', '.join(names)}")
    set_key(cli.home, "memory.provider", provider)
    _, trouble = _provider(cli)
    cli.out.line(trouble or f"{provider} recalls from now on, in sessions that begin.")


@memory.command("off")
@click.pass_obj
def off(cli: Cli) -> None:
    """Let nobody recall from earlier sessions; the two files stay."""
    from hermes.config.write import unset_key

    unset_key(cli.home, "memory.provider")
    cli.out.line("Nobody recalls from earlier sessions now; the two files are used as before.")


@memory.command("reset")
@click.option("--target", type=click.Choice(["all", "memory", "user"]), default="all", show_default=True, help="Which.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def reset(cli: Cli, target: str, yes: bool) -> None:
    """Remove every entry; the history keeps them."""
    if not yes:
        click.confirm("Remove every entry of the memory?", abort=True, err=True)
    cli.out.line(_book(cli).reset(_targets(target)))


def _targets(name: str) -> "list[Target]":
    from hermes.context.memory.entries import TARGETS

    return [target for target in TARGETS if name in ("all", target)]


def _book(cli: Cli) -> "MemoryBook":
    from hermes.config.sections.memory import Section
    from hermes.context.memory.memory_book import MemoryBook  # `hermes --help` loads none of this

    section = cli.settings().of(Section)
    return MemoryBook(cli.home, {"memory": section.memory_char_limit, "user": section.user_char_limit})


def _faults(cli: Cli, provider: str) -> "list[KeptFault]":
    from hermes.context.memory.provider_faults import kept_faults

    return kept_faults(cli.home, provider, time.time())


def _provider(cli: Cli) -> tuple[str, str]:
    """The provider that is chosen, and what keeps it from working."""
    from hermes.config.load import load_settings
    from hermes.context.memory.provider_state import provider_trouble

    return provider_trouble(load_settings(cli.home, environ=cli.environ))


COMMAND = memory
