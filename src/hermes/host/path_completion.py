"""The names in a folder that go on with what is typed."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MOST = 200
MOST_LOOKED_AT = 5_000


def paths_below(here: Path, begun: str, *, only_folders: bool = False) -> Iterator[str]:
    """Whole names, folders with a slash at the end; hidden ones when a dot is typed. None where there is no folder.

    Names that are no text are left out: neither a screen nor a line of JSON can show them.
    """
    head, name = os.path.split(begun)
    try:
        folder = here / Path(head).expanduser()
        with os.scandir(folder) as entries:
            looked_at = islice(entries, MOST_LOOKED_AT)
            found = [(one.name, one.is_dir()) for one in looked_at if one.name.startswith(name)]
    except (OSError, ValueError, RuntimeError):  # no folder, no path (a zero in it), nobody of that name behind a ~
        return
    for each, is_folder in sorted(found)[:MOST]:
        is_hidden = each.startswith(".") and not name.startswith(".")
        if is_hidden or (only_folders and not is_folder) or not _is_text(each):
            continue
        yield each + ("/" if is_folder else "")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8, as Python holds them
        return False
    return True
