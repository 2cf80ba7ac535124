"""What inline code would do: programs it starts, files it deletes or writes, what it sends."""

import re

from hermes.tools.approval.effects.databases import sql
from hermes.tools.approval.effects.tokens import Token, arguments, constants, owner_of, renamed, tokens, value_of
from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.paths import delete_path, is_private, is_wide, resolve, write_path
from hermes.tools.approval.state import NOTHING, Cmd
from hermes.tools.approval.text import UNKNOWN, words
from hermes.tools.approval.wrappers import HIDDEN

_SHELLS = frozenset(
    words(
        "system popen popen2 popen3 popen4 getoutput getstatusoutput run call check_call check_output Popen "
        "exec execSync execFileSync execFile spawn spawnSync shell_exec passthru proc_open pcntl_exec execute "
        "execv execve execvp execl execlp execle posix_spawn spawnl spawnv spawnlp create_subprocess_shell "
        "create_subprocess_exec command Command sh bash IO.popen Open3 capture3 capture2"
    )
)
_NEEDS_OWNER = {  # common words that run a program only on these objects
    "run": {"subprocess", "sp"},
    "call": {"subprocess", "sp"},
    "exec": {"child_process", "cp", "os", "Kernel", "php", "perl", "ruby"},
    "command": {"exec"},
    "Command": {"exec", "Command"},
    "execute": {"os"},
    "spawn": {"child_process", "cp", "pty", "os", "Process", "ruby"},
    "sh": {"ruby"},
    "bash": {"never"},
}
_TREES = frozenset(
    words(
        "rmtree rm_rf rm_r remove_tree rimraf remove_dir removedirs remove_entry_secure rmdirSync "
        "rmSync rm removeSync emptyDirSync remove_all RemoveAll removeItem Delete"
    )
)
_DELETES = _TREES | frozenset(words("unlink unlinkSync delete remove rmdir"))
_WRITES = frozenset(
    words(
        "open writeFileSync writeFile file_put_contents write_text write_bytes appendFileSync truncate rename replace "
        "move chmod chown symlink copy copyfile truncateSync write"
    )
)
_COMMANDS = ("rm ", "dd ", "sh ", "bash ", "mkfs", "shred ", "sudo ", "curl ", "chmod ", "/bin/")
_SOCKETS = frozenset(words("socket Socket TCPSocket fsockopen stream_socket_client connect"))
_SHELL_OUT = re.compile(r"\bsh\s+-i\b|[<>]&\s*\d")
_DECODERS = frozenset(
    words("b64decode atob fromhex decode_base64 unhexlify base64_decode decompress unpack decode64 hex2bin str_rot13")
)
_DOWNLOADS = frozenset(words("urlopen requests fetch URI urlretrieve file_get_contents LWP httpx axios"))
_RUNS_TEXT = frozenset(
    words("eval exec compile Function system popen passthru shell_exec execSync spawnSync check_output Popen getoutput")
)
_DELETE_OWNERS = frozenset(
    words("Deno os fs shutil path Path pathlib File FileUtils Dir Directory promises fsp fse File::Path io")
)
_LISTS = frozenset(words("rglob glob iterdir walk listdir scandir readdirSync"))
# What a call does is known for these; in other languages a text that reads as a command is taken for one.
_UNDERSTOOD = frozenset(words("python pypy node nodejs perl ruby php bun"))
_NETWORK = re.compile(
    r"\b(?:requests|urllib|urlopen|httpx|aiohttp|fetch|axios|http\.request|https\.request|socket|LWP|IO::Socket|fsockopen|Net::HTTP|open-uri|smtplib|ftplib|WebSocket)\b|[\"'](?:node:)?(?:https?|net|dgram)[\"']|file_get_contents\(\s*[\"']https?:"
)
_RUNNING_MODULES = [[Token("name", module)] for module in words("os subprocess shutil builtins __builtins__ pty")]
_POWER = re.compile(r"\bLINUX_REBOOT|ExitWindowsEx")
_SPAWNED = re.compile(
    r"do shell script \"([^\"]*)\"|\bsend\s+(?:--\s+)?\"((?:[^\"\\]|\\.)*)|\b(?:spawn|exec|system)\s+([^\n;\]]+)"
)
_TCL_DELETE = re.compile(r"\bfile\s+delete\s+(?:-\w+\s+)*(?:--\s+)?(\S+)")
_HOME_INSIDE = re.compile(
    r"\$ENV\{['\"]?HOME['\"]?\}|#\{(?:ENV\[['\"]HOME['\"]\]|Dir\.home)\}|\$\{(?:os\.homedir\(\)|process\.env\.HOME)\}"
)
_HOME_NAMES = frozenset(words("HOME home expanduser homedir USERPROFILE expand_path"))


def inline(cmd: Cmd, code: str) -> None:
    """Judge `code` in the language of `cmd.name`."""
    run = cmd.run
    if UNKNOWN in code and not code.strip(UNKNOWN + " "):
        if "remote" in run.substituted:
            run.add("remote_code", f"run downloaded code with {cmd.name}")
        else:
            run.add("inline_code", f"run code that only exists while it runs with {cmd.name}")
        return
    parts = renamed(tokens(code))
    names = {token.text for token in parts if token.kind == "name"}
    _calls(cmd, parts)
    if names & {"fork", "pcntl_fork"} and names & {"while", "for", "loop", "until", "setInterval"}:
        run.add("fork_bomb", line(cmd), severity=Severity.HARDLINE)
    if names & _RUNS_TEXT and (names & _DECODERS or (names & {"eval", "exec", "Function"} and names & _DOWNLOADS)):
        run.add("decoded_code", f"{cmd.name} runs decoded or downloaded text")
    if _NETWORK.search(code):
        _leaks(cmd, parts, names)
    if "dup2" in names or ("socket" in names and "spawn" in names) or (names & _SOCKETS and _SHELL_OUT.search(code)):
        run.add("reverse_shell", line(cmd))
    for script in _SPAWNED.findall(code) if cmd.name in ("osascript", "expect", "tclsh") else ():
        cmd.shell("".join(script).replace("\\r", "\n"), NOTHING)
    for path in _TCL_DELETE.findall(code) if cmd.name == "tclsh" else ():
        delete_path(cmd.run, cmd.scope, path, line(cmd), recursive=True)
    if names & {"dropDatabase"}:
        run.add("database_destroy", line(cmd))
    _texts(cmd, parts, names)


def _calls(cmd: Cmd, parts: list[Token]) -> None:
    values = constants(parts)
    for position, token in enumerate(parts):
        if (
            token.kind == "string"
            and token.text[:1] == "`"
            and (cmd.name in ("perl", "ruby", "php", "julia") or (position and parts[position - 1].text == "$"))
        ):
            cmd.shell(token.text[1:].removesuffix("`"), NOTHING)
        elif token.kind == "string" and token.text.startswith(("qx", "%x")):
            cmd.shell(token.text[3:-1], NOTHING)
        elif token.kind == "name":
            _name(cmd, parts, position, values)


def _texts(cmd: Cmd, parts: list[Token], names: set[str]) -> None:
    """What the strings of the code are: SQL, names of functions, commands of a language that is not followed."""
    if "process_iter" in names and names & {"kill", "terminate"}:
        cmd.run.add("mass_kill", line(cmd))
    if (names & _LISTS or (cmd.name == "perl" and "find" in names)) and names & {"unlink", "remove", "rmdir"}:
        cmd.run.add("mass_delete", line(cmd))
    strings = [value_of(token.text) for token in parts if token.kind == "string"]
    for number, text in enumerate(strings):
        if re.match(r"(?i)\W*(?:drop|truncate|delete from)\s", text):
            sql(cmd, text)
        elif text in ("rimraf", "del") or (cmd.name == "php" and (text in _SHELLS or text in _DELETES)):
            cmd.run.add("inline_code", line(cmd))
        elif cmd.name in _UNDERSTOOD:
            continue
        elif text in HIDDEN:
            cmd.nested(strings[number : number + 8], NOTHING)
        elif text.startswith(_COMMANDS):
            cmd.shell(text, NOTHING)


def _leaks(cmd: Cmd, parts: list[Token], names: set[str]) -> None:
    for token in parts:
        if token.kind == "string":
            text = value_of(token.text)
            if "/" in text or text.startswith((".", "~")):
                path = _in_home(cmd, parts, text)
                if "://" not in path and is_private(resolve(path, cmd.scope, cmd.run), cmd.run.places):
                    cmd.run.add("exfiltration", line(cmd), (text,))
    if names & {"environ", "ENV"} and names & {"post", "request", "urlopen", "fetch"}:
        cmd.run.add("exfiltration", line(cmd))


def _name(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    name = parts[position].text
    if cmd.name == "php" and name[:1] == "$":  # `$f("…")` calls what `$f` names
        name = known.get(name, name)
    owner = owner_of(parts, position)
    if name in _SHELLS and _runs_programs(cmd, name, owner, parts):
        _starts(cmd, parts, position, known)
    elif name in _DELETES and (
        name not in ("remove", "delete", "rm", "unlink", "rmdir", "Delete")
        or owner in _DELETE_OWNERS
        or cmd.name in ("perl", "php", "Rscript", "julia")
        or any(part.text == "recursive" for part in parts[position : position + 12])
    ):
        _removes(cmd, parts, position, known)
    elif name in _WRITES:
        _writes(cmd, parts, position, known)
    elif (name in ("kill", "killpg") and owner in ("os", "process", "Process")) or (
        name == "kill" and cmd.name == "perl"
    ):
        numbers = [token.text for token in parts[position + 1 : position + 8]]
        if "getppid" in numbers or "ppid" in numbers:
            cmd.run.add("self_kill", line(cmd))
        elif ("-" in numbers and "1" in numbers) or numbers[1:3] == ["1", ","]:
            cmd.run.add("mass_kill", line(cmd), severity=Severity.HARDLINE)
    elif name in ("__import__", "getattr", "importlib") and cmd.name in ("python", "pypy"):
        if name == "getattr" and _fetches_a_runner(parts, position, known):
            cmd.run.add("inline_code", line(cmd))
    elif name in ("exec", "eval") and cmd.name in ("python", "pypy", "node", "php", "ruby", "perl"):
        _evaluates(cmd, parts, position, known)
    if _POWER.search(name):
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)


def _fetches_a_runner(parts: list[Token], position: int, known: dict[str, str]) -> bool:
    _, literals, _ = arguments(parts, position, known)
    named = not literals or literals[-1] in _SHELLS or literals[-1] in _DELETES
    return named or parts[position + 2 : position + 3] in _RUNNING_MODULES


def _evaluates(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    _, literals, dark = arguments(parts, position, known)
    if any(token.text[:1] == "`" for token in parts[position + 1 : position + 3]) and cmd.name != "node":
        cmd.run.add("inline_code", f"{cmd.name} runs what a command prints")
    elif literals and not dark:
        inline(cmd, literals[0])
    elif dark and not owner_of(parts, position):
        cmd.run.add("inline_code", line(cmd))


def _runs_programs(cmd: Cmd, name: str, owner: str, parts: list[Token]) -> bool:
    wanted = _NEEDS_OWNER.get(name)
    if wanted is None or owner in wanted or owner.startswith("require("):
        return True
    return not owner and (cmd.name in wanted or any(token.text in wanted for token in parts[:60]))


def _starts(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    is_list, literals, dark = arguments(parts, position, known)
    name = parts[position].text
    listed = (
        is_list
        or (name.startswith(("exec", "spawn", "posix_spawn")) and len(literals) > 1)
        or (cmd.name in ("perl", "ruby") and len(literals) > 1)
    )
    if not literals:
        if dark:
            cmd.run.add("inline_code", f"{cmd.name} starts a program that is only known when it runs")
        return
    if listed:
        words = (
            literals[1:]
            if name.startswith(("execl", "execv", "spawnl", "spawnv"))
            and len(literals) > 1
            and literals[0].rsplit("/", 1)[-1] == literals[1].rsplit("/", 1)[-1]
            else literals
        )
        cmd.nested([*words, UNKNOWN] if dark else words, NOTHING)
    else:
        cmd.shell(literals[0], NOTHING)
        if dark:
            cmd.run.add(
                "inline_code", f"{cmd.name} starts a program with words that are only known when it runs"
            ) if not literals[0].strip() else None


def _removes(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    _, literals, dark = arguments(parts, position, known)
    name = parts[position].text
    if not literals:
        literals = [value_of(token.text) for token in parts[max(0, position - 4) : position] if token.kind == "string"]
    recursive = name in _TREES
    if name in ("rmSync", "rm", "removeSync", "unlink", "remove"):
        recursive = any(token.text == "recursive" for token in parts[position : position + 12])
    for word in literals[:8]:
        delete_path(cmd.run, cmd.scope, _in_home(cmd, parts, word), line(cmd), recursive=recursive)
    if not literals and (dark or recursive):
        kind = "recursive_delete" if recursive else "unresolved_delete"
        cmd.run.add(kind, line(cmd))


def _writes(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    _, literals, _ = arguments(parts, position, known)
    name = parts[position].text
    owner = owner_of(parts, position)
    if name == "write" and owner not in ("File", "IO"):
        return
    if name in ("write_text", "write_bytes"):
        literals = [value_of(token.text) for token in parts[max(0, position - 4) : position] if token.kind == "string"]
    elif name == "open" and cmd.name == "perl" and any(text[:1] == "|" or text == "|-" for text in literals):
        cmd.run.add("inline_code", f"{cmd.name} feeds a program with text that is only known when it runs")
        return
    elif name == "open":
        modes = [text for text in literals[0 if cmd.name == "perl" else 1 :] if re.fullmatch(r"[rwaxbt+<>]{1,3}", text)]
        if not any(re.search(r"[wax>+]", mode) for mode in modes):
            literals = [text[1:].lstrip("> ") for text in literals if text.startswith(">")]
        elif cmd.name == "perl":
            literals = [text for text in literals if text not in modes]
    elif name in ("replace", "copy", "move", "rename", "copyfile", "symlink"):
        if owner not in ("os", "shutil", "fs", "File", "FileUtils"):
            return
        if name in ("move", "rename", "replace") and is_wide(literals[0] if literals else "", cmd.run.places):
            cmd.run.add("move_away", line(cmd), (literals[0],))
        literals = literals[1:2]
    for word in [text for text in literals if text not in _HOME_NAMES][:1]:
        write_path(cmd.run, cmd.scope, _in_home(cmd, parts, word), line(cmd))


def _in_home(cmd: Cmd, parts: list[Token], word: str) -> str:
    """The path that code means by `word`: `~` is home, and so is what it joins a name with a leading dot to."""
    home = cmd.run.places.home
    word = _HOME_INSIDE.sub(home, word)
    if word.startswith("~"):
        return word.replace("~", home, 1)
    if word.startswith((".", "/.")) and any(part.text.strip("'\"") in _HOME_NAMES for part in parts):
        return f"{home}/{word.lstrip('/')}"
    return word
