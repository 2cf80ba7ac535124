"""The loop behind the sync methods ends with the process, and leaves nothing open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.testing.replies import says
from hermes.testing.server import ServerThread

SCRIPT = """
import sys
from hermes import AIAgent

agent = AIAgent(model="any", provider="custom", base_url=sys.argv[1], enabled_toolsets=[])
print(agent.chat("Hi"))
if sys.argv[2] == "closed":
    agent.close()
"""


@pytest.mark.parametrize("ending", ["closed", "left open"])
def test_a_script_that_has_asked_a_server_ends_without_a_word(tmp_path: Path, ending: str) -> None:
    with ServerThread([says("Hello.")]) as server:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.base_url, ending],
            env={**os.environ, "HERMES_HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
