"""The reference of hooks is made from the table of hooks, and is current."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    ran = subprocess.run([sys.executable, "scripts/hooks_page.py", "--check"], cwd=ROOT, check=False)
    assert ran.returncode == 0, "run: python scripts/hooks_page.py"
