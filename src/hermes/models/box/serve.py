"""`python serve.py GGUF OPTIONS`: serve one model file on loopback until the process ends.

Runs as a child of its own, by file name and with the standard library and xllamacpp alone, so that it starts fast and
a crash in native code takes nothing with it. The first line of stdout is JSON: the address, or what is wrong.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def main(words: list[str]) -> int:
    """Serve the file `words[0]` with the options in `words[1]`, a JSON object of window, threads and template."""
    news = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the library logs where it likes; stdout is for our one line
    try:
        server = _start(words[0], json.loads(words[1]))
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _tell(news, {"error": f"{type(error).__name__}: {error}"})
        return 1
    _tell(news, {"url": server.listening_address})
    signal.sigwait({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    # Not `sys.exit`: taking the native threads down in order can take seconds, and there is nothing to save.
    os._exit(0)


def _start(file: str, options: dict[str, Any]) -> Any:
    library = Path(sys.prefix, "lib", "libgomp.so.1")
    if library.exists():  # the launcher put it there, because the system has none
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    import xllamacpp  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an extra

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = options["window"]
    params.n_parallel = 1
    params.cpuparams.n_threads = options["threads"]
    params.use_jinja = True
    params.warmup = False
    params.ui = False
    params.verbosity = 1
    if options["template"]:
        params.chat_template = options["template"]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    return xllamacpp.Server(params)


def _tell(news: Any, facts: dict[str, str]) -> None:
    news.write(json.dumps(facts) + "\n")
    news.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
