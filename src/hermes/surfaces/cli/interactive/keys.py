"""The keys of the conversation."""

import time
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import ConditionalKeyBindings, KeyBindings, KeyBindingsBase, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat
    from hermes.surfaces.cli.interactive.terminal import TerminalFace

TWICE_S = 2.0


class _Leaving:
    """Ctrl-C twice leaves: the second counts when it comes soon, or while the first is still at work."""

    def __init__(self) -> None:
        self._at = -TWICE_S

    def is_second(self) -> bool:
        now = time.monotonic()
        is_soon = now - self._at < TWICE_S
        self._at = now
        return is_soon


def bindings(face: "TerminalFace", chat: "Chat") -> KeyBindingsBase:
    """All keys that differ from those of a plain input line."""
    keys = KeyBindings()
    _sending(keys, face, chat)
    _stopping(keys, face, chat)
    _recalling(keys, face, chat)
    _bringing(keys, face)
    _answering(keys, face, chat)
    _unfolding(keys, face)
    return ConditionalKeyBindings(keys, ~is_searching)  # Ctrl-R has keys of its own


def _sending(keys: KeyBindings, face: "TerminalFace", chat: "Chat") -> None:
    buffer = face.buffer

    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        state = buffer.complete_state
        if face.picker is not None:
            face.picked()
            return
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None  # the chosen one stands in the line already
            return
        face.send()

    @keys.add("escape", "enter")
    def _(_event: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    @keys.add("c-j")
    def _(_event: KeyPressEvent) -> None:
        if face.is_new:
            face.send()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        state = buffer.complete_state
        if state is not None and len(state.completions) > 1:
            buffer.complete_next()
        else:  # the only one is taken at once, so that Enter sends it
            _complete(buffer)

    @keys.add("s-tab")
    def _(_event: KeyPressEvent) -> None:
        if buffer.complete_state:
            buffer.complete_previous()
        else:
            chat.next_mode()

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        buffer.insert_text(face.pastes.shortened(event.data))


def _bringing(keys: KeyBindings, face: "TerminalFace") -> None:
    """Words from an editor, and pictures from the clipboard."""
    writes = Condition(lambda: not face.is_asking)

    @keys.add("c-g", filter=writes)
    @keys.add("c-x", "c-e", filter=writes)
    def _(_event: KeyPressEvent) -> None:
        face.edit()

    @keys.add("c-v", filter=writes)
    @keys.add("escape", "v", filter=writes)
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(face.paste_picture())


def _answering(keys: KeyBindings, face: "TerminalFace", chat: "Chat") -> None:
    """Answers chosen with arrows and digits."""
    buffer = face.buffer
    is_listed = Condition(lambda: chat.questions.answers is not None and not buffer.text)

    @keys.add("down", filter=is_listed)
    def _(_event: KeyPressEvent) -> None:
        if chat.questions.answers is not None:
            chat.questions.answers.move(1)

    @keys.add("up", filter=is_listed)
    def _(_event: KeyPressEvent) -> None:
        if chat.questions.answers is not None:
            chat.questions.answers.move(-1)

    for digit in "123456789":

        @keys.add(digit, filter=is_listed)
        def _(event: KeyPressEvent) -> None:
            if face.is_sudden or not chat.questions.press(event.data):
                buffer.insert_text(event.data)


def _unfolding(keys: KeyBindings, face: "TerminalFace") -> None:
    """Lists to choose from, and calls that are shown whole."""
    is_unfolded = Condition(lambda: face.unfolded is not None)
    is_picking = Condition(lambda: face.picker is not None)

    @keys.add("down", filter=is_picking)
    def _(_event: KeyPressEvent) -> None:
        if face.picker is not None:
            face.picker.move(1)

    @keys.add("up", filter=is_picking)
    def _(_event: KeyPressEvent) -> None:
        if face.picker is not None:
            face.picker.move(-1)

    @keys.add("c-o")
    def _(_event: KeyPressEvent) -> None:
        face.unfold()

    def moves(step: int, *, pages: bool) -> None:
        if face.unfolded is not None:
            face.unfolded.scroll(step) if pages else face.unfolded.other(step)

    @keys.add("pageup", filter=is_unfolded)
    def _(_event: KeyPressEvent) -> None:
        moves(-1, pages=True)

    @keys.add("pagedown", filter=is_unfolded)
    def _(_event: KeyPressEvent) -> None:
        moves(1, pages=True)

    @keys.add("escape", "left", filter=is_unfolded)
    def _(_event: KeyPressEvent) -> None:
        moves(-1, pages=False)

    @keys.add("escape", "right", filter=is_unfolded)
    def _(_event: KeyPressEvent) -> None:
        moves(1, pages=False)


def _complete(buffer: Buffer) -> None:
    """Add what all completions have in common, or show them; at once, as a search under way swallows the key."""
    wanted = CompleteEvent(completion_requested=True)
    found = list(buffer.completer.get_completions(buffer.document, wanted))
    common = get_common_complete_suffix(buffer.document, found)
    if len(found) == 1:
        buffer.apply_completion(found[0])
    elif common:
        buffer.insert_text(common)
    elif found:
        buffer.start_completion(select_first=False)


def _stopping(keys: KeyBindings, face: "TerminalFace", chat: "Chat") -> None:
    leaving = _Leaving()
    buffer = face.buffer

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(_event: KeyPressEvent) -> None:
        if chat.is_busy:
            if leaving.is_second():
                face.leave()
            else:
                chat.interrupt()
                face.write("Ctrl-C again leaves.\n")
        elif buffer.text:
            buffer.reset()
        elif leaving.is_second():
            face.leave()
        else:
            face.write("Ctrl-C again leaves.\n")

    @keys.add("escape")
    def _(_event: KeyPressEvent) -> None:
        if face.picker is not None:
            face.picker = None
            buffer.reset()
        elif face.unfolded is not None:
            face.unfold()
        elif chat.questions.is_open:
            chat.questions.deny()
        elif buffer.complete_state:
            buffer.cancel_completion()
        else:
            chat.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not buffer.text))
    def _(_event: KeyPressEvent) -> None:
        face.leave()

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.clear()


def _recalling(keys: KeyBindings, face: "TerminalFace", chat: "Chat") -> None:
    buffer = face.buffer

    @Condition
    def is_recall() -> bool:
        return not buffer.text and bool(chat.queue.open_ones) and not chat.questions.is_open

    @keys.add("up", filter=is_recall)
    def _(_event: KeyPressEvent) -> None:
        face.inbox.put_nowait("/queue edit")

    @Condition
    def is_choosing() -> bool:
        return bool(chat.questions.choices) and (not buffer.text or buffer.text in chat.questions.choices)

    def choose(step: int) -> None:
        offered = chat.questions.choices
        place = offered.index(buffer.text) + step if buffer.text in offered else min(step, 0)
        buffer.document = Document(offered[place % len(offered)])

    @keys.add("down", filter=is_choosing)
    def _(_event: KeyPressEvent) -> None:
        choose(1)

    @keys.add("up", filter=is_choosing)
    def _(_event: KeyPressEvent) -> None:
        choose(-1)

    @keys.add("down", filter=has_completions)
    def _(_event: KeyPressEvent) -> None:
        buffer.complete_next()

    @keys.add("up", filter=has_completions)
    def _(_event: KeyPressEvent) -> None:
        buffer.complete_previous()
