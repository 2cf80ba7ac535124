"""What tools keep between calls, as a script's calls see it."""

from typing import Any

from msgspec.structs import replace

from hermes.tools.files.memo import FileMemo


def for_script(memo: dict[str, Any]) -> dict[str, Any]:
    """`memo` for one call of a script: everything is shared, but what the model was shown counts for nothing.

    A script does not have the pages that the model has seen, and may well read one page twice.
    """
    files = FileMemo.of(memo)
    own = dict(memo)
    for name, kept in memo.items():
        if kept is files:
            own[name] = replace(files, shown={}, last=FileMemo().last)
    return own
