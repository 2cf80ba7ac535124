"""Where everything the runtime writes is kept: one home per profile, and the names inside it."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from hermes.disk_trouble import reason_of
from hermes.errors import UserError

DEFAULT_PROFILE = "default"
PROJECT_TOOLS = Path(".hermes") / "tools"  # in a project's folder

_PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_bound: ContextVar[Path | None] = ContextVar("hermes_home", default=None)


def hermes_home(environ: Mapping[str, str] | None = None) -> Path:
    """The home in use: the one bound to this context, else what `environ` (by default the process's) says.

    `HERMES_HOME` (default `~/.hermes`) names the root; `HERMES_PROFILE`, or the profile chosen with
    `hermes profile use`, one of the homes under it. Nothing is created.
    """
    if environ is None:
        bound = _bound.get()
        if bound is not None:
            return bound
        environ = os.environ
    root = root_home(environ)
    name = environ.get("HERMES_PROFILE") or sticky_profile(root)
    return profile_home(root, name)


@contextmanager
def bound_home(home: Path) -> Iterator[Path]:
    """Make `home` the answer of `hermes_home()` in this context and the tasks started from it.

    This is how `-p NAME` reaches code that was handed no path, without touching the process environment.
    """
    token = _bound.set(home)
    try:
        yield home
    finally:
        _bound.reset(token)


def root_home(environ: Mapping[str, str] | None = None) -> Path:
    """The home of the default profile, under which the other profiles live."""
    environ = os.environ if environ is None else environ
    given = environ.get("HERMES_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    own = environ.get("HOME", "").strip()
    return (Path(own) if own else Path.home()) / ".hermes"


def chosen_home(environ: Mapping[str, str], profile: str | None, *, may_be_missing: bool = False) -> Path:
    """The home for a run with `-p PROFILE`; a `UserError` for a profile that does not exist, and for no folder.

    Whatever reads a home takes one that cannot be there for an empty one, so it is refused before.
    """
    root = root_home(environ)
    there = next((each for each in (root, *root.parents) if os.path.lexists(each)), root.parent)
    if not there.is_dir():
        what = "a link that leads nowhere" if there.is_symlink() else "no folder"
        where = "" if there == root else f" in {str(root)!r}"
        raise UserError(f"{str(there)!r}{where} is {what}, so nothing can be kept there; set HERMES_HOME to a folder")
    name = profile or environ.get("HERMES_PROFILE") or sticky_profile(root)
    home = profile_home(root, name)
    if home != root and not may_be_missing and not home.is_dir():
        raise UserError(f"there is no profile {name!r}; make it with: hermes profile create {name}")
    return home


def profile_home(root: Path, name: str | None) -> Path:
    """The home of profile `name`; a name that cannot be a folder is a `UserError`."""
    if not name or name == DEFAULT_PROFILE:
        return root
    check_profile_name(name)
    return root / "profiles" / name


def check_profile_name(name: str) -> None:
    """Raise `UserError` unless `name` can name a profile."""
    if not _PROFILE_NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot name a profile; use small letters, digits, '-' and '_', starting with a letter or digit"
        )


def sticky_profile(root: Path) -> str | None:
    """The profile chosen with `hermes profile use`, or None."""
    try:
        return sticky_file(root).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def sticky_file(root: Path) -> Path:
    """The file that remembers the chosen profile."""
    return root / "active_profile"


def made(folder: Path) -> Path:
    """`folder`, created readable by its owner alone when it was missing, parents too."""
    if not folder.is_dir():
        try:
            make_private(folder)
        except OSError as error:
            raise UserError(
                f"cannot make the folder {str(folder)!r}: {reason_of(error)}; or set HERMES_HOME to another one"
            ) from error
    return folder


def make_private(folder: Path) -> None:
    """Have `folder`: it and what is missing above it is made for its owner alone. `mkdir(parents=True)` is not that."""
    for each in reversed([folder, *(parent for parent in folder.parents if not parent.exists())]):
        each.mkdir(mode=0o700, exist_ok=True)


def config_file(home: Path) -> Path:
    """The settings."""
    return home / "config.yaml"


def env_file(home: Path) -> Path:
    """The secrets, readable by their owner alone."""
    return home / ".env"


def state_file(home: Path) -> Path:
    """The store of sessions."""
    return home / "state.db"


def has_sessions(home: Path) -> bool:
    """Whether there is a store, or at least its log, from which all that it holds comes back."""
    log = home / "state.db-wal"
    return state_file(home).exists() or (log.exists() and log.stat().st_size > 0)


def logs_dir(home: Path) -> Path:
    """Log files; made on demand with `made`, as are all folders here."""
    return home / "logs"


def cache_dir(home: Path) -> Path:
    """What can be made again: deleting it costs time, never facts."""
    return home / "cache"


def results_dir(home: Path, session_id: str) -> Path:
    """Large results of one session, kept as long as it is; no two sessions share a folder."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", session_id)[:60]
    mark = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:8]
    return cache_dir(home) / "results" / f"{plain}-{mark}"


def tools_dir(home: Path) -> Path:
    """The user's own tool files."""
    return home / "tools"


def skills_dir(home: Path) -> Path:
    """The user's skills."""
    return home / "skills"


def memories_dir(home: Path) -> Path:
    """What is kept across sessions: two files, their history, and what waits for a yes."""
    return home / "memories"


def checkpoints_dir(home: Path) -> Path:
    """Snapshots of workspaces, to roll back to."""
    return home / "checkpoints"


def sandboxes_dir(home: Path) -> Path:
    """Files of terminal environments."""
    return home / "sandboxes"


def profiles_dir(root: Path) -> Path:
    """The homes of the named profiles."""
    return root / "profiles"


def write_private(file: Path, text: str) -> None:
    """Replace `file` by `text`, readable by its owner alone, durable when this returns. Links are followed."""
    target = file.resolve() if file.is_symlink() else file
    made(target.parent)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):  # a read-only disk does not even let a file go that is not there
            temporary.unlink()
        raise UserError(f"cannot write {str(file)!r}: {reason_of(error)}") from error
