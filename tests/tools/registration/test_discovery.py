"""Discovery reads files without importing them, and only a top-level registration counts."""

from pathlib import Path

import pytest

from hermes.tools.registration.discovery import registers_tools, tool_files


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("from x import registry\nregistry.register(name='a')\n", True),
        ("def f():\n    registry.register(name='a')\n", False),
        ("x = registry.register(name='a')\n", False),
        ("other.registry.register(name='a')\n", False),
        ("if True:\n    registry.register(name='a')\n", False),
        ("@tool(toolset='x')\ndef f() -> str: ...\n", True),
        ("@other\ndef f() -> str: ...\n", False),
        ("registry.register(\n", False),
        ("\x00", False),
    ],
)
def test_only_a_registration_in_the_module_body_counts(tmp_path: Path, text: str, counts: bool) -> None:
    file = tmp_path / "t.py"
    file.write_text(text, encoding="utf-8")
    assert registers_tools(file) is counts


def test_files_come_sorted_and_helpers_are_left_out(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "__init__.py", "registry.py", "mcp_tool.py"):
        (tmp_path / name).write_text("registry.register(name='a')\n", encoding="utf-8")
    (tmp_path / "helper.py").write_text("raise SystemExit\n", encoding="utf-8")
    (tmp_path / "latin.py").write_bytes(b"registry.register(name='\xff')\n")
    assert [path.name for path in tool_files(tmp_path)] == ["a.py", "b.py"]
    assert tool_files(tmp_path / "none") == []
