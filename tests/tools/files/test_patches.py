"""V4A patches: read with precise errors, worked out in memory, whole or not at all."""

import pytest

from hermes.tools.files.plan_patch import PatchPlan, Planned, paths_of, plan
from hermes.tools.files.tokens import Level
from hermes.tools.files.v4a import PatchError, parse


def worked_out(patch: str, **texts: str | None) -> PatchPlan:
    changes = parse(patch)
    return plan(changes, {path: texts.get(path) for path in paths_of(changes)})


def after(patch: str, text: str) -> str | None:
    return worked_out(patch, f=text).files[0].after


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "names no file"),
        ("hello\n", "patch line 1: expected"),
        ("*** Begin Patch\nnonsense\n*** End Patch", "patch line 2: expected"),
        ("*** Update File: a\n", "patch line 1: no hunk for 'a'"),
        ("*** Update File: a\n@@\n x\n", "changes nothing"),
        ("*** Move File: a\n", "Move File: old/path -> new/path"),
        ("*** Delete File: a\n-x\n", "patch line 2: nothing may follow"),
        ("*** Add File: a\n+x\ny\n", "patch line 3: each line of an added file"),
    ],
)
def test_bad_patch_is_refused_with_its_line(patch: str, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        parse(patch)


@pytest.mark.parametrize(
    "patch",
    [
        "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n c\n*** End Patch\n",
        "*** Update File: f\n@@ a @@\n-b\n+B\n",
        "```\n*** Begin Patch\n*** Update File: f\n a\n-b\n+B\n*** End Patch\n```",
        "  *** Begin Patch\n *** update file : f\na\n-b\n+B\nc\n*** end patch",
        "*** Update File: f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n",
        "*** Begin Patch\r\n*** Update File: f\r\n a\r\n-b\r\n+B\r\n*** End Patch\r\n",
        "*** Begin Patch\n\n*** Update File: f\n\n a\n-b\n+B\n\n*** End Patch\n",
    ],
)
def test_usual_slips_are_forgiven(patch: str) -> None:
    assert after(patch, "a\nb\nc\n") == "a\nB\nc\n"


def test_hints_are_looked_for_one_after_the_other() -> None:
    text = "class A:\n    def f(self):\n        x = 1\n\n\nclass B:\n    def f(self):\n        x = 1\n"
    patch = "*** Update File: f\n@@ class B:\n@@ def f(self):\n-        x = 1\n+        x = 2\n"

    assert after(patch, text) == text[:-2] + "2\n"


def test_hunk_that_fits_twice_is_refused_with_the_lines() -> None:
    with pytest.raises(PatchError, match=r"patch line 2 fits in 2 places \(lines 1, 3\)"):
        worked_out("*** Update File: f\n-x\n+y\n", f="x\na\nx\n")


def test_line_numbers_of_a_unified_diff_tell_equal_places_apart() -> None:
    assert after("*** Update File: f\n@@ -3,1 +3,1 @@\n-x\n+y\n", "x\na\nx\n") == "x\na\ny\n"


def test_hunks_are_in_the_order_of_the_file() -> None:
    assert after("*** Update File: f\n@@\n-a\n+A\n@@\n-x\n+y\n", "x\na\nx\n") == "x\nA\ny\n"


def test_added_lines_go_after_the_hint_or_at_the_end() -> None:
    assert after("*** Update File: f\n@@ a @@\n+new\n", "a\nb\n") == "a\nnew\nb\n"
    assert after("*** Update File: f\n@@\n+new\n*** End of File\n", "a\nb\n") == "a\nb\nnew\n"
    assert after("*** Update File: f\n@@\n+new\n*** End of File\n", "a\nb") == "a\nb\nnew"
    with pytest.raises(PatchError, match="only adds lines"):
        worked_out("*** Update File: f\n@@\n+new\n", f="a\nb\n")


def test_overlapping_hunks_are_refused() -> None:
    with pytest.raises(PatchError, match="overlap"):
        worked_out("*** Update File: f\n@@\n a\n-b\n+B\n@@\n-b\n+X\n c\n", f="a\nb\nc\n")


def test_loosest_level_is_told() -> None:
    planned = worked_out("*** Update File: f\n@@\n-    b\n+    B\n@@\n-c\n+C\n", f="a\n\tb\nc\n")

    assert (planned.level, planned.files[0].after) == (Level.INDENTATION, "a\n\tB\nC\n")


def test_context_is_matched_by_whole_lines_only() -> None:
    with pytest.raises(PatchError, match="was not found"):
        worked_out("*** Update File: f\n-b\n+c\n", f="ab\n")


def test_failed_hunk_shows_the_nearest_text() -> None:
    with pytest.raises(PatchError, match=r"(?s)nearest text is at lines 1-2:\ndef total"):
        worked_out("*** Update File: f\n-def total(a):\n-    return b\n+x\n", f="def total(b):\n    return b\n")


def test_two_updates_of_one_file_follow_each_other() -> None:
    assert after("*** Update File: f\n-a\n+b\n*** Update File: f\n-b\n+c\n", "a\n") == "c\n"


def test_update_with_move() -> None:
    planned = worked_out("*** Update File: f\n*** Move to: g\n-a\n+b\n", f="a\n")

    assert planned.files == [Planned("f", "a\n", None), Planned("g", None, "b\n", origin="f")]


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("*** Add File: f\n+y\n", "exists already"),
        ("*** Delete File: g\n", "no file 'g'"),
        ("*** Update File: g\n-a\n+b\n", "no file 'g'"),
        ("*** Move File: f -> h\n", "'h' exists already"),
        ("*** Move File: f -> f\n", "moved to itself"),
    ],
)
def test_change_that_does_not_fit_the_files_is_refused(patch: str, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        worked_out(patch, f="x\n", h="h\n")


def test_patch_that_is_in_place_is_a_noop() -> None:
    planned = worked_out(
        "*** Update File: f\n-x = 1\n+x = 2\n y = 3\n*** Add File: g\n+g\n", f="x = 2\ny = 3\n", g="g\n"
    )

    assert planned.is_noop
    assert planned.notes == ["f: the hunk at patch line 2 is already in place", "g: already there with this text"]
