"""What a script can do, what comes back of it, and what its calls leave in the record."""

import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.scope import CallInterrupted
from hermes.seams import Effects, ToolContext
from hermes.testing.fakes import FixedGate
from hermes.tools.code_execution.result_json import INTERRUPTED
from hermes.tools.registry import Registered, ToolEntry, tool_result
from hermes.tools.traits import Traits, reads_file, touches_nothing, writes_file
from hermes.types import CallFinished, CallStarted, ImagePart, TextPart
from tests.tools.code_execution.rooms import FILE_TOOLS, body, builtin, is_there, room

SEARCH = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}


def fake(name: str, handler: Any, parameters: dict[str, Any], traits: Traits | None = None, **more: Any) -> Registered:
    """A tool under the name of one that scripts may call."""
    schema = {"name": name, "description": name, "parameters": parameters}
    return Registered(ToolEntry(name, "test", schema, handler, **more), traits or Traits(), "builtin")


async def test_only_what_is_printed_comes_back(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        (it.folder / "log.txt").write_text(
            "".join(f"line {n} {'ERROR' if n % 100 == 0 else 'ok'}\n" for n in range(400))
        )
        answer = await it.run(
            "from hermes_tools import read_file\n"
            "lines = read_file('log.txt')['content'].splitlines()\n"
            "print(sum('ERROR' in line for line in lines))\n"
        )
    seconds = answer.pop("duration_seconds")
    assert answer == {"status": "success", "output": "4\n", "tool_calls_made": 1, "exit_code": 0}
    assert isinstance(seconds, float)
    assert it.results[0].status == "ok"


async def test_every_file_tool_and_the_terminal_give_parsed_results(tmp_path: Path) -> None:
    code = """
from hermes_tools import write_file, read_file, search_files, patch, terminal
print(write_file("a.py", "x = 1\\n")["bytes_written"])
print(read_file("a.py")["content"].splitlines()[0])
print(search_files("x = ")["matches"][0]["path"])
print(search_files("*.py", target="files")["files"])
print(patch("a.py", "x = 1", "x = 2")["success"])
done = terminal("cat a.py; exit 3", timeout=20)
print(done["output"], done["exit_code"])
"""
    async with room(tmp_path) as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == ["6", "1|x = 1", "a.py", "['a.py']", "True", "x = 2 3"]
    assert answer["tool_calls_made"] == 6


async def test_calls_are_journalled_hooked_and_gated_like_direct_ones(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    async with room(tmp_path) as it:
        it.hooks.add("pre_tool_call", lambda tool_name, tool_call_id: told.append((tool_call_id, tool_name)), owner="p",
                     kind="observer")  # fmt: skip
        it.hooks.add("post_tool_call", lambda tool_name, duration_ms: told.append(("after", tool_name)), owner="p",
                     kind="observer")  # fmt: skip
        answer = await it.run("from hermes_tools import terminal\nprint(terminal('echo hi')['output'])")
    assert answer["output"] == "hi\n"
    assert it.journal() == [("call_1/1", "terminal"), ("call_1/1", "ok")]
    assert told == [
        ("call_1", "execute_code"),
        ("call_1/1", "terminal"),
        ("after", "terminal"),
        ("after", "execute_code"),
    ]
    script, command = it.gate.asked
    assert (script.kind, script.tool, script.route) == ("code", "execute_code", "code")
    assert (command.kind, command.text, command.route) == ("command", "echo hi", "code")
    started = [event.call.id for event in it.sink.events if isinstance(event, CallStarted)]
    finished = [event.call.id for event in it.sink.events if isinstance(event, CallFinished)]
    assert (started, finished) == (["call_1", "call_1/1"], ["call_1/1", "call_1"])


async def test_a_policy_that_refuses_is_told_to_the_script_and_nothing_runs(tmp_path: Path) -> None:
    def no(tool_name: str) -> dict[str, str] | None:
        return {"action": "block", "message": "not today"} if tool_name == "terminal" else None

    async with room(tmp_path) as it:
        it.hooks.add("pre_tool_call", no, owner="p", kind="policy")
        answer = await it.run("from hermes_tools import terminal\nprint(terminal('touch made'))")
    assert answer["output"] == "{'error': 'not today'}\n"
    assert it.journal() == [("call_1/1", "terminal"), ("call_1/1", "failed")]
    assert not (it.folder / "made").exists()


async def test_the_edit_guard_is_asked_about_a_scripts_edits(tmp_path: Path) -> None:
    def no(tool_name: str) -> dict[str, str]:
        return {"action": "block", "message": f"{tool_name} is not agreed"}

    async with room(tmp_path) as it:
        it.hooks.add("edit_approval", no, owner="editor", kind="policy")
        answer = await it.run("from hermes_tools import write_file\nprint(write_file('x', 'y'))")
    assert "Edit approval denied: write_file is not agreed" in answer["output"]
    assert not (it.folder / "x").exists()


async def test_a_gate_that_denies_the_script_starts_nothing(tmp_path: Path) -> None:
    async with room(tmp_path, gate=FixedGate(allowed=False, reason="no scripts here")) as it:
        answer = await it.run("open('made', 'w')")
    assert (answer["status"], answer["error"]) == ("error", "no scripts here")
    assert not (it.folder / "made").exists()


async def test_arguments_are_validated_and_refused_calls_do_not_count(tmp_path: Path) -> None:
    code = """
from hermes_tools import read_file, _ask
print(read_file("x", offset=0)["error"])
print(_ask("read_file", {"path": "x", "colour": 1})["error"])
print(_ask("execute_code", {"code": "1"})["error"])
print(_ask("nothing", {})["error"])
"""
    async with room(tmp_path, *builtin("read_file")) as it:
        answer = await it.run(code)
    lines = answer["output"].splitlines()
    assert "do not fit the schema" in lines[0]
    assert "colour" in lines[1]
    assert lines[2] == "tool 'execute_code' cannot be called from a script; available: read_file"
    assert lines[3].startswith("tool 'nothing' cannot be called")
    assert (answer["tool_calls_made"], it.journal()) == (0, [])


async def test_the_limit_of_calls_answers_with_errors_and_the_script_goes_on(tmp_path: Path) -> None:
    code = "from hermes_tools import read_file\nfor n in range(4): print(read_file('a').get('error'))\nprint('end')"
    async with room(tmp_path, settings={"code_execution": {"max_tool_calls": 2}}) as it:
        (it.folder / "a").write_text("a\n")
        answer = await it.run(code)
    lines = answer["output"].splitlines()
    assert lines[:2] == ["None", "None"]
    assert all("limit of 2 tool calls" in line for line in lines[2:4])
    assert (lines[4], answer["tool_calls_made"]) == ("end", 2)


async def test_terminal_calls_stay_in_the_foreground(tmp_path: Path) -> None:
    code = """
from hermes_tools import _ask
args = {"command": "echo here", "background": True, "pty": True, "notify_on_complete": True, "watch_patterns": ["x"]}
print(_ask("terminal", args)["output"])
"""
    async with room(tmp_path) as it:
        answer = await it.run(code)
    assert answer["output"] == "here\n"


async def test_what_the_model_was_shown_counts_for_nothing_in_a_script(tmp_path: Path) -> None:
    code = "from hermes_tools import read_file\nfor n in range(6): print(read_file('a')['content'])"
    async with room(tmp_path) as it:
        (it.folder / "a").write_text("text\n")
        answer = await it.run(code)
    assert answer["output"].count("1|text") == 6


async def test_threads_and_tasks_call_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    together = asyncio.Barrier(6)

    async def handler(args: Mapping[str, Any], **_: object) -> str:
        async with asyncio.timeout(20):
            await together.wait()
        return tool_result({"data": {"web": [{"title": args["query"]}]}})

    search = fake("web_search", handler, SEARCH, Traits(effects=touches_nothing))
    code = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import web_search
title = lambda q: web_search(q)["data"]["web"][0]["title"]
with ThreadPoolExecutor(6) as pool:
    print(list(pool.map(title, "abcdef")))
async def main():
    print(await asyncio.gather(*(asyncio.to_thread(title, q) for q in "uvwxyz")))
asyncio.run(main())
"""
    async with room(tmp_path, search) as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == [str(list("abcdef")), str(list("uvwxyz"))]
    assert answer["_note"].startswith("Part of this may be text from the web")


async def test_calls_whose_effects_meet_run_one_after_the_other(tmp_path: Path) -> None:
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    readers = asyncio.Barrier(6)  # none of them gets past it unless all are inside at once

    async def handler(args: Mapping[str, Any], **_: object) -> str:
        path = str(args["path"])
        inside[path] += 1
        most[path] = max(most[path], inside[path])
        if path.startswith("f"):
            async with asyncio.timeout(20):
                await readers.wait()
        for _turn in range(50):
            await asyncio.sleep(0)
        inside[path] -= 1
        return "{}"

    def writes(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
        return writes_file(str(args["path"]), ctx)

    def reads(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
        return reads_file(str(args["path"]), ctx)

    write = fake("write_file", handler, {"type": "object", "additionalProperties": True}, Traits(effects=writes))
    read = fake("read_file", handler, {"type": "object", "additionalProperties": True}, Traits(effects=reads))
    code = """
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import write_file, read_file
with ThreadPoolExecutor(12) as pool:
    jobs = [pool.submit(write_file, "same", "x") for _ in range(6)]
    jobs += [pool.submit(read_file, "f%d" % n) for n in range(6)]
    [job.result() for job in jobs]
"""
    async with room(tmp_path, write, read) as it:
        answer = await it.run(code)
    assert (answer["status"], answer["tool_calls_made"]) == ("success", 12)
    assert most["same"] == 1


async def test_text_double_encoded_and_pictures_come_back_as_the_contract_says(tmp_path: Path) -> None:
    given = {
        "text": "plain words\nin lines",
        "json": '"{\\"a\\": 1}"',
        "parts": (TextPart("seen"), ImagePart("blob:1")),
    }

    async def handler(args: Mapping[str, Any], **_: object) -> Any:
        return given[args["query"]]

    code = "from hermes_tools import web_search\nfor q in ('text', 'json', 'parts'): print(repr(web_search(q)))"
    async with room(tmp_path, fake("web_search", handler, SEARCH)) as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == ["'plain words\\nin lines'", "{'a': 1}", "'seen'"]


async def test_a_handler_that_raises_is_an_error_object_for_the_script(tmp_path: Path) -> None:
    async def handler(args: Mapping[str, Any], **_: object) -> str:
        raise ValueError("boom")

    code = "from hermes_tools import web_search\nprint(web_search('x'))\nprint('goes on')"
    async with room(tmp_path, fake("web_search", handler, SEARCH)) as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == ["{'error': 'Tool execution failed: ValueError: boom'}", "goes on"]
    assert it.journal()[-1] == ("call_1/1", "failed")


async def test_the_three_helpers(tmp_path: Path) -> None:
    code = r"""
from hermes_tools import json_parse, shell_quote, retry
print(json_parse('{"a": "x\ty"}'), shell_quote("it's"))
left = [2]
def shaky():
    left[0] -= 1
    if left[0]: raise OSError("again")
    return "done"
print(retry(shaky, delay=0))
try: retry(lambda: 1 / 0, max_attempts=2, delay=0)
except ZeroDivisionError as error: print(error)
"""
    async with room(tmp_path) as it:
        answer = await it.run(code)
    assert answer["output"].splitlines() == ["{'a': 'x\\ty'} 'it'\"'\"'s'", "done", "division by zero"]


async def test_a_syntax_error_names_line_and_caret_and_asks_nobody(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        answer = await it.run("open('made', 'w')\nif x == 1\n    pass\n")
        nested = await it.run("(" * 300 + ")" * 300)
        nul = await it.run("x = 1\0")
        outside = await it.run("x = 1\nreturn 2")
    assert (answer["status"], answer["tool_calls_made"], answer["output"]) == ("error", 0, "")
    assert answer["error"] == "SyntaxError at line 2: expected ':'\n    if x == 1\n             ^\nNothing was run."
    assert it.gate.asked == []
    assert not (it.folder / "made").exists()
    assert "line 1" in nested["error"]
    assert "Nothing was run." in nul["error"]
    assert "line 2: 'return' outside function" in outside["error"]


async def test_empty_code_is_an_error_without_status(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        answer = await it.run("  \n")
    assert set(answer) == {"error"}


async def test_a_failing_script_tells_its_traceback_without_our_frames(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        answer = await it.run("print('before')\ndef f():\n    return 1 / 0\nf()")
        left = await it.run("import sys\nsys.exit(3)")
        killed = await it.run("import os\nos.kill(os.getpid(), 11)")
    assert (answer["status"], answer["exit_code"]) == ("error", 1)
    assert answer["error"].startswith('Traceback (most recent call last):\n  File "script.py", line 4, in <module>')
    assert answer["output"] == f"before\n--- stderr ---\n{answer['error']}"
    assert (left["error"], left["exit_code"]) == ("Script exited with code 3", 3)
    assert killed["status"] == "error"


async def test_the_end_of_a_script_is_that_of_any_program(tmp_path: Path) -> None:
    code = """
import atexit, inspect, threading, hermes_tools
class Cycle: pass
one = Cycle()
one.itself, one.file = one, open("in-a-cycle", "w")
one.file.write("kept")
left = open("left-open", "w")
left.write("kept")
atexit.register(print, "at exit")
threading.Timer(0.1, print, ["a thread that goes on"]).start()
print(inspect.getsource(hermes_tools.read_file).splitlines()[0])
print("main")
"""
    async with room(tmp_path) as it:
        answer = await it.run(code)
    signature, *said = answer["output"].splitlines()
    assert signature == "def read_file(path: str, offset: int = 1, limit: int = 500) -> dict:"
    assert said == ["main", "a thread that goes on", "at exit"]
    assert [(it.folder / name).read_text() for name in ("in-a-cycle", "left-open")] == ["kept", "kept"]


async def test_a_script_that_cannot_start_says_so_with_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with room(tmp_path) as it:
        monkeypatch.setattr("tempfile.tempdir", "/dev/null")
        nowhere = await it.run("print(1)")
        monkeypatch.undo()
        it.folder.rmdir()
        gone = await it.run("print(1)")
    assert (nowhere["status"], nowhere["output"], nowhere["tool_calls_made"]) == ("error", "", 0)
    assert "the session's own folder could not be made" in nowhere["error"]
    assert (gone["status"], "No such file or directory" in gone["error"]) == ("error", True)


async def test_a_timeout_tells_output_time_and_the_running_line(tmp_path: Path) -> None:
    code = "import time\nprint('got so far', end='')\ndef wait():\n    time.sleep(60)  # here\nwait()"
    async with room(tmp_path, settings={"code_execution": {"timeout": 2}}) as it:
        answer = await it.run(code)
    late = "Script timed out after 2s and was killed."
    assert answer["status"] == "timeout"
    assert answer["error"] == f"{late} It was running line 4: time.sleep(60)  # here"
    assert answer["output"] == f"got so far\n\n⏰ {answer['error']}"
    assert answer["duration_seconds"] >= 2


async def test_one_deadline_governs_the_script_and_its_calls(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def handler(args: Mapping[str, Any], **_: object) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    code = "from hermes_tools import web_search\nweb_search('x')"
    tool = fake("web_search", handler, SEARCH, Traits(effects=touches_nothing, timeout_s=None))
    async with room(tmp_path, tool, settings={"code_execution": {"timeout": 2}}) as it:
        answer = await it.run(code)
        assert stopped.is_set()
    assert (answer["status"], answer["tool_calls_made"]) == ("timeout", 1)
    assert "line 2: web_search('x')" in answer["error"]
    assert it.journal() == [("call_1/1", "web_search"), ("call_1/1", "unknown")]


async def test_an_interrupt_leaves_the_contracts_text_and_no_process(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def handler(args: Mapping[str, Any], **_: object) -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    code = "from hermes_tools import web_search\nprint('half done')\nweb_search('x')"
    async with room(tmp_path, fake("web_search", handler, SEARCH)) as it, asyncio.TaskGroup() as group:
        running = group.create_task(it.run(code))
        async with asyncio.timeout(30):
            await began.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        finished = [event for event in it.sink.events if isinstance(event, CallFinished)]
    answer = body(finished[-1].result.content)
    assert (answer["status"], answer["output"]) == ("interrupted", f"half done\n{INTERRUPTED}")
    assert finished[-1].result.status == "unknown"
    assert it.journal()[-1] == ("call_1/1", "unknown")


async def test_the_carried_result_is_a_cancellation() -> None:
    assert issubclass(CallInterrupted, asyncio.CancelledError)


async def test_long_output_keeps_its_ends_and_a_handle_to_the_whole(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        answer = await it.run("print('first')\nprint('x' * 120_000)\nprint('last')")
        whole = (await it.ctx.services.shelf.read(answer["full_output"])).decode()
    output = answer["output"]
    assert output.startswith("first\n")
    assert output.endswith("x\nlast\n")
    assert "[output truncated at 50KB] 70012 of 120012 bytes are left out here" in output
    assert (answer["stdout_bytes_total"], answer["stdout_bytes_omitted"]) == (120_012, 70_012)
    assert len(output) < 50_200
    assert whole == "first\n" + "x" * 120_000 + "\nlast\n"


async def test_long_stderr_is_cut_and_secrets_and_colours_are_taken_out(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.stderr.write('e' * 30_000 + ' the end')\n"
        "print('\\x1b[31mred\\x1b[0m sk-' + 'a1B2' * 10)\nsys.exit(1)"
    )
    async with room(tmp_path) as it:
        answer = await it.run(code)
    assert len(answer["error"]) < 10_200
    assert answer["error"].endswith("the end")
    assert answer["output"].startswith("red ⟦secret#")


async def test_output_that_is_no_text_does_no_harm(tmp_path: Path) -> None:
    async with room(tmp_path) as it:
        answer = await it.run("import os\nos.write(1, b'a\\xff\\x00\\xf0z')")
    assert answer["status"] == "success"
    assert answer["output"].startswith("a\ufffd")


async def test_project_mode_stands_in_the_project_and_strict_mode_in_a_bare_folder(tmp_path: Path) -> None:
    code = """
import os, sys
print(os.getcwd())
print(sys.executable)
try:
    import mine
    print(mine.x)
except ImportError:
    print('no')
"""
    async with room(tmp_path) as it:
        (it.folder / "mine.py").write_text("x = 'mine'\n")
        project = await it.run(code)
    async with room(tmp_path, settings={"code_execution": {"mode": "strict"}}) as it:
        strict = await it.run(code)
    assert project["output"].splitlines() == [str(it.folder), sys.executable, "mine"]
    where, program, found = strict["output"].splitlines()
    assert "hermes-code-" in where
    assert not is_there(where)
    assert (program, found) == (sys.executable, "no")


async def test_the_projects_own_python_is_used_when_it_is_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = {
        "venv": "home = /usr\nversion = 3.11.2\n",
        "uv": "uv = 0.5\nversion_info = 3.12.0\n",
        "old": "version = 2.7.18",
    }
    for name, text in {**stated, "unstated": "home = /usr\n", "no-environment": ""}.items():
        program(tmp_path / name / "bin" / "python", f'FROM={name} exec {sys.executable} "$@"')
        if text:
            (tmp_path / name / "pyvenv.cfg").write_text(text)
    program(tmp_path / "conda" / "bin" / "python", f'FROM=conda exec {sys.executable} "$@"')
    (tmp_path / "conda" / "conda-meta").mkdir()
    (tmp_path / "conda" / "conda-meta" / "python-3.12.4-h194c7f8_1.json").touch()
    used = {}
    async with room(tmp_path) as it:
        for name in (*stated, "unstated", "no-environment", "conda"):
            monkeypatch.setenv("CONDA_PREFIX" if name == "conda" else "VIRTUAL_ENV", str(tmp_path / name))
            used[name] = (await it.run("import os\nprint(os.environ.get('FROM'))"))["output"].strip()
    ours = dict.fromkeys(("old", "unstated", "no-environment"), "None")
    assert used == {"venv": "venv", "uv": "uv", "conda": "conda", **ours}


async def test_nothing_in_the_projects_environment_runs_before_the_script_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command can replace it, and only the script itself is confined."""
    environment, trace = tmp_path / "work" / ".venv", tmp_path / "trace"
    program(environment / "bin" / "python", f'echo "$*" >> {trace}; exec {sys.executable} "$@"')
    (environment / "pyvenv.cfg").write_text("version = 3.11.2\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    async with room(tmp_path) as it:
        await it.run("print(1)")
        assert "syntax" in (await it.run("def f(:")).get("error", "").lower()
    runs = trace.read_text().splitlines()
    assert len(runs) == 1
    assert "hermes-code-" in runs[0]


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_the_child_sees_few_variables_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "MY_TOKEN", "GH_AUTH", "DB_DSN", "RANDOM_VARIABLE", "TERMINAL_CWD", "ALLOWED_KEY"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("HERMES_TIMEZONE", "Asia/Tokyo")
    code = "import json, os\nprint(json.dumps(dict(os.environ)))"
    async with room(tmp_path, settings={"terminal": {"env_passthrough": ["ALLOWED_KEY"]}}) as it:
        seen = json.loads((await it.run(code))["output"])
    canaries = {name for name, value in seen.items() if value == "canary"}
    assert canaries == {"ALLOWED_KEY"}
    assert (seen["LC_ALL"], seen["TZ"], seen["PYTHONUTF8"]) == ("C.UTF-8", "Asia/Tokyo", "1")
    assert "HERMES_TIMEZONE" not in seen
    assert "hermes-code-" in seen["PYTHONPATH"].split(os.pathsep)[0]


async def test_home_is_the_profiles_own_when_it_has_one(tmp_path: Path, hermes_home: Path) -> None:
    (hermes_home / "home").mkdir()
    async with room(tmp_path) as it:
        answer = await it.run("import os\nprint(os.environ['HOME'])")
    assert answer["output"] == f"{hermes_home}/home\n"


async def test_stdin_is_at_its_end_and_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder:  # short, unlike `tmp_path`
        monkeypatch.setattr("tempfile.tempdir", folder)
        async with room(tmp_path, settings={"code_execution": {"timeout": 2}}) as it:
            where = await it.run("print(__import__('os').environ['PYTHONPATH'])")
            assert where["output"].startswith(folder)
            for code in ("import sys\nprint(repr(sys.stdin.read()))", "1/0", "import time\ntime.sleep(60)"):
                answer = await it.run(code)
                assert not any(name.startswith("hermes-code") for name in os.listdir(folder))
    assert answer["status"] == "timeout"


async def test_a_temporary_folder_with_a_long_name_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ("long" * 25)
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    async with room(tmp_path) as it:
        assert (await it.run("print(1)"))["output"] == "1\n"


async def test_without_tools_it_is_plain_python(tmp_path: Path) -> None:
    async with room(tmp_path, fake("other", lambda args: "", {"type": "object"})) as it:
        answer = await it.run("import hermes_tools\nprint(hermes_tools.__all__)")
    assert answer["output"] == "['json_parse', 'shell_quote', 'retry']\n"


def test_file_tools_are_a_part_of_the_seven() -> None:
    from hermes.tools.code_execution.stubs import CALLABLE

    assert set(FILE_TOOLS) < CALLABLE
