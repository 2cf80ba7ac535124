"""Words as a terminal shows them: Markdown, code, diffs and tool lines as text with colours, or without."""

import io
import os
import re
from typing import TYPE_CHECKING, Any

from hermes.surfaces.cli.interactive.markdown_blocks import Block, Code, Prose
from hermes.surfaces.cli.output import STYLES, Output, cut, width_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

DIFF_LINES = 60
SAID_ROWS = 12  # of a long question, on the screen
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
        return f"\x1b[{';'.join(STYLES[name] for name in names)}m{text}\x1b[0m"

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
        return shown + self._gap

    @property
    def _gap(self) -> str:
        return "" if self._compact else "\n"

    def block(self, block: Block) -> str:
        """A block of an answer, and the empty line after it."""
        match block:
            case Prose(text):
                return self._drawn(_markdown(clean(text))) + self._gap
            case Code(text, language):
                return self._drawn(_code(clean(text), language)) + self._gap

    def diff(self, text: str) -> str:
        """A unified diff in colours; a long one is cut and says so."""
        lines = clean(text).splitlines()
        shown = [self._diff_line(cut(line, self.width - 2)) for line in lines[:DIFF_LINES]]
        if len(lines) > DIFF_LINES:
            shown.append(self.style(f"… {len(lines) - DIFF_LINES} more lines", "dim"))
        return "".join(f"  {line}\n" for line in shown)

    def output(self, text: str, most: int) -> str:
        """The last lines of what a tool printed, and how many were left out."""
        lines = clean(text).strip("\n").splitlines()
        if not lines or not most:
            return ""
        left = len(lines) - most
        head = [f"… {left} lines before"] if left > 0 else []
        return "".join(f"  {self.style(cut(line, self.width - 2), 'dim')}\n" for line in [*head, *lines[-most:]])

    def _diff_line(self, line: str) -> str:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        return self.style(line, colour)

    def _drawn(self, what: "RenderableType") -> str:
        console = self._console()
        console.print(what)
        file = console.file
        assert isinstance(file, io.StringIO)
        return "".join(f"{line.rstrip()}\n" for line in file.getvalue().strip("\n").splitlines())

    def _console(self) -> "Console":
        from rich.console import Console  # paid by the first answer

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
        )


def _markdown(text: str) -> "RenderableType":
    from rich.markdown import Heading, Markdown  # paid by the first answer
    from rich.text import Text

    class LeftHeading(Heading):
        """A heading at the left, as one line: a box around it costs three."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            yield Text.assemble(self.text, style="bold underline" if self.tag == "h1" else "bold")

    class Plain(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - the library's own attribute

    return Plain(text, code_theme="ansi_dark", hyperlinks=False)


def _code(text: str, language: str) -> "RenderableType":
    from rich.padding import Padding  # paid by the first answer
    from rich.syntax import Syntax

    drawn = Syntax(text, language or "text", theme="ansi_dark", background_color="default", word_wrap=True)
    return Padding(drawn, (0, 0, 0, 2))
