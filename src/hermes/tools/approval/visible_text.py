"""Text as it is shown to somebody who decides on it: nothing in it moves the cursor, hides or reorders."""

import re

_MAX_LINES = 200
# What a terminal acts on, hides, joins or turns around instead of showing it: controls, bidirectional marks, characters
# without width, tags, variation selectors, lone surrogates and private use.
_SPOOFING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e01ef\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """`text` with everything a terminal would act on or hide written out, so that what is read is what would run."""
    return _SPOOFING.sub(lambda found: _written_out(found.group()), text.replace("\t", "    "))


def shown_command(text: str) -> str:
    """`text` indented for a question; a very long one is cut, and says so."""
    lines = visible(text).split("\n")
    kept = lines if len(lines) <= _MAX_LINES else [*lines[:_MAX_LINES], f"… and {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(f"    {line}" for line in kept)


def _written_out(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
