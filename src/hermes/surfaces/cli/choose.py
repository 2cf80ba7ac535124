"""Choose one of many on the screen: type to filter, arrows move, Enter takes one, as in the session picker."""

from collections.abc import Sequence
from typing import TypeVar

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.output import Output as Screen

from hermes.surfaces.cli.output import cut, padded

Value = TypeVar("Value")


class ChoiceList:
    """What was typed, what matches, and which one is marked."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = list(labels)
        self.typed = Buffer(on_text_changed=lambda _: self._narrow(), multiline=False)
        self.shown = list(range(len(self._labels)))
        self.marked = 0

    def move(self, by: int) -> None:
        self.marked = max(0, min(len(self.shown) - 1, self.marked + by))

    @property
    def chosen(self) -> int | None:
        return self.shown[self.marked] if self.shown else None

    def lines(self, height: int, width: int) -> StyleAndTextTuples:
        first = max(0, min(self.marked - height // 2, len(self.shown) - height))
        out: StyleAndTextTuples = []
        for place, index in enumerate(self.shown[first : first + height], first):
            style = "reverse" if place == self.marked else ""
            out.append((style, f"{padded(cut(f' {self._labels[index]}', width), width)}\n"))
        return out or [("italic", " nothing matches; Enter takes what is typed")]

    def _narrow(self) -> None:
        words = self.typed.text.lower().split()
        self.shown = [place for place, label in enumerate(self._labels) if all(word in label.lower() for word in words)]
        self.marked = 0


def choose(
    title: str,
    options: Sequence[tuple[str, Value]],
    *,
    keys_from: Input | None = None,
    screen: Screen | None = None,
) -> Value | str | None:
    """The value of the option that was taken, what was typed when none fits, or None when the person left.

    Ctrl-C is a `KeyboardInterrupt`, as in every question that is not drawn.
    """
    listed = ChoiceList([label for label, _ in options])
    keys = KeyBindings()
    for names, by in ((("up", "c-p"), -1), (("down", "c-n"), 1), (("pageup",), -10), (("pagedown",), 10)):
        for name in names:
            keys.add(name)(lambda _, by=by: listed.move(by))

    @keys.add("enter")
    def _take(event: KeyPressEvent) -> None:
        place = listed.chosen
        event.app.exit(result=options[place][1] if place is not None else listed.typed.text.strip() or None)

    @keys.add("escape", eager=True)
    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    @keys.add("c-c")
    def _stop(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    def size() -> tuple[int, int]:
        from prompt_toolkit.application import get_app

        rows, columns = get_app().output.get_size()
        return max(1, rows - 3), columns

    head = Window(
        FormattedTextControl(f"{title}: type to filter, Enter takes one, Esc leaves"),
        dont_extend_height=True,
        wrap_lines=True,
    )
    typed = Window(BufferControl(listed.typed), height=1, get_line_prefix=lambda *_: [("bold", "> ")])
    shown = Window(FormattedTextControl(lambda: listed.lines(*size())))
    app: Application[Value | str | None] = Application(
        layout=Layout(HSplit([head, typed, shown]), focused_element=typed),
        key_bindings=keys,
        full_screen=True,
        input=keys_from,
        output=screen,
    )
    return app.run()
