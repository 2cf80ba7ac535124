"""Output of any size, kept in a file without its secrets and without holding it in memory."""

import tracemalloc
from pathlib import Path

import pytest

from hermes.redact import Redactor
from hermes.tools.environments.output_spool import Spool

SECRET = "hunter2-hunter3-hunter4"


@pytest.mark.parametrize("line_end", [b"\n", b"", b"\0"])
def test_a_flood_is_cleaned_as_it_comes_and_never_held_in_memory(tmp_path: Path, line_end: bytes) -> None:
    spool = Spool(tmp_path, redactor=Redactor([SECRET]))
    flood = b"x" * 65_000 + SECRET[:10].encode(), SECRET[10:].encode() + line_end + b"y" * 465
    tracemalloc.start()
    for _ in range(256):
        for piece in flood:
            spool.add(piece)
    spool.finish()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 12 << 20
    assert spool.path is not None
    kept = spool.path.read_bytes()
    assert SECRET.encode() not in kept
    assert kept.count("⟦secret#".encode()) == 256
    assert (kept.count(b"x"), kept.count(b"y")) == (256 * 65_000, 256 * 465)


def test_no_secret_reaches_the_disk_while_the_command_still_runs(tmp_path: Path) -> None:
    spool = Spool(tmp_path, memory_bytes=16, redactor=Redactor([SECRET]))
    spool.add(b"a line that is longer than what memory keeps\n" + SECRET.encode() + b"\nmore\n")
    assert spool.path is not None
    assert SECRET.encode() not in spool.path.read_bytes()
    spool.finish()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a file that takes nothing")
def test_a_disk_that_takes_no_more_costs_the_whole_and_not_what_is_shown(tmp_path: Path) -> None:
    spool = Spool(tmp_path, memory_bytes=1000)
    spool.add(b"a" * 1500)
    assert spool.path is not None
    kept, spool._file = spool._file, Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the spool closes it
    assert kept is not None
    kept.close()
    spool.add(b"b" * 1500)
    shown = spool.finish()
    assert shown.startswith(b"a" * 400)
    assert shown.endswith(b"b" * 600)
    assert list(tmp_path.iterdir()) == []
    assert spool.finish() == shown
