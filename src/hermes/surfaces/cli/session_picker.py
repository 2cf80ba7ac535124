"""Pick a session on the screen: type to search, see how it began, take it with Enter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.output import Output as Screen

from hermes.errors import HermesError
from hermes.host.session_text import age, calls_of, said, title_of
from hermes.surfaces.cli.chat.events import printed
from hermes.surfaces.cli.output import cut, padded

if TYPE_CHECKING:
    from hermes.state import SessionDB

Row = Mapping[str, Any]
PREVIEW_LINES = 8
PREVIEW_MESSAGES = 4
FOUND = 200


class Picker:
    """The state of the screen: what was typed, what matches, which one is marked."""

    def __init__(self, db: "SessionDB", rows: Sequence[Row]) -> None:
        self._db = db
        self._rows = list(rows)
        self._previews: dict[str, str] = {}
        self._found: dict[str, frozenset[str]] = {}  # by what was typed
        self.typed = Buffer(on_text_changed=lambda _: self._narrow(), multiline=False)
        self.shown = self._rows
        self.marked = 0

    def move(self, by: int) -> None:
        """Mark another one."""
        if self.shown:
            self.marked = max(0, min(len(self.shown) - 1, self.marked + by))

    @property
    def chosen(self) -> str | None:
        return str(self.shown[self.marked]["id"]) if self.shown else None

    def lines(self, height: int, width: int) -> StyleAndTextTuples:
        """The visible part of the list."""
        first = max(0, min(self.marked - height // 2, len(self.shown) - height))
        out: StyleAndTextTuples = []
        for index, row in enumerate(self.shown[first : first + height], first):
            count = padded(str(row.get("message_count", 0)), 5)
            text = f" {padded(age(row.get('last_active')), 9)} {count} {title_of(row) or row['id']}"
            style = "reverse" if index == self.marked else ""
            out.append((style, f"{padded(cut(text, width), width)}\n"))
        return out or [("italic", " nothing matches")]

    def preview(self, width: int) -> str:
        """How the marked session began."""
        session = self.chosen
        if session is None:
            return ""
        if session not in self._previews:
            first = self._db.get_messages(session, limit=PREVIEW_MESSAGES)
            self._previews[session] = "\n".join(line for each in first for line in _told(each))
        return "\n".join(cut(line, width) for line in self._previews[session].splitlines()[:PREVIEW_LINES])

    def _said_in(self, words: str) -> frozenset[str]:
        """The sessions in which this was said; what cannot be searched for was said in none."""
        if words not in self._found:
            try:
                query = " ".join(f'"{word}"' if not word.isalnum() else word for word in words.replace('"', "").split())
                rows = self._db.search_messages(f"{query}*", limit=FOUND)
            except (HermesError, ValueError):
                rows = []
            self._found[words] = frozenset(str(row["session_id"]) for row in rows)
        return self._found[words]

    def _narrow(self) -> None:
        words = self.typed.text.lower().split()
        said = self._said_in(" ".join(words)) if any(len(word) > 2 for word in words) else frozenset()
        self.shown = [row for row in self._rows if row["id"] in said or all(word in _searched(row) for word in words)]
        self.marked = 0


def pick_session(
    db: "SessionDB", rows: Sequence[Row], *, keys_from: Input | None = None, screen: Screen | None = None
) -> str | None:
    """Let the person choose among `rows`; the id, or None when they left without one."""
    picker = Picker(db, rows)
    app: Application[str | None] = Application(
        layout=_layout(picker), key_bindings=_keys(picker), full_screen=True, input=keys_from, output=screen
    )
    return app.run()


def _layout(picker: Picker) -> Layout:
    def size() -> tuple[int, int]:
        from prompt_toolkit.application import get_app

        rows, columns = get_app().output.get_size()
        return max(1, rows - PREVIEW_LINES - 4), columns

    head = Window(
        FormattedTextControl("Sessions: type to search, Enter takes one, Esc leaves"),
        dont_extend_height=True,
        wrap_lines=True,
    )
    typed = Window(BufferControl(picker.typed), height=1, get_line_prefix=lambda *_: [("bold", "> ")])
    listed = Window(FormattedTextControl(lambda: picker.lines(*size())))
    rule = Window(char="─", height=1)
    shown = Window(FormattedTextControl(lambda: picker.preview(size()[1])), height=PREVIEW_LINES)
    return Layout(HSplit([head, typed, listed, rule, shown]), focused_element=typed)


def _keys(picker: Picker) -> KeyBindings:
    keys = KeyBindings()
    for names, by in ((("up", "c-p"), -1), (("down", "c-n"), 1), (("pageup",), -10), (("pagedown",), 10)):
        for name in names:
            keys.add(name)(lambda _, by=by: picker.move(by))

    @keys.add("enter")
    def _take(event: KeyPressEvent) -> None:
        event.app.exit(result=picker.chosen)

    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    return keys


def _told(message: Row) -> list[str]:
    """A message in lines of plain words: results without marks and JSON, calls as the conversation shows them."""
    role, words = str(message["role"]), said(message)
    if role == "tool":
        role, words = str(message.get("tool_name") or role), printed(words)
    spoken = [f"{'you' if role == 'user' else role}: {' '.join(words.split())}"] if words.strip() else []
    return spoken + [f"  → {call}" for call in calls_of(message)]


def _searched(row: Row) -> str:
    return " ".join(str(row.get(name) or "") for name in ("id", "title", "preview", "source", "cwd")).lower()
