"""Find out before anything starts whether a script can be compiled at all."""

MAX_CODE_CHARS = 1_000_000


def fault_in(code: str) -> str | None:
    """What is wrong with the script, with line and caret; None when it compiles. Nothing of it is run."""
    if len(code) > MAX_CODE_CHARS:
        return (
            f"the script has {len(code)} characters, more than the {MAX_CODE_CHARS} that are taken; put data in files"
        )
    try:
        compile(code, "script.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return _with_caret(error)
    except ValueError as error:  # a NUL character, a lone surrogate
        return f"the script cannot be read: {error}"
    except (RecursionError, MemoryError, OverflowError) as error:
        return f"the script cannot be compiled: {type(error).__name__}: {str(error) or 'it is nested too deeply'}"
    return None


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
