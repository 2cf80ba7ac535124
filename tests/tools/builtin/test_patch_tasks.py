"""Twenty edits of the kind that real work asks for, called as a model would call them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.tools.files.workbench import Task, task_in


@dataclass(frozen=True)
class Edit:
    """Files before, the calls, and files after; None is a file that is gone. `level`: of the last call."""

    name: str
    before: dict[str, str | bytes]
    calls: list[dict[str, Any]]
    after: dict[str, str | bytes | None]
    level: str = "exact"
    fails: bool = False


def replace(path: str, old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"mode": "replace", "path": path, "old_string": old, "new_string": new, **more}


def v4a(*lines: str) -> dict[str, Any]:
    return {"mode": "patch", "patch": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


TASKS = [
    Edit(
        "rename across files",
        {"a.py": "def load():\n    return 1\n", "b.py": "from a import load\n\nprint(load())\n"},
        [replace("a.py", "def load", "def fetch"), replace("b.py", "load", "fetch", replace_all=True)],
        {"a.py": "def fetch():\n    return 1\n", "b.py": "from a import fetch\n\nprint(fetch())\n"},
    ),
    Edit(
        "move a block within a file",
        {"a.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n"},
        [
            replace("a.py", "def one():\n    return 1\n\n\n", ""),
            replace("a.py", "def two():\n    return 2\n", "def two():\n    return 2\n\n\ndef one():\n    return 1\n"),
        ],
        {"a.py": "def two():\n    return 2\n\n\ndef one():\n    return 1\n"},
    ),
    Edit(
        "move a block to another file",
        {"a.py": "X = 1\n\n\ndef f():\n    return X\n", "b.py": "import a\n"},
        [
            v4a(
                "*** Update File: a.py",
                " X = 1",
                "-",
                "-",
                "-def f():",
                "-    return X",
                "*** Update File: b.py",
                " import a",
                "+",
                "+",
                "+def f():",
                "+    return a.X",
            )
        ],
        {"a.py": "X = 1\n", "b.py": "import a\n\n\ndef f():\n    return a.X\n"},
    ),
    Edit(
        "several lines in a CRLF file, written with LF",
        {"a.cs": b"class A\r\n{\r\n    int x;\r\n}\r\n"},
        [replace("a.cs", "{\n    int x;\n}", "{\n    int x;\n    int y;\n}")],
        {"a.cs": b"class A\r\n{\r\n    int x;\r\n    int y;\r\n}\r\n"},
        level="line_endings",
    ),
    Edit(
        "one line becomes two in a CRLF file",
        {"a.ini": b"[a]\r\nb=1\r\n"},
        [replace("a.ini", "b=1", "b=1\nc=2")],
        {"a.ini": b"[a]\r\nb=1\r\nc=2\r\n"},
    ),
    Edit(
        "spaces asked for where the file has tabs",
        {"a.go": "func f() {\n\tif ok {\n\t\treturn\n\t}\n}\n"},
        [replace("a.go", "    if ok {\n        return\n    }", "    if ok {\n        log()\n        return\n    }")],
        {"a.go": "func f() {\n\tif ok {\n\t\tlog()\n\t\treturn\n\t}\n}\n"},
        level="indentation",
    ),
    Edit(
        "tabs asked for where the file has spaces",
        {"a.py": "class A:\n    def f(self):\n        return 1\n"},
        [replace("a.py", "\tdef f(self):\n\t\treturn 1", "\tdef f(self):\n\t\tif self:\n\t\t\treturn 2\n\t\treturn 1")],
        {"a.py": "class A:\n    def f(self):\n        if self:\n            return 2\n        return 1\n"},
        level="indentation",
    ),
    Edit(
        "method written without its class's indentation",
        {"a.py": "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"},
        [replace("a.py", "def g(self):\n    return 2", "def g(self):\n    return self.f()")],
        {"a.py": "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return self.f()\n"},
        level="indentation",
    ),
    Edit(
        "duplicate blocks are refused, then told apart by a line above",
        {"a.js": "on('a', () => {\n  run();\n});\non('b', () => {\n  run();\n});\n"},
        [
            replace("a.js", "  run();", "  stop();"),
            replace("a.js", "on('b', () => {\n  run();", "on('b', () => {\n  stop();"),
        ],
        {"a.js": "on('a', () => {\n  run();\n});\non('b', () => {\n  stop();\n});\n"},
    ),
    Edit(
        "duplicate blocks told apart by a hint",
        {"a.py": "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 1\n    return x\n"},
        [v4a("*** Update File: a.py", "@@ def g(): @@", "-    x = 1", "+    x = 2", "     return x")],
        {"a.py": "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 2\n    return x\n"},
    ),
    Edit(
        "curly quotes in prose",
        {"a.md": "She said “it\u2019s done” — twice.\n"},
        [replace("a.md", 'She said "it\'s done" - twice.', 'She said "it\'s ready" - twice.')],
        {"a.md": "She said “it\u2019s ready” — twice.\n"},
        level="escapes_and_lookalikes",
    ),
    Edit(
        "file without a final newline stays without",
        {"a.txt": "one\ntwo"},
        [replace("a.txt", "two\n", "two\nthree\n")],
        {"a.txt": "one\ntwo\nthree"},
        level="line_endings",
    ),
    Edit(
        "trailing spaces that the model did not see",
        {"a.yaml": "a:   \n  b: 1  \n  c: 2\n"},
        [replace("a.yaml", "a:\n  b: 1\n  c: 2", "a:\n  b: 1\n  c: 3")],
        {"a.yaml": "a:   \n  b: 1  \n  c: 3\n"},
        level="line_endings",
    ),
    Edit(
        "file with a byte order mark",
        {"a.csv": b"\xef\xbb\xbfid,name\r\n1,a\r\n"},
        [replace("a.csv", "id,name", "id,title")],
        {"a.csv": b"\xef\xbb\xbfid,title\r\n1,a\r\n"},
    ),
    Edit(
        "Latin-1 file",
        {"a.txt": b"caf\xe9\nna\xefve\n"},
        [replace("a.txt", "café", "thé")],
        {"a.txt": b"th\xe9\nna\xefve\n"},
    ),
    Edit(
        "escapes doubled by the model",
        {"a.py": 'print("a\\tb")\nprint("c")\n'},
        [replace("a.py", 'print(\\"c\\")', 'print(\\"d\\")')],
        {"a.py": 'print("a\\tb")\nprint("d")\n'},
        level="escapes_and_lookalikes",
    ),
    Edit(
        "import added below another, twice",
        {"a.py": "import os\n\nprint(os)\n"},
        [replace("a.py", "import os\n", "import os\nimport sys\n")] * 2,
        {"a.py": "import os\nimport sys\n\nprint(os)\n"},
    ),
    Edit(
        "new file, deleted file and moved file in one patch",
        {"a.py": "A = 1\n", "old.py": "pass\n", "b.py": "B = 1\n"},
        [
            v4a(
                "*** Update File: a.py",
                "-A = 1",
                "+A = 2",
                "*** Add File: pkg/__init__.py",
                '+"""A package."""',
                "*** Delete File: old.py",
                "*** Move File: b.py -> pkg/b.py",
            )
        ],
        {
            "a.py": "A = 2\n",
            "pkg/__init__.py": '"""A package."""\n',
            "old.py": None,
            "b.py": None,
            "pkg/b.py": "B = 1\n",
        },
    ),
    Edit(
        "patch with the slips that models make",
        {"a.py": "def f():\n    a = 1\n\n    return a\n"},
        [
            {
                "mode": "patch",
                "patch": "```diff\n*** Update File: `a.py`\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n"
                "def f():\n-    a = 1\n+    a = 2\n\n     return a\n```\n",
            }
        ],
        {"a.py": "def f():\n    a = 2\n\n    return a\n"},
    ),
    Edit(
        "text that only resembles another is left alone",
        {"a.py": "def total(items, tax):\n    return sum(items) * tax\n"},
        [
            replace(
                "a.py", "def total(items, rate):\n    return sum(items) * rate\n", "def total(items):\n    return 0\n"
            )
        ],
        {"a.py": "def total(items, tax):\n    return sum(items) * tax\n"},
        fails=True,
    ),
    Edit(
        "two far hunks in one file",
        {"a.py": "import os\n" + "x = 1\n" * 50 + "def f():\n    return os\n"},
        [
            v4a(
                "*** Update File: a.py",
                "@@",
                "+import sys",
                " import os",
                "@@ def f(): @@",
                "-    return os",
                "+    return sys",
            )
        ],
        {"a.py": "import sys\nimport os\n" + "x = 1\n" * 50 + "def f():\n    return sys\n"},
    ),
    Edit(
        "class renamed in a UTF-16 file",
        {"a.reg": '[Key]\r\n"Näme"=1\r\n'.encode("utf-16")},
        [replace("a.reg", "[Key]", "[Other]")],
        {"a.reg": '[Other]\r\n"Näme"=1\r\n'.encode("utf-16")},
    ),
]


@pytest.fixture
async def task(tmp_path: Path) -> AsyncIterator[Task]:
    async with task_in(tmp_path) as task:
        yield task


@pytest.mark.parametrize("edit", TASKS, ids=lambda edit: edit.name)
async def test_edit_task(task: Task, tmp_path: Path, edit: Edit) -> None:
    for name, text in edit.before.items():
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        await task.call("read_file", path=name)

    answer: dict[str, Any] = {}
    for call in edit.calls:
        answer = await task.call("patch", **call)

    assert answer["success"] is not edit.fails, answer
    for name, expected in edit.after.items():
        file = tmp_path / name
        wanted = expected.encode() if isinstance(expected, str) else expected
        assert (file.read_bytes() if file.exists() else None) == wanted
    if not edit.fails and answer["diff"]:
        assert answer["level"] == edit.level
