"""Whether bubblewrap works on this machine, asked once; tests that need it skip with the reason."""

import shutil
import subprocess
from functools import cache


@cache
def why_no_bubblewrap() -> str:
    """Empty where it works. In a plain chroot it does not: there `/` is no mount point."""
    found = shutil.which("bwrap")
    if found is None:
        return "bubblewrap (bwrap) is not installed"
    tried = subprocess.run([found, "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()}"
