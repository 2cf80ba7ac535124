"""Commands that stand where nobody knows whether they run: dangers count, that it may be no command does not."""

import itertools
import re
from collections.abc import Callable
from functools import partial

from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput
from hermes.tools.approval.word_patterns import plain

_HIDDEN = re.compile(r"(?:\A|[\s;&|/!+:`=])((?:rm|dd|mkfs[.\w]*|shred|wipefs|sh|bash|chmod|chown|mv|find|curl|wget)\s)")
_BRACKETS = str.maketrans(dict.fromkeys("\"'()[],", " "))
_MAX_TEXT = 4096


def look_at_text(cmd: Command, text: str) -> None:
    """Judge what looks like a command in `text`, whatever language is around it."""
    text = plain(text[:_MAX_TEXT]).translate(_BRACKETS)
    for found in itertools.islice(_HIDDEN.finditer(text), 4):
        keep_dangers(cmd, partial(cmd.shell, text[found.start(1) :], NOTHING))


def keep_dangers(cmd: Command, judge_it: Callable[[], CommandOutput]) -> None:
    """Judge a guess: keep the dangers found, drop that it may not even be a command."""
    run = cmd.run
    unknowns, effects = len(run.unknowns), len(run.effects)
    judge_it()
    del run.unknowns[unknowns:]
    run.effects[effects:] = [
        effect
        for effect in run.effects[effects:]
        if effect.kind not in ("unknown", "unknown_program") and effect.severity > Severity.NOTE
    ]
