"""A real bash, in an empty sandbox, agrees with the words that the analysis predicts."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hermes.tools.approval import analyse
from tests.tools.approval.corpora import destructive

_BWRAP = shutil.which("bwrap")
_BASH = "/bin/bash"
# In the sandbox there is no program at all, so every command reaches this handler, which only writes its words down.
_HANDLER = """
command_not_found_handle() { printf '%s\\0' "$@" >> /log/argv; printf '\\1\\0' >> /log/argv; return 0; }
PATH=/nowhere
HOME=/home/user
"""
_SCRIPTS = [
    "rm -rf /",
    "r\\m -r''f \"/\"",
    "x=rm; $x -rf /",
    'a=r b=m; "$a$b" -rf /',
    "rm$IFS-rf$IFS/",
    "$'\\x72\\x6d' -rf /",
    'arr=(rm -rf /); "${arr[@]}"',
    'set -- rm -rf /; "$@"',
    "x=xrm; ${x#x} -rf /",
    "x=RM; ${x,,} -rf /",
    "x=zm; ${x/z/r} -rf /",
    "y=rm; x=y; ${!x} -rf /",
    'for d in a b c; do rm -r "$d"; done',
    "prog {a,b}{1..3} x{,y}z",
    'f() { prog "$1" "$2"; }; f \'a b\' c',
    "prog \"a b\"'c d'e\\ f",
    "prog $'a\\tb' \"$(printf x)\"",
    'prog ${u:-d e} "${u:-d e}"',
    "prog $((2*3+1))",
    "eval 'prog a' b",
    "case x in x) prog y;; esac",
    "if prog a; then prog b; else prog c; fi",
    "read a b <<< 'one two three'; prog \"$b\" $a",
    "IFS=,; v=a,b,c; prog $v",
    'prog "${HOME}/x" ~/y',
    'x=(1 2 3); prog "${x[@]:1:2}"',
    "prog a#b # c",
    "prog \\\n  a \\\n  b",
    "{ prog a; prog b; }",
    "(prog a; prog b)",
    "prog a && prog b || prog c",
    "! prog a",
    "v='a  b'; prog $v \"$v\"",
    "prog '' \"\" a",
    'shift_me() { shift; prog "$@"; }; shift_me a b c',
    'prog "$(echo a; echo b)"',
    "printf -v c 'r%s' m; $c -rf x",
    "x=abcdef; prog ${x:2:3} ${x: -2}",
    "x=a.tar.gz; prog ${x%.*} ${x%%.*} ${x##*.}",
    "prog <<< hi",
]


@pytest.mark.real
@pytest.mark.skipif(_BWRAP is None, reason="bubblewrap (bwrap) is not installed")
def test_predicted_words_are_the_words_bash_makes(tmp_path: Path) -> None:
    corpus = [command for action, command in destructive() if action == "wipe the root" and _is_plain(command)]
    wrong = []
    for script in [*_SCRIPTS, *corpus]:
        real = _run(script, tmp_path)
        if real is None:
            pytest.skip("bubblewrap cannot make namespaces on this machine")
        analysis = analyse(script, cwd="/", home="/home/user")
        predicted = [list(command.argv) for command in analysis.commands]
        missing = [argv for argv in real if argv not in predicted]
        if missing:  # two commands that run at once may write into each other's words
            missing = [argv for argv in _run(script, tmp_path) or [] if argv not in predicted]
        if missing and not analysis.unknown:
            wrong.append((script, missing, predicted))
    assert wrong == []


def _is_plain(script: str) -> bool:
    """Scripts whose commands do not depend on what other programs, absent in the sandbox, would print or start."""
    return script.isascii() and not any(
        mark in script
        for mark in (
            "|",
            "`",
            "$(",
            "<(",
            "find",
            "python",
            "?",
            "*",
            "while",
            "[",
            "trap",
            "alias",
            "x.sh",
            "\u200b",
            "rev",
            "exec",
            "coproc",
            "/bin",
            "UNSET",
            "time",
            "builtin",
        )
    )


def _run(script: str, folder: Path) -> list[list[str]] | None:
    log = folder / "argv"
    log.write_bytes(b"")
    binds = [
        part for path in ("/usr", "/lib", "/lib64", "/bin") if Path(path).exists() for part in ("--ro-bind", path, path)
    ]
    done = subprocess.run(
        [
            str(_BWRAP),
            "--unshare-all",
            "--die-with-parent",
            *binds,
            "--bind",
            str(folder),
            "/log",
            "--proc",
            "/proc",
            "--dir",
            "/home/user",
            "--chdir",
            "/",
            _BASH,
            "--norc",
            "--noprofile",
            "-c",
            _HANDLER + script,
        ],
        capture_output=True,
        timeout=20,
        check=False,
    )
    if b"bwrap:" in done.stderr:
        return None
    words: list[list[str]] = [[]]
    for word in log.read_bytes().decode("utf-8", "replace").split("\0"):
        if word == "\1":
            words.append([])
        elif word or words[-1]:
            words[-1].append(word)
    return [argv for argv in words if argv]


def test_the_prediction_can_be_shown_as_data() -> None:
    commands = analyse("x=rm; $x -rf /").commands
    assert json.loads(json.dumps([list(command.argv) for command in commands])) == [["rm", "-rf", "/"]]
