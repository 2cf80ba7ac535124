"""Interpreters: where the code is that they run, among the words, in a file or on standard input."""

import re

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects import tools
from hermes.tools.approval.effects.code import inline
from hermes.tools.approval.effects.code_files import written_source
from hermes.tools.approval.effects.databases import sql
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import is_private, resolve, show, writes
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import feed, run_file
from hermes.tools.approval.tables import by_name


def interpreter(cmd: Command) -> CommandOutput | None:
    """python -c, perl -e, node -e, ruby -e, php -r: the code among the words, in a file or on standard input."""
    args = cmd.args
    if args[:1] and args[0] in by_name("check").get(cmd.name, ()):
        return _checked(cmd)
    if cmd.name in ("deno", "crystal"):
        return _deno(cmd)
    given: list[str] = []
    position = 0
    while position < len(args):
        arg = args[position]
        following = args[position + 1] if position + 1 < len(args) else ""
        if arg == "-m" and cmd.name in _PYTHONS:
            return _module(cmd, args[position + 1 :])
        if arg == "-S" and cmd.name == "php":
            return serve(cmd, [read_options(args, "St").values.get("t", ".")])
        if arg == "-run" and cmd.name == "ruby":
            return serve(cmd, [word for word in args[position + 1 :] if "/" in word or word.startswith("~")] or ["."])
        _loaded_first(cmd, arg, following)
        found = _code_flag(arg, _FLAGS.get(cmd.name, "ce"), cmd.name)
        if found is not None:
            given.append(found or following)
            position += 1 if found else 2
        elif arg in by_name("value").get(cmd.name, ()):
            position += 2
        elif arg.startswith("-") and arg != "-":
            position += 1
        else:
            break
    rest = args[position:]
    if given:
        inline(cmd, "\n".join(given))
        _in_place(cmd, args[:position], rest)
        if re.match(r"-\w*i", " ".join(args[:position])) and cmd.name in _PYTHONS:
            _stdin(cmd)
        return _printed(cmd, given[0])
    if rest and rest[0] not in ("-", "/dev/stdin"):
        _file(cmd, rest[0])
    elif not {"--version", "-V", "--help", "-h", "-v"} & set(args) and cmd.stdin is not NOTHING:
        _stdin(cmd)
    return None


def _checked(cmd: Command) -> CommandOutput | None:
    """`node --check`, `php -l`: the code is only parsed; but perl runs BEGIN blocks and what they load."""
    for word in cmd.args[1:] if cmd.name == "perl" else ():
        out = cmd.run.files.get(resolve(word, cmd.scope, cmd.run))
        if out is not None and (
            out.text is None or re.search(r"\b(?:BEGIN|CHECK|UNITCHECK)\b|^\s*use lib\b", out.text)
        ):
            _file(cmd, word)
        elif word == "-e" or word.startswith(("-M", "-I")):
            cmd.add("inline_code")
    return None


def _in_place(cmd: Command, flags: list[str], files: list[str]) -> None:
    if cmd.name in ("perl", "ruby") and any(re.match(r"-[a-zA-Z0-9]*i", flag) for flag in flags):
        writes(cmd, *files)
        letters = "".join(flag[1:] for flag in flags if re.match(r"-[a-zA-Z0-9]", flag))
        if "n" in letters and not re.search(r"\b(?:print|printf|say|puts|p|write|\$_)\b", " ".join(flags)):
            cmd.run.add("destroy_data", f"every line goes: {cmd.line}")


def _loaded_first(cmd: Command, arg: str, following: str) -> None:
    """`-r file`, `--import data:…`, `-Mmodule;code`: what is loaded before the code itself."""
    long, equals, value = arg.partition("=")
    if long in by_name("load").get(cmd.name, ()):
        word = value if equals else following
    elif arg[:2] in by_name("load").get(cmd.name, ()) and not arg.startswith("--"):
        word = arg[2:]
    else:
        return
    if cmd.name == "perl":
        if not _PERL_MODULE.fullmatch(word):
            inline(cmd, f"use {word};")
    elif re.match(r"data:|https?:", word):
        cmd.add("remote_code" if word.startswith("http") else "decoded_code")
    elif made := written_source(cmd, word):
        _file(cmd, made)


def _code_flag(arg: str, flags: str, name: str) -> str | None:
    """The code glued to its option, "" when it is the next word, None when `arg` is no such option."""
    long, equals, value = arg.partition("=")
    if long in ("--eval", "--print", "--execute", "--run", "--command", "-eval", "--expr", "--evaluate", "--code"):
        return value if equals else ""
    if re.match(r"-[a-zA-Z0-9]", arg) and not arg.startswith("--"):
        for number, letter in enumerate(arg[1:], 1):
            if letter in flags:
                rest = arg[number + 1 :]
                return "" if name in ("node", "nodejs") and rest in ("e", "p") else rest
            if letter in (
                "WXm" if name in _PYTHONS else "IWXmMrFKTxC"
            ):  # they take the rest of the word as their value
                return None
    return None


def framework(cmd: Command) -> CommandOutput | None:
    """rails runner, rails dbconsole, artisan tinker, manage.py shell: code of the language below."""
    verb = next((arg for arg in cmd.args if not arg.startswith("-")), "")
    rest = cmd.args[cmd.args.index(verb) + 1 :] if verb else []
    if verb in ("runner", "r"):
        code = next((arg for arg in rest if not arg.startswith("-")), "")
        inline(cmd._replace(name="ruby"), code) if re.search(r"[\s(.]", code) and not code.endswith(".rb") else None
    elif verb in ("dbconsole", "db", "dbshell"):
        sql(cmd, cmd.stdin.text or "")
    elif verb in ("console", "c", "shell", "tinker", "shell_plus"):
        language = {"rails": "ruby", "artisan": "php"}.get(cmd.name, "python")
        options = read_options(rest, "c", frozenset({"execute", "command"}))
        for code in (options.value("c", "command", "execute") or "", cmd.stdin.text or ""):
            inline(cmd._replace(name=language), code) if code else None
    return None


def _deno(cmd: Command) -> CommandOutput | None:
    verb, rest = (cmd.args[0] if cmd.args else ""), [arg for arg in cmd.args[1:] if not arg.startswith("-")]
    if verb == "eval" and rest:
        inline(cmd, rest[0])
    elif verb == "run" and rest:
        _file(cmd, rest[0])
    return None


def serve(cmd: Command, folders: list[str]) -> CommandOutput | None:
    """A server of files: a private folder must not be one."""
    for folder in folders:
        path = resolve(folder, cmd.scope, cmd.run)
        if is_private(path, cmd.run.places):
            cmd.add("exfiltration", (show(path, cmd.run.places),))
            return None
    cmd.add("network", severity=Severity.NOTE)
    return None


def file_server(cmd: Command) -> CommandOutput | None:
    """serve, http-server, caddy and their like: the folder among the words, else the one they stand in."""
    options = read_options(cmd.args, "phradcl", frozenset({"root", "path", "directory", "listen", "port"}))
    named = options.value("root", "path", "directory", "h", "r", "d")
    folders = [word for word in options.operands if "/" in word or word in (".", "..")]
    return serve(cmd, [*([named] if named else []), *folders] or ["."])


def _module(cmd: Command, rest: list[str]) -> CommandOutput | None:
    named = rest[0].replace(".", "/") if rest else ""
    for word in (f"{named}.py", f"{named}/__main__.py"):
        if resolve(word, cmd.scope, cmd.run) in cmd.run.files:
            _file(cmd, word)
    if rest[:1] in (["pip"], ["hermes"], ["twine"], ["poetry"], ["uv"]):
        return cmd.nested(rest)
    if rest[:1] == ["sqlite3"]:
        return cmd.nested(rest)
    if rest[:1] in (["code"], ["asyncio"], ["IPython"]) and cmd.stdin is not NOTHING:
        _stdin(cmd)
    if rest[:1] in (["timeit"], ["pdb"], ["cProfile"], ["trace"]):
        for word in rest[1:]:
            if "(" in word:
                inline(cmd, word.lstrip("!"))
    if rest[:1] in (["http.server"], ["SimpleHTTPServer"]):
        options = read_options(rest[1:], "bdp", frozenset({"bind", "directory", "protocol"}))
        return serve(cmd, [options.value("d", "directory") or "."])
    return None


def _file(cmd: Command, word: str) -> None:
    path = resolve(word, cmd.scope, cmd.run)
    name = path.rsplit("/", 1)[-1]
    if name in ("manage.py", "artisan", "rails"):
        inner = cmd._replace(name=name, args=cmd.args[cmd.args.index(word) + 1 :])
        if name in tools.rules():
            tools.judge_words(inner)
        framework(inner)
    if "://" in word:
        cmd.add("remote_code")
    out = cmd.run.files.get(path)
    if out is None:
        run_file(cmd, word)
    elif out.labels & {"remote", "decoded"} or out.text is None:
        feed(cmd, CommandOutput(None, out.labels))
    else:
        inline(cmd, out.text)


def _stdin(cmd: Command) -> None:
    out = cmd.stdin
    if out.text and not out.labels & {"remote", "decoded"}:
        inline(cmd, out.text)
    elif out.text is None or out.labels & {"remote", "decoded"}:
        feed(cmd, CommandOutput(None, out.labels))


def _printed(cmd: Command, body: str) -> CommandOutput:
    """`$(python -c 'print("rm")')`: the literal text that the code prints."""
    found = re.fullmatch(
        r"\s*(?:print|puts|console\.log|echo)\s*\(?\s*(['\"])((?:[^\\'\"]|\\.)*)\1\s*\)?\s*;?\s*", body
    )
    return CommandOutput(found[2] + "\n") if found else CommandOutput(None, cmd.stdin.labels - {"file"})


def compiled(cmd: Command) -> CommandOutput | None:
    """go run, java, swift, dotnet script: source that the command itself has written."""
    for word in cmd.args:
        path = resolve(word, cmd.scope, cmd.run)
        if word in ("-", "/dev/stdin") and cmd.stdin is not NOTHING:
            _stdin(cmd)
        elif path in cmd.run.files and cmd.run.files[path].text:
            inline(cmd, cmd.run.files[path].text or "")
        elif len(word) > 5 and " " in word:
            inline(cmd, word)
    return None


_PYTHONS = frozenset(words("python pypy ipython jython micropython"))
_FLAGS = {  # the options that bring code, by language
    **dict.fromkeys(
        words("python pypy ipython jython micropython tclsh expect guile hy sage amm octave-cli octave"), "c"
    ),
    "jshell": "",
    **dict.fromkeys(
        words(
            "ruby jruby lua luajit Rscript R osascript groovy ghc elixir iex scala scala-cli clojure clj racket erl "
            "ocaml swift janet fennel coffee tsx ts-node kotlin raku perl6 csi gosh julia qjs babel-node crystal ghci "
            "jrunscript sbcl ecl swipl bb bun"
        ),
        "e",
    ),
    "perl": "eE",
    "julia": "eE",
    **dict.fromkeys(words("node nodejs tsx"), "ep"),
    "php": "rBRE",
    "swipl": "gt",
    "deno": "",
}
_PERL_MODULE = re.compile(r"-?[\w:]*(?:=[\w:,.!+ -]*)?")

HANDLERS: Handlers = {
    **dict.fromkeys([name for name in _FLAGS if name != "bun"], interpreter),
    **dict.fromkeys(words("serve http-server live-server static-server httpd caddy darkhttpd miniserve"), file_server),
    **dict.fromkeys(words("rails artisan manage.py"), framework),
    **dict.fromkeys(words("go java swift dotnet kotlinc rustc gcc g++ cc clang tcc dart zig v rdmd nim"), compiled),
}
