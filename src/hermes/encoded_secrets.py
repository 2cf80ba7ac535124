"""Known secrets in other clothes: where their hex, base32 or base64 stands in a text.

Nearly every text holds none, so that is found out first, by what costs least: all characters outside an alphabet are
blanked out at once, and only what is left in one piece, long enough for a secret, is compared.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_letters, ascii_uppercase, digits
from typing import NamedTuple

_LEAST_CORE = 8
_LEAST_RUN = 10  # of digits; a value of 6 characters has 12 in hex, 10 in base32, one of 7 has 10 in base64
# Pairs of digits on their own, or parted as programs part them: `68:65`, `68 65`, `0x68, 0x65`, `%68%65`, `\x68\x65`.
_PAIR = r"[ :,%-]{0,2}(?:0?x)?[0-9A-Fa-f]{2}"
_HEX_RUN = re.compile(rf"[0-9A-Fa-f]{{2}}(?:{_PAIR}){{5,}}")
_PAIRS = re.compile(_PAIR)
_LONG_RUN = re.compile(rb"[^ ]{%d,}" % _LEAST_RUN)
_PARTING = b" :,%-xX\\"
_SHORTEST_HEX = b"h" * 12
_BASE32_RUN = re.compile(rf"[A-Z2-7]{{{_LEAST_RUN},}}")
_BASE64_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{_LEAST_RUN},}}")
_URL_SAFE = str.maketrans("+/", "-_")

Span = tuple[int, int]


def _alphabet(kept: str) -> bytes:
    return bytes(byte if byte < 128 and chr(byte) in kept else 32 for byte in range(256))


_HEX_DIGITS = tuple(f"{digits}abcdefABCDEF")
_HEX = _alphabet("".join(_HEX_DIGITS))
_HEX_PLACES = bytes(32 if byte == 32 else 104 for byte in _HEX)
_BASE32 = _alphabet(f"{ascii_uppercase}234567")
_BASE64 = _alphabet(f"{ascii_letters}{digits}+/-_")


class EncodedSecrets:
    """The encodings of registered values. A hit covers every digit that holds a bit of the value."""

    def __init__(self) -> None:
        self._hex: set[str] = set()
        self._base32: set[str] = set()
        self._base64: set[str] = set()
        self._is_mixed = True  # each base64 has small letters and capitals, as hardly a word or a number has

    def copy(self) -> "EncodedSecrets":
        """Another one of the same values."""
        made = EncodedSecrets()
        made._hex, made._base32, made._base64 = set(self._hex), set(self._base32), set(self._base64)
        made._is_mixed = self._is_mixed
        return made

    def add(self, value: str) -> None:
        forms = _forms(value)
        self._hex.add(forms.hex)
        self._base32 |= forms.base32
        self._base64 |= forms.base64
        self._is_mixed = self._is_mixed and forms.is_mixed

    def are_in(self, text: str) -> bool:
        """Whether any stands in a text without breaks; sometimes yes where there is none, never the reverse."""
        plain = text.encode("ascii", "replace")
        runs = _long(plain.translate(_BASE64))
        if runs:
            mixed = [run for run in runs if not run.islower() and not run.isupper()] if self._is_mixed else runs
            if _any_in(self._base64, mixed):
                return True
            if _any_in(self._base32, _long(b" ".join(runs).translate(_BASE32))):
                return True
        # `70x41` is `0x41` after a 7, or `x41` after 70.
        return self._has_hex(plain) or (b"0x" in plain and self._has_hex(plain.replace(b"0x", b"")))

    def _has_hex(self, plain: bytes) -> bool:
        is_long = _SHORTEST_HEX in plain.translate(_HEX_PLACES, _PARTING)
        return is_long and _any_in(self._hex, _long(plain.translate(_HEX, _PARTING).lower()))

    def spans(self, text: str) -> list[Span]:
        """Where they stand in a text without breaks."""
        if not self.are_in(text):
            return []
        base32 = _in_runs(self._base32, _BASE32_RUN, text)
        return [*self._hex_spans(text), *base32, *_in_runs(self._base64, _BASE64_RUN, text)]

    def _hex_spans(self, text: str) -> Iterator[Span]:
        for run in _HEX_RUN.finditer(text):
            ends = [found.end() for found in _PAIRS.finditer(text, run.start(), run.end())]
            places = [place for end in ends for place in (end - 2, end - 1)]
            # A digit before the value shifts the pairs by one, and leaves one over.
            places += [run.end()] if text[run.end() : run.end() + 1] in _HEX_DIGITS else []
            found = "".join(text[place : place + 1] for place in places).lower()
            for start, end in _hits(self._hex, found):
                yield places[start], places[end - 1] + 1


class _Forms(NamedTuple):
    hex: str
    base32: frozenset[str]
    base64: frozenset[str]
    is_mixed: bool


@lru_cache(maxsize=1024)  # each agent of a process registers the same environment
def _forms(value: str) -> _Forms:
    raw = value.encode("utf-8", "surrogatepass")
    cores = list(_cores(raw, 3))
    safe = [core.translate(_URL_SAFE) for core in cores]
    is_mixed = all(core not in (core.lower(), core.upper()) for core in cores)
    return _Forms(raw.hex(), frozenset(_cores(raw, 5)), frozenset([*cores, *safe]), is_mixed)


def _long(blanked: bytes) -> list[bytes]:
    return _LONG_RUN.findall(blanked)


def _any_in(forms: Iterable[str], runs: list[bytes]) -> bool:
    text = b" ".join(runs).decode("ascii")
    return bool(text) and any(form in text for form in forms)


def _in_runs(forms: set[str], pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for run in pattern.finditer(text):
        for start, end in _hits(forms, run.group()):
            # The digits beside a core share their bits with what stands before or after the value.
            yield max(run.start(), run.start() + start - 2), min(run.end(), run.start() + end + 2)


def _hits(forms: set[str], text: str) -> Iterator[Span]:
    for form in forms:
        place = text.find(form)
        while place >= 0:
            yield place, place + len(form)
            place = text.find(form, place + len(form))


def _cores(raw: bytes, group: int) -> Iterator[str]:
    """The digits that are the same whatever stands before and after the value, for each place in a group of bytes."""
    bits, encode = (5, base64.b32encode) if group == 5 else (6, base64.b64encode)
    for lead in range(group):
        encoded = encode(b"\0" * lead + raw).decode()
        first, last = -(-lead * 8 // bits), (lead + len(raw)) * 8 // bits
        if last - first >= _LEAST_CORE:
            yield encoded[first:last]
