"""find and fd: what is done to each of the files they find."""

import itertools
import re

from hermes.tools.approval.command_text import words
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import delete_path, deletes_since, is_private, resolve, writes
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import listed
from hermes.tools.approval.word_patterns import plain

_FIND_NAMES = frozenset(words("-name -iname -path -ipath -wholename -iwholename -regex -iregex"))
_GLOBS = re.compile(r"[*?]+|\[[^]]*\]")
_FIND_STARTS = ("-", "(", ")", "!", ",")


def find(cmd: Command) -> CommandOutput | None:
    args = cmd.args
    roots = []
    for arg in args:
        if arg.startswith(_FIND_STARTS) and arg not in ("-H", "-L", "-P"):
            break
        roots.append(arg)
    roots = [root for root in roots if not root.startswith("-")] or ["."]
    position = 0
    while position < len(args):
        arg = args[position]
        if arg == "-delete":
            _find_delete(cmd, roots, "find -delete")
        elif arg in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(position + 1, len(args)) if args[i] in (";", "+")), len(args))
            _find_exec(cmd, roots, args[position + 1 : end])
            position = end
        elif arg in ("-fprint", "-fprintf", "-fls", "-fprint0") and position + 1 < len(args):
            writes(cmd, args[position + 1])
        position += 1
    private = any(is_private(resolve(root, cmd.scope, cmd.run), cmd.run.places) for root in roots)
    return CommandOutput(None, frozenset({"private"}) if private else listed(roots))


def _find_exec(cmd: Command, roots: list[str], argv: list[str]) -> None:
    if not argv:
        return
    base = argv[0].rsplit("/", 1)[-1]
    if base in ("rm", "unlink", "shred", "rmdir"):
        _find_delete(cmd, roots, f"find -exec {base}")
        return
    named = [plain(word) for flag, word in itertools.pairwise(cmd.args) if flag in _FIND_NAMES]
    literal = [word for word in named if not _GLOBS.search(word)]
    name = _GLOBS.sub("found", [*literal, *named, "found"][0]).removeprefix("./")
    own = any(re.search(r"(?i)hermes", word) for word in named)
    for root in roots:
        place = f"{cmd.run.places.own_home}/config.yaml" if own else f"{root.rstrip('/')}/{name}"
        before = len(cmd.run.effects)
        cmd.run.found.add(resolve(place, cmd.scope, cmd.run))
        cmd.nested([word.replace("{}", place) for word in argv], NOTHING)
        if deletes_since(cmd.run, before):
            cmd.add("find_delete")


def _find_delete(cmd: Command, roots: list[str], how: str) -> None:
    for root in roots:
        delete_path(cmd.run, cmd.scope, root, f"{how}: {cmd.line}", recursive=True, kind="find_delete")


def fd(cmd: Command) -> CommandOutput | None:
    for position, arg in enumerate(cmd.args):
        if arg in ("-x", "--exec", "-X", "--exec-batch"):
            rest = cmd.args[position + 1 :]
            if rest and rest[0].rsplit("/", 1)[-1] in ("rm", "unlink", "shred"):
                cmd.add("find_delete")
            elif rest:
                before = len(cmd.run.effects)
                cmd.run.found.add(resolve("found", cmd.scope, cmd.run))
                cmd.nested(
                    [word.replace("{}", "found") for word in (rest if "{}" in " ".join(rest) else [*rest, "{}"])],
                    NOTHING,
                )
                if deletes_since(cmd.run, before):
                    cmd.add("find_delete")
            break
    return CommandOutput(None, listed([word for word in read_options(cmd.args, "etdEcj").operands if "/" in word]))


HANDLERS: Handlers = {
    **dict.fromkeys(words("find gfind"), find),
    **dict.fromkeys(words("fd fdfind"), fd),
}
