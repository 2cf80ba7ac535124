"""A keeper gives back the groups of killed keepers, and leaves those alone that it cannot judge."""

from pathlib import Path

from hermes.tools.supervisor.keeper import cgroups

GONE = 2**22 + 7  # a pid that no process has


def test_the_group_of_a_keeper_in_another_pid_namespace_stays(tmp_path: Path) -> None:
    ours, theirs = tmp_path / f"hermes-1-{GONE}", tmp_path / f"hermes-2-{GONE}"
    for folder in (ours, theirs):
        folder.mkdir()

    cgroups._sweep(str(tmp_path), "hermes-1-")

    assert (ours.exists(), theirs.exists()) == (False, True)
