"""The live part of the screen in a window that becomes narrower: its rows are found again where they wrapped to."""

from collections.abc import Mapping

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen


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
