"""Interpreters: where the code is that they run, among the words, in a file or on standard input."""

import re
from collections.abc import Callable

from hermes.tools.approval.effects import tools
from hermes.tools.approval.effects.code import inline
from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import is_private, resolve, show, write_path
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.streams import feed, read, run_file
from hermes.tools.approval.text import words


def interpreter(cmd: Cmd) -> Out | None:
    """python -c, perl -e, node -e, ruby -e, php -r, awk: the code among the words or on standard input."""
    code_flags = _FLAGS.get(cmd.name, "ce")
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
    if rest[:1] == ["sqlite3"]:
        return cmd.nested(rest)
    if rest[:1] in (["timeit"], ["pdb"], ["cProfile"], ["trace"]):
        for word in rest[1:]:
            if "(" in word:
                inline(cmd, word.lstrip("!"))
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


def awk(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "Ffvi", frozenset({"include"}), stop=True)
    program = options.operands[0] if options.operands and "f" not in options.values else ""
    if options.value("i", "include") == "inplace":
        for word in options.operands[0 if "f" in options.values else 1 :]:
            write_path(cmd.run, cmd.scope, word, line(cmd))
    for text in re.findall(r"system\s*\(\s*\"((?:[^\"\\]|\\.)*)\"", program):
        cmd.shell(text.replace('\\"', '"'), NOTHING)
    if re.search(r"system\s*\(\s*[^\")]", program):
        cmd.run.add("inline_code", "awk runs text that is only known when it runs")
    if re.search(r"while\s*\(\s*1\s*\)|for\s*\(\s*;\s*;", program) and re.search(r"system\s*\(\"[^\"]*&\"", program):
        cmd.run.add("fork_bomb", line(cmd), severity=Severity.HARDLINE)
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


_FLAGS = {  # the options that bring code, by language
    **dict.fromkeys(words("python pypy tclsh expect guile"), "c"),
    "jshell": "",
    **dict.fromkeys(words("ruby bun lua luajit Rscript osascript groovy ghc elixir scala"), "e"),
    **dict.fromkeys(words("perl julia"), "eE"),
    **dict.fromkeys(words("node nodejs"), "ep"),
    "php": "rBRE",
    "deno": "",
}

HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys([name for name in _FLAGS if name != "bun"], interpreter),
    **dict.fromkeys(words("serve http-server live-server static-server httpd caddy darkhttpd miniserve"), file_server),
    **dict.fromkeys(["awk", "gawk", "mawk", "nawk"], awk),
    **dict.fromkeys(words("go java swift dotnet kotlinc rustc gcc cc clang tcc"), compiled),
}
