"""`analyse`: what a command, a script, a write or a request would do, told without running it."""

from collections.abc import Callable

from hermes.tools.approval import effects_model
from hermes.tools.approval.command_text import MAX_BYTES, UNKNOWN, clean, join_lines, readings
from hermes.tools.approval.paths import write_path
from hermes.tools.approval.run_state import NOTHING, AnalysisRun, CommandOutput, Places, Scope
from hermes.tools.approval.shell import Follower

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
) -> effects_model.Analysis:
    """Say what `command` would do. Pure and total: never raises, never looks at the disk unless `real` does.

    `cwd` and `home` place relative paths; `workspace` is the folder the work belongs to (default: `cwd`); `own_home` is
    the runtime's own folder; `real` follows links on disk. What cannot be understood is an effect of kind `unknown`,
    what takes too many steps one of kind `intricate`.
    """
    return View(home=home, own_home=own_home, workspace=workspace, real=real).command(command, cwd)


class View:
    """From where things are judged: the folders that matter, the disk as far as it is seen, and one budget for all."""

    def __init__(
        self,
        *,
        home: str | None = None,
        own_home: str | None = None,
        workspace: str | None = None,
        real: Callable[[str], str] | None = None,
        budget: effects_model.Budget | None = None,
    ) -> None:
        self.home = (home or _HOME).rstrip("/") or "/root"
        self.own_home = (own_home or f"{self.home}/.hermes").rstrip("/")
        self.workspace = _absolute(workspace)
        self.real = real
        self.pushes_home: Callable[[str], bool] | None = None  # see `Places`; None knows of no remotes
        self.budget = budget or effects_model.Budget()

    def command(self, command: str, cwd: str | None = None) -> effects_model.Analysis:
        """What the shell would do, told `command`."""
        if _is_too_long(command):
            return _too_long(command[:2000], clean(command[:2000]))
        texts = readings(command)
        if _is_too_long(texts[-1]):
            return _too_long(command[:2000], texts[-1][:2000])
        run, start = self._begin(cwd)

        def follow() -> None:
            for text in texts:
                _script(run, text, start)
                if "\\\n" in text:
                    # A backslash at the end of a line joins it to the next, but not in a comment; both are judged.
                    _script(run, join_lines(text), start)

        _within(run, follow)
        return _told(run, command, texts[-1])

    def code(self, code: str, cwd: str | None = None) -> effects_model.Analysis:
        """What Python would do, given `code` to run. The text is handed over as it is: nothing in it can end it."""
        if _is_too_long(code):
            return _too_long("", code[:2000])
        run, start = self._begin(cwd)
        if UNKNOWN in code:
            run.unknown("the script holds a NUL character")
        argv, given = ["python3", "-"], CommandOutput(code)
        _within(run, lambda: _to_the_end(run, lambda judge: judge.start(argv, Scope(start), given, ())))
        return _told(run, "", f"python3 -\n{code}")

    def write(self, path: str, cwd: str | None = None) -> effects_model.Analysis:
        """What it means that a tool writes the file at `path`."""
        run, start = self._begin(cwd)
        run.commands.append(effects_model.SimpleCommand(("write", path), start))
        _within(run, lambda: write_path(run, Scope(start), path, f"> {path}"))
        return _told(run, "", f"> {path}")

    def request(self, url: str, cwd: str | None = None) -> effects_model.Analysis:
        """What it means that a tool fetches `url`."""
        run, start = self._begin(cwd)
        _within(run, lambda: Follower(run).start(["curl", url.replace(UNKNOWN, "")], Scope(start), NOTHING, ()))
        return _told(run, "", f"curl {url}")

    def _begin(self, cwd: str | None) -> tuple[AnalysisRun, str]:
        inside = _WORKSPACE if self.home == _HOME else f"{self.home}/\u200bprojects/\u200bworkspace"
        start = _absolute(cwd) or inside
        places = Places(self.workspace or start, self.home, self.own_home, self.real, self.pushes_home)
        return AnalysisRun(places, self.budget), start


def _within(run: AnalysisRun, judge_it: Callable[[], object]) -> None:
    """Judge, and say so where that came to no end. What was found until then stays: it may be worse."""
    try:
        judge_it()
    except RecursionError:
        run.unknown("commands are nested too deeply to be followed")
    except effects_model.TooIntricate:
        run.gave_up(effects_model.TOO_INTRICATE)


def _script(run: AnalysisRun, text: str, cwd: str) -> None:
    run.depth, run.traps = 0, []
    _to_the_end(run, lambda follower: follower.script(text, Scope(cwd), NOTHING, ()))


def _to_the_end(run: AnalysisRun, judge_it: Callable[[Follower], object]) -> None:
    follower = Follower(run)
    judge_it(follower)
    for body, scope in tuple(run.traps):  # each was judged where it is set, with the values of then
        follower.script(body, scope.fork(), NOTHING, ("trap",))


def _told(run: AnalysisRun, command: str, normalised: str) -> effects_model.Analysis:
    return effects_model.Analysis(
        command=command,
        normalised=normalised,
        commands=tuple(run.commands),
        effects=tuple(dict.fromkeys(run.effects)),
        unknown=tuple(run.unknowns),
        scripts=tuple(dict.fromkeys(run.scripts)),
        assigns=run.assigns,
    )


def _absolute(path: str | None) -> str | None:
    if not path or not path.startswith("/"):
        return None
    return path.rstrip("/") or "/"


def _is_too_long(text: str) -> bool:
    return len(text) > MAX_BYTES or (not text.isascii() and len(text.encode("utf-8", "replace")) > MAX_BYTES)


def _too_long(command: str, shown: str) -> effects_model.Analysis:
    reason = "the command is longer than 64 kB"
    return effects_model.Analysis(
        command=command,
        normalised=shown,
        commands=(),
        effects=(effects_model.Effect("unknown", effects_model.Severity.ASK, reason),),
        unknown=(reason,),
    )
