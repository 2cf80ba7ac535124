"""`analyse`: what a shell command would do, told without running it."""

from collections.abc import Callable

from hermes.tools.approval.model import Analysis, Effect, Severity
from hermes.tools.approval.shell import Follower
from hermes.tools.approval.state import NOTHING, Places, Run, Scope
from hermes.tools.approval.text import MAX_BYTES, clean, folded, join_lines

# Stand-ins when the caller does not say: deep enough that a few `..` do not reach the root.
_HOME = "/home/\u200buser"
_WORKSPACE = f"{_HOME}/\u200bprojects/\u200bworkspace"


def analyse(
    command: str,
    *,
    cwd: str | None = None,
    home: str | None = None,
    own_home: str | None = None,
    workspace: str | None = None,
    real: Callable[[str], str] | None = None,
) -> Analysis:
    """Say what `command` would do. Pure and total: never raises, never looks at the disk unless `real` does.

    `cwd` and `home` place relative paths; `workspace` is the folder the work belongs to (default: `cwd`); `own_home` is
    the runtime's own folder; `real` follows links on disk. What cannot be understood is an effect of kind `unknown`.
    """
    cleaned = clean(command)
    home = (home or _HOME).rstrip("/") or "/root"
    start = _absolute(cwd) or (_WORKSPACE if home == _HOME else f"{home}/\u200bprojects/\u200bworkspace")
    places = Places(
        workspace=_absolute(workspace) or start,
        home=home,
        own_home=(own_home or f"{home}/.hermes").rstrip("/"),
        real=real,
    )
    if len(cleaned) > MAX_BYTES or (not cleaned.isascii() and len(cleaned.encode()) > MAX_BYTES):
        return _too_long(command[:2000], cleaned[:2000])
    run = Run(places, len(cleaned))
    _follow(cleaned, run, start)
    if "\\\n" in cleaned:
        # A backslash at the end of a line joins it to the next, but not in a comment; both readings are judged.
        _follow(join_lines(cleaned), run, start)
    plain = folded(cleaned)
    if plain != cleaned:
        _follow(plain, run, start)
    return Analysis(
        command=command,
        normalised=plain,
        commands=tuple(run.commands),
        effects=tuple(dict.fromkeys(run.effects)),
        unknown=tuple(run.unknowns),
        scripts=tuple(dict.fromkeys(run.scripts)),
    )


def _absolute(path: str | None) -> str | None:
    if not path or not path.startswith("/"):
        return None
    return path.rstrip("/") or "/"


def _follow(text: str, run: Run, cwd: str) -> None:
    run.depth, run.traps = 0, []
    try:
        follower = Follower(run)
        follower.script(text, Scope(cwd), NOTHING, ())
        for body, scope in run.traps[:8]:
            follower.script(body, scope.fork(), NOTHING, ("trap",))
    except RecursionError:
        run.unknown("commands are nested too deeply to be followed")


def _too_long(command: str, cleaned: str) -> Analysis:
    reason = "the command is longer than 64 kB"
    return Analysis(
        command=command,
        normalised=cleaned,
        commands=(),
        effects=(Effect("unknown", Severity.ASK, reason),),
        unknown=(reason,),
    )
