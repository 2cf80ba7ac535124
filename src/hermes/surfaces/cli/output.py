"""Where words go: answers to stdout, everything else to stderr; pleasant in a terminal, plain in a pipe."""

import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class OutputLost(BrokenPipeError):
    """stdout takes no more, and not because a reader has left: the disk is full, a quota is used up."""


class Output:
    """The two streams of a run. `is_terminal` is about stdout; colours also heed NO_COLOR and TERM=dumb."""

    def __init__(self, stdout: TextIO, stderr: TextIO, environ: Mapping[str, str]) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self._environ = environ
        self.is_terminal = stdout.isatty()
        may_colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self.colours = may_colour and self.is_terminal
        self.error_colours = may_colour and stderr.isatty()

    @classmethod
    def of_process(cls, environ: Mapping[str, str]) -> "Output":
        """The process's own streams, made unable to fail on a character they cannot show."""
        return cls(_unfailing(sys.stdout), _unfailing(sys.stderr), environ)

    def claim(self) -> None:
        """Have stdout alone from now on, where a program reads it: what else writes there reaches stderr.

        A plugin may write to descriptor 1, or start a program that does, where catching `print` is no help. In a
        terminal both are the same screen.
        """
        stream = self.stdout
        if self.is_terminal or not isinstance(stream, io.TextIOWrapper) or _number_of(stream) != 1:
            return
        stream.flush()
        own = os.dup(1)  # which no program inherits
        others = os.dup(2) if _number_of(self.stderr) == 2 else os.open(os.devnull, os.O_WRONLY)
        os.dup2(others, 1)
        os.close(others)
        self.stdout = open(own, "w", encoding=stream.encoding, errors="replace")  # noqa: PTH123, SIM115 - for good

    def line(self, text: str = "") -> None:
        """One line of the answer."""
        self._put(f"{text}\n")

    def write(self, text: str) -> None:
        """Part of the answer, shown at once."""
        self._put(text)
        self.flush()

    def json(self, value: Any) -> None:
        """One line of JSON."""
        import msgspec  # plain output does without it

        self._put(msgspec.json.encode(value).decode("utf-8", "replace") + "\n")
        self.flush()

    def told(self, text: str) -> None:
        """One line of the answer in our own words: a command in it can be typed as it stands."""
        self.line(self.typed(text))

    def typed(self, text: str) -> str:
        """Our own words with `hermes` as it can be typed here and now."""
        if "hermes" not in text:
            return text
        from hermes.host.command_word import as_typed  # for who is told a command

        return as_typed(text, self._environ)

    def note(self, text: str) -> None:
        """A word of ours beside the answer, on stderr; see `told`. Nobody reading it is no reason to stop."""
        self.quote(self.typed(text))

    def quote(self, text: str) -> None:
        """Words of others beside the answer, as they are."""
        try:
            self.stderr.write(f"{text}\n")
            self.stderr.flush()
        except OSError:
            _abandon(self.stderr)
        except ValueError:  # closed from outside
            return

    def error(self, text: str) -> None:
        """What went wrong, on stderr."""
        self.note(f"{self._styled('error:', ('red', 'bold'), self.error_colours)} {text}")

    def style(self, text: str, *names: str) -> str:
        """`text` in these colours, where stdout shows any."""
        return self._styled(text, names, self.colours)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]], *, flexible: int | None = None) -> None:
        """Aligned columns. In a terminal the column `flexible` is cut so that a row fits; in a pipe nothing is cut.

        Where a terminal is too narrow even so, each row takes several lines.
        """
        cells = [[_one_line(cell) for cell in row] for row in rows]
        widths = [max(width_of(text) for text in column) for column in zip(headers, *cells, strict=True)]
        if flexible is not None and self.is_terminal:
            spare = self.width - (sum(widths) - widths[flexible] + 2 * (len(widths) - 1))
            widths[flexible] = max(8, min(widths[flexible], spare))
        if self.is_terminal and sum(widths) + 2 * (len(widths) - 1) > self.width:
            self._stacked(headers, cells)
            return
        for number, row in enumerate([list(headers), *cells]):
            fitted = [padded(cut(text, width), width) for text, width in zip(row, widths, strict=True)]
            text = "  ".join(fitted).rstrip()
            self.line(self.style(text, "bold") if number == 0 else text)

    def _stacked(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Each row as its first cell, and below it the others by name."""
        for first, *others in rows:
            self.line(self.style(first, "bold"))
            line = ""
            for name, text in zip(headers[1:], others, strict=True):
                part = f"  {name.lower()}: {text}"
                if line and width_of(line + part) > self.width:
                    self.line(line)
                    line = ""
                line += part if text else ""
            self.line(line)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return shutil.get_terminal_size().columns

    def flush(self) -> None:
        """Hand everything over; `BrokenPipeError` when nobody takes it."""
        self._put("", is_all=True)

    def abandon(self) -> None:
        """Nobody reads stdout any more: let what is still buffered go nowhere, without a word."""
        _abandon(self.stdout)

    def _put(self, text: str, *, is_all: bool = False) -> None:
        try:
            self.stdout.write(text)
            if is_all:
                self.stdout.flush()
        except ValueError:  # closed from outside
            raise BrokenPipeError from None
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error

    @staticmethod
    def _styled(text: str, names: Sequence[str], colours: bool) -> str:
        if not colours or not names:
            return text
        return f"\x1b[{';'.join(STYLES[name] for name in names)}m{text}\x1b[0m"


def _abandon(stream: TextIO) -> None:
    """Let what is still buffered go nowhere: the interpreter would fail on it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _number_of(stream: TextIO) -> int | None:
    """Its descriptor; None for one that has none."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _unfailing(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed before the start: `hermes … >&-`
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it lives as long as the process
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def is_text(word: str) -> bool:
    """Whether `word` can be stored and sent: bytes that are not UTF-8 come from the shell as lone surrogates."""
    return word.encode("utf-8", "replace").decode() == word


def width_of(text: str) -> int:
    """Columns that `text` takes; a CJK character takes two."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # plain ASCII does without it

    return max(0, wcswidth(text))


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns, with a mark where something was left out."""
    if width_of(text) <= width:
        return text
    kept = text[: width - 1]
    while kept and width_of(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…"


def padded(text: str, width: int) -> str:
    """`text` filled up to `width` columns."""
    return text + " " * (width - width_of(text))


def _one_line(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return " ".join(text.split()) if any(not char.isprintable() for char in text) else text


def cache_share(read: int, cached: int) -> float | None:
    """The share of the tokens that a provider read which came from its cache; None where it read nothing."""
    return cached / read if read else None


def token_words(read: int, cached: int, written: int) -> str:
    """What a turn took, for the line at its end."""
    share = cache_share(read, cached)
    return f"{read:,} tokens read{f' ({share:.0%} from cache)' if share else ''}, {written:,} written"
