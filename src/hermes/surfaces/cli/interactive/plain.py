"""The conversation where a terminal can do nothing but lines: TERM=dumb, or stdout goes elsewhere."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hermes.surfaces.cli.output import Output

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat


class PlainFace:
    """`Face` that reads lines and writes lines; nothing is ever drawn anew."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.echoes = True
        self.is_gone = False
        self._left = asyncio.Event()
        self._chat: Chat | None = None
        self._typed = b""
        self._is_at_end = False
        self.inbox: asyncio.Queue[str] = asyncio.Queue()

    def write(self, text: str) -> None:
        try:
            self._out.write(text)
        except (OSError, ValueError):  # nobody reads any more
            self.is_gone = True
            self.leave()

    def flush(self) -> None:
        """Every line is written at once."""

    def refresh(self) -> None:
        return

    def leave(self) -> None:
        self._left.set()

    def offer(self, text: str) -> bool:
        return False

    def clear(self) -> None:
        return

    def pick(self, title: str, entries: Sequence[tuple[str, str]]) -> bool:
        return False

    def copy(self, text: str) -> bool:
        return False

    def turn_ended(self) -> None:
        if self._chat is not None and self._chat.look.display.bell_on_complete:
            self.write("\a")
        self._prompt()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """The terminal itself shows what is typed."""
        yield

    async def run(self, chat: "Chat") -> None:
        """Read lines until the end of input; what was read is heard before the conversation ends."""
        self._chat = chat
        self._prompt()
        if sys.stdin is None:  # closed by who started us
            return
        loop = asyncio.get_running_loop()
        number = sys.stdin.fileno()
        try:
            loop.add_reader(number, self._readable, number)
        except PermissionError:  # a file, or /dev/null: always readable, and nothing that can be waited for
            while not self._left.is_set():
                self._readable(number)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(number)
        if self._is_at_end:
            await self.inbox.join()

    async def tick(self) -> None:
        """Nothing moves here."""

    def _prompt(self) -> None:
        self.write("> ")

    def _readable(self, number: int) -> None:
        try:
            chunk = os.read(number, 4096)
        except OSError:  # the terminal is gone
            chunk = b""
        if not chunk:
            if rest := self._typed:
                self._typed = b""
                self._line(rest.decode("utf-8", "replace"))
            self._is_at_end = True
            self.leave()
            return
        self._typed += chunk
        *lines, self._typed = self._typed.split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace").rstrip("\r"))

    def _line(self, text: str) -> None:
        chat = self._chat
        assert chat is not None
        if chat.questions.is_open:
            if not chat.questions.hear(text):
                self.write("Answer with one of the letters; d is no.\n")
            return
        self.inbox.put_nowait(text)
