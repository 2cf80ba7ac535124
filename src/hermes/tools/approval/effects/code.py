"""What inline code would do: programs it starts, files it deletes or writes, what it sends; what is unfamiliar asks."""

import re

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects import tokens as token_rules
from hermes.tools.approval.effects.code_files import JAVASCRIPT, CodeFiles, names, written_source
from hermes.tools.approval.effects.databases import sql
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.paths import is_private, matters, resolve, writes
from hermes.tools.approval.run_state import NOTHING, Command
from hermes.tools.approval.text_with_commands import look_at_text

_NEEDS_OWNER = {  # common words that run a program only on these objects
    "exec": {"child_process", "cp", "os", "Kernel", "Process", "php", "perl", "ruby", "tclsh", "expect", "getRuntime"},
    "Command": {"exec", "Command", "Deno"},
    "execute": {"os"},
    "run": {"julia", "os", "sp"},
    "cmd": {"System", "os"},
    "shell": {"Mix", "never"},
    "pipeline": {"Open3"},
    "open2": {"perl"},
}
_WRITE_OWNERS = {
    "write": {"File", "IO", "Bun", "Deno"},
    "copy": {"fs", "File", "FileUtils", "io"},
    "touch": {"FileUtils", "File"},
    "mkdir": {"fs", "Dir", "promises", "File"},
}
# Whatever object has them, and however they are named: they start, load, reach around or open up.
_NETWORK = re.compile(
    r"\b(?:fetch|axios|http\.request|https\.request|socket|LWP|IO::Socket|fsockopen|Net::HTTP|open-uri|WebSocket|mail)\b"
    r"|[\"'](?:node:)?(?:https?|net|dgram)[\"']|file_get_contents\(\s*[\"']https?:|\bcurl_"
)
_RISKY_OWNERS = frozenset(words("fs process global globalThis this child_process _G _ENV os Kernel self module"))
_SAYS = frozenset(words("print puts echo log printf println say p pp warn error info debug die raise"))
_CHARACTERS = 8  # that are read in one step
_DEFINES = frozenset(words("function def fn func fun sub"))
_FOLLOWED = frozenset(words("perl ruby php")) | JAVASCRIPT  # of the others only names are known
_SHELL_TICKS = frozenset(words("perl ruby php julia"))
_SUBSTITUTION = re.compile(
    r"\bs([/#|!,~@%])((?:\\.|(?!\1)[^\\]){0,400})\1((?:\\.|(?!\1)[^\\]){0,400})\1[a-df-z]*e|\bs\{[^}]{0,400}\}\s*\{([^}]{0,400})\}[a-df-z]*e"
)


def inline(cmd: Command, code: str) -> None:
    """Judge `code` in the language of `cmd.name`."""
    run = cmd.run
    if UNKNOWN in code and not code.strip(UNKNOWN + " "):
        if "remote" in run.substituted:
            run.add("remote_code", f"run downloaded code with {cmd.name}")
        else:
            run.add("inline_code", f"run code that only exists while it runs with {cmd.name}")
        return
    if cmd.name in ("python", "pypy", "ipython", "jython", "micropython"):
        from hermes.tools.approval.effects.python import judge_python  # ast and a table, for Python only

        judge_python(cmd, code)
        return
    _Code(cmd, re.sub(r"<\?(?:php|=)?|\?>", " ", code) if cmd.name == "php" else code).judge()


class _Code(CodeFiles):
    """One piece of code by its tokens."""

    def __init__(self, cmd: Command, code: str) -> None:
        self.cmd = cmd
        self.code = code
        self.table = names()
        cmd.run.budget.spend(1 + len(code) // _CHARACTERS)
        self.parts = token_rules.tokens(token_rules.without_patterns(code, cmd.name), cmd.run.budget)
        self.names = {token.text for token in self.parts if token.kind == "name"}
        self.known = token_rules.constants(self.parts)
        self.local = self._bound()
        self.risky = _RISKY_OWNERS | token_rules.aliases(self.parts, _RISKY_OWNERS)

    def judge(self) -> None:
        cmd, _names = self.cmd, self.names
        for found in _SUBSTITUTION.findall(self.code) if cmd.name == "perl" else ():
            inline(cmd, found[2] or found[3])
        if cmd.name not in _FOLLOWED:
            look_at_text(cmd, self.code)
        self._strings()
        for position, token in enumerate(self.parts):
            if token.kind == "string":
                self._ticks(position, token)
            elif token.kind == "name":
                self._name(position, token.text)
            elif token.text == "&" and cmd.name == "perl" and self._text(position + 1)[:1] in ("{", "$"):
                self.ask("code calls what a text names")
            elif token.text == "[" and position:
                self._computed(position)
            elif token.text == "(" and cmd.name == "php" and position and self._is_expression(position - 1):
                self.ask("code calls what a text names")
        if self.names & {"fork", "pcntl_fork"} and self.names & {"while", "for", "loop", "until", "setInterval"}:
            cmd.add("fork_bomb", severity=Severity.HARDLINE)
        if "(?{" in self.code or "(??{" in self.code:
            self.ask("a pattern that runs code")
        if _NETWORK.search(self.code):
            self._leaks()

    def _is_expression(self, position: int) -> bool:
        return self.parts[position].kind == "string" or self.parts[position].text in (")", "]")

    def _bound(self) -> frozenset[str]:
        """Names that the code itself gives to its values."""
        bound: set[str] = set()
        for position, token in enumerate(self.parts):
            if token.kind != "name":
                continue
            before, after = self._text(position - 1), self._text(position + 1)
            is_set = after == "=" and self._text(position + 2) != "="
            is_parameter = before in ("|", ",", "(", "{", "[") and after in ("|", ",", ")", "=", "}", "]")
            if (
                is_set
                or is_parameter
                or before in self.table.bind
                or (after == "-" and self._text(position + 2) == ">")
            ):
                bound.add(token.text)
        return frozenset(bound)

    # Names

    def _name(self, position: int, name: str) -> None:
        if name[:1] in "$@%" and len(name) > 1:
            if self.cmd.name == "php" and name[0] == "$" and self._text(position + 1) == "(":
                self.ask("code calls what a text names")
            return
        owner = token_rules.owner_of(self.parts, position)
        if self.cmd.name in ("perl", "php") and self._text(position - 1) == ".":
            owner = ""  # there it joins two texts
        is_key = self._text(position + 1) in (":", "=") and self._text(position + 2) in (">", "") and not owner
        if name in self.table.start and self._runs_programs(name, owner):
            self._starts(position)
        elif name in self.table.delete and self._is_delete(name, owner, position):
            self._removes(position)
        elif name in self.table.write and owner in _WRITE_OWNERS.get(name, {owner}):
            self._writes(position)
        elif name in self.table.open and self._opens(position, name, owner):
            return
        elif name in self.table.evaluate and (not owner or owner in ("Kernel", "binding", "global")) and not is_key:
            self._evaluates(position, name)
        elif name in ("require", "require_relative") or self._is_import(position, name):
            self._requires(position)
        elif name in ("setTimeout", "setInterval", "setImmediate"):
            if token_rules.first_argument(self.parts, position, self.known) is not None:
                self.ask("code runs a text later")
        elif self._text(position - 1) in _DEFINES or (name == "package" and self._text(position + 1) not in (".", "[")):
            return
        elif name == "kill" and "-1" in "".join(token.text for token in self.parts[position : position + 8]):
            self.cmd.add("mass_kill", severity=Severity.HARDLINE)
        elif name in self.table.ask and not is_key:
            self.ask(f"code calls {name}")
        else:
            self._familiar(position, name, owner, is_key=is_key)

    def _familiar(self, position: int, name: str, owner: str, *, is_key: bool) -> None:
        plain, owned = self.table.familiar, self.table.members
        if owner:
            members = owned.get(owner)
            if members is not None and name not in members and owner not in self.local - {"fs", "os", "http"}:
                self.ask(f"code uses {owner}.{name}")
        elif not (
            is_key
            or name in plain
            or name in owned
            or name in self.local
            or len(name) < 3
            or name.startswith(("assert_", "refute_", "test_", "expect_"))
            or (name[0] == "$" and len(name) > 1)
            or self._text(position + 1) == ":"
            or self._text(position - 1) in (":", "@", "#")
            or (name[0].isupper() and self._text(position + 1) != "(")
        ):
            self.ask(f"code uses {name}")

    def _computed(self, position: int) -> None:
        """`fs["rm" + "Sync"]`: a member by its name, of something that can do harm."""
        before = self._text(position - 1)
        inner = self.parts[position + 1] if position + 1 < len(self.parts) else token_rules.CodeToken("op", "")
        risky = before in self.risky
        if inner.kind == "string" and self._text(position + 2) in ("+", "."):
            made = token_rules.first_argument(self.parts, position, self.known) or ""
            if made in self.table.ask or made in self.table.start or made in self.table.delete:
                self.ask(f"code puts the name {made} together")
        if risky or (before == ")" and "require" in {self._text(back) for back in range(position - 5, position)}):
            single = inner.kind == "string" and self._text(position + 2) == "]"
            if not single or token_rules.value_of(inner.text) not in self.table.members.get(before, frozenset()):
                self.ask("code looks a function up by its name")

    def _is_import(self, position: int, name: str) -> bool:
        """`import("x")`, `import "x"`, `import y from "x"`."""
        after = self._text(position + 1)
        is_named = after[:1] in "'\"" and after != "" and self.cmd.name in JAVASCRIPT
        return (name == "import" and after == "(") or (name in ("import", "from") and is_named)

    def _requires(self, position: int) -> None:
        first = token_rules.first_argument(self.parts, position, self.known)
        if first is None:
            if self._text(position + 1) in ("(", "$") and self._text(position + 2) not in ("", ")"):
                self.ask("code loads a module that is only known when it runs")
        elif first.removeprefix("node:") in self.table.modules_that_ask:
            self.ask(f"code loads {first}")
        elif made := written_source(self.cmd, first):
            out = self.cmd.run.files[made]
            if out.text is None or out.labels & {"remote", "decoded"}:
                self.ask(f"code loads {first}, which was only just written", "decoded_code")
            else:
                del self.cmd.run.files[made]  # it may load itself
                inline(self.cmd, out.text)
                self.cmd.run.files[made] = out
        elif self.cmd.name == "php" and "://" in first:
            self.ask("code loads a file from elsewhere", "remote_code")

    # What is called

    def _runs_programs(self, name: str, owner: str) -> bool:
        wanted = _NEEDS_OWNER.get(name)
        if wanted is None or owner in wanted or owner.startswith("require("):
            return True
        return not owner and (self.cmd.name in wanted or any(token.text in wanted for token in self.parts[:60]))

    def _starts(self, position: int) -> None:
        cmd = self.cmd
        is_list, literals, dark = token_rules.arguments(self.parts, position, self.known)
        name = self._text(position)
        after = self._text(position + 1)
        if (
            not literals
            or after == "{"
            or "#{" in "".join(literals)
            or "${" in "".join(literals)
            or (cmd.name == "perl" and "$" in "".join(literals))
        ):
            if after not in (",", "}", ")", "]", ";", "=", "") or self._text(position - 1) not in ("{", ",", ".", ":"):
                self.ask("code starts a program that is only known when it runs")
            elif after not in (",", "}"):
                self.ask(f"code hands {name} on")
            if not literals:
                return
        listed = is_list or (
            len(literals) > 1 and (name.startswith(("exec", "spawn", "posix_spawn")) or cmd.name in ("perl", "ruby"))
        )
        if listed:
            cmd.nested([*literals, UNKNOWN] if dark else literals, NOTHING)
        else:
            cmd.shell(literals[0], NOTHING)
            if dark and token_rules.first_argument(self.parts, position, self.known) is None:
                self.ask("code starts a program with words that are only known when it runs")

    def _evaluates(self, position: int, name: str) -> None:
        cmd = self.cmd
        if name in ("do", "load", "include", "include_once", "require_once", "dofile", "assert"):
            first = token_rules.first_argument(self.parts, position, self.known)
            if (
                first is not None
                and (name != "assert" or cmd.name == "php")
                and not (name == "include" and cmd.name != "php")
            ):
                self.ask(f"code runs {first}")
            elif name == "load" and cmd.name in ("lua", "luajit", "ruby"):
                self.ask("code makes more code and runs it")
            return
        if name == "eval" and cmd.name == "perl" and self._text(position + 1) == "{":
            return  # it catches errors
        self.ask("code makes more code and runs it", "decoded_code")

    # Strings

    def _ticks(self, position: int, token: token_rules.CodeToken) -> None:
        text = token.text
        if text[:1] == "`" and (self.cmd.name in _SHELL_TICKS or (position and self._text(position - 1) == "$")):
            text = text[1:].removesuffix("`")
        elif text.startswith(("qx", "%x")):
            text = text[3:-1]
        elif text[:1] == "`" and self.cmd.name in JAVASCRIPT and "${" in text:
            for inner in re.findall(r"\$\{([^}]*)\}", text):
                _Code(self.cmd, inner).judge()
            return
        elif text[:1] == '"' and self.cmd.name == "ruby" and "#{" in text:
            for inner in re.findall(r"#\{([^}]*)\}", text):
                _Code(self.cmd, inner).judge()
            return
        else:
            return
        if (
            "#{" in text
            or (self.cmd.name == "perl" and re.search(r"[$@]\w", text))
            or (self.cmd.name in ("php", "julia") and "$" in text)
        ):
            self.ask("code starts a program that is only known when it runs")
        self.cmd.shell(text, NOTHING)

    def _strings(self) -> None:
        """What the strings of the code are: SQL, names of functions, commands of a language that is not followed."""
        strings = [
            (number, token_rules.value_of(token.text))
            for number, token in enumerate(self.parts)
            if token.kind == "string"
        ]
        for number, text in strings:
            if re.match(r"(?i)\W*(?:drop|truncate|delete from|update|alter)\s", text):
                if not self._is_said(number):
                    sql(self.cmd, text)
            elif (
                text in self.table.ask
                or text in self.table.start - {"run", "cmd", "shell", "Command"}
                or text in ("eval", "rimraf", "del", "unlink", "rmdir")
            ):
                if self._text(number + 1) != ":":
                    self.ask(f"code names {text}")
            elif "/" in text and " " not in text and self._is_written(number, text):
                writes(self.cmd, self._in_home(text))

    def _is_said(self, number: int) -> bool:
        """Whether a string is all that is printed."""
        before = number - 1 if self._text(number - 1) != "(" else number - 2
        return self._text(before) in _SAYS and self._text(number + 1) in (")", ";", "", "\n", "}")

    def _is_written(self, number: int, text: str) -> bool:
        """Whether a path that matters is handed to anything but a call that reads."""
        if not re.match(r"[/~].|\.{1,2}/", text) or not matters(self.cmd, self._in_home(text)):
            return False
        depth = 0
        for position in range(number - 1, max(-1, number - 40), -1):
            depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(self._text(position), 0)
            if depth < 0:
                return self.parts[position - 1].kind == "name" and self._text(position - 1) not in self.table.read
        return False

    def _leaks(self) -> None:
        cmd = self.cmd
        for token in self.parts:
            if token.kind == "string":
                text = token_rules.value_of(token.text)
                if "/" in text or text.startswith((".", "~")):
                    path = self._in_home(text)
                    if "://" not in path and is_private(resolve(path, cmd.scope, cmd.run), cmd.run.places):
                        cmd.add("exfiltration", (text,))
