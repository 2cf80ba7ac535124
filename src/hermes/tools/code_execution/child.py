"""The text that runs in the child before the script does. It must run on Python 3.8 and later."""

# Arguments: the folder of the script, when to write down which line is running (seconds of the monotonic clock, or
# `+seconds` from now), where to write it (a descriptor or a file), and "project" where the working folder is searched
# for modules. The dump comes from a thread of the interpreter itself, so it needs no signal that the script could
# ignore and no bytecode that it could block. A TERM gives one too: it is later, and so nearer to the truth.
RUNNER = """
import faulthandler, os, sys, time
_old = sys.modules["__main__"]
_folder, _when, _where, _mode = sys.argv[1:5]
_left = float(_when[1:]) if _when[0] == "+" else float(_when) - time.monotonic()
_file = int(_where) if _where.isdigit() else open(_where, "wb", 0)
if _left > 0:
    faulthandler.dump_traceback_later(_left, file=_file)
faulthandler.register(15, file=_file, chain=True)
_script = _folder + "/script.py"
sys.argv[:] = [_script]
sys.path[0] = _folder
if _mode == "project":
    sys.path.append(os.getcwd())
def _hook(kind, error, trace):
    if trace is not None:
        error = error.with_traceback(trace.tb_next)
    sys.__excepthook__(kind, error, error.__traceback__)
sys.excepthook = _hook
_main = type(sys)("__main__")
_main.__file__ = _script
_main.__builtins__ = __builtins__
sys.modules["__main__"] = _main
with open(_script, "rb") as _text:
    _source = _text.read()
exec(compile(_source, _script, "exec", dont_inherit=True), _main.__dict__)
"""

# Behind the text of `child_environment` on a remote backend, and behind a line that sets `_order`.
LAUNCHER = """
import sys
_env = child_environment(os.environ, _order["passthrough"], _order["added"])
os.execve(sys.executable, [sys.executable, *_order["argv"]], _env)
"""

SCRIPT = "script.py"
MODULE = "hermes_tools.py"
