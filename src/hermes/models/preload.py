"""Load the HTTP client beside the rest of a start: reading its certificates needs no interpreter time."""

import importlib
import threading


def preload() -> None:
    """Begin to import what the first request needs. A failure shows when the request is made."""
    threading.Thread(target=_import, name="hermes-preload", daemon=True).start()


def _import() -> None:
    try:
        importlib.import_module("aiohttp")
    except ImportError:
        return  # the first request imports it again, and says what is missing
