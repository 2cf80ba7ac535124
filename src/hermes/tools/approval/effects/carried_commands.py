"""Options that carry a command: judged wherever they stand; editors, debuggers and multiplexers by their own words."""

import itertools
import re
from collections.abc import Iterator

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.options import after_options, read_options
from hermes.tools.approval.paths import place, write_path, writes
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.tables import by_name, sections


def carried(cmd: Command) -> Iterator[str]:
    """The commands among the options of `cmd`."""
    carriers = by_name("command")[cmd.name]
    for position, arg in enumerate(cmd.args):
        if arg[:1] != "-" or len(arg) < 2:
            continue
        name, equals, value = arg.partition("=")
        if name in carriers:
            yield value if equals else "".join(cmd.args[position + 1 : position + 2])
        elif not arg.startswith("--") and arg[:2] in carriers:
            yield arg[2:]


def judge_loaded(cmd: Command) -> None:
    """Code that is loaded from a folder where anybody may write is code that nobody has looked at."""
    for option in by_name("file").get(cmd.name, ()):
        for position, arg in enumerate(cmd.args):
            if arg == option:
                value = "".join(cmd.args[position + 1 : position + 2])
            elif arg.startswith(option) and (not option.startswith("--") or arg[len(option) : len(option) + 1] == "="):
                value = arg[len(option) :].lstrip("=")
            else:
                continue
            path = value.rpartition("=")[2]
            if path.startswith("/") and place(cmd, path) == "temp":
                cmd.run.add("inline_code", f"code is loaded from {path}: {cmd.line}")


def judge_carried(cmd: Command) -> None:
    for text in carried(cmd):
        if cmd.name == "strace" and not text.startswith(("|", "!")):
            continue
        if cmd.name in ("tar", "gtar", "bsdtar", "zip") and " " not in text.strip():
            continue  # a program that packs, or a number
        script = text.lstrip("|!").replace(UNKNOWN, "${_}")
        if script.startswith("/") and place(cmd, script) == "temp":
            cmd.add("inline_code")
        # Most of them put a file's name behind a program that is named alone.
        cmd.shell(script if " " in script else f"{script} ${{_}}", DARK)


# Editors

_EX_MORE = re.compile(
    r"[%.$'\d,]*(?:[sgv](?=[^\w\s])[^|!]*|[<>=])|(?:Plug|Lazy|Packer|Mason|TS|Coc|Lsp)\w*!?[^|!(]*|\d+|[/?].*"
)
_EX_WORD = re.compile(r"[%.$'\d,]*([a-zA-Z]+)!?(?![^|!(]*[|!(])")
_EX_SHELL = re.compile(
    r"(?:\A|\|)\s*[+:]*(?:sil\w*!?\s+)?(?:r(?:ead)?\s*|%|\.|\d+|w\s+)?!(.+)|(?:system|systemlist|termopen|jobstart)\(\[?['\"](.+?)['\"]\]?\)"
)
_EX_WRITES = re.compile(r"(?:\A|\||\n)\s*[+:]*(?:w|wq|write|saveas|x)!?\s+(?![!+])(\S+)")
_EX_SAVES = re.compile(r"[+:]*(?:.*\|)?(?:w|wq|x|wa|wqa|xa|update|write)!?")


def editor(cmd: Command) -> CommandOutput | None:
    """vim, ex, ed: the commands they are given. What is not plainly editing asks."""
    options = read_options(cmd.args, "cSuTiUl", frozenset({"cmd"}))
    given = [arg[1:] for arg in cmd.args if arg[:1] == "+" and len(arg) > 1]
    for position, arg in enumerate(cmd.args[:-1]):
        if arg == "--cmd" or re.fullmatch(r"-[a-zA-Z]{0,3}c", arg):
            given.append(cmd.args[position + 1])
    given += [arg[2:] for arg in cmd.args if re.match(r"-c.", arg)]
    typed = (cmd.stdin.text or "").split("\n") if cmd.name in ("ed", "ex") or options.has("es") else []
    if cmd.name in ("ed", "ex") or any(_EX_SAVES.fullmatch(text) for text in given):
        for word in options.operands:
            if word[:1] != "+":
                write_path(cmd.run, cmd.scope, word, f"{cmd.name} {word}")
    for text in [*given, *typed]:
        for found in _EX_SHELL.findall(text):
            cmd.shell(next(part for part in found if part), NOTHING)
        writes(cmd, *_EX_WRITES.findall(text))
    for text in given:
        commands = re.split(r"(?<!\\)\|", text.lstrip("+: "))
        if not all(_is_editing(part.strip(" :")) for part in commands if part.strip()):
            cmd.run.add("inline_code", f"an editor command that is not plain editing: {cmd.line}")
    return None


def _is_editing(text: str) -> bool:
    word = _EX_WORD.match(text)
    return bool(_EX_MORE.fullmatch(text)) or (word is not None and word[1] in sections("verbs.txt")["ex"])


def pager(cmd: Command) -> CommandOutput | None:
    """less and more: `+!command` runs it."""
    for arg in cmd.args:
        if arg.startswith("+") and "!" in arg:
            cmd.shell(arg.partition("!")[2], NOTHING)
        if arg.startswith("+") and "|" in arg:
            cmd.add("inline_code")
    return None


_LISP_REACHES = re.compile(
    r"delete|shell|process|write|rename|copy-file|chmod|set-file|load|eval|funcall|apply|url-|erase|insert-file|-hook"
)
_LISP_HARMLESS = re.compile(r"\(?(?:org-\w[\w-]*export[\w-]*|batch-byte-compile|package-[\w-]+)\)?")


def emacs(cmd: Command) -> CommandOutput | None:
    for position, arg in enumerate(cmd.args):
        name, equals, value = arg.partition("=")
        if name not in ("--eval", "--execute", "-eval", "-e", "-f", "--funcall"):
            continue
        text = value if equals else "".join(cmd.args[position + 1 : position + 2])
        if _LISP_REACHES.search(text) and not _LISP_HARMLESS.fullmatch(text):
            cmd.add("inline_code")
    return None


# Debuggers


_DEBUG_WORD = re.compile(r"([\w-]+)(?![^!|(]*[!|(])")
_DEBUG_OPTIONS = frozenset(words("-ex -iex --ex --eval-command -eval-command -o -O --one-line --one-line-before-file"))
_DEBUG_SETTINGS = re.compile(
    r"set (?:pagination|confirm|width|height|args|breakpoint|print|logging|disassembly-flavor)\b[^!|(]*"
)


def debugger(cmd: Command) -> CommandOutput | None:
    """gdb, lldb: their commands, and the program behind `--args` or `--`."""
    args = cmd.args
    for position, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name in _DEBUG_OPTIONS:
            _debug(cmd, (value if equals else "".join(args[position + 1 : position + 2])).strip())
        elif arg in ("--args", "--") and position + 1 < len(args):
            return cmd.nested(args[position + 1 :])
    for row in (cmd.stdin.text or "").splitlines():
        _debug(cmd, row.strip())
    return None


def _debug(cmd: Command, text: str) -> None:
    if text and not _is_debugging(text):
        cmd.run.add("inline_code", f"a debugger runs {text[:80]}")


def _is_debugging(text: str) -> bool:
    word = _DEBUG_WORD.match(text)
    known = word is not None and word[1] in sections("verbs.txt")["debugger"]
    return known or bool(_DEBUG_SETTINGS.fullmatch(text))


# Multiplexers

_TMUX_HARMLESS = re.compile(
    r"(?:list|select|rename|show|resize|next|previous|last|swap|move|choose|kill|switch|detach|attach|capture|display"
    r"|refresh|has|join|break|clear)-[\w-]+|ls|a|attach|capturep|display|switchc|show|has|info|detach|source-file|source"
    r"|save-buffer|start-server|set-option|set|setw|lsk"
)


def multiplexer(cmd: Command) -> CommandOutput | None:
    """tmux, screen: what is typed into a window, or runs in a new one."""
    if cmd.name == "screen":
        rest = after_options(cmd.args, "cehpsStTX")
        groups = [cmd.args[cmd.args.index("stuff") + 1 :] if "stuff" in cmd.args else rest]
    else:
        split = itertools.groupby(after_options(cmd.args, "LSfc"), lambda word: word != ";")
        commands = [list(group) for is_command, group in split if is_command]
        groups = [
            read_options(command[1:], "tsncFxyeElpb").operands
            for command in commands
            if not _TMUX_HARMLESS.fullmatch(command[0])
        ]
    for operands in groups:
        keys = [word for word in operands if word not in ("Enter", "C-m", "Return")]
        for text in [" ".join(keys), *(word for word in keys if " " in word and len(keys) > 1)]:
            if text.strip():
                cmd.shell(text.replace("\\n", "\n").replace("^M", "\n"), NOTHING)
    return None


def each_operand(cmd: Command) -> CommandOutput | None:
    """hyperfine, concurrently: every operand is a command of its own."""
    longs = frozenset(
        words("warmup runs min-runs export-json export-markdown names prefix prepare setup cleanup conclude")
    )
    options = read_options(cmd.args, "wrmMnpcNLu", longs)
    for key in ("prepare", "setup", "cleanup", "conclude", "p", "s", "c"):
        if key in options.values:
            cmd.shell(options.values[key], NOTHING)
    for text in options.operands:
        if not re.match(r"(?:npm|pnpm|yarn|bun|node):", text):
            cmd.shell(text, NOTHING)
    return None


def desk_calculator(cmd: Command) -> CommandOutput | None:
    """dc and m4: text filters that can start a program."""
    for text in [*cmd.args, cmd.stdin.text or ""]:
        if "!" in text or "syscmd" in text:
            cmd.add("inline_code")
    return None


HANDLERS: Handlers = {
    **dict.fromkeys(words("vim vi nvim ex ed view vimdiff gvim"), editor),
    **dict.fromkeys(words("emacs emacsclient"), emacs),
    **dict.fromkeys(words("less more most"), pager),
    **dict.fromkeys(words("gdb lldb rust-gdb rust-lldb cuda-gdb"), debugger),
    **dict.fromkeys(words("tmux screen byobu"), multiplexer),
    **dict.fromkeys(words("hyperfine concurrently multitime"), each_operand),
    **dict.fromkeys(words("dc m4"), desk_calculator),
}
