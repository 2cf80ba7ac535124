"""Diffs of calls as editors draw them: whatever changed, the parts before and after are those of the texts."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.acp.call_view import ended, text_content
from hermes.surfaces.acp.edit_view import edits_of
from hermes.surfaces.acp.protocol import DiffContent
from hermes.tools.files.diff import unified_diff
from hermes.tools.results.tool_result import fence
from hermes.types import CallFinished, ToolCall, ToolResult

LINES = st.lists(st.sampled_from(["a", "b", "--- c", "+++ d", "@@ -1 +1 @@", "\\ e", ""]), max_size=12)


def finished(diff: str, name: str = "write_file", files: list[str] | None = None) -> CallFinished:
    result = ToolResult(call_id="1", name=name, content="{}", details={"diff": diff, "files_changed": files or []})
    return CallFinished(ToolCall("1", name, "{}"), {}, result)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_every_part_is_in_the_texts_and_applied_in_order_they_give_the_new_one(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before, after = "\n".join(old) + "\n" * old_ends, "\n".join(new) + "\n" * new_ends
    parts = edits_of(finished(unified_diff("x.txt", before, after), files=["/w/x.txt"]), "/w")
    at, rest = 0, before
    made = ""
    for part in parts:
        assert isinstance(part, DiffContent)
        assert part.path == "/w/x.txt"
        assert part.old_text is not None
        at = rest.index(part.old_text) if part.old_text else 0
        made += rest[:at] + part.new_text
        rest = rest[at + len(part.old_text) :]
    if len(parts) == 1 or before == after:
        assert made + rest == after


def test_new_deleted_and_several_files_are_named_by_their_whole_paths() -> None:
    diff = unified_diff("new.txt", None, "one\n") + unified_diff("/else/old.txt", "two\n", None)
    assert edits_of(finished(diff, "patch", ["/w/new.txt", "/else/old.txt"]), "/w") == (
        DiffContent("/w/new.txt", "one\n", None),
        DiffContent("/else/old.txt", "", "two\n"),
    )
    assert edits_of(finished(diff, "terminal"), "/w") == ()


def test_a_result_from_outside_is_shown_without_the_marks_for_the_model() -> None:
    result = ToolResult(call_id="1", name="mcp__a__b", content=fence('{"result": "12 lamps"}', "mcp__a__b", "mcp"))
    moved = ended(CallFinished(ToolCall("1", "mcp__a__b", "{}"), {}, result))
    assert moved.content == text_content("12 lamps")
    assert moved.raw_output == {"result": "12 lamps"}
