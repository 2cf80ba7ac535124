"""Where the workspace pushed to when the session began, for the gate: files are read, nothing is started."""

import os
import re
from pathlib import Path

_SECTION = re.compile(r"\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_ENTRY = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")
_MOST_BYTES = 1 << 20


class StartRemotes:
    """The remotes by name, as they were; `pushes_home` compares them with what the settings say now."""

    def __init__(self, workspace: str) -> None:
        self._file = config_file(Path(workspace))
        self._first = remote_urls(_text(self._file))

    def pushes_home(self, word: str) -> bool:
        """Whether `git push word` goes where a remote of the start was; without a word, to any remote there is."""
        known = {url for urls in self._first.values() for url in urls}
        now = remote_urls(_text(self._file))
        if not word:
            return all(url in known for urls in now.values() for url in urls)
        if word in now or word in self._first:
            return word in self._first and all(url in known for url in now.get(word, ()))
        return word in known


def config_file(workspace: Path) -> Path:
    """The settings of the workspace's repository, also when it is a worktree of another."""
    git = workspace / ".git"
    if not git.is_file():
        return git / "config"
    own = Path(os.path.join(workspace, _text(git).removeprefix("gitdir:").strip()))  # noqa: PTH118
    common = _text(own / "commondir").strip()
    return Path(os.path.normpath(own / common)) / "config" if common else own / "config"


def remote_urls(text: str) -> dict[str, tuple[str, ...]]:
    """The addresses of each remote in a settings file."""
    found: dict[str, tuple[str, ...]] = {}
    section, name = "", ""
    for line in text.splitlines():
        if head := _SECTION.match(line.strip()):
            section, name = head[1].lower(), re.sub(r"\\(.)", r"\1", head[2] or "")
        entry = _ENTRY.match(line[line.index("]") + 1 :] if head else line)
        if section == "remote" and entry and entry[1].lower() in ("url", "pushurl"):
            found[name] = (*found.get(name, ()), entry[2].split(" #")[0].split(" ;")[0].strip().strip('"'))
    return found


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace") if file.is_file() else ""
    except OSError:
        return ""
