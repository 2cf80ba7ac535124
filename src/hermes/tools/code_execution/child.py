"""What runs in the child before the script does, and the files it is made of. It must run on Python 3.8 and later."""

import marshal
import sys
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

from hermes.tools.code_execution.stubs import stub_module

SCRIPT = "script.py"
MODULE = "hermes_tools.py"
CACHE = "__pycache__"
POST_AT_ONCE, POST_BYTES = 32, 1000  # together less than what of a command's output is kept in memory
_READY = "the script, compiled"


# Arguments: when to write down which line is running (seconds of the monotonic clock, or `+seconds` from now), where to
# write it (a descriptor or a file), and "project" where the working folder is searched for modules. The dump comes from
# a thread of the interpreter itself, so it needs no signal that the script could ignore and no bytecode that it could
# block. A TERM gives one too: it is later, and so nearer to the truth. What the interpreter made to start is frozen: to
# look through it again at the end takes a millisecond. The script runs in this very `__main__`, without our names.
def runner() -> str:
    return _text("runner.py.txt").replace("@SCRIPT@", SCRIPT).replace("@READY@", _READY)


# Behind the text of `child_environment` on a remote backend, and behind a line that sets `_order`.
LAUNCHER = """
import sys
_env = child_environment(os.environ, _order["passthrough"], _order["added"])
with open(_order["pid"], "w") as _file:
    _file.write(str(os.getpid()))
os.execve(sys.executable, [sys.executable, *_order["argv"]], _env)
"""


# Runs beside a script on a remote backend: waits for requests, prints each as its name and its bytes, and ends, with 0
# for as long as there may be more. What is too large for a line of output is left under its name with `got_`.
# Arguments: the folder, and how long to wait at most.
def postman() -> str:
    return _text("postman.py.txt").replace("@AT_ONCE@", str(POST_AT_ONCE)).replace("@BYTES@", str(POST_BYTES))


def files_of(code: str, tools: tuple[str, ...], compiled: CodeType | None = None) -> dict[str, bytes]:
    """What lies in a script's folder, by name; the first is what Python is given to run.

    With `compiled`, which must be for this very Python, nothing is left to compile in the child: the first `compile` of
    a process takes a millisecond to set itself up.
    """
    kept = {SCRIPT: code.encode("utf-8", "surrogatepass"), MODULE: stub_module(tools).encode()}
    if compiled is None:
        return {"main.py": runner().encode(), **kept}
    if "hermes_tools" in code:
        kept[f"{CACHE}/hermes_tools.{sys.implementation.cache_tag}.pyc"] = _compiled_module(tools)
    code_of_runner = _compiled_runner()
    consts = tuple(compiled if each == _READY else each for each in code_of_runner.co_consts)
    filled = code_of_runner.replace(co_consts=consts)
    return {"main.pyc": MAGIC_NUMBER + bytes(12) + marshal.dumps(filled), **kept}


@lru_cache(maxsize=1)
def _compiled_runner() -> CodeType:
    return compile(runner(), "main.py", "exec", dont_inherit=True, optimize=0)


@lru_cache(maxsize=128)  # one per set of tools
def _compiled_module(tools: tuple[str, ...]) -> bytes:
    code = compile(stub_module(tools), MODULE, "exec", dont_inherit=True, optimize=0)
    by_hash_unchecked = (1).to_bytes(4, "little")
    return MAGIC_NUMBER + by_hash_unchecked + bytes(8) + marshal.dumps(code)


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
