"""The calls of code in other languages that open, write or delete files; what their names mean."""

import re
from functools import cache
from typing import NamedTuple

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects.tokens import CodeToken, arguments, first_argument, value_of
from hermes.tools.approval.paths import deletes, link_path, resolve, writes
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput
from hermes.tools.approval.tables import sections, word_list

_HOME_INSIDE = re.compile(
    r"\$ENV\{['\"]?HOME['\"]?\}|#\{(?:ENV\[['\"]HOME['\"]\]|Dir\.home)\}|\$\{(?:os\.homedir\(\)|process\.env\.HOME)\}"
)
_HOME_NAMES = frozenset(words("HOME home expanduser homedir USERPROFILE expand_path"))
JAVASCRIPT = frozenset(words("node nodejs bun deno"))


_ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", ".rb", ".lua", ".pl", ".pm", ".php", ".py")


def written_source(cmd: Command, word: str) -> str:
    """The file that code means by `word` when it loads it, if the command itself has just made that; else ""."""
    path = resolve(word, cmd.scope, cmd.run)
    return next((path + ending for ending in _ENDINGS if path + ending in cmd.run.files), "")


class FileNames(NamedTuple):
    """The table of names, read once."""

    familiar: frozenset[str]
    members: dict[str, frozenset[str]]  # harmless ones, of objects that can do harm
    start: frozenset[str]
    trees: frozenset[str]
    delete: frozenset[str]
    delete_owners: frozenset[str]
    write: frozenset[str]
    open: frozenset[str]
    evaluate: frozenset[str]
    ask: frozenset[str]
    modules_that_ask: frozenset[str]
    list: frozenset[str]
    bind: frozenset[str]
    read: frozenset[str]


@cache
def names() -> FileNames:
    table = sections("code.txt")
    return FileNames(
        familiar=table["familiar"],
        members={title[3:]: members for title, members in table.items() if title.startswith("of ")},
        start=table["start"],
        trees=table["delete trees"],
        delete=table["delete trees"] | table["delete"],
        delete_owners=table["delete owners"],
        write=table["write"],
        open=table["open"],
        evaluate=table["evaluate"],
        ask=table["ask"],
        modules_that_ask=table["modules that ask"],
        list=table["list"],
        bind=table["bind"],
        read=table["read"],
    )


class CodeFiles:
    """Code under judgement, by its tokens."""

    cmd: Command
    table: FileNames
    parts: list[CodeToken]
    names: set[str]
    known: dict[str, str]

    def ask(self, why: str, kind: str = "inline_code") -> None:
        self.cmd.run.add(kind, f"{why}: {self.cmd.line}")

    def _text(self, position: int) -> str:
        return self.parts[position].text if 0 <= position < len(self.parts) else ""

    def _is_delete(self, name: str, owner: str, position: int) -> bool:
        return (
            name not in ("remove", "delete", "rm", "unlink", "rmdir", "Delete")
            or owner in self.table.delete_owners
            or owner.startswith(("require(", ")"))
            or self.cmd.name not in ("ruby", "lua", "luajit", *JAVASCRIPT)
            or any(part.text == "recursive" for part in self.parts[position : position + 12])
            or (not owner and name != "delete")
        )

    def _removes(self, position: int) -> None:
        cmd = self.cmd
        _, literals, dark = arguments(self.parts, position, self.known)
        name = self._text(position)
        if not literals:
            before = self.parts[max(0, position - 5) : position]
            literals = [value_of(token.text) for token in before if token.kind == "string"]
            literals = [text for text in literals if "/" in text or "." in text]
        recursive = name in self.table.trees
        if name in ("rmSync", "rm", "removeSync", "unlink", "remove"):
            recursive = any(token.text == "recursive" for token in self.parts[position : position + 12])
        for word in literals:
            deletes(cmd, self._in_home(word), recursive=recursive)
        if not literals or (dark and first_argument(self.parts, position, self.known) is None):
            kind = "recursive_delete" if recursive else "unresolved_delete"
            self.ask(
                "code deletes what is only known when it runs", "mass_delete" if self.names & self.table.list else kind
            )

    def _target(self, position: int) -> str | None:
        """The path that a call is given first; one that is put together from a list is not known."""
        is_list = "[" in (self._text(position + 1), self._text(position + 2))
        return None if is_list else first_argument(self.parts, position, self.known)

    def _writes(self, position: int) -> None:
        name = self._text(position)
        target = self._target(position)
        if name in word_list("code_files.second"):
            _, literals, _ = arguments(self.parts, position, self.known)
            target = literals[1] if len(literals) > 1 else None
            if "link" in name and literals:
                path = self._in_home(literals[0])
                link_path(self.cmd.run, self.cmd.scope, path, self.cmd.line, is_hard="sym" not in name)
        self._write(target)

    def _write(self, target: str | None) -> None:
        cmd = self.cmd
        if target is not None and cmd.name in ("perl", "php"):
            target = re.sub(r"\$\w+", lambda found: self.known.get(found[0], "${}"), target)
        if target is None or (re.search(r"[#$]\{", target) and not _HOME_INSIDE.search(target)):
            cmd.run.unknown(f"code writes to a path that is only known when it runs ({cmd.line})")
            return
        path = self._in_home(target)
        writes(cmd, path)
        # What the code puts there is not followed: run in the same breath, it is text that nobody has seen.
        cmd.run.files[resolve(path, cmd.scope, cmd.run)] = CommandOutput(None, frozenset({"decoded"}))

    def _opens(self, position: int, name: str, owner: str) -> bool:
        """open, fopen, File.new: by their mode; text with a bar is a program."""
        if name == "new" and owner != "File":
            return False
        _, literals, dark = arguments(self.parts, position, self.known)
        if name == "open" and owner and owner not in ("File", "IO", "io", "Kernel", "fs", "Deno"):
            return False
        piped = [text for text in literals[:2] if text.strip().startswith("|") or text.strip().endswith("|")]
        if piped and self.cmd.name in ("perl", "ruby"):
            text = literals[-1] if piped[0].strip() in ("-|", "|-", "|") else piped[0]
            self.cmd.shell(text.strip("| "), NOTHING)
            self.ask("code opens a program as a file")
            return True
        if self.cmd.name == "perl":
            return self._perl_open(literals)
        modes = [text for text in literals[1:] if re.fullmatch(r"[rwaxbtc+<>]{1,3}(?::.*)?", text)]
        if any(re.search(r"[wax>+c]", mode) for mode in modes):
            self._write(self._target(position))
        elif dark and name in ("fopen", "openSync", "sysopen"):
            self.ask("code opens a file that is only known when it runs")
        return True

    def _perl_open(self, literals: list[str]) -> bool:
        for number, text in enumerate(literals[:2]):
            found = re.match(r"\s*(\+?[<>]{1,2}|\+<)", text)
            if found and found[1] != "<":
                rest = text[found.end() :].strip()
                target = rest if rest and not rest.startswith((":", "&")) else next(iter(literals[number + 1 :]), None)
                if rest.startswith("&"):
                    self.ask("code joins its streams to another")
                else:
                    self._write(target)
            elif text.strip() == "<&":
                self.ask("code joins its streams to another")
        return True

    def _in_home(self, word: str) -> str:
        """The path that code means by `word`: `~` is home, and so is what it joins a name with a leading dot to."""
        home = self.cmd.run.places.home
        word = _HOME_INSIDE.sub(home, word)
        if word.startswith("~"):
            return word.replace("~", home, 1)
        if word.startswith((".", "/.")) and any(part.text.strip("'\"") in _HOME_NAMES for part in self.parts):
            return f"{home}/{word.lstrip('/')}"
        return word
