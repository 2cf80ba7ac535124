"""No rewrite of a destructive action passes unseen, and everyday work is hardly ever asked about."""

from hermes.tools.approval import Analysis, Severity, analyse, detect_dangerous_command, detect_hardline_command
from hermes.tools.approval.analysis import View
from tests.tools.approval.corpora import destructive, destructive_scripts, everyday, everyday_scripts


def test_the_corpora_are_as_large_as_the_contract_asks() -> None:
    rewrites = destructive()
    assert len({command for _, command in rewrites}) >= 300
    assert len({action for action, _ in rewrites}) >= 20
    assert len(set(everyday())) >= 500


def test_no_destructive_rewrite_is_missed() -> None:
    missed = [(action, command) for action, command in destructive() if not detect_dangerous_command(command)[0]]
    assert missed == []


def test_no_destructive_rewrite_is_missed_by_the_tree_alone() -> None:
    missed = [(action, command) for action, command in destructive() if analyse(command).severity < Severity.ASK]
    assert missed == []


def test_at_most_one_everyday_command_in_fifty_asks() -> None:
    commands = everyday()
    asked = [command for command in commands if detect_dangerous_command(command)[0]]
    assert len(asked) <= len(commands) * 0.02, asked


def test_no_everyday_command_hits_the_floor() -> None:
    assert [command for command in everyday() if detect_hardline_command(command)[0]] == []


def test_wiping_the_root_is_hardline_in_nearly_every_spelling() -> None:
    rewrites = [command for action, command in destructive() if action == "wipe the root"]
    soft = [command for command in rewrites if not detect_hardline_command(command)[0]]
    # What `find` would list is known to find alone; it is asked about instead.
    assert set(soft) <= {"find / -type f -print0 | xargs -0 rm -f"}


def test_at_most_one_everyday_script_in_fifty_asks() -> None:
    scripts = everyday_scripts()
    asked = [script for script in scripts if _judged(script).severity >= Severity.ASK]
    assert len(scripts) >= 100
    assert len(asked) <= len(scripts) * 0.02, asked


def test_no_destructive_script_is_missed() -> None:
    scripts = destructive_scripts()
    assert len(scripts) >= 75
    assert [script for script in scripts if _judged(script).severity < Severity.ASK] == []


def test_scripts_are_judged_alike_without_a_shell_around_them() -> None:
    scripts = everyday_scripts()
    asked = [script for script in scripts if View().code(script).severity >= Severity.ASK]
    assert len(asked) <= len(scripts) * 0.02, asked
    assert [script for script in destructive_scripts() if View().code(script).severity < Severity.ASK] == []


def _judged(script: str) -> Analysis:
    return analyse(f"python3 - <<'END_OF_SCRIPT'\n{script}\nEND_OF_SCRIPT\n")
