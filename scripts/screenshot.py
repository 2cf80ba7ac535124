"""Draw docs/demo.svg from a real run of `hermes demo`. Run it again when the demo changes.

.venv/bin/python scripts/screenshot.py
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100
LAST_LINE = "And the tests again."  # the picture ends here; the rest is much like it


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        shown = _run(Path(folder)).replace(str(Path(folder).resolve()), "~")
    text = shown.replace("\r\n", "\n").partition(LAST_LINE)[0].strip()
    console = Console(width=COLUMNS + 6, record=True, file=Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    console.print(Text.from_ansi(f"$ hermes demo\n{text}"))
    svg = console.export_svg(title="hermes demo", unique_id="demo")
    # Without the fonts that rich would fetch from elsewhere: the reader's own serves.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    (ROOT / "docs" / "demo.svg").write_text(svg, encoding="utf-8")
    return 0


def _run(folder: Path) -> str:
    """What `hermes demo` shows on a terminal, its question answered."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    environ |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": str(COLUMNS), "LINES": "40"}
    main_end, child_end = pty.openpty()
    command = [sys.executable, "-P", "-m", "hermes.surfaces.cli.main", "demo", "--fast"]
    process = subprocess.Popen(command, stdin=child_end, stdout=child_end, stderr=child_end, env=environ, cwd=folder)
    os.close(child_end)
    seen, answered = b"", False
    while True:
        try:
            chunk = os.read(main_end, 4096)
        except OSError:
            break
        seen += chunk
        if b"Allow it?" in seen and not answered:
            os.write(main_end, b"o\n")
            answered = True
    process.wait(30)
    os.close(main_end)
    return seen.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
