"""A session's own network as commands have it: questions, what they cost, what is told, and that nothing stays."""

import os
import subprocess
import sys

import pytest

from tests.border import room
from tests.border.levels import why_not
from tests.border.rooms import ROOT
from tests.tools.network.cases import CASES

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room()),
    pytest.mark.skipif(bool(why_not("full")), reason=why_not("full")),
]


@pytest.mark.parametrize("case", CASES)
def test_in_a_room_of_its_own(case: str) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "HOME": "/home"}
    line = [sys.executable, "-X", "dev", "-m", "tests.tools.network.cases", case]
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ResourceWarning" not in done.stderr, done.stderr
