"""The text that runs in the child before the script does. It must run on Python 3.8 and later."""

# Arguments: the folder of the script, when to write down which line is running (seconds of the monotonic clock, or
# `+seconds` from now), where to write it (a descriptor or a file), and "project" where the working folder is searched
# for modules. The dump comes from a thread of the interpreter itself, so it needs no signal that the script could
# ignore and no bytecode that it could block. A TERM gives one too: it is later, and so nearer to the truth.
# The names are taken out of the way, and the script runs in this very `__main__`. Where the interpreter is the
# runtime's own the script comes compiled: the first `compile` of a process takes a millisecond to set itself up.
RUNNER = """
def _prepare():
    import faulthandler, os, sys, time
    folder, when, where, mode = sys.argv[1:5]
    left = float(when[1:]) if when[0] == "+" else float(when) - time.monotonic()
    file = int(where) if where.isdigit() else open(where, "wb", 0)
    if left > 0:
        faulthandler.dump_traceback_later(left, file=file)
    faulthandler.register(15, file=file, chain=True)
    script = folder + "/script.py"
    sys.argv[:] = [script]
    sys.path[0] = folder
    if mode == "project":
        sys.path.append(os.getcwd())
    def hook(kind, error, trace):
        if trace is not None:
            error = error.with_traceback(trace.tb_next)
        sys.__excepthook__(kind, error, error.__traceback__)
    sys.excepthook = hook
    globals()["__file__"] = script
    try:
        with open(folder + "/script.code", "rb") as ready:
            import marshal
            return marshal.loads(ready.read())
    except FileNotFoundError:
        with open(script, "rb") as text:
            return compile(text.read(), script, "exec", dont_inherit=True)
exec(globals().pop("_prepare")())
"""

# Behind the text of `child_environment` on a remote backend, and behind a line that sets `_order`.
LAUNCHER = """
import sys
_env = child_environment(os.environ, _order["passthrough"], _order["added"])
os.execve(sys.executable, [sys.executable, *_order["argv"]], _env)
"""

SCRIPT = "script.py"
COMPILED = "script.code"
MODULE = "hermes_tools.py"
