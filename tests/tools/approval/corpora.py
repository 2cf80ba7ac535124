"""The two corpora, read from their files."""

from pathlib import Path

_HERE = Path(__file__).parent


def destructive() -> list[tuple[str, str]]:
    """(action, command) for every rewrite of a destructive action."""
    found = []
    action = ""
    for line in _lines("destructive.txt"):
        if line.startswith("== "):
            action = line[3:]
        else:
            found.append((action, line.replace("↵", "\n").replace("␍", "\r")))
    return found


def everyday() -> list[str]:
    return [line.replace("↵", "\n") for line in _lines("everyday.txt")]


def everyday_scripts() -> list[str]:
    """Python as a model writes it for `execute_code`."""
    return _scripts("scripts_everyday.txt")


def destructive_scripts() -> list[str]:
    return _scripts("scripts_destructive.txt")


def _scripts(name: str) -> list[str]:
    return (_HERE / name).read_text(encoding="utf-8").split("\n####\n")


def _lines(name: str) -> list[str]:
    text = (_HERE / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("# ")]
