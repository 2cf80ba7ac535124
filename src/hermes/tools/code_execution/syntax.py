"""Find out before anything starts whether a script can be compiled at all."""

import threading
import warnings
from types import CodeType

from hermes.errors import ToolError

MAX_CODE_CHARS = 1_000_000

_quiet = threading.Lock()  # guards the filters of warnings, which `catch_warnings` puts back as it found them


class BadScript(ToolError):
    """A script that cannot be compiled: what is wrong with it, with line and caret."""


def compiled(code: str, file: str = "script.py") -> CodeType:
    """The script ready to run; nothing of it is run here. Raises `BadScript`."""
    if len(code) > MAX_CODE_CHARS:
        raise BadScript(
            f"the script has {len(code)} characters, more than the {MAX_CODE_CHARS} that are taken; put data in files"
        )
    try:
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would be printed to whoever looks at the runtime
            return compile(code, file, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        raise BadScript(_with_caret(error)) from error
    except ValueError as error:  # a NUL character, a lone surrogate
        raise BadScript(f"the script cannot be read: {error}") from error
    except (RecursionError, MemoryError, OverflowError) as error:
        why = str(error) or "it is nested too deeply"
        raise BadScript(f"the script cannot be compiled: {type(error).__name__}: {why}") from error


def _with_caret(error: SyntaxError) -> str:
    where = f"line {error.lineno}" if error.lineno else "an unknown line"
    words = f"{type(error).__name__} at {where}: {error.msg}"
    if not error.text:
        return words
    text = error.text.rstrip("\n")
    indent = len(text) - len(text.lstrip())
    start = max((error.offset or 1) - 1, indent)
    width = 1
    if error.end_lineno == error.lineno and error.end_offset and error.end_offset - 1 > start:
        width = error.end_offset - 1 - start
    return f"{words}\n    {text.lstrip()}\n    {' ' * (start - indent)}{'^' * min(width, 200)}"
