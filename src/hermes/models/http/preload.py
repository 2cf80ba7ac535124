"""Load the HTTP client at the start of a run: reading its certificates, a quarter of it, needs no interpreter time."""

import importlib
import sys
import threading
import time
from collections.abc import Callable

CERTIFICATES_NEXT = "aiohttp.resolver"  # the last module that is imported before they are read
PATIENCE_S = 1.0
LOOK_AGAIN_S = 0.001
END_LIMIT_S = 5.0


def preload() -> Callable[[], None]:
    """Begin to import what the first request needs, and come back when only the certificates hold it up.

    Call what this returns before the process ends, to wait for the rest: OpenSSL is taken down then, certificates half
    read or not, and a process that ended at once, over a mistake on its command line, died of it.

    Two threads that import at once take turns at every file, which costs more than it gains; so this one waits until
    the other needs the interpreter no more. A failure shows when the request is made.
    """
    thread = threading.Thread(target=_import, name="hermes-preload", daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE_S
    while thread.is_alive() and CERTIFICATES_NEXT not in sys.modules and time.monotonic() < until:
        time.sleep(LOOK_AGAIN_S)
    return lambda: thread.join(END_LIMIT_S)


def _import() -> None:
    try:
        importlib.import_module("aiohttp")
    except ImportError:
        return  # the first request imports it again, and says what is missing
