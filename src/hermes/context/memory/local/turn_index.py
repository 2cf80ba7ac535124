"""The vectors of past turns in a few plain files: appended by one process at a time, mapped by all that recall.

`turns.bin` has a record for each turn and is written last, so what it counts is whole in the other files; whoever
writes next cuts off what a kill has left behind it. All of it can be made again from the sessions, and is when the
model or the form has changed.
"""

import fcntl
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.config import paths
from hermes.context.memory.local.sentence_model import DIMENSIONS, MODEL, Vectors

FORM = f"1 {MODEL}"
MAX_SENTENCES = 8  # of a message that are indexed: the first ones, where people say what they want
MAX_CHARS = 400  # of a sentence
_TURN = struct.Struct("<qdQIHQI")  # message id, time, session, first sentence, count, where its texts begin, their size
_ROW_BYTES = 4 * DIMENSIONS
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？:])\s+|\n+")  # noqa: RUF001 - full stops of other scripts
_BETWEEN = "\x1f"


class IndexedTurn(Struct, frozen=True):
    """One turn as the index has it."""

    message_id: int
    at: float
    session: int  # a number for its id
    first: int  # of its rows in `sentences`
    count: int
    texts: tuple[str, ...]


def sentences_of(text: str) -> list[str]:
    """The sentences of a message that are worth a vector."""
    found = [" ".join(part.split())[:MAX_CHARS] for part in _SENTENCE_END.split(text)]
    telling = [part for part in found if len(part) > 3 and (" " in part or len(part) > 12)]
    return telling[:MAX_SENTENCES] or [" ".join(text.split())[:MAX_CHARS]][: bool(text.strip())]


def session_number(session_id: str) -> int:
    """A number that stands for a session's id in the files."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(session_id.encode(), digest_size=8).digest(), "little")


class TurnIndex:
    """The index of one home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mapped: tuple[int, Any, Any, Any] | None = None  # as of so many turns

    @property
    def count(self) -> int:
        """How many turns it holds."""
        return self._size("turns.bin") // _TURN.size

    @property
    def last_message(self) -> int:
        """The newest message that was looked at, indexed or not; 0 at the beginning."""
        try:
            return int((self.folder / "watermark").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def matrix(self) -> tuple[Vectors, Any]:
        """A row for each turn, and their ids: mapped, not read, and the same object until the index has grown."""
        import numpy as np

        count = self.count
        if self._mapped is None or self._mapped[0] != count:
            shape = (count, DIMENSIONS)
            turns: Any = (
                np.memmap(self.folder / "turns.f32", np.float32, "r", shape=shape) if count else np.zeros(shape)
            )
            kind = np.dtype(
                [("id", "<i8"), ("at", "<f8"), ("session", "<u8"), ("first", "<u4"), ("count", "<u2"), ("place", "<u8"),
                 ("size", "<u4")]
            )  # fmt: skip
            known: Any = np.memmap(self.folder / "turns.bin", kind, "r", shape=(count,)) if count else np.zeros(0, kind)
            rows = self._size("sentences.f32") // _ROW_BYTES
            said = np.memmap(self.folder / "sentences.f32", np.float32, "r", shape=(rows, DIMENSIONS)) if rows else None
            self._mapped = (count, turns, known, said)
        return self._mapped[1], self._mapped[2]

    def sentences(self, rows: Any) -> Vectors:
        """These rows of the sentences' vectors."""
        assert self._mapped is not None
        made: Vectors = self._mapped[3][rows]
        return made

    def turns(self, places: Sequence[int]) -> list[IndexedTurn]:
        """The turns at these places of the matrix."""
        _, known = self.matrix()
        made = []
        with (self.folder / "texts.txt").open("rb") as texts:
            for place in places:
                one = known[place]
                texts.seek(int(one["place"]))
                text = texts.read(int(one["size"])).decode("utf-8", "replace")
                made.append(
                    IndexedTurn(
                        int(one["id"]),
                        float(one["at"]),
                        int(one["session"]),
                        int(one["first"]),
                        int(one["count"]),
                        tuple(text.split(_BETWEEN)),
                    )
                )
        return made

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Whether we are the one process that may add; what a kill left, or another form, is cleared away first."""
        paths.made(self.folder)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            self._clear_away()
            yield True
        finally:
            os.close(handle)

    def add(self, message_id: int, at: float, session_id: str, said: Sequence[str], vectors: Vectors) -> None:
        """Append one turn; its vector is the middle of its sentences'."""
        import numpy as np

        middle = vectors.mean(axis=0)
        first = self._append("sentences.f32", vectors.astype(np.float32).tobytes()) // _ROW_BYTES
        texts = _BETWEEN.join(said).encode("utf-8", "replace")
        place = self._append("texts.txt", texts)
        self._append("turns.f32", (middle / max(float(np.linalg.norm(middle)), 1e-9)).astype(np.float32).tobytes())
        record = (message_id, at, session_number(session_id), first, len(vectors), place, len(texts))
        self._append("turns.bin", _TURN.pack(*record))

    def looked_at(self, message_id: int) -> None:
        """Everything up to this message is indexed, or not worth it."""
        paths.write_private(self.folder / "watermark", str(message_id))

    def _clear_away(self) -> None:
        form = self.folder / "form"
        if not form.exists() or form.read_text() != FORM:
            for file in ("watermark", "turns.bin", "turns.f32", "sentences.f32", "texts.txt"):
                (self.folder / file).unlink(missing_ok=True)
            paths.write_private(form, FORM)
        count = self.count
        rows = size = last = 0
        if count:
            with (self.folder / "turns.bin").open("rb") as opened:
                opened.seek((count - 1) * _TURN.size)
                last, _, _, first, own, place, length = _TURN.unpack(opened.read(_TURN.size))
                rows, size = first + own, place + length
        whole = {
            "turns.bin": count * _TURN.size,
            "turns.f32": count * _ROW_BYTES,
            "sentences.f32": rows * _ROW_BYTES,
            "texts.txt": size,
        }
        for file, length in whole.items():
            if self._size(file) > length:
                os.truncate(self.folder / file, length)
        if last > self.last_message:
            self.looked_at(last)

    def _append(self, file: str, data: bytes) -> int:
        with (self.folder / file).open("ab") as out:
            place = out.tell()
            out.write(data)
        return place

    def _size(self, file: str) -> int:
        try:
            return (self.folder / file).stat().st_size
        except FileNotFoundError:
            return 0
