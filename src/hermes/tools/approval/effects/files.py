"""Programs that delete, overwrite, move or open up files, and those that find files for others to do so."""

import itertools
import re
from functools import partial
from pathlib import PurePosixPath

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects.network import fetched, sent
from hermes.tools.approval.effects.written_paths import replace
from hermes.tools.approval.options import Options, read_options
from hermes.tools.approval.paths import (
    classify,
    delete_path,
    deletes,
    deletes_since,
    is_credential,
    is_private,
    link_path,
    place,
    resolve,
    show,
    writes,
)
from hermes.tools.approval.printed_text import labelled
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import listed, pour
from hermes.tools.approval.word_patterns import has_glob, plain

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


_NOWHERE = frozenset({"/dev/null", "/dev/zero"})
_HERE = CommandOutput(None, listed([]))


def rm(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args)
    if options.has("", "help", "version"):
        return NOTHING
    recursive = options.has("rR", "recursive", "no-preserve-root") or (options.dark and _dark_flags(cmd.args))
    deletes(cmd, *options.operands, recursive=recursive)
    if recursive and not options.operands:
        cmd.add("recursive_delete")
    return NOTHING


def _dark_flags(args: list[str]) -> bool:
    return any(UNKNOWN in arg and (arg.startswith("-") or arg == UNKNOWN) for arg in args)


def unlink(cmd: Command) -> CommandOutput:
    deletes(cmd, *read_options(cmd.args).operands)
    return NOTHING


def rmdir(cmd: Command) -> CommandOutput:
    # Only empty folders can go; a glob at the root or home would still be a mistake worth stopping.
    for word in read_options(cmd.args).operands:
        if place(cmd, word) in ("root", "top", "system", "own"):
            deletes(cmd, word)
    return NOTHING


def destroy(cmd: Command, values: str = "") -> CommandOutput:
    operands = read_options(cmd.args, values, frozenset({"iterations", "size", "random-source"})).operands
    for word in operands:
        path = resolve(word, cmd.scope, cmd.run)
        if classify(path, cmd.run.places) == "disk":
            writes(cmd, word)
        else:
            cmd.add("destroy_data", (show(path, cmd.run.places),), path_class=classify(path, cmd.run.places))
    return NOTHING


def truncate(cmd: Command) -> CommandOutput | None:
    if cmd.args[:1] and cmd.args[0].lower() == "table":
        cmd.add("sql_truncate")
        return None
    options = read_options(cmd.args, "sr", frozenset({"size", "reference"}))
    size = options.value("s", "size") or ""
    grows = size[:1] in ("+", ">") or (size[:1].isdigit() and size.strip("0KMGTBkb") != "")
    for word in options.operands:
        writes(cmd, word)
        if not grows:
            path = resolve(word, cmd.scope, cmd.run)
            cmd.add("destroy_data", (show(path, cmd.run.places),), path_class=classify(path, cmd.run.places))
    return NOTHING


def _copy_words(cmd: Command) -> tuple[Options, list[str], list[str]]:
    options = read_options(
        cmd.args,
        "tSmog" if cmd.name == "install" else "tS",
        frozenset({"target-directory", "suffix", "mode", "owner", "group"}),
    )
    folder = options.value("t", "target-directory")
    if folder is not None:
        return options, options.operands, [folder]
    return options, options.operands[:-1], options.operands[-1:]


def copy(cmd: Command) -> CommandOutput:
    options, sources, targets = _copy_words(cmd)
    is_folder = options.value("t", "target-directory") is not None
    run = cmd.run
    for target in targets:
        path = resolve(target, cmd.scope, run)
        if classify(path, run.places) in ("top", "root") or is_folder:
            for source in sources or ["x"]:
                writes(cmd, f"{path}/{source.rstrip('/').rsplit('/', 1)[-1] or 'x'}")
        else:
            replace(cmd, target)
        for source in sources:
            _carry(cmd, source, path)
    _link(cmd, options, sources, targets)
    if cmd.name == "ln" and len(sources) == 1 and targets:
        run.links[resolve(targets[0], cmd.scope, run)] = resolve(sources[0], cmd.scope, run)
    return NOTHING


def _link(cmd: Command, options: Options, sources: list[str], targets: list[str]) -> None:
    """`ln`, `cp -l`, `cp -s`: another name for what is there."""
    if cmd.name in ("ln", "link"):
        is_hard = not options.has("s", "symbolic")
    elif options.has("ls", "link", "symbolic-link"):
        is_hard = options.has("l", "link")
    else:
        return
    folders = [f"{target.rpartition('/')[0]}/" for target in targets if "/" in target and not is_hard]
    for source in sources:
        link_path(cmd.run, cmd.scope, source, cmd.line, is_hard=is_hard)
        for folder in folders if source[:1] != "/" else ():  # a symbolic link leads on from where it lies
            link_path(cmd.run, cmd.scope, folder + source, cmd.line, is_hard=False)


def _carry(cmd: Command, source: str, path: str) -> None:
    """Remember in the copy what the original was: downloaded, private, or another program."""
    run = cmd.run
    origin = resolve(source, cmd.scope, run)
    name = origin.rsplit("/", 1)[-1]
    for copied in (path, f"{path}/{name}"):
        if origin == "/dev/stdin":
            run.files[copied] = cmd.stdin
        elif origin in run.files:
            run.files[copied] = run.files[origin]
        elif is_private(origin, run.places):
            run.files[copied] = CommandOutput(None, frozenset({"private", "file"}))
    if is_credential(origin, run.places) and classify(path, run.places) in ("workspace", "env"):
        shown = show(origin, run.places)
        run.add("exfiltration", f"put {shown} into the project", (shown,))
    if re.match(r"/(?:usr/)?(?:local/)?s?bin/", origin):
        run.links[path] = origin
    if origin in ("/dev/null", "/dev/zero") and classify(path, run.places) not in ("temp", "device"):
        cmd.add("destroy_data", (show(path, run.places),), path_class=classify(path, run.places))


def move(cmd: Command) -> CommandOutput:
    _, sources, targets = _copy_words(cmd)
    run = cmd.run
    target = resolve(targets[0], cmd.scope, run) if targets else ""
    for source in sources:
        path = resolve(source, cmd.scope, run)
        suffix = PurePosixPath(plain(path)).suffix
        if has_glob(path) and not has_glob(target) and suffix and target.endswith(suffix):
            run.add("destroy_data", f"move many files onto one: {cmd.line}", (show(target, run.places),))
        kind = classify(path.removesuffix("/\ue02a") or "/", run.places)
        if target in _NOWHERE or kind in ("root", "top", "system", "own", "credential"):
            deletes(cmd, source, recursive=kind in ("root", "top"), kind="move_away")
        elif classify(target, run.places) == "temp" and (kind in ("home", "rc") or path.endswith("/.git")):
            cmd.add("move_away", (show(path, run.places),), path_class=kind)
    copy(cmd)
    return NOTHING


def tee(cmd: Command) -> CommandOutput:
    for word in read_options(cmd.args).operands:
        path = resolve(word, cmd.scope, cmd.run)
        if cmd.name == "tee" or cmd.stdin.text is not None:  # what sponge is given comes from the file itself
            replace(cmd, word)
        else:
            writes(cmd, word)
        pour(path, cmd.stdin, cmd.scope, cmd.run)
        cmd.run.files[path] = cmd.stdin
    return cmd.stdin


def sync(cmd: Command) -> CommandOutput:
    options = read_options(
        cmd.args,
        "efBTM",
        frozenset({"rsh", "exclude", "include", "filter", "files-from", "exclude-from", "log-file", "chmod"}),
    )
    shell = options.value("e", "rsh")
    if shell and UNKNOWN not in shell:
        cmd.shell(shell, NOTHING)
    targets = options.operands[-1:] if len(options.operands) > 1 else []
    is_dry = options.has("n", "dry-run")
    deletes = any(flag.startswith(("delete", "del")) for flag in options.flags if len(flag) > 2)
    if deletes and not is_dry and targets:
        cmd.add("sync_delete", tuple(plain(word) for word in targets))
    if options.has("", "remove-source-files") and not is_dry:
        cmd.add("move_away", tuple(plain(word) for word in options.operands[:-1]))
    for word in targets:
        if ":" in word.split("/", 1)[0]:
            _send(cmd, options.operands[:-1], word)
        elif not is_dry:
            writes(cmd, word)
            if place(cmd, word) == "top":
                for source in options.operands[:-1]:
                    writes(cmd, f"{word.rstrip('/')}/{source.rsplit('/', 1)[-1] or 'x'}")
            fetched(cmd, options.operands[:-1], word)
    return DARK


def _send(cmd: Command, sources: list[str], target: str) -> None:
    sent(cmd, sources, target.split(":", 1)[0].rpartition("@")[2])


def chmod(cmd: Command) -> CommandOutput:
    args = [arg for arg in cmd.args if not re.fullmatch(r"-[RvcfhHLP]+|--[\w-]+(?:=.*)?|--", arg)]
    recursive = bool(read_options(cmd.args).has("R", "recursive"))
    if not args:
        return NOTHING
    # The mode of another file is not known here: harmless in the workspace, asked about elsewhere.
    by_example = any(arg.startswith("--ref") for arg in cmd.args)
    mode, targets = ("", args) if by_example else (args[0], args[1:])
    run = cmd.run
    paths = tuple(show(resolve(word, cmd.scope, run), run.places) for word in targets)
    if _opens(mode):
        cmd.add("world_writable", paths)
    if _sets_user(mode):
        cmd.add("open_permissions", paths)
    for word in targets:
        path = resolve(word, cmd.scope, run)
        kind = classify(path.removesuffix("/\ue02a") or "/", run.places)
        if (
            kind in ("root", "top", "system")
            or (kind in ("credential", "own") and not re.fullmatch(r"0?[4-7]00|[ug]?[-+=][rwx]+|go-rwx|go=", mode))
            or (recursive and mode in ("000", "0", "0000", "a-rwx", "a="))
        ):
            cmd.add("open_permissions", paths, path_class=kind)
        if re.search(r"x|[157]", mode):
            run.executables.add(path)
    return NOTHING


def _sets_user(mode: str) -> bool:
    """The file would run as its owner, whoever starts it."""
    return bool(re.fullmatch(r"0?[4-7][0-7]{3}|(?:.*,)?(?!g[+=])[ugoa]*[+=][rwxXt]*s.*", mode))


def _opens(mode: str) -> bool:
    if re.fullmatch(r"[0-7]{3,5}", mode):
        return int(mode[-1]) & 2 != 0
    if UNKNOWN in mode:
        return True
    for clause in mode.split(","):
        found = re.fullmatch(r"([ugoa]*)([-+=][rwxXst]*)+", clause)
        if found and ("o" in found[1] or "a" in found[1]) and re.search(r"[+=][rxXst]*w", clause):
            return True
    return False


def chown(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, "", frozenset({"from", "reference"}))
    run = cmd.run
    owner, targets = (options.operands[0] if options.operands else ""), options.operands[1:]
    paths = tuple(show(resolve(word, cmd.scope, run), run.places) for word in targets)
    if options.has("R", "recursive") and owner.split(":")[0] in ("root", "0"):
        cmd.add("chown_root", paths)
    for word in targets:
        kind = classify(resolve(word, cmd.scope, run).removesuffix("/\ue02a") or "/", run.places)
        if kind in ("root", "top", "system", "credential", "own"):
            cmd.add("open_permissions", paths, path_class=kind)
    return NOTHING


def listing(cmd: Command) -> CommandOutput:
    roots = [arg for arg in cmd.args if arg[:1] != "-"]
    if not roots or roots == ["."]:
        return _HERE
    everyone = {"everyone"} if any(root.startswith("/proc") for root in roots) else set()
    return CommandOutput(None, listed(roots) | labelled(cmd, DARK).labels | everyone)


def archive(cmd: Command) -> CommandOutput | None:
    """tar, zip, cpio: what they write, delete, carry or run."""
    args = cmd.args
    run = cmd.run
    for arg in args:
        if arg.startswith("--checkpoint-action") and "exec=" in arg:
            cmd.shell(arg.split("exec=", 1)[1], NOTHING)
        elif arg == "--remove-files" or (cmd.name == "zip" and re.fullmatch(r"-\w*m\w*", arg)):
            cmd.add("move_away")
    extracts = cmd.name in ("unzip", "7z") or any(
        re.fullmatch(r"-\w*[xi]\w*|--extract|--get" if number or arg[0:1] == "-" else r"\w*x\w*", arg)
        for number, arg in enumerate(args)
    )
    if extracts and cmd.name != "unzip" and any(re.fullmatch(r"-\w*P\w*|--absolute-names", arg) for arg in args):
        run.add("system_config", f"unpack to wherever the archive says: {cmd.line}")
    folders = [after for arg, after in itertools.pairwise(args) if arg in ("-C", "--directory", "-d", "-D", "--cd")]
    folders += [arg.partition("=")[2] for arg in args if arg.startswith("--directory=")]
    for folder in (folders or ["."]) if extracts else ():
        path = resolve(folder, cmd.scope, run)
        if not folders and classify(path, run.places) not in ("root", "top", "system"):
            continue
        # What an archive holds is not known: in these folders it may be anything.
        inside = {"root": "/etc/x", "top": f"{path}/{'.profile' if path == run.places.home else 'x'}"}
        writes(cmd, inside.get(classify(path, run.places), path))
    if not extracts and (made := _archive_file(args)):
        replace(cmd, made)
    out = labelled(cmd, DARK)
    if extracts and "remote" in out.labels:
        run.cloned += [resolve(folder, cmd.scope, run) for folder in folders or ["."]]
    if "private" in out.labels:
        for word in args:
            if re.search(r"\.(?:tar|tgz|zip|gz|bz2|xz|7z)\b", word):
                run.files[resolve(word, cmd.scope, run)] = CommandOutput(None, frozenset({"private"}))
    return out


def _archive_file(args: list[str]) -> str:
    """The archive that tar makes anew, else ""."""
    makes = re.match(r"(?:-?[a-zA-Z]*c[a-zA-Z]*|--create)\Z", args[0]) if args else None
    named = (after for arg, after in itertools.pairwise(args) if re.fullmatch(r"-?[a-zA-Z]*f|--file", arg))
    return next(named, "") if makes else ""


def install(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, "mogtS", frozenset({"mode", "owner", "group", "target-directory"}))
    targets = options.operands
    mode = options.value("m", "mode")
    if mode and (_opens(mode) or _sets_user(mode)):
        cmd.add("world_writable")
    if cmd.name == "install" and not options.has("d", "directory"):
        return copy(cmd)
    writes(cmd, *targets if cmd.name == "install" else ())
    return NOTHING


def rimraf(cmd: Command) -> CommandOutput:
    deletes(cmd, *read_options(cmd.args).operands, recursive=True)
    return NOTHING


HANDLERS: Handlers = {
    **dict.fromkeys(words("find gfind"), find),
    **dict.fromkeys(words("fd fdfind"), fd),
    **dict.fromkeys(words("rm grm"), rm),
    **dict.fromkeys(words("unlink trash trash-put"), unlink),
    "rmdir": rmdir,
    "shred": partial(destroy, values="ns"),
    **dict.fromkeys(words("srm wipe scrub"), destroy),
    "truncate": truncate,
    **dict.fromkeys(words("cp gcp ln link"), copy),
    **dict.fromkeys(words("mv gmv"), move),
    **dict.fromkeys(words("tee sponge"), tee),
    "rsync": sync,
    "chmod": chmod,
    **dict.fromkeys(words("chown chgrp"), chown),
    **dict.fromkeys(words("tar gtar bsdtar zip unzip 7z cpio"), archive),
    **dict.fromkeys(words("install mkdir"), install),
    **dict.fromkeys(words("rimraf del-cli"), rimraf),
    "ls": listing,
}
