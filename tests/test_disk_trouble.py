"""Which errors are the disk's, and what a person is told about them."""

import errno
from pathlib import Path

import pytest

from hermes.disk_trouble import disk_trouble, full_disk, reason_of
from hermes.errors import StoreError


def failing(number: int, file: str | None = "/home/x") -> OSError:
    return OSError(number, "said by the system", file)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (failing(errno.ENOSPC), "no space is left on the disk ('/home/x'); free some space"),
        (failing(errno.ENOSPC, None), "no space is left on the disk; free some space"),
        (failing(errno.EDQUOT), "quota"),
        (failing(errno.EROFS), "read-only"),
        (failing(errno.EACCES), "permission is denied ('/home/x')"),
        (failing(errno.EISDIR), "a folder is where a file belongs ('/home/x')"),
        (OSError(errno.EISDIR, "", "/home/half", None, "/home/x"), "('/home/x'); move the folder away"),
        (ExceptionGroup("two", [ValueError("one"), failing(errno.EROFS)]), "read-only"),
    ],
)
def test_a_trouble_of_the_disk_is_one_sentence(error: Exception, words: str) -> None:
    assert words in str(disk_trouble(error))


def test_it_is_found_behind_the_error_that_it_caused() -> None:
    error = StoreError("the write failed")
    error.__cause__ = failing(errno.ENOSPC)
    assert "no space" in str(disk_trouble(error))


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), failing(errno.ECONNREFUSED), failing(errno.EPERM, None), failing(errno.ENOENT), OSError("odd")],
)
def test_other_troubles_are_not_the_disks(error: Exception) -> None:
    assert disk_trouble(error) is None


def test_a_reason_without_a_remedy_is_the_systems_own() -> None:
    assert reason_of(failing(errno.ENODEV)) == "said by the system"


def test_a_disk_with_room_is_not_full(tmp_path: Path) -> None:
    assert full_disk(tmp_path) == full_disk(tmp_path / "missing") == ""
