"""The custom lint finds each violation in each of its spellings, and nothing in what is allowed."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lint_house", ROOT / "scripts/lint_house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lint_house"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


lint_house = _load()


def rules(source: str, *, in_supervisor: bool = False) -> set[str]:
    return {finding.rule for finding in lint_house.check_source(source, in_supervisor=in_supervisor)}


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasyncio.create_task(f())",
        "import asyncio as aio\naio.create_task(f())",
        "from asyncio import create_task\ncreate_task(f())",
        "from asyncio import create_task as spawn\nspawn(f())",
        "import asyncio\nasyncio.get_running_loop().create_task(f())",
        "import asyncio\nasyncio.get_event_loop().create_task(f())",
        "loop.create_task(f())",
        "self._loop.create_task(f())",
        "import asyncio\nstart = asyncio.create_task",
        "import asyncio\nasync def g():\n    await asyncio.gather(f())",
        "from asyncio import gather\nasync def g():\n    await gather(f())",
        "import asyncio\nasyncio.ensure_future(f())",
        "from asyncio import tasks\ntasks.create_task(f())",
        "import asyncio\nkept = asyncio.Task(f())",
    ],
)
def test_tasks_without_an_owner_are_found(source: str) -> None:
    assert rules(source) == {"unowned-task"}


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.environ['A'] = 'b'",
        "import os\nos.environ['A'] += 'b'",
        "import os\ndel os.environ['A']",
        "import os\nos.environ = {}",
        "import os\nos.environ |= {}",
        "import os\nos.environ.update(A='b')",
        "import os\nos.environ.setdefault('A', 'b')",
        "import os\nos.environ.pop('A')",
        "import os\nos.environ.clear()",
        "import os\nos.putenv('A', 'b')",
        "import os\nos.unsetenv('A')",
        "from os import environ\nenviron['A'] = 'b'",
        "from os import environ as e\ne.update({})",
        "from os import putenv\nputenv('A', 'b')",
        "import os\nos.environb[b'A'] = b'b'",
        "import os\nenviron = os.environ\nenviron['A'] = 'b'",
        "import os\ndef f():\n    mine = os.environ\n    mine |= {}",
    ],
)
def test_writes_to_the_environment_are_found(source: str) -> None:
    assert rules(source) == {"environment-write"}


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "def f():\n    import subprocess",
        "from subprocess import run",
        "import pty",
        "import multiprocessing",
        "from multiprocessing import Process",
        "import os\nos.system('true')",
        "import os\nos.popen('true')",
        "import os\nos.fork()",
        "import os\nos.forkpty()",
        "import os\nos.execv('/bin/true', [])",
        "import os\nos.execvpe('true', [], {})",
        "import os\nos.spawnl(0, '/bin/true')",
        "import os\nos.posix_spawn('/bin/true', [], {})",
        "import os\nrun = os.system",
        "from os import system",
        "from os import execv as go",
        "import asyncio\nasyncio.create_subprocess_exec('true')",
        "import asyncio\nasyncio.create_subprocess_shell('true')",
        "from asyncio import create_subprocess_exec",
        "from asyncio.subprocess import create_subprocess_exec",
        "loop.subprocess_exec(p, 'true')",
        "from concurrent.futures import ProcessPoolExecutor",
        "from concurrent.futures.process import ProcessPoolExecutor",
        "import posix\nposix.fork()",
        "from posix import fork",
    ],
)
def test_starting_a_process_is_found_outside_the_supervisor_only(source: str) -> None:
    assert rules(source) == {"process-start"}
    assert rules(source, in_supervisor=True) == set()


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept Exception:\n    pass",
        "try:\n    f()\nexcept:\n    ...",
        "try:\n    f()\nexcept BaseException:\n    x = None",
        "try:\n    f()\nexcept Exception as error:\n    x = None",
        "try:\n    f()\nexcept (ValueError, Exception):\n    pass",
        "def g():\n    try:\n        f()\n    except Exception:\n        return None",
        "for x in y:\n    try:\n        f()\n    except Exception:\n        continue",
        "import contextlib\nwith contextlib.suppress(Exception):\n    f()",
        "from contextlib import suppress\nwith suppress(BaseException):\n    f()",
    ],
)
def test_broad_excepts_that_tell_nobody_are_found(source: str) -> None:
    assert rules(source) == {"silent-except"}


@pytest.mark.parametrize(
    "source",
    [
        "import msgspec\nmsgspec.convert(value, Kind)",
        "from msgspec import convert\nconvert(value, Kind, strict=False)",
        "import msgspec\nmsgspec.json.decode(data, type=Kind)",
        "from msgspec import json\njson.decode(data, **how)",
        "from msgspec.msgpack import decode\ndecode(data, type=Kind)",
        "import msgspec\nmsgspec.json.Decoder(Kind)",
    ],
)
def test_types_that_several_threads_may_learn_at_once_are_found(source: str) -> None:
    assert rules(source) == {"type-learned-unguarded"}


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "import sqlite3.dbapi2 as db",
        "from sqlite3 import connect",
        "def f():\n    from sqlite3.dbapi2 import Row",
        "import importlib\nimportlib.import_module('sqlite3')",
    ],
)
def test_a_database_that_is_spoken_to_outside_its_folder_is_found(source: str) -> None:
    assert rules(source) == {"database-import"}
    assert lint_house.check_source(source, in_store=True) == []


def test_the_folder_of_the_store_alone_may_import_its_database(tmp_path: Path) -> None:
    for place in ("state/sqlite/store.py", "state/sessions.py", "surfaces/profiles.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("import sqlite3\n")

    found = [(file.relative_to(tmp_path).as_posix(), one.rule) for file, one in lint_house.check_folder(tmp_path)]

    assert found == [("state/sessions.py", "database-import"), ("surfaces/profiles.py", "database-import")]


def test_long_files_and_functions_are_found() -> None:
    body = "    x = 1\n"

    assert rules("x = 1\n" * 801) == {"file-too-long"}
    assert rules("async def f():\n" + body * 100) == {"function-too-long"}
    assert rules("x = 1\n" * 800) == set()
    assert rules("def f():\n" + body * 99) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def g():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(f())",
        "self._group.create_task(f())",
        "import os\nvalue = os.environ['A'] or os.environ.get('B') or os.getenv('C')",
        "import os\nmine = dict(os.environ)\nmine['A'] = 'b'\nmine.update(B='c')",
        "import os\nenviron = os.environ\nvalue = environ['A']",
        "import asyncio\nrunning: asyncio.Task[None] | None = None",
        "try:\n    f()\nexcept Exception:\n    log.exception('f failed')",
        "try:\n    f()\nexcept Exception as error:\n    raise Other from error",
        "try:\n    f()\nexcept Exception as error:\n    kept = error",
        "try:\n    f()\nexcept KeyError:\n    pass",
        "import contextlib\nwith contextlib.suppress(KeyError):\n    f()",
        "from concurrent.futures import ThreadPoolExecutor",
        "system('true')",
        "SUFFIXES = 'sqlite sqlite3'\nrun('sqlite3')",
        "import msgspec\nmsgspec.json.decode(data)",
        "import msgspec\nmsgspec.json.Decoder()",
        "from hermes.typed import convert\nconvert(value, Kind)",
    ],
)
def test_what_is_allowed_is_not_found(source: str) -> None:
    assert rules(source) == set()


def test_command_names_file_line_and_rule_and_fails(tmp_path: Path) -> None:
    (tmp_path / "tools/supervisor").mkdir(parents=True)
    (tmp_path / "tools/supervisor/local.py").write_text("import subprocess\n")
    (tmp_path / "tools/other.py").write_text("\nimport subprocess\n")

    ran = subprocess.run([sys.executable, ROOT / "scripts/lint_house.py", tmp_path], capture_output=True, text=True)

    assert ran.returncode == 1
    assert ran.stdout == (
        f"{tmp_path}/tools/other.py:2: process-start: import subprocess: "
        "children are started by hermes.tools.supervisor alone\n"
        "the laws of the house: 1 findings\n"
    )


@pytest.mark.parametrize("place", ["runtime/looking.py", "tools/cached.py", "models/waiting.py"])
def test_a_file_named_by_what_is_done_is_found(place: str) -> None:
    assert [finding.rule for finding in lint_house.misnamed(place)] == ["file-name"]


@pytest.mark.parametrize("place", ["typed.py", "config/sections/spending.py", "tools/run_child.py", "state/keyring.py"])
def test_a_file_named_by_a_noun_is_left_alone(place: str) -> None:
    assert list(lint_house.misnamed(place)) == []


def test_a_class_name_that_is_used_twice_is_found() -> None:
    sources = {
        "a.py": "class Place: ...",
        "b.py": "class Place: ...",
        "c.py": "class Section: ...",
        "d.py": "class Section: ...",
    }
    found = [(place, finding.rule) for place, finding in lint_house.named_twice(sources)]
    assert found == [("b.py", "class-name")]
