"""Slash commands: what one is, the table of all, and how a word finds its command."""

import shlex
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from hermes.errors import UserError
from hermes.tables import Table

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat

Run: TypeAlias = Callable[["Chat", str], Awaitable[None]]


class Slash(Struct, frozen=True, kw_only=True):
    """A slash command. `run` is handed the conversation and the words after the name."""

    run: Run
    args: str = ""
    aliases: tuple[str, ...] = ()
    when_busy: bool = True  # may be used while a turn runs


SLASHES: Table[Slash] = Table("hermes.surfaces.cli.slash", "COMMAND")


def all_names() -> list[str]:
    """Every name, without loading any command."""
    return SLASHES.names()


def find(word: str, own: tuple[str, ...] = ()) -> str:
    """The command that `word` means: its name, an alias, or the beginning of exactly one name.

    `own` are the names of quick commands. `UserError` names the nearest when there is none.
    """
    names = [*SLASHES.names(), *own]
    if word in names:
        return word
    aliases = {alias: name for name in SLASHES.names() for alias in SLASHES.load(name).aliases}
    if word in aliases:
        return aliases[word]
    begun = [name for name in names if word and name.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UserError(f"/{word} could be {', '.join(f'/{name}' for name in begun)}; type more of it")
    near = get_close_matches(word, [*names, *aliases], n=1, cutoff=0.5)
    hint = f"; did you mean /{near[0]}?" if near else "; see /help"
    raise UserError(f"there is no command /{word}{hint}")


def words_of(text: str) -> list[str]:
    """The words after a command, as a shell would take them apart."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"{error}; quote what holds a quote") from error
