"""Keep secrets out of everything that is stored, logged, shown or sent, and put them back when a file is written.

A secret becomes a marker such as `⟦secret#3f9a1c207b44⟧`: no program prints it by chance, nobody takes it for a
value, and the `Redactor` that made it can turn it back into the bytes it stands for.
"""

import hashlib
import json
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus

from hermes.encoded_secrets import EncodedSecrets

MARKER = re.compile("⟦secret#([0-9a-f]{12})⟧")
_MIN_REGISTERED = 6
_MAX_FORMS = 20_000

# Values that are recognised by their own shape. Each has a plain word, and the expression is tried where that stands.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", r"\bsk-(?:ant-|proj-|or-v1-|live-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("sk_", r"\bsk_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("rk_", r"\brk_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    ("glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("xox", r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    ("xapp-", r"\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b"),
    ("AIza", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("ya29.", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("SG.", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("key-", r"\bkey-[0-9a-f]{32}\b"),
    ("dop_v1_", r"\bdop_v1_[0-9a-f]{60,}"),
    ("shpat_", r"\bshpat_[0-9a-fA-F]{32}"),
    ("gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    ("r8_", r"\br8_[A-Za-z0-9]{30,}"),
    ("pplx-", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("tvly-", r"\btvly-[A-Za-z0-9-]{20,}"),
    ("fc-", r"\bfc-[0-9a-f]{32}\b"),
    ("AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("eyJ", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    (":AA", r"(?<=\d{8}):AA[A-Za-z0-9_-]{33}\b"),
)
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----")
# One sign that stands in all values of a shape ("" where there is none): looking for it costs a tenth of looking for
# the word, and a text without it, such as base64, needs no further look.
_SIGNS = {"gh": "_", "xox": "-", "eyJ": "."}


def _sign(word: str) -> str:
    return _SIGNS.get(word) or next((letter for letter in word if not letter.isalnum()), "")


_COMPILED = {
    sign: tuple((word, re.compile(pattern)) for word, pattern in _SHAPES if _sign(word) == sign)
    for sign in sorted({_sign(word) for word, _ in _SHAPES})
}

# Values beside a telling word. The words are found by plain search, and an expression is tried only where one stands:
# searching for the expressions themselves costs a hundred times as much.
_NAMES = ("key", "token", "secret", "passw", "passphrase", "credential", "pwd")
_ASSIGNED = re.compile(
    r"""(?:key|token|secret|passwd|password|passphrase|credential|pwd)\b["']?\s{0,8}(?:=>|=|:)\s{0,8}
        (?P<quote>["']?)(?P<value>[^\s"'`,;&<>(){}\[\]$\\]{8,})(?P=quote)(?=[\s"'`,;&)\]}\\]|\Z)""",
    re.VERBOSE | re.IGNORECASE,
)
_KEY_BEFORE = re.compile(r"(?:_|api[_-]?)\Z", re.IGNORECASE)
_SCHEMES = ("bearer", "basic", "token")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic|token)\s+(?P<value>[A-Za-z0-9_.~+/=-]{16,})")
_URL_PASSWORD = re.compile(r"://[^\s/:@]{1,128}:(?P<value>[^\s/@]{4,256})@")
_URL_SIGN = "://"
_TELLING = (  # all of the words that values are found by, in small letters, each with its sign
    ("", (*_NAMES, *_SCHEMES)),
    (_URL_SIGN, (_URL_SIGN,)),
    *((sign.lower(), tuple(word.lower() for word, _ in shapes)) for sign, shapes in _COMPILED.items()),
)

# What may stand inside a secret that was wrapped, escaped any number of times, or cut by control characters. It starts
# with one set of characters, which is what makes looking for it fast.
_BREAK = re.compile(
    r"[\\\r\n\x00-\x08\x0b\x0c\x0e-\x1f\u200b-\u200d\ufeff]"
    r"(?:(?<=\\)\\*(?:[\r\n]+[ \t]*|[nr]|u00[01][0-9a-fA-F]|u200[b-d]|ufeff)?|(?<=[\r\n])[\r\n]*[ \t]*|(?<![\\\r\n]))"
)
_MIN_LEARNT = 12
_MAX_LEARNT = 500
_OPEN_CHARS = 8192
_CONTEXT = 128
_WORD = re.compile(r"[!-~]*")
_ENDED = re.compile(r"[!-\[\]-~][ \t]+\Z")
# The beginning of a value that tells by its shape or by the name before it what it is, at the end of what came so far.
_OPEN_VALUE = re.compile(
    r"(?i)(?<!\w)(?:[a-z]{2,11}[-_.]|AKIA|ASIA|AIza|eyJ)[\w.-]{0,500}\Z|://[^\s/@]{0,200}\Z"
    r"|(?:key|token|secret|passw\w{0,4}|passphrase|credential|pwd|bearer|basic)[\"']?\s{0,8}(?:=>|=|:|\s)\s{0,8}[\"']?[^\s\"']{1,300}\Z"
)
_LONGEST_WORD = 4096
_LONGEST_GAP = 64  # between two words; what is longer costs a closer look
_LONGEST_KEY = 16 * 1024
_MEMO_TEXTS = 512
_MEMO_CHARS = 2_000_000
_MEMO_LEAST = 8  # shorter texts are scanned faster than looked up and kept


# A text itself, or what stands for a long one, which is not kept alive: its length, twice its hash (of all of it and of
# all but its first character). Hashes have a key that is new in every process, so no text can be made to fit.
_MemoKey: TypeAlias = str | tuple[int, int, int]


def _memo_key(text: str) -> _MemoKey:
    return text if len(text) <= _MEMO_CHARS // 4 else (len(text), hash(text), hash(text[1:]))


class _CleanTexts:
    """Texts without secrets, newest last: one passes several sinks, and several sessions."""

    def __init__(self) -> None:
        self._texts: dict[_MemoKey, None] = {}
        self._chars = 0
        self._lock = threading.Lock()  # guards both while something is added

    def __contains__(self, text: str) -> bool:
        return _memo_key(text) in self._texts

    def add(self, text: str) -> None:
        key = _memo_key(text)
        with self._lock:
            if key in self._texts:
                return
            self._texts[key] = None
            self._chars += len(key)
            while len(self._texts) > _MEMO_TEXTS or self._chars > _MEMO_CHARS:
                oldest = next(iter(self._texts))
                del self._texts[oldest]
                self._chars -= len(oldest)


class Redactor:
    """Holds the secrets of one runtime. Registering and redacting are cheap; nothing is written anywhere."""

    def __init__(self, secrets: Iterable[str] = (), *, is_on: bool = True) -> None:
        self._originals: dict[str, str] = {}
        self._forms: dict[str, str] = {}
        self._encoded = EncodedSecrets()
        self._names: dict[str, str] = {}
        self._has_blanks = False
        self._is_on = is_on
        self._clean = _CleanTexts()
        self._learnt = 0
        for secret in secrets:
            self.register(secret)

    def copy(self) -> "Redactor":
        """One that knows the same secrets, and learns further ones by itself."""
        made = Redactor(is_on=self._is_on)
        made._originals, made._forms, made._names = dict(self._originals), dict(self._forms), dict(self._names)
        made._encoded = self._encoded.copy()
        made._has_blanks, made._learnt, made._clean = self._has_blanks, self._learnt, self._clean
        return made

    def register(self, value: str, name: str = "") -> bool:
        """Treat `value` as a secret from now on: plain, as JSON, in a URL, over lines, as hex, base32 and base64.

        False when it is too short or too common a word to be hidden without harm.
        """
        value = value.strip()
        if len(value) < _MIN_REGISTERED or value.lower() in _COMMON or len(self._forms) > _MAX_FORMS:
            return False
        if value in self._names:
            return True
        self._names[value] = name
        self._clean = _CleanTexts()
        for form in _forms(value):
            self._forms.setdefault(_BREAK.sub("", form), value)
            self._has_blanks = self._has_blanks or " " in form or "\t" in form
        self._encoded.add(value)
        return True

    @property
    def has_blanks(self) -> bool:
        """Whether a registered value, in any of its forms, has a blank in it."""
        return self._has_blanks

    @property
    def known(self) -> tuple[str, ...]:
        """The registered values, for a program of ours that has to hide them as well."""
        return tuple(self._names)

    @property
    def is_on(self) -> bool:
        """Whether anything is hidden at all; a setting switches it off."""
        return self._is_on

    def open_from(self, text: str) -> int:
        """Where a registered secret begins that may go on behind the end of `text`; its length when none does."""
        if not self._is_on or not self._forms or not text:
            return len(text)
        done = max(0, len(text) - _OPEN_CHARS)
        pieces: list[str] = []  # the text between the breaks
        places: list[int] = []  # where each piece stands in `text`
        for found in _BREAK.finditer(text, done):
            places.append(done)
            pieces.append(text[done : found.start()])
            done = found.end()
        places.append(done)
        pieces.append(text[done:])
        joined = "".join(pieces)
        longest = max((_overlap(joined, form) for form in self._forms), default=0)
        if not longest:
            return len(text)
        start = len(joined) - longest
        for hit, end in self._hits(joined):
            if hit < start < end:
                start = hit  # a whole secret whose end is also the beginning of another
        return _place_of(start, pieces, places)

    def register_all(self, values: Mapping[str, str], is_secret: Callable[[str], bool]) -> None:
        """Register the values whose names tell that they are secret, and those that look like nothing else."""
        for name, value in values.items():
            if is_secret(name) or _is_opaque(value):
                self.register(value, name)

    def redact(self, text: str) -> str:
        """`text` with every secret replaced by its marker; text without secrets comes back unchanged."""
        if not self._is_on or len(text) < _MIN_REGISTERED or text in self._clean:
            return text
        hidden = self._hidden(text)
        if len(hidden) >= _MEMO_LEAST:
            self._clean.add(hidden)
        return hidden

    def _hidden(self, text: str) -> str:
        if self._forms:
            text = self._hide_registered(text)
        if "PRIVATE KEY-----" in text:
            text = self._hide_private_keys(text)
        lowered = text.lower()
        if not _may_hold_any(lowered):
            return text
        if len(lowered) != len(text):  # a letter that becomes two: places would not agree
            lowered = text
        spans = [*_shaped(text), *_assigned(text, lowered), *_beside_scheme(text, lowered), *_in_urls(text)]
        if not spans:
            return text
        merged = _merged(spans)
        hidden = self._cut_out(text, merged)
        for start, end in merged:
            self._learn(text[start:end])
        return hidden

    def redact_all(self, value: Any) -> Any:
        """Every text inside plain data, redacted. What holds no secret comes back as the same object."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            changed = {name: self.redact_all(item) for name, item in value.items()}
            return changed if any(changed[name] is not item for name, item in value.items()) else value
        if isinstance(value, list | tuple):
            items = [self.redact_all(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return items if isinstance(value, list) else tuple(items)
        return value

    def redact_bytes(self, data: bytes) -> bytes:
        """The same for bytes of a text; what is no UTF-8 in them stays as it is."""
        text = data.decode("utf-8", "surrogateescape")
        hidden = self.redact(text)
        return data if hidden is text else hidden.encode("utf-8", "surrogateescape")

    def _learn(self, value: str) -> None:
        """Know a value again that told by its shape what it is, also where it is wrapped or escaped."""
        if len(value) >= _MIN_LEARNT and self._learnt < _MAX_LEARNT and value not in self._names:
            self._learnt += 1
            self.register(value)

    def _cut_out(self, text: str, spans: list[tuple[int, int]]) -> str:
        out: list[str] = []
        done = 0
        for start, end in spans:
            out += [text[done:start], self._mark(text[start:end])]
            done = end
        return "".join([*out, text[done:]])

    def restore(self, text: str) -> str:
        """`text` with its markers turned back into what they stood for; `UnknownMarker` for one not made here.

        A file that is read, shown to a model and written back keeps its bytes; a marker never reaches a file.
        """

        def original(found: re.Match[str]) -> str:
            known = self._originals.get(found[1])
            if known is None:
                raise UnknownMarker(found.group())
            return known

        return MARKER.sub(original, text) if "⟦" in text else text

    def holds_secret(self, text: str) -> bool:
        """Whether `redact` would change `text`."""
        return self.redact(text) != text

    def _hide_registered(self, text: str) -> str:
        """Search the text without its line breaks, then hide the stretch of the real text that was hit."""
        # JSON is full of escaped line ends; without them most texts have few breaks left, and no reason to look closer.
        is_unbroken = "\\" not in text and text.isprintable()
        quick = text if is_unbroken else _BREAK.sub("", text.replace("\\n", ""))
        if not any(map(quick.__contains__, self._forms)) and not self._encoded.are_in(quick):
            return text
        joined = _BREAK.sub("", text)
        spans = [*self._hits(joined), *self._encoded.spans(joined)]
        if not spans:
            return text
        breaks = [(found.start(), found.end()) for found in _BREAK.finditer(text)]
        return self._replaced(text, _merged(spans), breaks)

    def _hits(self, joined: str) -> list[tuple[int, int]]:
        """Where registered secrets stand in a text without breaks."""
        spans: list[tuple[int, int]] = []
        for form in self._forms:
            start = joined.find(form)
            while start >= 0:
                spans.append((start, start + len(form)))
                start = joined.find(form, start + len(form))
        return spans

    def _replaced(self, text: str, spans: list[tuple[int, int]], breaks: list[tuple[int, int]]) -> str:
        starts: list[int] = []  # where each break stands in the joined text
        removed = [0]
        for start, end in breaks:
            starts.append(start - removed[-1])
            removed.append(removed[-1] + end - start)
        out: list[str] = []
        done = 0
        for start, end in spans:
            real_start = start + removed[bisect_right(starts, start)]
            real_end = end + removed[bisect_left(starts, end)]
            out += [text[done:real_start], self._mark(text[real_start:real_end])]
            done = real_end
        return "".join([*out, text[done:]])

    def _hide_private_keys(self, text: str) -> str:
        out: list[str] = []
        done = 0
        begin = _KEY_BEGIN.search(text)
        while begin is not None:
            end = _KEY_END.search(text, begin.end())
            if end is None:
                break
            key = text[begin.start() : end.end()]
            out += [text[done : begin.start()], self._mark(key)]
            self._learn(key)
            done = end.end()
            begin = _KEY_BEGIN.search(text, done)
        return "".join([*out, text[done:]])

    def _mark(self, original: str) -> str:
        digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._originals[digest] = original
        return f"⟦secret#{digest}⟧"


class StreamedText:
    """A text that comes in pieces, without its secrets: what may be the beginning of one waits for the rest.

    That is never more than the word being written, a line that ends within a registered secret, or an open private key.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._given = ""  # the end of what was given, for the name before a value
        self._waiting = ""

    def add(self, text: str) -> str:
        """What may be shown now that `text` has come."""
        if not self._redactor.is_on:
            return text
        self._waiting += text
        return self._give(self._settled(len(self._waiting) - len(_WORD.match(self._waiting[::-1]).group())))  # type: ignore[union-attr]  # it matches everything

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def pause(self) -> str:
        """The unfinished word, too, since nothing more came for a while: but not one that may begin a secret."""
        text = self._waiting
        cut = found.start() if (found := _OPEN_VALUE.search(self._given[-_CONTEXT:] + text)) else None
        end = len(text) if cut is None else max(0, cut - len(self._given[-_CONTEXT:]))
        return self._give(min(end, self._settled(end)))

    def rest(self) -> str:
        """All that waits: nothing follows."""
        given = self._give(len(self._waiting)) if self._waiting else ""
        self._given = ""
        return given

    def _give(self, cut: int) -> str:
        new, self._waiting = self._waiting[:cut], self._waiting[cut:]
        if not new:
            return ""
        before = self._given
        whole = self._redactor.redact(before + new)
        self._given = whole.rpartition("⟧")[2][-_CONTEXT:]
        pairs = enumerate(zip(whole, before, strict=False))
        return whole[next((place for place, (now, then) in pairs if now != then), len(before)) :]

    def _gap(self, cut: int) -> int:
        """A place in a word without end, as late as can be, where no secret stands around it."""
        step = _LONGEST_WORD // 4
        places = range(len(self._waiting) - step, cut, -step)
        return next((at for at in places if not self._redactor.holds_secret(self._waiting[at - step : at + step])), cut)

    def _settled(self, cut: int) -> int:
        """How much of what waits, up to `cut`, holds no secret that goes on behind it."""
        text = self._waiting
        if len(text) - cut > _LONGEST_WORD:
            cut = self._gap(cut)
        key = text.rfind("-----BEGIN", 0, cut)
        if key >= 0 and len(text) - key < _LONGEST_KEY and not _KEY_END.search(text, key, cut):
            cut = key
        if cut and _ENDED.search(text, max(0, cut - _LONGEST_GAP), cut) and not self._redactor.has_blanks:
            return cut  # no registered value goes on behind a blank
        before = self._given
        return max(0, self._redactor.open_from(before + text[:cut]) - len(before)) if cut else 0


class UnknownMarker(ValueError):
    """A text to be written holds a marker that stands for nothing known here; writing it would destroy a value."""

    def __init__(self, marker: str) -> None:
        super().__init__(
            f"the text holds the placeholder {marker}, which stands for no known value; leave that line unchanged"
        )
        self.marker = marker


_COMMON = frozenset(
    {"password", "secret", "changeme", "example", "localhost", "default", "undefined", "development", "production"}
)
_CODE = re.compile(
    r"[A-Za-z_][\w]*(?:[.:]{1,2}[A-Za-z_][\w]*)*\Z"
)  # an identifier or a dotted path: source, not a value
_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|your|example|changeme|placeholder|dummy|redacted|todo|<|none|null|true|false"
)


def _may_hold_any(lowered: str) -> bool:
    """Whether one of the words stands in a text that the values below are found by; most short texts have none."""
    for sign, words in _TELLING:  # noqa: SIM110 - a generator would cost as much as the search
        if sign in lowered and any(map(lowered.__contains__, words)):
            return True
    return False


def _shaped(text: str) -> Iterator[tuple[int, int]]:
    """Where values stand that tell by their own shape what they are."""
    for sign, shapes in _COMPILED.items():
        if sign not in text:
            continue
        for word, pattern in shapes:
            place = text.find(word)
            while place >= 0:
                found = pattern.match(text, place)
                if found is not None:
                    yield _with_digits(text, found) if word == ":AA" else found.span()
                place = text.find(word, place + 1)


def _with_digits(text: str, found: re.Match[str]) -> tuple[int, int]:
    before = text[max(0, found.start() - 10) : found.start()]
    return found.start() - (len(before) - len(before.rstrip("0123456789"))), found.end()


def _assigned(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where values stand beside a name such as `api_key =`."""
    for name in _NAMES:
        place = lowered.find(name)
        while place >= 0:
            if name != "key" or _KEY_BEFORE.search(text, max(0, place - 4), place):
                found = _ASSIGNED.match(text, place)
                if found is not None and _looks_secret(found["value"]):
                    yield found.span("value")
            place = lowered.find(name, place + len(name))


def _beside_scheme(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where values follow `Bearer`, `Basic` or `token`."""
    for scheme in _SCHEMES:
        place = lowered.find(scheme)
        while place >= 0:
            found = _BEARER.match(text, place)
            if found is not None and _looks_secret(found["value"]):
                yield found.span("value")
            place = lowered.find(scheme, place + len(scheme))


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    """Where passwords stand in addresses."""
    place = text.find(_URL_SIGN)
    while place >= 0:
        found = _URL_PASSWORD.match(text, place)
        if found is not None and not MARKER.search(found["value"]):
            yield found.span("value")
        place = text.find(_URL_SIGN, place + 3)


def _is_opaque(value: str) -> bool:
    """Whether a value of unknown meaning is nothing a person would write: long, mixed, without words or structure."""
    value = value.strip()
    if not 20 <= len(value) <= 4096 or not re.fullmatch(r"[A-Za-z0-9_+=!@#%^*~-]+", value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in (r"[a-z]", r"[A-Z]", r"[0-9]"))
    return kinds == 3 and len(set(value)) >= 12 and not re.fullmatch(r"[0-9A-Fa-f-]+", value)


def _looks_secret(value: str) -> bool:
    """Whether a value next to a telling name is a real one: not a name in source code, not a stand-in."""
    if MARKER.search(value) or "⟦" in value or _PLACEHOLDER.search(value):
        return False
    if value.startswith(("/", "./", "~", "$", "%", "http://", "https://", "os.", "process.", "@")):
        return False
    if _CODE.match(value):
        kinds = bool(re.search(r"\d", value)) + bool(re.search(r"[a-z]", value)) + bool(re.search(r"[A-Z]", value))
        return (
            kinds >= 2 and len(value) >= 12 and bool(re.search(r"\d", value)) and "." not in value and "_" not in value
        )
    return len(set(value)) > 4 and bool(re.search(r"[0-9!@#%^*+=~|]", value))


def _place_of(joined_place: int, pieces: list[str], places: list[int]) -> int:
    """Where a place in the joined pieces stands in the text that they are of."""
    for piece, place in zip(pieces, places, strict=True):
        if joined_place < len(piece):
            return place + joined_place
        joined_place -= len(piece)
    raise AssertionError("a place beyond the text")


def _overlap(text: str, form: str) -> int:
    """How many characters at the end of `text` are the beginning of `form`, which goes on after them."""
    size = min(len(form) - 1, len(text))
    while size > 0 and not text.endswith(form[:size]):
        size = form.rfind(text[-1], 0, size - 1) + 1
    return size


def _forms(value: str) -> set[str]:
    escaped = json.dumps(value)[1:-1]
    raw = json.dumps(value, ensure_ascii=False)[1:-1]
    forms = {value, escaped, raw, json.dumps(escaped)[1:-1], quote(value, safe=""), quote(value), quote_plus(value)}
    forms.add(re.sub(r"%[0-9A-F]{2}", lambda found: found.group().lower(), quote(value, safe="")))
    if "\n" in value:
        forms |= {line for line in (part.strip() for part in value.splitlines()) if len(line) >= 16}
    return {form for form in forms if len(form) >= _MIN_REGISTERED}


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
