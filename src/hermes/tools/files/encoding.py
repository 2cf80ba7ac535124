"""Tell text from binary, and decode text so that encoding it again gives the same bytes."""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

_IMAGES = "bmp gif ico jpeg jpg png tif tiff webp"
_OTHER_BINARIES = """
    7z a avi bz2 class db dll dmg doc docx dylib ear eot exe flac gz iso jar lib lz4 lzma mkv mov mp3 mp4 mpeg msi o ogg
    otf parquet pdf pkl ppt pptx psd pyc pyd pyo rar rlib so sqlite sqlite3 tar tgz ttf wasm wav webm whl woff woff2 xls
    xlsx xz zip zst
"""
IMAGE_EXTENSIONS = frozenset(_IMAGES.split())
BINARY_EXTENSIONS = IMAGE_EXTENSIONS | frozenset(_OTHER_BINARIES.split())

_SAMPLE_BYTES = 64 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_LE_BOM = b"\xff\xfe"
_UTF16_BE_BOM = b"\xfe\xff"
_UTF32_LE_BOM = b"\xff\xfe\x00\x00"
# C0 controls that no text editor writes. ESC and backspace occur in terminal logs, which are text.
_STRANGE_CONTROLS = bytes(set(range(0x20)) - set(b"\b\t\n\v\f\r\x1b")) + b"\x7f"
_CP1252_HOLES = b"\x81\x8d\x8f\x90\x9d"
_C1_RANGE = bytes(range(0x80, 0xA0))


class NotTextError(ValueError):
    """The bytes are no text in any encoding that is kept exactly."""


class UnencodableError(ValueError):
    """The new text has a character that the file's encoding cannot hold."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's text is stored: a Python codec name and the byte order mark before the text, often empty."""

    codec: str
    bom: bytes = b""

    @property
    def name(self) -> str:
        """The name shown to the model."""
        return f"{self.codec} with BOM" if self.bom else self.codec

    @property
    def is_wide(self) -> bool:
        return self.codec.startswith("utf-16")


UTF8 = Encoding("utf-8")


class Endings(Enum):
    """A line ending; the value is the text itself."""

    LF = "\n"
    CRLF = "\r\n"
    CR = "\r"


@dataclass(frozen=True, slots=True)
class LineEndings:
    """The ending that most lines have, and whether others occur beside it."""

    main: Endings
    is_mixed: bool


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text without its byte order mark, and what it takes to store it again."""

    text: str
    encoding: Encoding


def detect(head: bytes, *, is_whole: bool = True) -> Encoding | None:
    """The encoding of a file that starts with `head`, or None for binary.

    With `is_whole` false the head may stop inside a character, and what follows it may still turn out not to decode.
    """
    if head.startswith(_UTF32_LE_BOM):
        return None
    for bom, codec in ((_UTF8_BOM, "utf-8"), (_UTF16_LE_BOM, "utf-16-le"), (_UTF16_BE_BOM, "utf-16-be")):
        if head.startswith(bom):
            found = Encoding(codec, bom)
            return found if _decodes(head[len(bom) :], found, is_whole=is_whole) else _detect_bare(head, is_whole)
    return _detect_bare(head, is_whole)


def decode(data: bytes) -> Decoded:
    """The text of `data`. `encode(decode(data).text, decode(data).encoding) == data` for all bytes it accepts."""
    plain = _plain_utf8(data)  # nearly every file; `detect` would decode it a second time
    if plain is not None:
        return Decoded(plain, UTF8)
    encoding = detect(data)
    if encoding is None:
        raise NotTextError("the file is binary")
    return Decoded(data[len(encoding.bom) :].decode(encoding.codec), encoding)


def encode(text: str, encoding: Encoding, *, first_line: int = 1) -> bytes:
    """The bytes of `text` as the file stores it, byte order mark included. Errors count from `first_line`."""
    try:
        return encoding.bom + text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        line = first_line + text.count("\n", 0, error.start)
        raise UnencodableError(
            f"line {line}: this file is {encoding.name}, which cannot hold {text[error.start]!r}; "
            "use characters that this encoding has, or convert the file to UTF-8 first"
        ) from error


def line_endings(text: str) -> LineEndings:
    """The line endings in use; LF when the text has none."""
    crlf = text.count("\r\n")
    lone_lf = text.count("\n") - crlf
    lone_cr = text.count("\r") - crlf
    counts = Counter({Endings.LF: lone_lf, Endings.CRLF: crlf, Endings.CR: lone_cr})
    main, _ = counts.most_common(1)[0]  # ties keep the order above, so no newline at all means LF
    return LineEndings(main, is_mixed=sum(count > 0 for count in counts.values()) > 1)


def _plain_utf8(data: bytes) -> str | None:
    if b"\0" in data or data.startswith(_UTF8_BOM):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _detect_bare(head: bytes, is_whole: bool) -> Encoding | None:
    """Detect without a byte order mark."""
    if b"\0" in head:
        return _detect_wide(head, is_whole)
    if _decodes(head, UTF8, is_whole=is_whole):
        return UTF8
    strange = len(head) - len(head.translate(None, _STRANGE_CONTROLS))
    if strange * 200 > len(head):
        return None
    has_c1 = len(head) != len(head.translate(None, _C1_RANGE))
    has_holes = len(head) != len(head.translate(None, _CP1252_HOLES))
    # Bytes 80-9F are quotes and dashes in every Windows editor and invisible controls in Latin-1 proper.
    return Encoding("cp1252" if has_c1 and not has_holes else "latin-1")


def _detect_wide(head: bytes, is_whole: bool) -> Encoding | None:
    """UTF-16 without a mark: one half of each code unit is zero nearly always, the other nearly never."""
    sample = head[:_SAMPLE_BYTES]
    pairs = len(sample) // 2
    if pairs == 0:
        return None
    low_zeros, high_zeros = sample[0::2].count(0), sample[1::2].count(0)
    for zeros, other, codec in ((high_zeros, low_zeros, "utf-16-le"), (low_zeros, high_zeros, "utf-16-be")):
        found = Encoding(codec)
        if zeros * 10 >= pairs * 4 and other == 0 and _decodes(head, found, is_whole=is_whole):
            return found
    return None


def _decodes(body: bytes, encoding: Encoding, *, is_whole: bool) -> bool:
    if not is_whole and encoding.is_wide:
        body = body[: len(body) // 2 * 2]
    try:
        text = body.decode(encoding.codec)
    except UnicodeDecodeError as error:
        longest_character_bytes = 4
        is_cut = not is_whole and error.start > len(body) - longest_character_bytes and "unexpected end" in error.reason
        if not is_cut:
            return False
        text = body[: error.start].decode(encoding.codec)
    return "\0" not in text
