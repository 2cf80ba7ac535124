"""git: what rewrites history, throws work away or runs other commands."""

import re
from collections.abc import Callable

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects.network import host_of, sent
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import Options, read_options
from hermes.tools.approval.paths import deletes, is_credential, is_private, place, resolve, writes
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.word_patterns import plain

# Settings that name a program: git starts it, now or later.
_RUNS = re.compile(
    r"(?:alias|pager)\..+|(?!https?\.).*(?:command|cmd|helper|textconv|clean|smudge|process|driver|editor|pager|program|proxy|hook|hookspath|templatedir"
    r"|fsmonitor|external|askpass|\.exec)"
)
_TALKS = ("clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule")
_ADDRESS = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)
_FORCES = re.compile(r"remote\..*\.(?:push|mirror)")
_LASTING = re.compile(r"core\.(?:sshcommand|fsmonitor|hookspath|askpass)|credential\.helper")


_STARTERS = (
    "--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "-u", "-x", "-O", "ext::",
)  # fmt: skip


# Editors that a person sits at, and those that leave the list of commits as it is.
_SEATED = re.compile(r"|:|true|cat|(?:\S*/)?(?:vi|vim|nvim|nano|emacs|code|micro|hx|subl|ed|pico)(?: -\S+)*")


def _from_environment(cmd: Command, verb: str) -> None:
    """Variables that speak to git like its options."""
    known = cmd.scope.variables
    for name, (key, *_) in [pair for pair in known.items() if pair[0].startswith("GIT_CONFIG_KEY_")]:
        _setting(cmd, f"{key}={''.join(known.get(name.replace('KEY', 'VALUE'), (UNKNOWN,)))}")
    for text in known.get("GIT_CONFIG_PARAMETERS", ()):
        for setting in re.findall(r"'([^']+)'(?:='([^']*)')?", text):
            _setting(cmd, "=".join(part for part in setting if part))
    if verb != "rebase" or not read_options(cmd.args, "cCxs").has("i", "interactive", "edit-todo"):
        return
    names = ("GIT_SEQUENCE_EDITOR", "GIT_EDITOR", "VISUAL", "EDITOR")
    editors = [text for name in names for text in known.get(name, ())[:1]][:1]
    editors += [arg.partition("=")[2] for arg in cmd.args if arg.lower().startswith("core.editor=")]
    editor = next((text for text in editors if not _SEATED.fullmatch(text)), "")
    if editor:
        cmd.run.add("git_history", f"{editor} edits the list of commits: {cmd.line}".replace(UNKNOWN, "…"))


def git(cmd: Command) -> CommandOutput | None:
    args = _without_globals(cmd)
    if not args:
        return None
    _from_environment(cmd, args[0])
    if UNKNOWN in args[0]:
        cmd.run.unknown("git is given a command that is only known when it runs")
    verb, rest = args[0], [plain(word) for word in args[1:]]
    _talk(cmd, verb, rest)
    for text in _started(rest):
        cmd.shell(text, NOTHING)
    rule = _RULES.get(verb)
    if rule is not None and (rule(rest) or any(word[:1] == "-" and UNKNOWN in word.partition("=")[0] for word in rest)):
        cmd.add("git_history")
    if verb == "config":
        _config(cmd, rest)
    elif verb == "add" and (
        keys := [word for word in rest if _is_key(cmd, word, read_options(rest).has("f", "force"))]
    ):
        sent(cmd, keys, "the repository")
    elif (verb == "ls-files" or {"--name-only", "-l"} & set(rest)) and not cmd.args[0].startswith("-"):
        return CommandOutput(None, frozenset({"listed"}))
    elif verb == "rm" and read_options(rest).has("r"):
        if {".", "*", ":/", ":/*", ":"} & set(rest) or not read_options(rest).has("n", "cached", "dry-run"):
            deletes(cmd, ".", recursive=True)
    elif verb == "submodule" and "foreach" in rest:
        words = rest[rest.index("foreach") + 1 :]
        cmd.shell(" ".join(word for word in words if not word.startswith("--")), NOTHING)
    elif verb == "bisect" and rest[:1] == ["run"]:
        cmd.nested(rest[1:], NOTHING)
    elif verb == "rebase":
        _rebase_exec(cmd, rest)
    return None


def _talk(cmd: Command, verb: str, rest: list[str]) -> None:
    """With whom git talks: a push to an address may leave the project's own remotes, `ext::` is a program."""
    if verb == "clone":
        _clone(cmd, read_options(rest, "bcoj", frozenset({"depth", "branch", "config", "origin"})))
    elif verb == "push":
        _pushed(cmd, "".join(read_options(rest, "o").operands[:1]))
    if verb in _TALKS:
        for host in dict.fromkeys(host_of(word) for word in rest if _ADDRESS.match(word)):
            cmd.run.add("network", f"contact {host}", hosts=(host,), severity=Severity.NOTE)
    if any("ext::" in word for word in rest):
        cmd.run.add("inline_code", f"git talks to a program: {cmd.line}")


def _pushed(cmd: Command, remote: str) -> None:
    """A push to where the workspace always pushed is no question; one to anywhere else is."""
    home = cmd.run.places.pushes_home
    is_address = bool(_ADDRESS.match(remote)) or remote.startswith("file:")
    if home is not None and UNKNOWN not in remote and home(remote):
        return
    if is_address:
        cmd.run.add("exfiltration", f"push to an address that is no remote of the project: {cmd.line}")
    elif home is not None:
        cmd.run.add("push_elsewhere", f"push to a remote of this session's own making: {cmd.line}")


def _started(rest: list[str]) -> list[str]:
    """The programs that options of fetch, archive, grep or difftool name, and the transport `ext::`."""
    found: list[str] = []
    for position, word in enumerate(rest):
        if not word.startswith(_STARTERS):
            continue
        name, equals, value = word.partition("=")
        if name in _STARTERS:
            text = value if equals else "".join(rest[position + 1 : position + 2])
            found += [text] if " " in text or equals else []
        elif word.startswith("ext::"):
            found.append(word[5:].replace("% ", " "))
        elif word.startswith(("-O", "-x")) and " " in word:
            found.append(word[2:])
    return found


def _clone(cmd: Command, options: Options) -> None:
    """What is cloned is somebody else's; scripts in it are remote code until a person has looked."""
    if not options.operands:
        return
    if "c" in options.values or "config" in options.values:
        _setting(cmd, options.value("c", "config") or "")
    source = options.operands[0].rstrip("/")
    folder = options.operands[1] if len(options.operands) > 1 else source.rsplit("/", 1)[-1].removesuffix(".git")
    if len(options.operands) > 1:
        writes(cmd, folder)
    if "://" in source or ":" in source.split("/")[0]:
        cmd.run.cloned.append(resolve(folder, cmd.scope, cmd.run))


def _is_key(cmd: Command, word: str, is_forced: bool) -> bool:
    path = resolve(word, cmd.scope, cmd.run)
    return is_private(path, cmd.run.places) if is_forced else "/" in word and is_credential(path, cmd.run.places)


def _without_globals(cmd: Command) -> list[str]:
    args = list(cmd.args)
    while args and args[0].startswith("-"):
        option = args.pop(0)
        if option in ("-c", "--config-env") and args:
            _setting(cmd, args.pop(0))
        elif option in ("-C", "--git-dir", "--work-tree", "--namespace", "--exec-path") and args:
            args.pop(0)
        elif option.startswith("--config-env="):
            key, _, name = option.partition("=")[2].partition("=")
            _setting(cmd, f"{key}={cmd.scope.variables.get(name, (UNKNOWN,))[0]}")
        elif option.startswith("-c") and "=" in option:
            _setting(cmd, option[2:])
        elif option.startswith("--exec-path="):
            cmd.run.add("inline_code", f"git finds its programs elsewhere: {cmd.line}")
    return args


def _setting(cmd: Command, text: str) -> None:
    key, _, value = text.partition("=")
    if not value.strip(UNKNOWN) and UNKNOWN in value and _RUNS.fullmatch(key.lower()):
        cmd.run.add("inline_code", f"git runs what is only known then: {cmd.line}")
    elif value.startswith("!"):
        cmd.shell(value[1:], NOTHING)
    elif key.lower().startswith("alias."):
        cmd.shell(f"git {value}", NOTHING)
    elif (
        (_FORCES.fullmatch(key.lower()) and ("+" in value or UNKNOWN in value or value.lower() == "true"))
        or (key.lower() == "sequence.editor" and not _SEATED.fullmatch(value))
        or (key.lower() == "clean.requireforce" and value.lower() in ("false", "no", "off", "0"))
    ):
        cmd.add("git_history")
    elif key.lower() == "core.hookspath":
        if place(cmd, value) != "workspace":
            cmd.add("inline_code")
    elif _RUNS.fullmatch(key.lower()) and value and value.lower() not in ("true", "false"):
        cmd.shell(value, NOTHING)
        if value.startswith("/") and place(cmd, value) == "temp":
            cmd.add("inline_code")


def _config(cmd: Command, rest: list[str]) -> None:
    options = read_options(rest, "f", frozenset({"file"}))
    if len(options.operands) > 1:
        key = options.operands[0].lower()
        _setting(cmd, f"{options.operands[0]}={options.operands[1]}")
        if options.has("", "system"):
            cmd.add("system_config")
        elif options.has("", "global") and (
            _LASTING.fullmatch(key)
            or (key.startswith("alias.") and options.operands[1].startswith("!"))
            or key.endswith((".insteadof", ".proxy"))
            or key.startswith(("credential.", "http.ssl"))
        ):
            cmd.add("user_files")
    if options.value("f", "file"):
        writes(cmd, options.value("f", "file") or "")


def _rebase_exec(cmd: Command, rest: list[str]) -> None:
    options = read_options(rest, "xs", frozenset({"exec", "onto"}))
    text = options.value("x", "exec")
    if text:
        cmd.shell(text, NOTHING)
    if options.has("", "root"):
        cmd.add("git_history")


def _push(rest: list[str]) -> bool:
    options = read_options(rest, "o")
    forced = options.has("f", "force", "mirror") or any(flag.startswith("force") for flag in options.flags)
    forced = forced or UNKNOWN in "".join(options.operands[:1])  # where the remote is named, options can stand, too
    deleted = options.has("d", "delete", "prune") or any(
        word.startswith(":") and len(word) > 1 for word in options.operands[1:]
    )
    return forced or deleted or any(word.startswith("+") for word in options.operands)


def _clean(rest: list[str]) -> bool:
    options = read_options(rest, "e")
    return (options.has("f", "force") or UNKNOWN in rest) and not options.has("n", "dry-run")


def _branch(rest: list[str]) -> bool:
    options = read_options(rest, "u")
    return options.has("DMCf", "force") or (UNKNOWN in options.operands[:1] and len(rest) > 1 and rest[0] == UNKNOWN)


def _checkout(rest: list[str]) -> bool:
    options = read_options(rest, "bB")
    folders = any(_is_folder(word) for word in (rest[rest.index("--") + 1 :] if "--" in rest else ()))
    return options.has("fB", "force") or folders or options.operands == ["."] or "*" in rest


def _is_folder(word: str) -> bool:
    """Whether a path of the work tree reads like a folder: `.`, `src`, `docs/`; not `a.py`, `Makefile`, `.env`."""
    name = word.rstrip("/").rsplit("/", 1)[-1]
    return word.endswith("/") or word in (".", "..", ":/", "*") or bool(re.fullmatch(r"[a-z0-9_-]+", name))


def _restore(rest: list[str]) -> bool:
    options = read_options(rest, "s", frozenset({"source"}))
    whole = any(_is_folder(word) for word in options.operands)
    return whole and not (options.has("S", "staged") and not options.has("W", "worktree"))


_RULES: dict[str, Callable[[list[str]], bool]] = {
    "reset": lambda rest: read_options(rest).has("", "hard", "merge"),
    "push": _push,
    "clean": _clean,
    "branch": _branch,
    "checkout": _checkout,
    "restore": _restore,
    "stash": lambda rest: rest[:1] in (["clear"], ["drop"]),
    "filter-branch": lambda _rest: True,
    "filter-repo": lambda _rest: True,
    "notes": lambda rest: rest[:1] in (["prune"], ["remove"]),
    "reflog": lambda rest: rest[:1] in (["expire"], ["delete"]),
    "gc": lambda rest: any(word.startswith("--prune=") and word.endswith(("now", "all")) for word in rest),
    "update-ref": lambda _rest: True,
    "replace": lambda rest: not read_options(rest).has("l", "list"),
    "prune": lambda rest: not read_options(rest).has("n", "dry-run"),
    "read-tree": lambda rest: read_options(rest).has("", "reset"),
    "checkout-index": lambda rest: read_options(rest).has("f", "force"),
    "send-pack": lambda rest: read_options(rest).has("", "force", "mirror"),
    "fast-import": lambda rest: read_options(rest).has("", "force"),
    "symbolic-ref": lambda rest: read_options(rest).has("d", "delete"),
    "fetch": lambda rest: read_options(rest).has("f", "force") and any(":" in word.rpartition("/")[2] for word in rest),
    "submodule": lambda rest: rest[:1] == ["deinit"] and read_options(rest).has("f", "force"),
    "worktree": lambda rest: rest[:1] == ["remove"] and read_options(rest).has("f", "force"),
    "tag": lambda rest: read_options(rest, "m").has("", "force") and read_options(rest, "m").has("d", "delete"),
    "switch": lambda rest: read_options(rest, "cC").has("fC", "force", "discard-changes", "force-create"),
}

HANDLERS: Handlers = {
    "git": git,
    "git-filter-repo": lambda cmd: git(cmd._replace(args=["filter-repo"])),
    "bfg": lambda cmd: git(cmd._replace(args=["filter-repo"])),
    "yadm": git,
}
