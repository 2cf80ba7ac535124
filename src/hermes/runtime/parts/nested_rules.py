"""Rules of folders inside a project: told once, with the result of the first call that touches the folder."""

import json
import posixpath
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hermes.runtime.parts import Joining, Part, TurnFacts
from hermes.types import Content, Message, text_of

if TYPE_CHECKING:
    from hermes.runtime.context import CallContext
    from hermes.runtime.session.history import History
    from hermes.seams import Environment

KEY: Final = "project_rules"  # in the result: a list of {folder, file, rules}
MAX_CHARS = 8_000  # of one file
MAX_RESULT_CHARS = 60_000  # a longer result may yet be shortened, and the rules with it
MAX_WORDS = 20  # of a command, that may be paths
_ARGUMENTS = ("path", "file_path", "workdir")
_PLACES = frozenset({*_ARGUMENTS, "command"})
_WORD = re.compile(r"[^\s'\"|&;<>()$`*?\[\]{}=]+")


class NestedRules(Part):
    """Which folders were told of is read off the history, so that every process tells each of them once."""

    limit_s = 30.0  # the files may be on another machine

    def __init__(self, environment: "Environment") -> None:
        self._environment = environment
        self._project = environment.cwd if environment.kind == "local" else ""
        self._told: set[str] | None = None
        self._bare: set[str] = set()  # folders without rules, where to look again would be a journey

    @classmethod
    def join(cls, agent: Joining) -> "NestedRules | None":
        return None if agent.options.session.skip_context_files else cls(agent.services.environment)

    def history_read(self, history: "History") -> None:
        self._project = history.project or self._project
        if self._told is None:
            self._told = set(_folders_told(str(one.get("content")) for one in history.dicts if one["role"] == "tool"))

    def context(self, turn: TurnFacts) -> None:
        self._project = self._project or self._environment.cwd

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """Rules that are summed up are told again."""
        self._told = set(_folders_told(text_of(one.content) for one in kept if one.role == "tool"))
        return kept

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        if call.route == "code" or not isinstance(content, str) or len(content) > MAX_RESULT_CHARS:
            return None
        if not content.startswith("{"):
            return None
        args = call.asked.args
        if _PLACES.isdisjoint(args) and self._environment.cwd == self._project:
            return None  # no word of a place, and the session stands where it began
        folders = self._touched(args)
        return self._with_rules(call, content, folders) if folders else None

    def _touched(self, args: Mapping[str, Any]) -> list[str]:
        """The folders below the project that a call with these arguments may touch and nobody told of, outer first."""
        cwd = self._environment.cwd
        words = [value for name in _ARGUMENTS if isinstance(value := args.get(name), str)]
        if isinstance(command := args.get("command"), str):
            words += [word for word in _WORD.findall(command) if not word.startswith("-")][:MAX_WORDS]
        root, found = self._project.rstrip("/"), dict[str, None]()
        known = (self._told or set()) | self._bare
        for word in ("", *words):
            place = posixpath.normpath(posixpath.join(cwd, word))
            if not place.startswith(f"{root}/") or not root:
                continue
            parts = place[len(root) + 1 :].split("/")
            found |= dict.fromkeys("/".join((root, *parts[: end + 1])) for end in range(len(parts)))
        return [folder for folder in sorted(found) if folder not in known]

    async def _with_rules(self, call: "CallContext", content: str, folders: list[str]) -> Content:
        from hermes.runtime.project_rules import NESTED, read_rules  # paid by calls inside a project
        from hermes.tools.results.tool_result import as_object

        environment, told = self._environment, self._told if self._told is not None else set()
        self._told = told
        left = {f"{folder}/{name}": folder for folder in folders for name in NESTED}
        entries: list[dict[str, str]] = []
        while (path := await environment.first_file(list(left))) is not None:
            folder = left[path]
            left = {one: where for one, where in left.items() if where != folder}
            if folder in told:  # by a call beside this one, meanwhile
                continue
            told.add(folder)
            file = await read_rules(environment, path, MAX_CHARS)
            for event in file.told:
                call.emit(event)
            if file.text:
                text = call.turn.services.redactor.redact(file.text)
                entries.append({"folder": folder, "file": path.rpartition("/")[2], "rules": text})
        if environment.kind != "local":
            self._bare.update(left.values())
        body = as_object(content) if entries else None
        return content if body is None else json.dumps({**body, KEY: entries}, ensure_ascii=False)


def _folders_told(results: Iterable[str]) -> Iterable[str]:
    for text in results:
        if f'"{KEY}"' in text:
            try:
                body = json.loads(text)
            except ValueError:
                continue
            entries = body.get(KEY) if isinstance(body, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and isinstance(entry.get("folder"), str):
                    yield entry["folder"]


part = NestedRules
