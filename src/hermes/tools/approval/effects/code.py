"""Inline code of other languages: found by its tokens, so that comments and strings stay data."""

import re
from collections.abc import Callable
from typing import NamedTuple

from hermes.tools.approval.effects import tools
from hermes.tools.approval.effects.databases import sql
from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import delete_path, is_private, is_wide, resolve, show, write_path
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.streams import feed, read, run_file
from hermes.tools.approval.text import UNKNOWN, words
from hermes.tools.approval.wrappers import HIDDEN

_TOKENS = re.compile(
    r"""(?P<comment>\#(?!\{)[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>[bBrRuUfF]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)
       |`(?:[^`\\]|\\.)*`?|(?:qx|%x|qw|q|qq|%w)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]))
    |(?P<name>[A-Za-z_$@%][\w$]*)
    |(?P<number>\d+)
    |(?P<op>\S)""",
    re.VERBOSE | re.DOTALL,
)
_MAX_CODE = 65536
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
_DELETES = {
    "rmtree": True,
    "rm_rf": True,
    "rm_r": True,
    "remove_tree": True,
    "rimraf": True,
    "remove_dir": True,
    "removedirs": True,
    "remove_entry_secure": True,
    "unlink": False,
    "unlinkSync": False,
    "rmdirSync": True,
    "rmSync": True,
    "delete": False,
    "remove": False,
    "rmdir": False,
    "rm": True,
    "removeSync": True,
    "emptyDirSync": True,
    "remove_all": True,
    "RemoveAll": True,
    "removeItem": True,
    "Delete": True,
}
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
    r"\b(?:requests|urllib|urlopen|httpx|aiohttp|fetch|axios|http\.request|https\.request|socket|LWP|Net::HTTP|open-uri|smtplib|ftplib|WebSocket)\b|[\"'](?:node:)?(?:https?|net|dgram)[\"']"
)
_POWER = re.compile(r"\bLINUX_REBOOT|ExitWindowsEx")


_SPAWNED = re.compile(
    r"do shell script \"([^\"]*)\"|\bsend\s+(?:--\s+)?\"((?:[^\"\\]|\\.)*)|\b(?:spawn|exec|system)\s+([^\n;\]]+)"
)


_TCL_DELETE = re.compile(r"\bfile\s+delete\s+(?:-\w+\s+)*(?:--\s+)?(\S+)")


class Token(NamedTuple):
    kind: str
    text: str


def interpreter(cmd: Cmd) -> Out | None:
    """python -c, perl -e, node -e, ruby -e, php -r, awk: the code among the words or on standard input."""
    code_flags, takes_file = _FLAGS.get(cmd.name, ("ce", True))
    args = cmd.args
    if cmd.name == "deno":
        return _deno(cmd)
    for position, arg in enumerate(args):
        if arg == "-m" and cmd.name in ("python", "pypy"):
            return _module(cmd, args[position + 1 :])
        if arg == "-S" and cmd.name == "php":
            options = read_options(args, "St")
            return serve(cmd, [options.values.get("t", ".")])
        if arg == "-run" and cmd.name == "ruby":
            return serve(cmd, [word for word in args[position + 1 :] if "/" in word or word.startswith("~")] or ["."])
        found = _code_flag(arg, code_flags, cmd.name)
        if found is not None:
            body = found or (args[position + 1] if position + 1 < len(args) else "")
            inline(cmd, body)
            if cmd.name in ("perl", "ruby") and any(re.match(r"-\w*i", flag) for flag in args[:position]):
                for word in args[position + 2 :]:
                    write_path(cmd.run, cmd.scope, word, line(cmd))
            return _printed(cmd, body)
        if not arg.startswith("-") or arg == "-":
            if arg in ("-", "/dev/stdin"):
                break
            if takes_file:
                _file(cmd, arg)
                return None
    if {"--version", "-V", "--help", "-h", "-v"} & set(args):
        return None
    if cmd.stdin is not NOTHING:
        _stdin(cmd)
    return None


def _code_flag(arg: str, flags: str, name: str) -> str | None:
    """The code glued to its option, "" when it is the next word, None when `arg` is no such option."""
    long, equals, value = arg.partition("=")
    if long in ("--eval", "--print", "--execute", "--run"):
        return value if equals else ""
    if re.match(r"-[a-zA-Z]", arg) and not arg.startswith("--"):
        for number, letter in enumerate(arg[1:], 1):
            if letter in flags:
                return arg[number + 1 :]
            if letter in ("WXm" if name == "python" else "IWXmMrFKT"):  # they take the rest of the word as their value
                return None
    return None


def _deno(cmd: Cmd) -> Out | None:
    verb, rest = (cmd.args[0] if cmd.args else ""), [arg for arg in cmd.args[1:] if not arg.startswith("-")]
    if verb == "eval" and rest:
        inline(cmd, rest[0])
    elif verb == "run" and rest:
        _file(cmd, rest[0])
    return None


def serve(cmd: Cmd, folders: list[str]) -> Out | None:
    """A server of files: a private folder must not be one."""
    for folder in folders:
        path = resolve(folder, cmd.scope, cmd.run)
        if is_private(path, cmd.run.places):
            cmd.run.add("exfiltration", line(cmd), (show(path, cmd.run.places),))
            return None
    cmd.run.add("network", line(cmd), severity=Severity.NOTE)
    return None


def file_server(cmd: Cmd) -> Out | None:
    """serve, http-server, caddy and their like: the folder among the words, else the one they stand in."""
    options = read_options(cmd.args, "phradcl", frozenset({"root", "path", "directory", "listen", "port"}))
    named = options.value("root", "path", "directory", "h", "r", "d")
    folders = [word for word in options.operands if "/" in word or word in (".", "..")]
    return serve(cmd, [*([named] if named else []), *folders] or ["."])


def _module(cmd: Cmd, rest: list[str]) -> Out | None:
    if rest[:1] in (["pip"], ["hermes"], ["twine"], ["poetry"], ["uv"]):
        return cmd.nested(rest)
    if rest[:1] in (["http.server"], ["SimpleHTTPServer"]):
        options = read_options(rest[1:], "bdp", frozenset({"bind", "directory", "protocol"}))
        return serve(cmd, [options.value("d", "directory") or "."])
    return None


def _file(cmd: Cmd, word: str) -> None:
    path = resolve(word, cmd.scope, cmd.run)
    if {"flush", "reset_db"} & set(cmd.args) and path.endswith("/manage.py"):
        cmd.run.add("database_destroy", line(cmd))
    if path.endswith("/artisan"):
        tools.judge_words(cmd._replace(name="artisan"))
    if "://" in word:
        cmd.run.add("remote_code", line(cmd))
    out = cmd.run.files.get(path)
    if out is None:
        run_file(cmd, word)
    elif out.labels & {"remote", "decoded"} or out.text is None:
        feed(cmd, Out(None, out.labels))
    else:
        inline(cmd, out.text)


def _stdin(cmd: Cmd) -> None:
    out = cmd.stdin
    if out.text and not out.labels & {"remote", "decoded"}:
        inline(cmd, out.text)
    elif out.text is None or out.labels & {"remote", "decoded"}:
        feed(cmd, Out(None, out.labels))


def _printed(cmd: Cmd, body: str) -> Out:
    """`$(python -c 'print("rm")')`: the literal text that the code prints."""
    found = re.fullmatch(
        r"\s*(?:print|puts|console\.log|echo)\s*\(?\s*(['\"])((?:[^\\'\"]|\\.)*)\1\s*\)?\s*;?\s*", body
    )
    return Out(found[2] + "\n") if found else Out(None, cmd.stdin.labels - {"file"})


def tokens(code: str) -> list[Token]:
    found = []
    for match in _TOKENS.finditer(code[:_MAX_CODE]):
        kind = match.lastgroup or "op"
        if kind != "comment":
            found.append(Token(kind, match.group()))
    return found


def inline(cmd: Cmd, code: str) -> None:
    """Judge `code` in the language of `cmd.name`."""
    run = cmd.run
    if UNKNOWN in code and not code.strip(UNKNOWN + " "):
        if "remote" in run.substituted:
            run.add("remote_code", f"run downloaded code with {cmd.name}")
        else:
            run.add("inline_code", f"run code that only exists while it runs with {cmd.name}")
        return
    parts = _renamed(tokens(code))
    names = {token.text for token in parts if token.kind == "name"}
    _calls(cmd, parts)
    if "fork" in names and names & {"while", "for", "loop", "until"}:
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
    values = _constants(parts)
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
    if names & _LISTS and names & {"unlink", "remove", "rmdir"}:
        cmd.run.add("mass_delete", line(cmd))
    strings = [_value(token.text) for token in parts if token.kind == "string"]
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


_IMPORT = frozenset({"import", "require", "from"})


def _renamed(parts: list[Token]) -> list[Token]:
    """Modules under the names they are known by: `import subprocess as s`, `const s = require("child_process")`."""
    meant: dict[str, str] = {}
    for position in range(1, len(parts) - 1):
        token, before, after = parts[position], parts[position - 1], parts[position + 1]
        if token.text == "as" and before.kind == after.kind == "name":
            meant[after.text] = before.text
        elif token.text == "as" and before.text == "*" and position + 3 < len(parts):
            meant[after.text] = _module_name(parts[position + 3])
        elif token.text == "=" and before.kind == "name" and after.text in _IMPORT and position + 3 < len(parts):
            meant[before.text] = _module_name(parts[position + 3])
    if not meant:
        return parts
    return [Token("name", meant[part.text]) if part.kind == "name" and part.text in meant else part for part in parts]


def _module_name(token: Token) -> str:
    return _value(token.text).removeprefix("node:").split("/")[0] if token.kind == "string" else token.text


def _leaks(cmd: Cmd, parts: list[Token], names: set[str]) -> None:
    for token in parts:
        if token.kind == "string":
            text = _value(token.text)
            if "/" in text or text.startswith((".", "~")):
                path = _in_home(cmd, parts, text)
                if "://" not in path and is_private(resolve(path, cmd.scope, cmd.run), cmd.run.places):
                    cmd.run.add("exfiltration", line(cmd), (text,))
    if names & {"environ", "ENV"} and names & {"post", "request", "urlopen", "fetch"}:
        cmd.run.add("exfiltration", line(cmd))


def _constants(parts: list[Token]) -> dict[str, str]:
    """Names that hold a literal: `c = "rm"`, `$c = 'rm' . ' -rf'`."""
    known: dict[str, str] = {}
    for position in range(len(parts) - 2):
        if parts[position].kind == "name" and parts[position + 1].text == "=" and parts[position + 2].text != "=":
            value, _ = _expression(parts, position + 2, known)
            if value is not None:
                known[parts[position].text] = value
    return known


def _expression(parts: list[Token], position: int, known: dict[str, str]) -> tuple[str | None, int]:
    """A chain of literals joined by `+` or `.`; None when anything else takes part."""
    text = ""
    seen = False
    while position < len(parts):
        token = parts[position]
        if token.kind == "string":
            text += _value(token.text)
        elif token.kind == "name" and token.text in known:
            text += known[token.text]
        elif token.kind == "name" and token.text in (
            "base64",
            "bytes",
            "b64decode",
            "atob",
            "decode_base64",
            "fromhex",
            "chr",
            "join",
        ):
            return None, position
        else:
            break
        seen = True
        position += 1
        if (
            position < len(parts)
            and parts[position].text in ("+", ".")
            and position + 1 < len(parts)
            and (parts[position + 1].kind == "string" or parts[position + 1].text in known)
        ):
            position += 1
        elif position < len(parts) and parts[position].kind == "string":
            continue
        else:
            break
    return (text if seen else None), position


_ESCAPE = re.compile(
    r"\\x([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4,6})\}?|\\U([0-9a-fA-F]{8})|\\([0-7]{3})|\\(.)", re.DOTALL
)


def _value(literal: str) -> str:
    body = literal.lstrip("bBrRuUfF") if literal[-1:] in "'\"" else literal
    for quote in ('"""', "'''", '"', "'", "`"):
        if body.startswith(quote):
            inner = body[len(quote) :].removesuffix(quote)
            return _ESCAPE.sub(_unescape, inner)
    found = re.match(r"(?:qq?|qw)\W(.*)\W\Z", body, re.DOTALL)
    return found[1] if found else body


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    if found[4]:
        return chr(int(found[4], 8))
    return {"n": "\n", "t": "\t", "\n": ""}.get(found[5], found[5])


def _name(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    name = parts[position].text
    if cmd.name == "php" and name[:1] == "$":  # `$f("…")` calls what `$f` names
        name = known.get(name, name)
    owner = _owner(parts, position)
    if name in _SHELLS and _runs_programs(cmd, name, owner, parts):
        _starts(cmd, parts, position, known)
    elif name in _DELETES and (
        name not in ("remove", "delete", "rm", "unlink", "rmdir", "Delete")
        or owner in _DELETE_OWNERS
        or cmd.name in ("perl", "php", "Rscript", "julia")
        or any(part.text == "recursive" for part in parts[position : position + 12])
    ):
        _removes(cmd, parts, position, known)
    elif name in (
        "open",
        "writeFileSync",
        "writeFile",
        "file_put_contents",
        "write_text",
        "write_bytes",
        "appendFileSync",
        "truncate",
        "rename",
        "replace",
        "move",
        "chmod",
        "chown",
        "symlink",
        "copy",
        "copyfile",
        "truncateSync",
        "write",
    ):
        _writes(cmd, parts, position, known)
    elif (name in ("kill", "killpg") and owner in ("os", "process", "Process")) or (
        name == "kill" and cmd.name == "perl"
    ):
        _, literals, _ = _arguments(parts, position, known)
        numbers = [token.text for token in parts[position + 1 : position + 8]]
        if ("-" in numbers and "1" in numbers) or numbers[1:3] == ["1", ","]:
            cmd.run.add("mass_kill", line(cmd), severity=Severity.HARDLINE)
    elif name in ("__import__", "getattr", "importlib") and cmd.name in ("python", "pypy"):
        _, literals, _ = _arguments(parts, position, known)
        if name == "getattr" and (not literals or literals[-1] in _SHELLS or literals[-1] in _DELETES):
            cmd.run.add("inline_code", line(cmd))
    elif name in ("exec", "eval") and cmd.name in ("python", "pypy", "node", "php", "ruby", "perl"):
        _, literals, dark = _arguments(parts, position, known)
        if literals and not dark:
            inline(cmd, literals[0])
        elif dark and not owner:
            cmd.run.add("inline_code", line(cmd))
    if _POWER.search(name):
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)


def _runs_programs(cmd: Cmd, name: str, owner: str, parts: list[Token]) -> bool:
    wanted = _NEEDS_OWNER.get(name)
    if wanted is None or owner in wanted or owner.startswith("require("):
        return True
    return not owner and (cmd.name in wanted or any(token.text in wanted for token in parts[:60]))


def _owner(parts: list[Token], position: int) -> str:
    """The object before `.name`, `::name` or `->name`."""
    before = position - 1
    while before >= 0 and parts[before].text in (".", ":", ">", "-", "?"):
        before -= 1
    if before == position - 1 or before < 0:
        return ""
    if parts[before].text == ")":
        inner = [token.text for token in parts[max(0, before - 4) : before + 1]]
        return "require(" if "require" in inner or "__import__" in inner else ("Path" if "Path" in inner else ")")
    return parts[before].text


def _arguments(parts: list[Token], position: int, known: dict[str, str]) -> tuple[bool, list[str], bool]:
    """(is a list, the literal arguments, whether something in them is not literal)."""
    literals: list[str] = []
    depth = 0
    is_list = False
    dark = False
    index = position + 1
    bare = index < len(parts) and parts[index].text != "("
    while index < len(parts) and len(literals) < 32:
        token = parts[index]
        if token.text in "([{":
            depth += 1
            is_list = is_list or token.text == "["
        elif token.text in ")]}":
            depth -= 1
            if depth <= 0:
                break
        elif token.text in (";", "\n") and depth <= 0:
            break
        elif token.kind == "string" or (token.kind == "name" and token.text in known):
            value, after = _expression(parts, index, known)
            if value is not None:
                literals.append(value)
                index = max(after, index + 1)
                continue
        elif token.kind == "name" and not (index + 1 < len(parts) and parts[index + 1].text in ("=", ":")):
            if token.text not in (
                "True",
                "False",
                "None",
                "true",
                "false",
                "null",
                "shell",
                "check",
                "recursive",
                "force",
                "os",
                "subprocess",
            ):
                dark = True
            if bare and depth <= 0 and parts[index + 1 : index + 2] != [Token("op", ",")]:
                break
        index += 1
    return is_list, literals, dark


def _starts(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    is_list, literals, dark = _arguments(parts, position, known)
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
    _, literals, dark = _arguments(parts, position, known)
    name = parts[position].text
    if not literals:
        literals = [_value(token.text) for token in parts[max(0, position - 4) : position] if token.kind == "string"]
    recursive = _DELETES[name]
    if name in ("rmSync", "rm", "removeSync", "unlink", "remove"):
        recursive = any(token.text == "recursive" for token in parts[position : position + 12])
    for word in literals[:8]:
        delete_path(cmd.run, cmd.scope, _in_home(cmd, parts, word), line(cmd), recursive=recursive)
    if not literals and (dark or recursive):
        kind = "recursive_delete" if recursive else "unresolved_delete"
        cmd.run.add(kind, line(cmd))


def _writes(cmd: Cmd, parts: list[Token], position: int, known: dict[str, str]) -> None:
    _, literals, _ = _arguments(parts, position, known)
    name = parts[position].text
    owner = _owner(parts, position)
    if name == "write" and owner not in ("File", "IO"):
        return
    if name in ("write_text", "write_bytes"):
        literals = [_value(token.text) for token in parts[max(0, position - 4) : position] if token.kind == "string"]
    elif name == "open":
        modes = [text for text in literals[1:] if re.fullmatch(r"[rwaxbt+<>]{1,3}", text)]
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


_HOME_NAMES = frozenset(words("HOME home expanduser homedir USERPROFILE expand_path"))


def _in_home(cmd: Cmd, parts: list[Token], word: str) -> str:
    """The path that code means by `word`: `~` is home, and so is what it joins a name with a leading dot to."""
    home = cmd.run.places.home
    if word.startswith("~"):
        return word.replace("~", home, 1)
    if word.startswith((".", "/.")) and any(part.text.strip("'\"") in _HOME_NAMES for part in parts):
        return f"{home}/{word.lstrip('/')}"
    return word


def awk(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "Ffv", stop=True)
    program = options.operands[0] if options.operands and "f" not in options.values else ""
    for text in re.findall(r"system\s*\(\s*\"((?:[^\"\\]|\\.)*)\"", program):
        cmd.shell(text.replace('\\"', '"'), NOTHING)
    if re.search(r"system\s*\(\s*[^\")]", program):
        cmd.run.add("inline_code", "awk runs text that is only known when it runs")
    labels = cmd.stdin.labels
    for word in options.operands[1:]:
        labels |= read(word, cmd.scope, cmd.run).labels
    for text in re.findall(r"\|\s*\"((?:[^\"\\]|\\.)*)\"|\"((?:[^\"\\]|\\.)*)\"\s*\|\s*getline", program):
        script = text[0] or text[1]
        if re.match(r"\s*(?:/bin/)?(?:ba|da|z|k)?sh\b", script):
            printed = re.search(r"print\s+\"((?:[^\"\\]|\\.)*)\"", program)
            feed(cmd, Out(printed[1] if printed else None))
        else:
            cmd.shell(script, Out(None, labels))
    for target in re.findall(r"print[^|;}]*>>?\s*\"([^\"]+)\"", program):
        write_path(cmd.run, cmd.scope, target, line(cmd))
    printed = re.fullmatch(r"\s*BEGIN\s*\{\s*print\s+\"([^\"\\]*)\"\s*;?\s*\}\s*", program)
    if printed:
        return Out(printed[1] + "\n")
    return Out(None, labels - {"file"})


def compiled(cmd: Cmd) -> Out | None:
    """go run, java, swift, dotnet script: source that the command itself has written."""
    for word in cmd.args:
        path = resolve(word, cmd.scope, cmd.run)
        if path in cmd.run.files and cmd.run.files[path].text:
            inline(cmd, cmd.run.files[path].text or "")
        elif len(word) > 5 and " " in word:
            inline(cmd, word)
    return None


_FLAGS = {
    "python": ("c", True),
    "pypy": ("c", True),
    "perl": ("eE", True),
    "ruby": ("e", True),
    "node": ("ep", True),
    "nodejs": ("ep", True),
    "deno": ("", True),
    "bun": ("e", True),
    "php": ("rBRE", True),
    "lua": ("e", True),
    "luajit": ("e", True),
    "Rscript": ("e", True),
    "osascript": ("e", True),
    "tclsh": ("c", True),
    "expect": ("c", True),
    "groovy": ("e", True),
    "julia": ("eE", True),
    "guile": ("c", True),
    "ghc": ("e", True),
    "elixir": ("e", True),
    "scala": ("e", True),
}

HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys([name for name in _FLAGS if name != "bun"], interpreter),
    **dict.fromkeys(words("serve http-server live-server static-server httpd caddy darkhttpd miniserve"), file_server),
    **dict.fromkeys(["awk", "gawk", "mawk", "nawk"], awk),
    **dict.fromkeys(words("go java swift dotnet kotlinc rustc gcc cc clang tcc"), compiled),
}
