"""The names in a folder that go on with what is typed."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MOST = 200
MOST_LOOKED_AT = 5_000


def paths_below(here: Path, begun: str, *, only_folders: bool = False) -> Iterator[str]:
    """Whole names, folders with a slash at the end; hidden ones when a dot is typed. None where there is no folder."""
    head, name = os.path.split(begun)
    folder = here / Path(head).expanduser()
    try:
        with os.scandir(folder) as entries:
            looked_at = islice(entries, MOST_LOOKED_AT)
            found = [(one.name, one.is_dir()) for one in looked_at if one.name.startswith(name)]
    except OSError:
        return
    for each, is_folder in sorted(found)[:MOST]:
        if (each.startswith(".") and not name.startswith(".")) or (only_folders and not is_folder):
            continue
        yield each + ("/" if is_folder else "")
