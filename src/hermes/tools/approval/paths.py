"""Where a path leads and what it is: resolved after `cd`, `..`, links and globs, then put in a class."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.run_state import AnalysisRun, Command, Places, Scope
from hermes.tools.approval.word_patterns import STAR, could_name, has_glob, is_open, plain

TOP = frozenset(
    words(
        "/bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /proc /root /run /sbin /srv "
        "/sys /usr /var /System /Library /Applications /Users /Volumes /private /private/etc /private/var "
        "/usr/bin /usr/sbin /usr/lib /usr/local /usr/share /var/lib /var/log"
    )
)
_SYSTEM = re.compile(
    r"/(?:etc|selinux|boot|usr|bin|sbin|lib\w*|proc|sys|var|run|root|opt|srv|System|Library|Applications|private)(?:/|\Z)"
)
_CONFIG = re.compile(
    r"/(?:private/)?(?:etc|selinux|boot|bin|sbin|lib\w*|proc|sys|usr(?!/local/share|/src)|var/spool|var/lib|var/log|System|Library)(?:/|\Z)"
)
_TEMP = re.compile(r"/(?:private/)?(?:tmp|var/tmp|var/folders|dev/shm)(?:/|\Z)")
_DISK = re.compile(
    r"/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd|nvme|mmcblk|r?disk|md|dm-|mapper|nbd|loop|sr\d|zd|pmem|block|mem|kmem|port|root)"
)
_HOME = re.compile(r"/(?:home|Users)/[^/]+")
_HOMES = re.compile(r"(?:/root|/home/[^/]+|/Users/[^/]+)(?:/|\Z)")
_CREDENTIALS = re.compile(
    r"(?:\.ssh|\.aws|\.gnupg|\.kube|\.azure|\.config/(?:gcloud|gh|hub|git/credentials|google-chrome|chromium)|\.netrc|_netrc"
    r"|\.pgpass|\.my\.cnf|\.docker/config\.json|\.npmrc|\.pypirc|\.git-credentials|\.vault-token|\.cargo/credentials"
    r"|\.gem/credentials|\.password-store|\.local/share/keyrings|Library/Keychains|\.mozilla|\.bitcoin|\.ethereum"
    r"|\.terraform\.d/credentials|\.config/op|\.boto|\.s3cfg|\.claude|\.codex|\.gitconfig)(?:[/.]|\Z)"
)
_RC = re.compile(
    r"(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zprofile|zshenv|zlogin|zlogout|kshrc"
    r"|cshrc|tcshrc|login|inputrc|vimrc|emacs|tmux\.conf|screenrc|gdbinit|curlrc|wgetrc|condarc|Rprofile|irbrc|pythonrc|psqlrc|sqliterc|bash_history|zsh_history|xinitrc|xprofile|xsessionrc|pam_environment)|\.config/(?:fish|autostart|systemd"
    r"|environment\.d|pip|nvim)|\.pip|\.emacs\.d|\.vim|Library/LaunchAgents|\.local/share/systemd)(?:/|\Z)"
)
_PRIVATE_NAMES = re.compile(
    r"(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.env(?:\.(?!example|sample|template|dist)[\w.-]+)?|[\w.-]+\.(?:pem|p12|pfx|kdbx|keystore|jks)"
    r"|\.netrc|\.pgpass|credentials(?:\.json)?|service[-_]account[\w-]*\.json|secrets?\.(?:ya?ml|json|toml|env|txt))\Z"
)
_SYSTEM_SECRETS = re.compile(
    r"/(?:private/)?etc/(?:passwd|shadow|gshadow|sudoers|ssh|ssl/private|krb5\.keytab)|/proc/[^/]+/(?:environ|mem)"
)
_PROJECT_ENV = re.compile(r"\.env(?:\.(?!example|sample|template|dist|defaults?\b)[\w-]+)*\Z|config\.ya?ml\Z|\.envrc\Z")
EMPTIES = "empty "  # how the detail of a write begins that leaves nothing in the file
GIT_RUNS = re.compile(r"/\.git/(?:hooks/|config\Z)")  # what git runs, or is told to run, later
_CHARACTERS = 64  # of a path, that are looked at in one step
_JUDGE = 6  # steps to tell what it means to write or delete a path
_LINKS = 4  # steps to follow links that the script makes
_LOOK = 10  # steps that a look at the disk takes
_STREAMS = ("/dev/fd/", "/dev/std", "/proc/self/fd/")  # of the command to come, not of this process
_OWN_STATE = re.compile(
    r"(?:config\.ya?ml|\.env[\w.-]*|auth[\w.-]*|credentials[\w.-]*|state\.db[\w-]*|approvals?[\w./-]*|allowlist[\w./-]*"
    r"|policy[\w./-]*|secrets?[\w./-]*|(?:shell-)?hooks[\w./-]*|profiles[\w./-]*)?\Z"
)


def resolve(word: str, scope: Scope, run: AnalysisRun) -> str:
    """The absolute path that `word` names from the script's working directory; unknown parts stay marked."""
    run.budget.spend(1 + len(word) // _CHARACTERS)
    if word.startswith("/"):
        path = word
    elif word.startswith(UNKNOWN):
        return word
    else:
        path = f"{scope.cwd}/{word}"
    if "//" in path or "/." in path or path.endswith("/"):
        path = _normal(path)
    if run.links:
        run.budget.spend(_LINKS)
        path = _linked(path, run.links)
    if run.places.real is not None and not is_open(path) and not path.startswith(_STREAMS):
        return _on_disk(path, run, run.places.real)
    return path


def _on_disk(path: str, run: AnalysisRun, real: Callable[[str], str]) -> str:
    if path not in run.real_paths:
        run.budget.spend(_LOOK)
        run.real_paths[path] = real(path)
    found = run.real_paths[path]
    # A file that the script has made is the one it wrote, unless what it wrote through is a link to a guarded one.
    return found if path not in run.files or classify(found, run.places) in ("own", "credential", "rc") else path


def _normal(path: str) -> str:
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if kept and is_open(kept[-1]):
                return UNKNOWN
            if kept:
                kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    head = "" if kept and kept[0].startswith(UNKNOWN) and not path.startswith("/") else "/"
    return head + "/".join(kept)


def _linked(path: str, links: dict[str, str]) -> str:
    for _ in range(8):
        end = next((end for end in _ends(path) if path[:end] in links), 0)
        if not end:
            return path
        path = _normal(links[path[:end]] + path[end:])
    return path


def _ends(path: str) -> Iterator[int]:
    """Where the folders that `path` leads through end, the outermost first, and then `path` itself."""
    end = path.find("/", 1)
    while end > 0:
        yield end
        end = path.find("/", end + 1)
    yield len(path)


def classify(path: str, places: Places) -> str:
    """What `path` is: root, top, disk, device, own, credential, rc, env, workspace, temp, system, home or other."""
    if is_open(path):
        path = _concrete(path, places)
        if path.startswith(UNKNOWN):
            return "unknown"
    return _classify(path, places)


@lru_cache(maxsize=4096)
def _classify(path: str, places: Places) -> str:
    if path == "/":
        return "root"
    if path.startswith("/dev/") and not path.startswith("/dev/shm/"):  # noqa: S108 - a class of paths
        return "disk" if _DISK.match(path) else "device"
    if path in TOP or path == places.home or _HOME.fullmatch(path):
        return "workspace" if path == places.workspace and path not in TOP else "top"
    if _under(path, places.own_home) or re.search(r"/\.hermes(?:/|\Z)", path):
        return "own"
    inside = _in_home(path, places)
    if inside is not None:
        if _CREDENTIALS.match(inside):
            return "credential"
        if _RC.match(inside):
            return "rc"
    if GIT_RUNS.search(path):
        return "env"
    if _under(path, places.workspace):
        return "env" if _PROJECT_ENV.match(path.rsplit("/", 1)[1]) else "workspace"
    if _TEMP.match(path) and not path.startswith(places.home + "/"):
        return "temp"
    if inside is not None:
        return "home"
    return "system" if _SYSTEM.match(path) else "other"


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _in_home(path: str, places: Places) -> str | None:
    if path.startswith(places.home + "/"):
        return path[len(places.home) + 1 :]
    found = _HOMES.match(path)
    return path[found.end() :] if found else None


@lru_cache(maxsize=64)
def _landmarks(places: Places) -> tuple[str, ...]:
    inner = words(".ssh/authorized_keys .ssh/id_rsa .bashrc .zshrc .profile .bash_profile .aws/credentials .netrc")
    system = words("/etc/passwd /etc/shadow /etc/hosts /etc/sudoers /etc/crontab /dev/sda /dev/nvme0n1 /dev/vda")
    homes = dict.fromkeys((places.own_home, f"{places.home}/.hermes"))
    own = [f"{home}/{name}" for home in homes for name in ("config.yaml", ".env")]
    return (*(f"{places.home}/{name}" for name in inner), *own, *system, places.home, *sorted(TOP))


def _concrete(path: str, places: Places) -> str:
    """Put the most sensitive thing an open path may expand to in its place."""
    if UNKNOWN in path and not has_glob(path):
        head, _, _ = path.partition(UNKNOWN)
        # `~/$x` may be anything in home, `/$x` anything at all; deeper down the folder tells the class.
        known = head.rstrip("/")
        return UNKNOWN if known in ("", places.home) or "/" not in known[1:] else head + "x"
    parts = path.split("/")
    for landmark in _landmarks(places):
        depth = landmark.count("/")
        if len(parts) > depth and could_name("/".join(parts[: depth + 1]), landmark):
            return "/".join([landmark, *parts[depth + 1 :]])
    return path


def is_private(path: str, places: Places) -> bool:
    """Whether sending this file out would give away a credential or something of the person's own."""
    kind = classify(path, places)
    if kind in ("credential", "rc", "own", "home", "top", "root"):
        return True
    name = path.rsplit("/", 1)[-1]
    return bool(_PRIVATE_NAMES.match(plain(name)) or _SYSTEM_SECRETS.match(path))


def is_wide(path: str, places: Places) -> bool:
    """Whether nearly everything on the machine, or of the person, is below this path."""
    return classify(path, places) in ("root", "top")


def is_credential(path: str, places: Places) -> bool:
    """Whether the file is one that logs somebody in; public keys and host lists are not."""
    name = plain(path.rsplit("/", 1)[-1])
    if name.endswith(".pub") or name in ("config", "known_hosts", "known_hosts.old", ".gitconfig", "environment"):
        return False
    in_home = _in_home(path, places) is not None and not _under(path, places.workspace)
    return classify(path, places) == "credential" or (
        in_home and bool(re.match(r"id_(?:rsa|dsa|ecdsa|ed25519)\Z", name))
    )


def place(cmd: Command, word: str) -> str:
    """The class of the path that a word of `cmd` names."""
    return classify(resolve(word, cmd.scope, cmd.run), cmd.run.places)


def matters(cmd: Command, word: str) -> bool:
    """Whether a file is one that nobody should write in passing: of the system, the person's settings, the runtime."""
    return place(cmd, word) in ("system", "top", "root", "disk", "own", "credential", "rc")


def shown(cmd: Command, *words: str) -> tuple[str, ...]:
    """The paths that words of `cmd` name, as a person reads them."""
    return tuple(show(resolve(word, cmd.scope, cmd.run), cmd.run.places) for word in words)


def writes(cmd: Command, *words: str) -> None:
    """Record that `cmd` writes the files that these words name."""
    for word in words:
        write_path(cmd.run, cmd.scope, word, cmd.line)


def deletes(cmd: Command, *words: str, recursive: bool = False, kind: str = "") -> None:
    """Record that `cmd` deletes what these words name."""
    for word in words:
        delete_path(cmd.run, cmd.scope, word, cmd.line, recursive=recursive, kind=kind)


def is_guarded_name(inner: str) -> bool:
    """Whether a path below the runtime's own folder is one that nobody's yes lets a tool write."""
    return bool(_OWN_STATE.match(inner))


def link_path(run: AnalysisRun, scope: Scope, word: str, how: str, *, is_hard: bool) -> None:
    """Record that the file which `word` names gets another name, by which it could be written unseen.

    A symbolic link is followed wherever it is written through; only what no yes lifts is refused the name, too. A hard
    link is as good as the file: what nobody should write in passing is not given a second one.
    """
    path = resolve(word, scope, run)
    kind = classify(path, run.places)
    if kind == "own" and _severity(path, run.places) is Severity.HARDLINE:
        _own(run, path, how, (show(path, run.places),))
    elif is_hard and kind in ("system", "own", "credential", "rc"):
        write_path(run, scope, word, how)


def write_path(run: AnalysisRun, scope: Scope, word: str, how: str) -> None:
    """Record the effect of writing to the file that `word` names."""
    run.budget.spend(_JUDGE)
    path = resolve(word, scope, run)
    shown = (show(path, run.places),)
    kind = classify(path, run.places)
    if is_open(path):
        path = _concrete(path, run.places)
    if kind == "disk":
        run.add("block_device", how, shown, severity=Severity.HARDLINE, path_class=kind)
    elif kind == "device":
        return
    elif kind == "own":
        _own(run, path, how, shown)
    elif kind in ("credential", "rc"):
        run.add("user_files", how, shown, path_class=kind)
    elif kind in ("root", "top"):
        is_home = path == run.places.home or bool(_HOME.fullmatch(path))
        severity = Severity.NOTE if is_home else Severity.ASK
        run.add("write" if is_home else "system_config", how, shown, path_class=kind, severity=severity)
    elif kind == "env":
        run.add("project_env", how, shown, path_class="workspace")
    elif kind == "system" and _CONFIG.match(path):
        run.add("cron_write" if "cron" in path else "system_config", how, shown, path_class=kind)
    elif kind == "unknown":
        run.unknown(f"it writes to a path that cannot be resolved ({how})")
    else:
        run.add("write", how, shown, severity=Severity.NOTE, path_class=kind)


def _own(run: AnalysisRun, path: str, how: str, shown: tuple[str, ...]) -> None:
    run.add("own_files", how, shown, severity=_severity(path, run.places), path_class="own")


def _severity(path: str, places: Places) -> Severity:
    inner = path.partition("/.hermes/")[2] if "/.hermes/" in path else path.removeprefix(places.own_home).strip("/")
    return Severity.HARDLINE if is_guarded_name(inner) or is_open(inner) else Severity.ASK


def delete_path(
    run: AnalysisRun, scope: Scope, word: str, how: str, *, recursive: bool = False, kind: str = ""
) -> None:
    """Record the effect of deleting what `word` names; `kind` names the effect where another than rm's is meant."""
    run.budget.spend(_JUDGE)
    path = resolve(word, scope, run)
    last = path.rsplit("/", 1)[-1]
    everything = last in (STAR, f".{STAR}", f"{STAR}{STAR}", f"{STAR}.{STAR}", f".[!.]{STAR}")
    target = path.rsplit("/", 1)[0] or "/" if everything and path.startswith("/") else path
    place = classify(target, run.places)
    shown = (show(path, run.places),)
    severity = Severity.HARDLINE if place in ("root", "top") and _is_floor(target, run.places) else Severity.ASK
    if place == "own":
        _own(run, target, how, shown)
        severity = Severity.ASK
    if place == "disk":
        run.add("block_device", how, shown, severity=Severity.ASK, path_class=place)
    elif recursive or severity is Severity.HARDLINE:
        run.add(kind or "recursive_delete", how, shown, severity=severity, path_class=place)
    elif place == "unknown":
        run.add(kind or "unresolved_delete", how, shown, path_class=place)
    elif everything:
        run.add(kind or "mass_delete", how, shown, path_class=place)
    elif place in ("workspace", "temp", "env", "device"):
        run.add(
            kind or "delete",
            how,
            shown,
            severity=Severity.ASK if kind else Severity.NOTE,
            path_class="workspace" if place == "env" else place,
        )
    else:
        run.add(kind or "delete_outside", how, shown, path_class=place)


def deletes_since(run: AnalysisRun, before: int) -> bool:
    """Whether a file was deleted or emptied after the first `before` effects; of a list, that is many files."""
    return any(effect.kind == "delete" or effect.detail.startswith(EMPTIES) for effect in run.effects[before:])


def _is_floor(path: str, places: Places) -> bool:
    return path in ("/", places.home) or path in TOP or is_open(path)


def show(path: str, places: Places) -> str:
    """The path as a person reads it: relative in the workspace, `~` for home, `…` for what is unknown."""
    text = plain(path).replace(UNKNOWN, "…")
    if path.startswith(places.workspace + "/"):
        return text[len(places.workspace) + 1 :]
    if path == places.workspace:
        return "."
    if path == places.home or path.startswith(places.home + "/"):
        return "~" + text[len(places.home) :]
    return text
