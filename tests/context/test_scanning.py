"""The quick look at a project sees every change that going through all of it sees."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from hermes.context.checkpoints import CheckpointLimits
from hermes.context.checkpoints.scan import Scan, is_unchanged, look, scan

ELSEWHERE = b"/nowhere"


def settled(root: bytes) -> Scan:
    """A look at files that are old enough for it to be sure of them."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        found = scan(root, CheckpointLimits(), ELSEWHERE)
        if not any(when < 0 for when in (*(sig[0] for sig in found.files.values()), *found.listed.values())):
            return found
    raise AssertionError("the files do not get older")


@pytest.fixture
def root(tmp_path: Path) -> bytes:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "node_modules").mkdir()
    for name in ("a.txt", "b.txt", "deep/c.txt", "deep/er/d.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "link").symlink_to("a.txt")
    return os.fsencode(tmp_path)


def test_nothing_changed_is_seen_without_another_look(root: bytes) -> None:
    found = settled(root)

    assert is_unchanged(root, found)
    assert look(root, found, CheckpointLimits(), ELSEWHERE) is found


@pytest.mark.parametrize(
    "script",
    [
        "echo b.txt > a.txt",
        "touch -r b.txt stamp && printf 'A.txt\\n' > a.txt && touch -r stamp a.txt && rm stamp",
        "echo more > deep/er/new.txt",
        "rm deep/er/d.txt",
        "mv deep/c.txt deep/z.txt",
        "mv a.txt x && mv b.txt a.txt && mv x b.txt",
        "chmod 600 deep/c.txt",
        "chmod 700 empty",
        "rmdir empty",
        "mkdir deep/er/yet",
        "ln -sfn b.txt link",
        "mv deep elsewhere && ln -s elsewhere deep",
        "rm a.txt && mkfifo a.txt",
        "mkdir -p empty/x/y && touch empty/x/y/z",
        "cp -p deep/c.txt copy && mv copy deep/c.txt",
    ],
)
def test_every_change_is_seen(root: bytes, script: str) -> None:
    before = settled(root)

    subprocess.run(["/bin/bash", "-ec", script], cwd=root, check=True)

    assert not is_unchanged(root, before)
    assert not look(root, before, CheckpointLimits(), ELSEWHERE).same_as(before)


def test_what_is_left_out_is_no_change(root: bytes) -> None:
    before = settled(root)

    subprocess.run(["/bin/bash", "-ec", "echo x > node_modules/x; mkdir node_modules/y"], cwd=root, check=True)

    assert is_unchanged(root, before)


def test_a_look_that_knows_nothing_goes_through_all(root: bytes) -> None:
    assert not is_unchanged(root, Scan())
    assert b"deep/c.txt" in look(root, Scan(), CheckpointLimits(), ELSEWHERE).files
