"""The terminal tool in the foreground: what a model gets back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.scope import TurnScope
from hermes.seams import HookBus
from hermes.tools.builtin.terminal import terminal
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.hooks import Hooks
from hermes.tools.registry import registry
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.terminal_room import Room, ToldGate, told


class HookedRoom(Room):
    """A room with plugins."""

    hooks: HookBus


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    supervisor = ProcessSupervisor()
    work = tmp_path / "work"
    work.mkdir()
    options = LocalOptions(env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)})
    environment = LocalEnvironment(supervisor, str(work), options)
    yield Room(environment, supervisor, tmp_path)
    await environment.close()
    await supervisor.close()


async def test_output_code_folder_and_backend_are_told(room: Room) -> None:
    answer = told(await terminal({"command": "echo out; echo err >&2; exit 3"}, ctx=room))
    assert answer == {
        "output": "out\nerr",
        "exit_code": 3,
        "error": None,
        "cwd": room.environment.cwd,
        "backend": "local",
    }
    assert (room.notes["command"], room.notes["exit_code"]) == ("echo out; echo err >&2; exit 3", 3)


async def test_cd_and_export_last_from_call_to_call(room: Room) -> None:
    await terminal({"command": "mkdir sub && cd sub && export GREETING='good day'"}, ctx=room)
    answer = told(await terminal({"command": 'echo "$GREETING in $PWD"'}, ctx=room))
    assert answer["output"] == f"good day in {room.environment.cwd}"
    assert room.environment.cwd.endswith("/work/sub")


async def test_the_gate_is_asked_and_its_no_is_final(room: Room) -> None:
    room.gate = ToldGate("canary")
    answer = told(await terminal({"command": "touch canary"}, ctx=room))
    assert (answer["status"], answer["exit_code"]) == ("blocked", -1)
    assert "choose another way" in answer["error"]
    assert await room.environment.list_dir(".") == []
    asked = room.gate.asked[0]
    assert (asked.kind, asked.text, asked.route, asked.backend) == ("command", "touch canary", "foreground", "local")


async def test_a_command_that_somebody_allowed_says_so(room: Room) -> None:
    answer = told(await terminal({"command": "true"}, ctx=room))
    assert "approval" not in answer
    room.gate.decided_by = "person"
    answer = told(await terminal({"command": "true"}, ctx=room))
    assert answer["approval"] == "the user allowed this command (once)"


async def test_a_plugin_may_replace_the_whole_output_before_it_is_cut(room: Room) -> None:
    hooks = Hooks(DaemonPool(size=1, name="test"))
    seen: list[dict[str, object]] = []

    def shorten(**facts: object) -> str:
        seen.append(facts)
        return f"{len(str(facts['output']))} characters"

    hooks.add("transform_terminal_output", shorten, owner="test", kind="observer")
    hooked = HookedRoom(room.environment, room.supervisor, Path(room.environment.cwd).parent)
    hooked.hooks = hooks
    answer = told(await terminal({"command": "seq 1 100000; exit 2"}, ctx=hooked))
    assert answer["output"] == "588894 characters"
    assert {key: seen[0][key] for key in ("command", "returncode", "task_id", "env_type")} == {
        "command": "seq 1 100000; exit 2",
        "returncode": 2,
        "task_id": "default",
        "env_type": "local",
    }


async def test_the_password_for_sudo_is_asked_for_once(tmp_path: Path) -> None:
    supervisor, asked = ProcessSupervisor(), []
    tools = tmp_path / "bin"
    tools.mkdir()
    # A stand-in that does what sudo does: with -n it fails, with -A it takes the password that SUDO_ASKPASS prints.
    (tools / "sudo").write_text(
        '#!/bin/bash\n[ "$1" = -A ] || { echo "sudo: a password is required"; exit 1; }\n'
        'shift; [ "$("$SUDO_ASKPASS")" = "pass word" ] && exec "$@"; exit 1\n'
    )
    (tools / "sudo").chmod(0o755)

    async def ask(prompt: str) -> str:
        asked.append(prompt)
        return "pass word"

    (tmp_path / ".bashrc").write_text(f"export PATH={tools}:/usr/bin:/bin\n")  # a login shell sets a path of its own
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    environment = LocalEnvironment(supervisor, str(tmp_path), LocalOptions(env=env, ask_password=ask))
    room = Room(environment, supervisor, tmp_path)
    for word in ("one", "two"):
        answer = told(await terminal({"command": f"sudo echo {word}"}, ctx=room))
        assert (answer["output"], answer["exit_code"]) == (word, 0)
    assert asked == ["Password for sudo: "]
    await environment.close()
    await supervisor.close()


async def test_a_timeout_returns_what_was_printed(room: Room) -> None:
    answer = told(await terminal({"command": "echo begun; sleep 1000", "timeout": 1}, ctx=room))
    assert (answer["exit_code"], answer["error"]) == (124, None)
    assert answer["output"] == "begun\n[Command timed out after 1s]"


async def test_an_interrupt_passes_on_and_leaves_a_note(room: Room) -> None:
    scope = TurnScope()
    room.scope = scope

    async def work() -> None:
        async with scope:
            await terminal({"command": "echo begun; touch started; sleep 1000"}, ctx=room)

    task = asyncio.get_running_loop().create_task(work())
    async with asyncio.timeout(10):
        while await room.environment.stat("started") is None:  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    scope.cancel("the person pressed stop")
    await asyncio.wait_for(task, 10)
    assert scope.state == "cancelled"
    assert room.notes["exit_code"] == 130
    assert room.notes["output"] == "begun\n\n[Command interrupted]"


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("npm run dev", "npm dev"),
        ("cd app && yarn start", "yarn start"),
        ("sleep 100 &", "'&'"),
        ("nohup ./serve.sh", "nohup"),
        ("python -m http.server 8000", "http.server"),
        ("docker compose up", "docker compose up"),
        ("uvicorn app:app --reload", "uvicorn"),
    ],
)
async def test_what_would_never_return_is_answered_with_what_to_do(room: Room, command: str, word: str) -> None:
    answer = told(await terminal({"command": command}, ctx=room))
    assert (answer["exit_code"], answer["status"]) == (-1, "error")
    assert word in answer["error"]
    assert "background=true" in answer["error"]
    assert room.gate.asked == []


@pytest.mark.parametrize(
    "command",
    [
        *("echo 'npm run dev &'", "echo a 2>&1 && echo b", "true & wait", "uvicorn --help 2>/dev/null; true"),
        *("echo a &>f", "echo a | tr '&' b", "echo a # then & nohup b", "echo $((1 & 3))"),
    ],
)
async def test_harmless_commands_are_not_refused(room: Room, command: str) -> None:
    assert told(await terminal({"command": command}, ctx=room))["exit_code"] == 0


async def test_a_code_that_is_an_answer_comes_with_its_meaning(room: Room) -> None:
    answer = told(await terminal({"command": "echo a | grep b"}, ctx=room))
    assert (answer["exit_code"], answer["exit_code_meaning"]) == (1, "no matches found (not an error)")


async def test_long_output_is_cut_in_the_middle_and_kept_whole_behind_a_handle(room: Room) -> None:
    answer = told(await terminal({"command": "seq 1 100000"}, ctx=room))
    assert answer["output"].startswith("1\n2\n")
    assert answer["output"].endswith("\n100000")
    assert len(answer["output"]) < 51_000
    whole = await room.shelf.read(answer["full_output"])
    assert whole == "\n".join(str(number) for number in range(1, 100001)).encode()


async def test_output_beyond_memory_is_handed_over_as_a_file(room: Room) -> None:
    answer = told(await terminal({"command": "head -c 3000000 /dev/zero | tr '\\0' x"}, ctx=room))
    assert answer["total_bytes"] == 3_000_000
    assert await room.shelf.size(answer["full_output"]) == 3_000_000


async def test_colours_and_redrawn_lines_are_plain_text(room: Room) -> None:
    command = r"printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\n\033]0;title\007end\n'"
    assert told(await terminal({"command": command}, ctx=room))["output"] == "red\n100%\nend"


async def test_bad_calls_get_one_clear_sentence(room: Room) -> None:
    assert told(await terminal({"command": 5}, ctx=room))["error"] == "command must be a string"
    assert "empty" in told(await terminal({"command": "  "}, ctx=room))["error"]
    assert "background=true" in told(await terminal({"command": "true", "timeout": 601}, ctx=room))["error"]
    for option in ({"notify_on_complete": True}, {"watch_patterns": ["ready"]}):
        assert "background=true" in told(await terminal({"command": "true", **option}, ctx=room))["error"]
    assert told(await terminal({"command": "pwd", "workdir": "a;b"}, ctx=room))["status"] == "blocked"
    missing = told(await terminal({"command": "pwd", "workdir": "/no/such/folder"}, ctx=room))
    assert missing["exit_code"] == 126
    assert "/no/such/folder" in missing["output"]


def test_both_tools_are_registered_in_the_terminal_toolset() -> None:
    import hermes.tools.builtin.process  # noqa: F401 - importing registers

    assert set(registry.get_tool_names_for_toolset("terminal")) >= {"terminal", "process"}
