"""Which paths may be read and written: decisions over strings and what `stat` said, nothing is touched."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest

from hermes.seams import FileInfo

_HOME_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh")
_START_UP_AND_CREDENTIALS = """
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
    .kshrc .cshrc .tcshrc .login .config/fish/config.fish .netrc .pgpass .npmrc .pypirc .git-credentials
"""
_HOME_FILES = frozenset(_START_UP_AND_CREDENTIALS.split())
_SYSTEM_FOLDERS = ("/etc", "/private/etc", "/boot", "/proc", "/sys", "/dev", "/usr/lib/systemd", "/lib/systemd")
_SYSTEM_FILES = frozenset({"/var/run/docker.sock", "/run/docker.sock"})
_PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "authorized_keys"})
_DEVICES_THAT_NEVER_END = ("/dev/", "/proc/self/fd/", "/proc/kcore", "/proc/kmsg")
_OF_A_PROCESS = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRules:
    """What the session's environment and settings say about paths; all are absolute, with links resolved."""

    home: str
    hermes_home: str = ""
    profiles: str = ""  # the folder that holds the homes of all profiles
    crosses_profiles: bool = False  # the call says that it means another profile's home
    safe_roots: tuple[str, ...] = ()  # when given, writes stay below one of them
    blocked_reads: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, *, home: str, hermes_home: str = "", profiles: str = "", safe_root: str = "") -> "PathRules":
        """`safe_root` is the value of HERMES_WRITE_SAFE_ROOT: one folder, or several with colons between."""
        roots = tuple(posixpath.normpath(_expanded(root, home)) for root in safe_root.split(":") if root.strip())
        hub = posixpath.join(hermes_home, "skills", ".hub") if hermes_home else ""
        blocked = (hub,) if hub else ()
        return cls(home=home, hermes_home=hermes_home, profiles=profiles, safe_roots=roots, blocked_reads=blocked)


def absolute(path: str, *, cwd: str, home: str) -> str:
    """`path` as the environment understands it: `~` opened, relative to `cwd`, `.` and `..` worked out as text."""
    return posixpath.normpath(posixpath.join(cwd, _expanded(path, home)))


def refuse_read(path: str, resolved: str, info: FileInfo | None, rules: PathRules) -> str | None:
    """Why `path` may not be read, or None. `resolved` is where it leads with every link followed."""
    if any(name.startswith(_DEVICES_THAT_NEVER_END) for name in (path, resolved)):
        return f"{path!r} is a device; reading it may never end"
    if any(_OF_A_PROCESS.match(name) for name in (path, resolved)):
        return f"{path!r} belongs to a process of the runtime's side; ask for it with a command"
    if any(_is_below(name, blocked) for blocked in rules.blocked_reads for name in (path, resolved)):
        return f"{path!r} is in the skills hub cache; use skill_view to read a skill"
    if info is None:
        return None
    match info.kind:
        case "file":
            return None
        case "dir":
            return f"{path!r} is a folder; use search_files with target 'files' to list it"
        case "fifo":
            return f"{path!r} is a named pipe; reading it would wait for a writer"
        case "device" | "socket" | "other":
            return f"{path!r} is a {info.kind}, not a regular file"


def refuse_write(path: str, resolved: str, info: FileInfo | None, rules: PathRules) -> str | None:
    """Why `path` may not be written, or None. Both names count: a link must not lead where its name could not."""
    for name in dict.fromkeys((path, resolved)):
        reason = _protected(name, rules)
        if reason:
            lead = "" if name == path else f" (through a link, {resolved!r})"
            return f"{path!r}{lead} is protected: {reason}"
    if rules.safe_roots and not any(_is_below(resolved, root) for root in rules.safe_roots):
        return (
            f"{path!r} leads to {resolved!r}, outside the folder that writes are confined to ({rules.safe_roots[0]!r})"
        )
    if info is not None and info.kind != "file":
        what = {"dir": "a folder", "fifo": "a named pipe", "device": "a device"}.get(info.kind, "no regular file")
        return f"{path!r} is {what}, so it cannot be written"
    return None


def similar_names(wanted: str, names: Iterable[str], count: int = 5) -> list[str]:
    """The names a person may have meant instead of `wanted`, best first."""
    target = posixpath.basename(wanted).lower()
    scored = ((_name_likeness(target, name.lower()), name) for name in names)
    best = nlargest(count, (pair for pair in scored if pair[0] >= 0.55), key=lambda pair: (pair[0], pair[1]))
    return [name for _, name in best]


def _name_likeness(target: str, name: str) -> float:
    if not target or not name:
        return 0.0
    stem, other = posixpath.splitext(target)[0], posixpath.splitext(name)[0]
    if target == name or stem == other:
        return 1.0
    ratio = SequenceMatcher(None, target, name).ratio()
    is_part = len(stem) > 2 and (stem in name or (len(other) > 2 and other in target))
    return max(ratio, 0.7 if is_part else 0.0)


def _protected(path: str, rules: PathRules) -> str | None:
    for folder in _SYSTEM_FOLDERS:
        if _is_below(path, folder):
            return f"{folder} belongs to the system"
    if path in _SYSTEM_FILES:
        return "it controls the container engine"
    if posixpath.basename(path) in _PRIVATE_KEYS and posixpath.basename(posixpath.dirname(path)) == ".ssh":
        return "it is a key for ssh"
    if rules.home and _is_below(path, rules.home):
        inside = posixpath.relpath(path, rules.home)
        if inside in _HOME_FILES:
            return "it is a start-up or credentials file of the user"
        for folder in _HOME_FOLDERS:
            if _is_below(inside, folder):
                return f"~/{folder} holds credentials"
    if rules.hermes_home and path == posixpath.join(rules.hermes_home, ".env"):
        return "it holds the runtime's keys"
    if not rules.crosses_profiles and _is_of_other_profile(path, rules):
        return "it belongs to another profile; set cross_profile only if the user asked for that"
    return None


def _is_of_other_profile(path: str, rules: PathRules) -> bool:
    if not rules.profiles or not _is_below(path, rules.profiles):
        return False
    # The default profile's home holds the folder of all others, so being below it says nothing.
    return not (_is_below(rules.hermes_home, rules.profiles) and _is_below(path, rules.hermes_home))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _expanded(path: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path


def display_path(path: str, cwd: str) -> str:
    """`path` as the model would write it: relative when it lies below `cwd`."""
    return posixpath.relpath(path, cwd) if _is_below(path, cwd) else path


def parents(path: str) -> Sequence[str]:
    """The folders above `path`, nearest first, the root last."""
    found = []
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        found.append(path)
    return found
