"""The nets under every test hold: each is shown catching what it is there for, in an inner pytest run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_inner(folder: Path, source: str, *, workers: int = 0, **variables: str) -> str:
    """Run `source` as a test file beside the real conftest; return what pytest prints."""
    (folder / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    full: long\n    real: real\n")
    (folder / "test_inner.py").write_text(source)
    spread = ["-n", str(workers), "--dist", "loadgroup"] if workers else ["-p", "no:xdist"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *spread, "-rsP", str(folder)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
    )
    return ran.stdout


def test_child_left_running_fails_the_test_and_is_ended(tmp_path: Path) -> None:
    output = run_inner(
        tmp_path,
        "import subprocess\n"
        "def test_leaves():\n"
        "    child = subprocess.Popen(['sleep', '3600'])\n"
        "    child.returncode = 0  # keeps the Popen object from warning\n",
    )

    assert "processes left running" in output
    assert "sleep 3600" in output


def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    """Ten tests of a group between ten others, on two workers."""
    output = run_inner(
        tmp_path,
        "import os, pytest\n"
        "@pytest.mark.parametrize('n', range(20))\n"
        "def test_one(n, request): pass\n"
        "for n in range(10):\n"
        "    @pytest.mark.xdist_group('engine')\n"
        "    def grouped(): print('WORKER', os.environ['PYTEST_XDIST_WORKER'])\n"
        "    globals()[f'test_grouped_{n}'] = grouped\n",
        workers=2,
    )

    told = {line for line in output.splitlines() if line.startswith("WORKER")}
    assert "30 passed" in output
    assert len(told) == 1


@pytest.mark.parametrize(("where", "ran"), [("near", "2 passed"), ("", "1 passed, 1 deselected")])
def test_real_parts_far_from_a_change_are_left_out_and_counted(tmp_path: Path, where: str, ran: str) -> None:
    (tmp_path / "near").mkdir()
    real = "import pytest\n@pytest.mark.real\ndef test_real(): pass\n"
    (tmp_path / "near/test_real.py").write_text(real)
    assert ran in run_inner(tmp_path, "def test_plain(): pass\n", HERMES_TEST_REAL_IN=where).splitlines()[-1]


def test_child_of_a_wider_fixture_is_not_counted(tmp_path: Path) -> None:
    output = run_inner(
        tmp_path,
        "import subprocess, pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def server():\n"
        "    with subprocess.Popen(['sleep', '3600']) as child:\n"
        "        yield child\n"
        "        child.kill()\n"
        "def test_uses(server): assert server.poll() is None\n"
        "def test_uses_again(server): assert server.poll() is None\n",
    )

    assert "2 passed" in output


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 9))",
        "socket.getaddrinfo('example.com', 80)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9))",
        "socket.socket().bind(('', 0))",
    ],
)
def test_traffic_beyond_loopback_fails_the_test_even_when_caught(tmp_path: Path, attempt: str) -> None:
    output = run_inner(
        tmp_path,
        f"import socket\ndef test_reaches():\n    try:\n        {attempt}\n    except Exception:\n        pass\n",
    )

    assert "traffic beyond loopback was refused" in output


def test_loopback_and_unix_sockets_are_free(tmp_path: Path) -> None:
    output = run_inner(
        tmp_path,
        "import socket\n"
        "def test_talks(tmp_path):\n"
        "    with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "        socket.create_connection(('localhost', server.getsockname()[1])).close()\n"
        "    with socket.socket(socket.AF_UNIX) as unix:\n"
        "        unix.bind(str(tmp_path / 's'))\n",
    )

    assert "1 passed" in output


def test_homes_are_the_tests_own(tmp_path: Path) -> None:
    output = run_inner(
        tmp_path,
        "import os\n"
        "def test_home(tmp_path, hermes_home):\n"
        "    assert os.environ['HERMES_HOME'] == str(hermes_home)\n"
        "    assert hermes_home.is_relative_to(tmp_path) and os.environ['HOME'].startswith(str(tmp_path))\n",
    )

    assert "1 passed" in output


def test_long_counts_are_skipped_by_name_unless_asked_for(tmp_path: Path) -> None:
    source = "import pytest\n@pytest.mark.full\ndef test_long(): pass\n"

    assert "a long count: runs under ./check --full" in run_inner(tmp_path, source)
    assert "1 passed" in run_inner(tmp_path, source, HERMES_TEST_FULL="1")


def test_failed_stage_is_named_before_the_closing_line(tmp_path: Path) -> None:
    *_, last_but_one, last = run_inner(
        tmp_path, "def test_x(): pass\n", HERMES_CHECK_FAILED="types layers"
    ).splitlines()

    assert last_but_one == "FAILED before the tests: layers (see above)"
    assert "1 passed" in last
