"""Completions: slash commands, models and sessions after some of them, `@` references and paths."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.host.command import COMMANDS, plugin_commands
from hermes.host.path_completion import paths_below

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat

REFERENCES = {
    "file:": "a file",
    "folder:": "the names in a folder",
    "diff": "what is changed and not staged",
    "staged": "what is staged",
    "git:1": "the last commits",
    "url:": "a page of the web",
    "skill:": "a skill",
}


class ChatCompleter(Completer):
    """Looks at the word before the cursor."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        word = "" if not text or text[-1].isspace() else text.rsplit(None, 1)[-1]
        if text.startswith("/") and " " not in text and "/" not in text[1:]:
            yield from self._commands(text[1:])
        elif text.startswith("/") and "\n" not in text and (found := list(self._arguments(text[1:]))):
            yield from found
        elif word.startswith("@"):
            yield from self._references(word[1:])
        elif complete_event.completion_requested and word:
            yield from self._paths(word)

    def _commands(self, begun: str) -> Iterator[Completion]:
        own = dict.fromkeys(self._chat.skills, "a skill")
        own |= {name: offer.description for name, (_, offer) in plugin_commands(self._chat.live).items()}
        own |= {name: one.command or one.target for name, one in self._chat.quick_commands.items()}
        for name in sorted({*COMMANDS.names(), *own}):
            if name.startswith(begun):
                told = COMMANDS.summary(name) if name in COMMANDS.names() else own[name]
                yield Completion(name, start_position=-len(begun), display=f"/{name}", display_meta=told)

    def _arguments(self, typed: str) -> Iterator[Completion]:
        """What a command takes, as it says itself."""
        name, _, begun = typed.partition(" ")
        command = COMMANDS.load(name) if name in COMMANDS.names() else None
        if command is None or command.complete is None:
            return
        for word in command.complete(self._chat.live, begun):
            yield Completion(word, start_position=-len(begun))

    def _references(self, begun: str) -> Iterator[Completion]:
        kind, colon, path = begun.partition(":")
        if colon and kind in ("file", "folder"):
            yield from self._paths(path, only_folders=kind == "folder")
            return
        for name, told in REFERENCES.items():
            if name.startswith(begun):
                yield Completion(name, start_position=-len(begun), display=f"@{name}", display_meta=told)
        for found in self._paths(begun) if begun else ():
            kind = "folder" if found.text.endswith("/") else "file"
            yield Completion(f"{kind}:{begun}{found.text}", start_position=-len(begun), display=found.display)

    def _paths(self, begun: str, *, only_folders: bool = False) -> Iterator[Completion]:
        typed = len(os.path.basename(begun))  # noqa: PTH119 - a slash at the end counts
        for name in paths_below(Path(self._chat.cwd), begun, only_folders=only_folders):
            yield Completion(name[typed:], start_position=0, display=name)
