"""Words as a terminal shows them: Markdown, code, diffs and tool lines as text with colours, or without."""

import io
import os
import re
from typing import TYPE_CHECKING, Any

from hermes.surfaces.cli.interactive.diff_view import diff_rows
from hermes.surfaces.cli.interactive.markdown_blocks import Block, Code, Prose
from hermes.surfaces.cli.interactive.theme import DARK, LIGHT, Theme
from hermes.surfaces.cli.output import Output, cut, width_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

DIFF_LINES = 60
SAID_ROWS = 12  # of a long question, on the screen
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
# What a terminal would act on: a model or a tool must not move the cursor, ring, or rename the window.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """`text` without what a terminal would act on; a tab is four spaces."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\t", "    "))


def columns_of(out: Output) -> int:
    """Columns of the terminal as it is now. COLUMNS says what it was when somebody exported it."""
    try:
        return os.get_terminal_size(out.stdout.fileno()).columns or out.width
    except (OSError, ValueError):
        return out.width


def folded(line: str, width: int) -> list[str]:
    """`line` in rows of at most `width` columns, cut at spaces where there are any."""
    rows: list[str] = []
    while width_of(line) > width:
        row = _fitting(line, width)
        space = row.rfind(" ")
        row = row[:space] if space > width // 2 else row
        rows.append(row)
        line = line[len(row) :].lstrip(" ")
    return [*rows, line]


def hanging(mark: str, text: str, width: int) -> list[str]:
    """`mark` and `text` in rows of at most `width` columns; what goes on below begins where the text does."""
    first, *rest = folded(text, max(8, width - width_of(mark)))
    return [mark + first, *(" " * width_of(mark) + row for row in rest)]


def _fitting(line: str, width: int) -> str:
    """The longest beginning that fits; at least one character."""
    end = min(len(line), width)
    while end > 1 and width_of(line[:end]) > width:
        end -= max(1, (width_of(line[:end]) - width) // 2)
    return line[:end]


class Painter:
    """Draws for the width that the terminal has at that moment."""

    def __init__(self, out: Output, *, compact: bool = False) -> None:
        self._out = out
        self._compact = compact
        self.theme: Theme = "dark"

    @property
    def colours(self) -> bool:
        return self._out.colours

    @property
    def width(self) -> int:
        return max(20, columns_of(self._out))

    def style(self, text: str, *names: str) -> str:
        """`text` in these colours."""
        if not self.colours or not names or not text:
            return text
        styles = LIGHT if self.theme == "light" else DARK
        return f"\x1b[{';'.join(styles[name] for name in names)}m{text}\x1b[0m"

    def line(self, text: str, *names: str) -> str:
        """One line, cut to the width."""
        return self.style(cut(" ".join(clean(text).split("\n")), self.width), *names) + "\n"

    def said(self, text: str, when: str = "") -> str:
        """What the person said, and the empty line after it; a very long text is cut and says so."""
        mark = f"{when}> "
        rows = [row for line in clean(text).splitlines() for row in folded(line, self.width - len(mark))]
        if (left := len(rows) - SAID_ROWS) > 0:
            rows[SAID_ROWS:] = [f"… {left} more lines"]
        marks = [mark, *[" " * len(mark)] * len(rows)]
        shown = "".join(f"{self.style(f'{before}{row}', 'bold')}\n" for before, row in zip(marks, rows, strict=False))
        return shown + self.gap

    @property
    def gap(self) -> str:
        """The empty line between two things."""
        return "" if self._compact else "\n"

    def block(self, block: Block) -> str:
        """A block of an answer, without the empty line between it and the next."""
        colours = f"ansi_{self.theme}"
        match block:
            case Prose(text):
                return self._drawn(_markdown(clean(text), colours))
            case Code(text, language):
                return self._drawn(_code(clean(text), language, colours))

    def diff(self, text: str, most: int = DIFF_LINES) -> str:
        """A unified diff with line numbers and colours; a long one is cut and says so."""
        lines = clean(text).splitlines()
        shown = list(diff_rows(lines[:most], self.width - 2, self.style))
        if len(lines) > most:
            shown.append(self.style(f"… {len(lines) - most} more lines; Ctrl-O shows all", "dim"))
        return "".join(f"  {line}\n" for line in shown)

    def output(self, text: str, most: int) -> str:
        """The last lines of what a tool printed, and how many were left out."""
        lines = clean(text).strip("\n").splitlines()
        if not lines or not most:
            return ""
        left = len(lines) - most
        head = [f"… {left} lines before"] if left > 0 else []
        return "".join(f"  {self.style(cut(line, self.width - 2), 'dim')}\n" for line in [*head, *lines[-most:]])

    def _drawn(self, what: "RenderableType") -> str:
        console = self._console()
        console.print(what)
        file = console.file
        assert isinstance(file, io.StringIO)
        lines = [line.rstrip() if _COLOUR.sub("", line).strip() else "" for line in file.getvalue().splitlines()]
        text = "\n".join(lines).strip("\n")  # a table is drawn with empty rows around it
        return f"{text}\n" if text else ""

    def _console(self) -> "Console":
        from rich.console import Console  # paid by the first answer
        from rich.theme import Theme as Theme_

        return Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=self.colours,
            color_system="standard" if self.colours else None,
            no_color=not self.colours,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
            theme=Theme_({"markdown.code": "bold cyan" if self.theme == "dark" else "bold blue"}),
        )


def _markdown(text: str, colours: str) -> "RenderableType":
    from rich.markdown import Heading, ListItem, Markdown  # paid by the first answer
    from rich.segment import Segment
    from rich.text import Text

    class LeftHeading(Heading):
        """A heading at the left, as one line: a box around it costs three."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            yield Text.assemble(self.text, style="bold underline" if self.tag == "h1" else "bold")

    class DottedItem(ListItem):
        """An item of a numbered list, with the dot that people write."""

        def render_number(self, console: Any, options: Any, number: int, last_number: int) -> Any:
            width = len(str(last_number)) + 3
            lines = console.render_lines(self.elements, options.update(width=options.max_width - width))
            for place, line in enumerate(lines):
                yield Segment(f" {number}. ".rjust(width) if not place else " " * width)
                yield from line
                yield Segment("\n")

    class Plain(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading, "list_item_open": DottedItem}  # noqa: RUF012 - the library's own attribute

    return Plain(text, code_theme=colours, hyperlinks=False)


def _code(text: str, language: str, colours: str) -> "RenderableType":
    from rich.padding import Padding  # paid by the first answer
    from rich.syntax import Syntax

    drawn = Syntax(text, language or "text", theme=colours, background_color="default", word_wrap=True)
    return Padding(drawn, (0, 0, 0, 2))
