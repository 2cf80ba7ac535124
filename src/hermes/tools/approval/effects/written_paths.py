"""Programs that write the files which their words name: one table of options and operands."""

import re
from collections.abc import Iterator
from functools import cache

from hermes.tools.approval.command_text import words
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import matters, resolve, show, writes
from hermes.tools.approval.run_state import Command
from hermes.tools.approval.tables import rows
from hermes.tools.approval.word_patterns import plain

_OPERANDS = {"1": slice(1), "2": slice(1, 2), "last": slice(-1, None), "all": slice(None)}
# In most programs without a rule these options mean the same.
_OUTPUT = re.compile(
    r"(?P<place>-i|--in-?place)|(?:-o|-O|--out(?:put|file)?(?:-file|-dir|-directory)?)(?:=(?P<value>.+))?"
)
_ONLY_A_FLAG = frozenset(words("od nm strings objdump"))
_COMPILERS = frozenset(words("gcc cc clang tcc rustc go kotlinc"))


@cache
def _places() -> dict[str, tuple[str, list[str]]]:
    listed = (row.split(":") for row in rows("written.txt"))
    return {name: (values.strip(), places.split()) for names, values, places in listed for name in names.split()}


def judge_written(cmd: Command, *, has_rule: bool) -> None:
    """Record the files that the words of `cmd` name to be written."""
    if cmd.name in _places():
        values, places = _places()[cmd.name]
        for word in _named(cmd, values, places):
            writes(cmd, word) if "changes" in places else replace(cmd, word)
    elif (not has_rule or cmd.name in _COMPILERS) and cmd.name not in _ONLY_A_FLAG:
        _by_common_options(cmd)


def _named(cmd: Command, values: str, places: list[str]) -> Iterator[str]:
    for place in places:
        if place in _OPERANDS:
            yield from read_options(cmd.args, values).operands[_OPERANDS[place]]
        elif place.endswith("="):
            yield from (arg.removeprefix(place) for arg in cmd.args if arg.startswith(place))
        elif place in cmd.args[:-1]:
            yield cmd.args[cmd.args.index(place) + 1]


def _by_common_options(cmd: Command) -> None:
    """Options that mean the same nearly everywhere: only a file that matters counts, or one of many."""
    for position, arg in enumerate(cmd.args):
        if arg[:1] != "-" or (found := _OUTPUT.fullmatch(arg)) is None:
            continue
        rest = cmd.args[position + 1 :]
        for word in rest if found["place"] else [found["value"], *rest][:2]:
            if not word or word[0] == "-":
                continue
            if matters(cmd, word):
                writes(cmd, word)
            elif not found["place"]:
                judge_many(cmd, word)


def replace(cmd: Command, word: str) -> None:
    """Record that something else comes into the place of the file that `word` names."""
    writes(cmd, word)
    judge_many(cmd, word)


def judge_many(cmd: Command, word: str) -> None:
    """One file is written again and again; all that a pattern or a list names are lost, unless they are read, too."""
    run = cmd.run
    path = resolve(word, cmd.scope, run)
    is_read = sum(word in arg for arg in cmd.args) > 1
    if path in run.found and not is_read and not any(resolve(arg, cmd.scope, run) in run.files for arg in cmd.args):
        run.add("destroy_data", f"overwrite every file of {plain(word)}: {cmd.line}", (show(path, run.places),))
