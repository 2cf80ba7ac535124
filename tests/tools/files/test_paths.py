"""Which paths are refused, judged by names and kinds alone."""

from typing import Literal

import pytest

from hermes.seams import FileInfo
from hermes.tools.files.paths import PathRules, absolute, display_path, refuse_read, refuse_write, similar_names

RULES = PathRules.from_settings(home="/home/me", hermes_home="/home/me/.hermes", profiles="/home/me/.hermes/profiles")

PROTECTED = """
    /home/me/.ssh/id_ed25519 /home/me/.ssh /home/me/.aws/credentials /home/me/.gnupg/a /home/me/.kube/config
    /home/me/.docker/config.json /home/me/.azure/a /home/me/.config/gh/hosts.yml /home/me/.bashrc /home/me/.zshrc
    /home/me/.netrc /home/me/.pgpass /home/me/.npmrc /home/me/.pypirc /home/me/.hermes/.env
    /etc/sudoers /etc/sudoers.d/x /etc/passwd /etc/shadow /etc/systemd/system/x.service /etc/hosts /boot/grub/grub.cfg
    /usr/lib/systemd/system/x /var/run/docker.sock /run/docker.sock /root/.ssh/authorized_keys
    /home/me/.hermes/profiles/other/.env
"""


def info(kind: Literal["file", "dir", "fifo", "device", "socket", "other"]) -> FileInfo:
    return FileInfo(path="/w/x", kind=kind, size=0, mtime_ns=0, mode=0o644)


@pytest.mark.parametrize("path", PROTECTED.split())
def test_protected_path_is_not_written(path: str) -> None:
    assert "protected" in (refuse_write(path, path, None, RULES) or "")
    assert "protected" in (refuse_write("/w/link", path, None, RULES) or "")


@pytest.mark.parametrize(
    "path", ["/w/a.py", "/home/me/project/.env", "/home/me/.sshx/a", "/etcetera/a", "/home/me/.hermes/skills/a.md"]
)
def test_other_paths_are_written(path: str) -> None:
    assert refuse_write(path, path, None, RULES) is None


def test_safe_root_confines_by_where_a_path_leads() -> None:
    rules = PathRules.from_settings(home="/home/me", safe_root="~/work:/srv")

    assert refuse_write("/home/me/work/a", "/home/me/work/a", None, rules) is None
    assert refuse_write("/srv/a", "/srv/a", None, rules) is None
    assert "confined" in (refuse_write("/home/me/work/a", "/tmp/a", None, rules) or "")
    assert "confined" in (refuse_write("/home/me/workshop/a", "/home/me/workshop/a", None, rules) or "")


@pytest.mark.parametrize("kind", ["dir", "fifo", "device", "socket", "other"])
def test_only_regular_files_are_read_and_written(kind: Literal["dir", "fifo", "device", "socket", "other"]) -> None:
    assert refuse_read("/w/x", "/w/x", info(kind), RULES) is not None
    assert refuse_write("/w/x", "/w/x", info(kind), RULES) is not None
    assert refuse_read("/w/x", "/w/x", info("file"), RULES) is None
    assert refuse_write("/w/x", "/w/x", info("file"), RULES) is None


def test_devices_and_the_hub_cache_are_not_read() -> None:
    assert "device" in (refuse_read("/w/x", "/dev/zero", info("file"), RULES) or "")
    assert "skill_view" in (refuse_read("/home/me/.hermes/skills/.hub/a", "/x", info("file"), RULES) or "")


def test_paths_are_worked_out_as_text() -> None:
    assert absolute("a/../b", cwd="/w", home="/home/me") == "/w/b"
    assert absolute("~/b", cwd="/w", home="/home/me") == "/home/me/b"
    assert absolute("/x//y", cwd="/w", home="/home/me") == "/x/y"
    assert display_path("/w/a/b", "/w") == "a/b"
    assert display_path("/wide/a", "/w") == "/wide/a"


def test_similar_names_come_best_first() -> None:
    names = ["settings.py", "setup.py", "README.md", "settings.toml", "main.go"]

    assert similar_names("setings.py", names)[0] == "settings.py"
    assert similar_names("readme.txt", names) == ["README.md"]
    assert similar_names("zzz", names) == []
