"""The live part of the screen: what is being written, what waits, the input line, the status line."""

import asyncio
import base64
import contextlib
import os
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from hermes.errors import UserError
from hermes.surfaces.cli.interactive.clipboard import Pastes
from hermes.surfaces.cli.interactive.history import KeptHistory
from hermes.surfaces.cli.interactive.input_completion import ChatCompleter
from hermes.surfaces.cli.interactive.keys import bindings
from hermes.surfaces.cli.interactive.markup import clean, folded
from hermes.surfaces.cli.interactive.pick_list import PickList
from hermes.surfaces.cli.interactive.status import status_line
from hermes.surfaces.cli.interactive.theme import Theme, answers, asked_theme, told_theme
from hermes.surfaces.cli.interactive.unfolded_call import UnfoldedCall
from hermes.surfaces.cli.output import Output, cut

if TYPE_CHECKING:
    from hermes.surfaces.cli.interactive.chat import Chat


REDRAW_S = 0.05
TYPED_AHEAD_S = 0.3
SUDDEN_S = 1.0
INPUT_ROWS = 10
QUEUE_ROWS = 4
ROWS_BELOW_ANSWERS = 4
LIVE_ROWS = 10
ESCAPE_S = 0.08  # how long an Esc waits for the rest of a key
MODES = {"edits": "edits on", "ask": "asks before edits", "plan": "plan: changes nothing"}
STYLES = {
    "thought": "#888888",
    "running": "ansicyan",
    "queue": "#888888",
    "status": "#888888",
    "ask": "bold ansiyellow",
    "chosen": "bold ansicyan",
    "added": "ansigreen",
    "gone": "ansired",
}


LIGHT_STYLES = {
    "thought": "#666666",
    "running": "#005f87",
    "queue": "#666666",
    "status": "#666666",
    "ask": "bold #875f00",
    "chosen": "bold #005f87",
    "added": "#008700",
    "gone": "#af0000",
}


class GuardedOutput(Vt100_Output):
    """A terminal that may go away: then `on_gone` is called, and what is written goes nowhere."""

    on_gone: Callable[[], None] | None = None

    def flush(self) -> None:
        try:
            super().flush()
        except (OSError, ValueError):
            self._buffer: list[str] = []
            if self.on_gone is not None:
                self.on_gone()


class TerminalFace:
    """`Face` of a real terminal. Lines that are there for good scroll away above; the rest is drawn anew in place."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._pending: list[str] = []
        self._is_scheduled = False
        self._chat: Chat | None = None
        self._app: LiveApplication | None = None
        self._draft = ""
        self._cut_off_at = -SUDDEN_S
        self._was_asking = False
        self._title = ""
        self.unfolded: UnfoldedCall | None = None
        self.picker: PickList | None = None
        self._search = SearchToolbar(backward_search_prompt="search back: ", forward_search_prompt="search: ")
        self._later: asyncio.TimerHandle | None = None
        self.echoes = False
        self.is_gone = False
        self.shown = asyncio.Event()  # the prompt is on the screen
        self._input = create_input(sys.stdin)
        self._started_at = 0.0
        self.pastes = Pastes()
        self.inbox: asyncio.Queue[str] = asyncio.Queue()
        self.output = GuardedOutput(
            sys.stdout,
            self._size,
            term=None,
            default_color_depth=None if out.colours else ColorDepth.DEPTH_1_BIT,
            enable_cpr=False,
        )
        self.buffer = Buffer(multiline=True, accept_handler=None, complete_while_typing=Condition(self._completes))
        self.buffer.tempfile_suffix = ".md"

    # -- Face ----------------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        if text:
            self._pending.append(text)
            self._schedule()

    def refresh(self) -> None:
        chat = self._chat
        if chat is not None and chat.questions.is_open != self._was_asking:
            self._change_prompt(chat.questions.is_open)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(REDRAW_S, self._redraw)

    def _redraw(self) -> None:
        """What streams in is drawn a few times a second; keys are drawn at once, by the application itself."""
        self._later = None
        if self._app is not None and self._app.is_running:
            self._app.invalidate()

    def leave(self) -> None:
        app = self._app
        if app is not None and app.is_running and app.future is not None and not app.future.done():
            app.exit()

    def _gone(self) -> None:
        self.is_gone = True
        self.leave()

    def offer(self, text: str) -> bool:
        if self.buffer.text.strip():
            return False
        self.buffer.text = text
        self.buffer.cursor_position = len(text)
        return True

    def clear(self) -> None:
        if self._app is not None:
            self._app.renderer.clear()

    def copy(self, text: str) -> bool:
        packed = base64.b64encode(text.encode()).decode()
        self.output.write_raw(f"\x1b]52;c;{packed}\x07")
        self.output.flush()
        return True

    def turn_ended(self) -> None:
        chat = self._chat
        if chat is not None and chat.look.display.bell_on_complete:
            self.output.bell()
            self.output.flush()
        self._set_title()
        self.refresh()

    # -- running -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Keys that are typed before the prompt is there, or after it, are not echoed into what is shown."""
        try:
            with self._input.raw_mode():
                yield
        except termios.error:  # there is nothing to restore
            self.is_gone = True

    @property
    def is_new(self) -> bool:
        """Whether what is read now was typed before the prompt was there: its line ends are Enter."""
        return time.monotonic() - self._started_at < TYPED_AHEAD_S

    async def run(self, chat: "Chat") -> None:
        """Show the prompt until the person leaves, the terminal is gone, or `leave` is called."""
        self._chat = chat
        self.output.on_gone = self._gone
        self.buffer.completer = ChatCompleter(chat)
        self.buffer.history = KeptHistory(chat.cli.home, chat.redactor.redact)
        self._find_theme(chat)
        self._app = LiveApplication(
            layout=Layout(self._layout()),
            key_bindings=bindings(self, chat),
            style=Style.from_dict(_styles(chat)),
            input=self._input,
            output=self.output,
            erase_when_done=True,
            max_render_postpone_time=None,
        )
        self._app.wraps = wraps_lines(chat.cli.environ)
        self._app.after_render += lambda _: self.shown.set()
        self._app.ttimeoutlen = ESCAPE_S
        self._app.timeoutlen = ESCAPE_S
        self._set_title()
        self._started_at = time.monotonic()
        self.flush()  # above a prompt that is already drawn it would leave a copy of that in tmux's history
        try:
            await self._app.run_async(set_exception_handler=False, handle_sigint=True)
        except (EOFError, OSError, termios.error):
            self.is_gone = True
        finally:
            self.flush()
            self._clear_title()

    def _find_theme(self, chat: "Chat") -> None:
        """Colours for the background that the terminal has: by the settings, its variables, or by asking it."""
        wanted = chat.look.display.theme
        found: Theme | None = wanted if wanted != "auto" else told_theme(chat.cli.environ)
        if found is None and chat.painter.colours and answers(chat.cli.environ):
            found, typed = asked_theme(sys.stdin.fileno(), sys.stdout.fileno())
            self.buffer.text = typed.decode("utf-8", "ignore").replace("\r", "")
        chat.painter.theme = found or "dark"

    async def tick(self) -> None:
        """Keep the seconds of running calls moving."""
        while True:
            await asyncio.sleep(1)
            if self._chat is not None and self._chat.is_busy:
                self.refresh()

    @property
    def is_asking(self) -> bool:
        """Whether the input line is for the answer to a question."""
        return self._chat is not None and self._chat.questions.is_open

    @property
    def is_sudden(self) -> bool:
        """Whether a question has just come between somebody and a word that was being typed."""
        return time.monotonic() - self._cut_off_at < SUDDEN_S

    def edit(self) -> None:
        """Go on writing in the person's editor; what comes meanwhile is shown afterwards."""
        self.buffer.text = self.pastes.expanded(self.buffer.text)
        self.buffer.open_in_editor().add_done_callback(lambda _: self._flush())

    async def paste_picture(self) -> None:
        """Put the path of the clipboard's picture into the input line; the picture goes with the message."""
        from hermes.surfaces.cli.interactive.clipboard import picture_from_clipboard  # rare

        chat = self._chat
        assert chat is not None
        try:
            file = await picture_from_clipboard(chat.cli.home, chat.cli.environ)
        except UserError as error:
            chat.say(str(error), "red")
        else:
            self.buffer.insert_text(f'"{file}" ')

    def send(self) -> None:
        """Hand over what stands in the input line."""
        chat = self._chat
        assert chat is not None
        text = self.buffer.text
        if self.is_asking:
            # Whoever was in the middle of a word when the question came may finish it: that is no yes.
            is_sudden = self.is_sudden
            self.buffer.reset()
            if is_sudden or not chat.questions.hear(text):
                self._draft += text
                chat.say("Answer with one of the letters, or Esc for no. What you were typing is kept.")
            return
        if text.strip():
            self.buffer.append_to_history()
        self.buffer.reset()
        text = self.pastes.expanded(text)
        self.write(chat.typed(text))
        self.inbox.put_nowait(text)

    # -- drawing -------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Print what is pending above the live part: one erase and one redraw, however much there is."""
        self._is_scheduled = False
        app = self._app
        if not self._pending or (app is not None and app._running_in_terminal):  # the screen is the editor's
            return
        if app is None or not app.is_running:
            self.flush()
            return
        text = "".join(self._pending)
        self._pending.clear()
        app.renderer.erase(leave_alternate_screen=False)
        self.output.write_raw(text)
        self.output.flush()
        app._redraw()

    def flush(self) -> None:
        """Write what is pending, once there is no live part (any more)."""
        if self._pending:
            self.output.write_raw("".join(self._pending))
            self._pending.clear()
        self.output.flush()

    def _change_prompt(self, is_asking: bool) -> None:
        """What stood in the input line was not meant as an answer: it is put aside, and comes back."""
        self._was_asking = is_asking
        if is_asking:
            self._draft = self.buffer.text
            self._cut_off_at = time.monotonic() if self._draft else -SUDDEN_S
            self.buffer.reset()
        else:
            self.buffer.reset()
            self.buffer.text = self._draft
            self.buffer.cursor_position = len(self._draft)
            self._draft = ""

    def _layout(self) -> HSplit:
        def window(text: Callable[[], StyleAndTextTuples], rows: int, *, wrap: bool = False) -> Window:
            return Window(
                FormattedTextControl(text), height=Dimension(max=rows), dont_extend_height=True, wrap_lines=wrap
            )

        field = Window(
            BufferControl(
                self.buffer,
                input_processors=[BeforeInput(self._prompt)],
                search_buffer_control=self._search.control,
                preview_search=True,
            ),
            height=Dimension(min=1, max=INPUT_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
        )
        return HSplit(
            [
                ConditionalContainer(window(self._live, LIVE_ROWS), Condition(lambda: bool(self._live()))),
                ConditionalContainer(window(self._queue, QUEUE_ROWS + 1), Condition(lambda: bool(self._queue()))),
                ConditionalContainer(window(self._answers, 30), Condition(lambda: bool(self._answers()))),
                ConditionalContainer(window(self._unfolded, 200), Condition(lambda: self.unfolded is not None)),
                ConditionalContainer(window(self._picks, 30), Condition(lambda: self.picker is not None)),
                field,
                self._search,
                CompletionsMenu(max_height=6),
                window(self._status, 1),
            ],
            align=VerticalAlign.TOP,
        )

    def _prompt(self) -> StyleAndTextTuples:
        if self.is_asking:
            return [("class:ask", "allow? ")]
        return [("bold", "> ")]

    def _answers(self) -> StyleAndTextTuples:
        """The answers to what is asked, one of them chosen."""
        answers = self._chat.questions.answers if self._chat is not None else None
        if answers is None:
            return []
        size = self._size()
        rows = answers.rows(size.columns - 1, size.rows - ROWS_BELOW_ANSWERS)
        return _stacked([(f"class:{style}" if style else "", row) for style, row in rows])

    def _unfolded(self) -> StyleAndTextTuples:
        """The call that is unfolded, as much of it as fits."""
        size = self._size()
        return (
            _stacked(self.unfolded.rows(size.columns - 1, max(3, size.rows - 6))) if self.unfolded is not None else []
        )

    def _picks(self) -> StyleAndTextTuples:
        size = self._size()
        if self.picker is None:
            return []
        self.picker.typed = self.buffer.text
        return _stacked(self.picker.rows(size.columns - 1, max(4, min(30, size.rows - 8))))

    def pick(self, title: str, entries: Sequence[tuple[str, str]]) -> bool:
        if self.is_asking or self.buffer.text:
            return False
        self.picker = PickList(title, entries)
        self.refresh()
        return True

    def picked(self) -> None:
        """Take what is marked."""
        picker, self.picker = self.picker, None
        self.buffer.reset()
        if picker is not None and picker.chosen is not None:
            self.inbox.put_nowait(picker.chosen)
        self.refresh()

    def unfold(self) -> None:
        """Show the last call whole, or fold it again."""
        calls = self._chat.view.calls if self._chat is not None else ()
        if self.unfolded is not None:
            self.unfolded = None
        elif calls:
            self.unfolded = UnfoldedCall(tuple(calls))
        else:
            self.write("There is no call to unfold yet.\n")
        self.refresh()

    def _live(self) -> StyleAndTextTuples:
        chat = self._chat
        lines = chat.view.live() if chat is not None and chat.is_busy else []
        rows = [(style, row) for style, line in lines for row in folded(line, self._size().columns - 1)]
        return _stacked([(f"class:{style}" if style else "", row) for style, row in rows[-LIVE_ROWS:]])

    def _queue(self) -> StyleAndTextTuples:
        chat = self._chat
        if chat is None:
            return []
        waiting = chat.queue.open_ones
        width = self._size().columns - 14
        shown = [f"  waiting {number}: {cut(_one_line(one.text), width)}" for number, one in enumerate(waiting, 1)]
        if len(shown) > QUEUE_ROWS:
            shown = [*shown[:QUEUE_ROWS], f"  … and {len(shown) - QUEUE_ROWS} more; /queue"]
        return _stacked([("class:queue", line) for line in shown])

    def _status(self) -> StyleAndTextTuples:
        chat = self._chat
        if chat is None:
            return []
        text = status_line(
            chat.figures,
            chat.cwd,
            self._size().columns,
            show_cost=chat.look.display.show_cost,
            live_context=chat.view.context_tokens,
            mode=MODES[chat.live.work_mode],
        )
        return [("class:status", text)]

    def _completes(self) -> bool:
        text = self.buffer.document.text_before_cursor
        word = text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""
        return (text.startswith("/") and " " not in text) or word.startswith("@")

    def _size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):  # the terminal is gone
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    def _set_title(self) -> None:
        chat = self._chat
        if chat is None or not chat.look.display.terminal_title:
            return
        title = cut(clean(f"hermes: {chat.figures.title or chat.session_id}"), 60)
        if title != self._title:
            self._title = title
            self.output.set_title(title)
            self.output.flush()

    def _clear_title(self) -> None:
        if self._title:
            self.output.clear_title()
            self.output.flush()


def _styles(chat: "Chat") -> dict[str, str]:
    if not chat.painter.colours:
        return {}
    return {**STYLES, **LIGHT_STYLES} if chat.painter.theme == "light" else STYLES


def _stacked(lines: list[tuple[str, str]]) -> StyleAndTextTuples:
    """One below the other, with no empty line at the end."""
    return [(style, text if number == len(lines) else f"{text}\n") for number, (style, text) in enumerate(lines, 1)]


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


class LiveApplication(Application[None]):
    """An application that erases all of its rows after a resize.

    Most terminals wrap the rows that no longer fit, so that there are more of them above the cursor than were drawn.
    """

    wraps = True

    def _on_resize(self) -> None:
        renderer = self.renderer
        screen, before = renderer._last_screen, renderer._last_size
        columns = self.output.get_size().columns
        if self.wraps and screen is not None and before is not None and columns < before.columns:
            x, y = renderer._cursor_pos.x, renderer._cursor_pos.y
            above = sum(rows_of(_used(screen, row), columns) for row in range(y))
            renderer._cursor_pos = Point(x=x % columns, y=above + x // columns)
        super()._on_resize()


def rows_of(used: int, columns: int) -> int:
    """Rows that a line of `used` columns takes."""
    return max(1, -(-used // columns))


def wraps_lines(environ: Mapping[str, str]) -> bool:
    """Whether the terminal wraps what no longer fits: xterm and the Linux console cut it off."""
    return "XTERM_VERSION" not in environ and environ.get("TERM") not in ("linux", "vt100", "vt220")


def _used(screen: Screen, row: int) -> int:
    cells = screen.data_buffer[row]
    return max((place + max(1, cell.width) for place, cell in cells.items() if cell.char.strip()), default=0)
