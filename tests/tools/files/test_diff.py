"""Diffs that turn the old text into the new one."""

import os
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.files.diff import diff_of_spans, unified_diff
from hermes.tools.files.edits import EditError, replace

EXAMPLES = 2000 if os.environ.get("HERMES_TEST_FULL") else 200
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "d\n", "e"]), max_size=30).map("".join)


def applied(old: str, diff: str) -> str:
    """`old` with `diff` applied, strictly: every context and removed line has to be where the diff says."""
    source = old.split("\n")
    lines = [line + "\n" for line in source[:-1]] + ([source[-1]] if source[-1] else [])
    out: list[str] = []
    at = 0
    rows = diff.split("\n")[2:-1]
    for index, row in enumerate(rows):
        found = _HUNK.match(row)
        unended = index + 1 < len(rows) and rows[index + 1].startswith("\\")
        text = row[1:] + ("" if unended else "\n")
        if found:
            start = int(found[1]) - (0 if found[2] == "0" else 1)
            out += lines[at:start]
            at = start
        elif row.startswith((" ", "-")):
            assert lines[at] == text
            at += 1
            if row.startswith(" "):
                out.append(text)
        elif row.startswith("+"):
            out.append(text)
    return "".join(out + lines[at:])


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, TEXTS)
def test_diff_leads_from_old_to_new(old: str, new: str) -> None:
    diff = unified_diff("x.txt", old, new)

    assert (diff == "") == (old == new)
    if diff:
        assert diff.startswith("--- a/x.txt\n+++ b/x.txt\n@@")
        assert applied(old, diff) == new


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, st.sampled_from(["a\n", "b", "\n", "d\ne"]), st.sampled_from(["x", "x\ny\n", "", "\n"]))
def test_diff_of_known_places_leads_from_old_to_new(old: str, wanted: str, new: str) -> None:
    try:
        edited = replace(old, wanted, new, replace_all=True)
    except EditError:
        return

    assert applied(old, diff_of_spans("x.txt", old, edited.spans)) == edited.text


def test_made_and_deleted_files_are_shown_against_nothing() -> None:
    assert unified_diff("a.txt", None, "x\n") == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"
    assert unified_diff("a.txt", "x\n", None) == "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"


def test_missing_final_newline_is_marked() -> None:
    assert unified_diff("a", "x", "x\n").endswith("-x\n\\ No newline at end of file\n+x\n")


def test_large_diff_is_cut_and_says_so() -> None:
    diff = unified_diff("a", "", "line\n" * 100_000, max_chars=1000)

    assert len(diff) < 1200
    assert "diff cut" in diff


def test_small_change_in_a_large_text_is_a_small_diff() -> None:
    old = "".join(f"line {number}\n" for number in range(300_000))

    diff = unified_diff("a", old, old.replace("line 150000\n", "other\n"))

    assert diff == (
        "--- a/a\n+++ b/a\n@@ -149998,7 +149998,7 @@\n line 149997\n line 149998\n line 149999\n"
        "-line 150000\n+other\n line 150001\n line 150002\n line 150003\n"
    )
