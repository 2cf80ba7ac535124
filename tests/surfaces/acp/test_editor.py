"""What an editor sees of a session: handshake, turns, edits, modes, cancel, load, fork and list."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hermes.config.write import set_key
from hermes.surfaces.acp.connection import MOST_REQUESTS
from hermes.surfaces.acp.editor_modes import UNASKED, EditorMode, is_waved_through
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from hermes.tools.approval.effects_model import keys
from hermes.types import JsonObject, Question
from tests.surfaces.acp.editor import ALLOW, DENY, Refused, editor_at
from tests.surfaces.cli.interactive.terminal import answering

EDITING: tuple[EditorMode, ...] = ("accept_edits", "dont_ask")
ENVIRON = {"PATH": "/usr/bin:/bin"}
CHILD = "Put new words into the note."
TURNS: dict[str, list[Reply]] = {
    "Delegate": [calls("delegate_task", goal=CHILD, context="It is note.txt."), says("A child tried.")],
    CHILD: [calls("write_file", path="note.txt", content="new words\n"), says("The child has done it.")],
    "Write": [calls("write_file", path="note.txt", content="new words\n"), says("Written.")],
    "Script": [
        calls(
            "execute_code", code="from hermes_tools import write_file\nprint(write_file('note.txt', 'new words\\n'))"
        ),
        says("Done."),
    ],
    "Secret": [calls("write_file", path=".env", content="A=1\n"), says("Written.")],
    "List": [calls("terminal", command="echo hi"), says("It says hi.")],
    "Plan": [calls("todo", todos=[{"id": "1", "content": "look", "status": "in_progress"}]), says("Planned.")],
    "Slow": [calls("terminal", command="echo first; sleep 3; echo second"), says("Done.")],
    "Sleep": [calls("terminal", command="sleep 600"), says("Never.")],
    "Read": [calls("read_file", path="note.txt"), says("Read.")],
    "Patch": [
        calls("patch", mode="replace", path="note.txt", old_string="unsaved words", new_string="unsaved letters"),
        says("Patched."),
    ],
    "Replace": [
        calls("patch", mode="replace", path="note.txt", old_string="old words", new_string="new words"),
        says("Patched."),
    ],
    "Apply": [
        calls(
            "patch",
            mode="patch",
            patch="*** Begin Patch\n*** Update File: note.txt\n@@\n-old words\n+new words\n*** End Patch",
        ),
        says("Patched."),
    ],
    "Task": [calls("write_file", path=".vscode/tasks.json", content="{}\n"), says("Tried.")],
    "Delete": [calls("terminal", command="rm -rf gone"), says("Tried.")],
}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ServerThread(answering(TURNS)) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    set_key(made, "model.default", "scripted")
    set_key(made, "model.base_url", server.base_url)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "note.txt").write_text("old words\n")
    return made


async def test_the_handshake_works_where_nothing_is_configured(tmp_path: Path) -> None:
    async with editor_at(tmp_path / "home", {}) as editor:
        told = await editor.call("initialize", protocolVersion=7, clientCapabilities={})
        assert told["protocolVersion"] == 1
        assert [method["id"] for method in told["authMethods"]] == ["hermes-setup"]
        with pytest.raises(Refused) as refused:
            await editor.call("session/new", cwd=str(tmp_path), mcpServers=[])
        assert refused.value.code == -32000
        with pytest.raises(Refused, match="hermes setup"):
            await editor.call("authenticate", methodId="hermes-setup")


async def test_a_configured_provider_is_the_first_way_to_authenticate(home: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        told = await editor.call("initialize", protocolVersion=1)
        assert [method["id"] for method in told["authMethods"]] == ["custom", "hermes-setup"]
        assert await editor.call("authenticate", methodId="custom") == {}
        with pytest.raises(Refused) as refused:
            await editor.call("authenticate", methodId="nonsense")
        assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"this is no JSON", -32700),
        (b"[1, 2]", -32600),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "ping"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/new", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/new", "params": {"cwd": "here", "mcpServers": []}}', -32602),
        (
            b'{"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}',
            -32002,
        ),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/load", "params": {"sessionId": "x", "cwd": "/"}}', -32002),
    ],
)
async def test_what_is_wrong_is_refused_and_the_server_goes_on(home: Path, frame: bytes, code: int) -> None:
    async with editor_at(home, ENVIRON) as editor:
        editor.send(frame)
        editor.send(b"")
        assert (await editor.call("initialize", protocolVersion=1))["protocolVersion"] == 1
        assert (await editor.stray())["error"]["code"] == code


async def test_a_turn_with_a_call_is_told_in_order(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        reply = await editor.prompt(session, "List, please")

    assert reply["stopReason"] == "end_turn"
    assert reply["usage"]["totalTokens"] >= 0
    kinds = [update["sessionUpdate"] for update in editor.updates]
    assert kinds[:2] == ["available_commands_update", "usage_update"]
    started, ended = editor.told("tool_call")[0], editor.told("tool_call_update")[-1]
    assert (started["title"], started["kind"]) == ("terminal: echo hi", "execute")
    assert ended["toolCallId"] == started["toolCallId"]
    assert ended["status"] == "completed"
    assert ended["content"][0]["content"]["text"] == "hi"
    assert editor.text == "It says hi."
    assert kinds.index("tool_call") < kinds.index("tool_call_update") < kinds.index("agent_message_chunk")


@pytest.mark.parametrize("words", ["Write", "Script", "Delegate"])
@pytest.mark.parametrize(
    "said", [DENY, {"outcome": {"outcome": "cancelled"}}, {"code": -32000, "message": "no"}, {"nonsense": 1}]
)
async def test_an_edit_that_is_not_allowed_leaves_the_file(home: Path, project: Path, words: str, said: Any) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: said) as editor:
        session = await editor.new(project)
        assert (await editor.prompt(session, words))["stopReason"] == "end_turn"

    assert (project / "note.txt").read_text() == "old words\n"
    (method, asked) = editor.asked[0]
    assert method == "session/request_permission"
    diff = asked["toolCall"]["content"][0]
    assert diff == {
        "type": "diff",
        "path": str(project / "note.txt"),
        "oldText": "old words\n",
        "newText": "new words\n",
    }
    assert [option["optionId"] for option in asked["options"]] == ["allow_once", "deny"]


ROUTES = ("Write", "Replace", "Apply", "Script", "Delegate")


@pytest.mark.parametrize("words", ROUTES)
async def test_every_route_asks_and_a_yes_makes_the_edit(home: Path, project: Path, words: str) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: ALLOW) as editor:
        await editor.prompt(await editor.new(project), words)

    (asked,) = [params for method, params in editor.asked if method == "session/request_permission"]
    assert asked["toolCall"]["content"][0]["newText"] == "new words\n"
    assert (project / "note.txt").read_text() == "new words\n"


@pytest.mark.parametrize("words", ROUTES)
async def test_silence_is_a_no_on_every_route(home: Path, project: Path, words: str) -> None:
    set_key(home, "approvals.timeout", "1")
    async with editor_at(home, ENVIRON, lambda _method, _params: None) as editor:
        assert (await editor.prompt(await editor.new(project), words))["stopReason"] == "end_turn"

    assert len(editor.asked) == 1
    assert (project / "note.txt").read_text() == "old words\n"


@pytest.mark.parametrize("words", ROUTES)
async def test_an_editor_that_leaves_while_it_is_asked_has_said_no(home: Path, project: Path, words: str) -> None:
    is_asked = asyncio.Event()
    async with editor_at(home, ENVIRON, lambda _method, _params: is_asked.set()) as editor:
        session = await editor.new(project)
        editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": words}])
        async with asyncio.timeout(60):
            await is_asked.wait()

    assert (project / "note.txt").read_text() == "old words\n"


async def test_an_allowed_edit_is_made(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: ALLOW) as editor:
        await editor.prompt(await editor.new(project), "Write")

    assert (project / "note.txt").read_text() == "new words\n"
    assert editor.told("tool_call")[0]["locations"] == [{"path": str(project / "note.txt")}]


@pytest.mark.parametrize(("mode", "is_asked"), [("default", True), ("accept_edits", False), ("dont_ask", False)])
async def test_modes_say_which_edits_are_asked_about(home: Path, project: Path, mode: str, is_asked: bool) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: ALLOW) as editor:
        session = await editor.new(project)
        assert await editor.call("session/set_mode", sessionId=session, modeId=mode) == {}
        await editor.prompt(session, "Write")
        assert bool(editor.asked) is is_asked
        path = str(project / "note.txt")
        diff = {"type": "diff", "path": path, "oldText": "old words\n", "newText": "new words\n"}
        assert editor.told("tool_call_update")[-1]["content"] == [diff]
        editor.asked.clear()
        await editor.prompt(session, "Secret")

    assert [asked["toolCall"]["kind"] for _, asked in editor.asked] == ["edit"]  # in every mode
    assert (project / "note.txt").read_text() == "new words\n"


async def test_plan_changes_nothing_and_asks_nothing(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: ALLOW) as editor:
        session = await editor.new(project)
        await editor.call("session/set_mode", sessionId=session, modeId="plan")
        await editor.prompt(session, "Write")

    assert editor.asked == []
    assert (project / "note.txt").read_text() == "old words\n"


async def test_an_unknown_mode_option_or_model_is_refused(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        for method, params in (
            ("session/set_mode", {"modeId": "nonsense"}),
            ("session/set_config_option", {"configId": "nonsense", "value": "ask"}),
            ("session/set_config_option", {"configId": "edit_approval_policy", "value": "nonsense"}),
        ):
            with pytest.raises(Refused) as refused:
                await editor.call(method, sessionId=session, **params)
            assert refused.value.code == -32602
        told = await editor.call(
            "session/set_config_option", sessionId=session, configId="edit_approval_policy", value="session"
        )
        assert told["configOptions"][0]["currentValue"] == "session"


async def test_a_dangerous_command_is_asked_about_in_every_mode(home: Path, project: Path) -> None:
    (project / "gone").mkdir()
    (project / "gone" / "file").write_text("words")
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        await editor.call("session/set_mode", sessionId=session, modeId="dont_ask")
        await editor.prompt(session, "Delete")

    options = [option["optionId"] for option in editor.asked[0][1]["options"]]
    assert options[0] == "allow_once"
    assert options[-2:] == ["deny", "deny_always"]
    assert editor.asked[0][1]["toolCall"]["rawInput"]["command"] == "rm -rf gone"
    assert (project / "gone" / "file").exists()
    assert editor.told("tool_call_update")[-1]["status"] == "failed"


@pytest.mark.parametrize("mode", ["accept_edits", "dont_ask"])
async def test_what_others_run_by_themselves_is_asked_about_in_every_mode(home: Path, project: Path, mode: str) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        await editor.call("session/set_mode", sessionId=session, modeId=mode)
        await editor.prompt(session, "Task")

    assert len(editor.asked) == 1
    assert not (project / ".vscode").exists()


@pytest.mark.parametrize("mode", EDITING)
def test_a_command_that_wants_to_write_beyond_the_border_is_no_edit(mode: EditorMode) -> None:
    """Its question names a path, as an edit does; a yes opens the folder and runs the command again."""
    details: JsonObject = {"command": "/home/me/precious/x", "pattern_keys": list(UNASKED), "for_command": "touch x"}
    asked = Question(id="1", kind="edit", text="write", choices=("once", "deny"), deadline=0.0, details=details)
    edit = structs.replace(asked, shown={"edit": {"path": "/home/me/precious/x"}})
    assert UNASKED.issubset(keys().values())
    assert not is_waved_through(mode, asked, "/home/me")
    assert is_waved_through(mode, edit, "/home/me")


async def test_cancel_ends_the_turn_and_the_session_takes_the_next_prompt(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        editor.cancel(session)  # nothing runs: no effect
        turn = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Sleep"}])
        waits = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Sleep more"}])
        await editor.until(lambda update: update["sessionUpdate"] == "tool_call")
        editor.cancel(session)
        async with asyncio.timeout(20):
            assert [(await turn)["stopReason"], (await waits)["stopReason"]] == ["cancelled", "cancelled"]
        assert (await editor.prompt(session, "Hello"))["stopReason"] == "end_turn"
        started = {update["toolCallId"] for update in editor.told("tool_call")}
        ended = {update["toolCallId"] for update in editor.told("tool_call_update") if update.get("status")}

    assert started == ended
    assert "I was asked: Hello" in editor.text


async def test_what_a_command_prints_is_told_while_it_runs(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        turn = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Slow"}])
        tail = await editor.until(
            lambda update: update["sessionUpdate"] == "tool_call_update" and "status" not in update
        )
        assert not turn.done()
        await turn

    assert tail["toolCallId"] == editor.told("tool_call")[0]["toolCallId"]
    assert tail["content"][0]["content"]["text"].strip() == "first"


async def test_a_second_prompt_waits_and_both_are_answered_in_order(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        turns = [
            editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": words}])
            for words in ("One", "Two", "Three")
        ]
        for turn in turns:
            assert (await turn)["stopReason"] == "end_turn"

    assert "Queued for the next turn." in editor.text
    places = [editor.text.index(f"I was asked: {words}") for words in ("One", "Two", "Three")]
    assert places == sorted(places)


async def test_a_blank_prompt_and_commands_ask_no_model(home: Path, project: Path, server: ScriptedServer) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        for words in (" ", "/help", "/context", "/version", "/tools"):
            assert (await editor.prompt(session, words))["stopReason"] == "end_turn"
        assert server.requests == []
        await editor.prompt(session, "/usr/bin is full")
        assert len(server.requests) >= 1

    names = {command["name"] for command in editor.told("available_commands_update")[0]["availableCommands"]}
    assert {"help", "model", "tools", "context", "reset", "compact", "steer", "queue", "version"} <= names


async def test_a_loaded_session_is_told_as_it_was_live(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        await editor.prompt(session, "List, please")
        await editor.prompt(session, "List again")
        await editor.prompt(session, "Plan it")
        live = editor
    async with editor_at(home, ENVIRON) as editor:
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert [each["content"]["text"] for each in editor.told("user_message_chunk")] == [
            "List, please",
            "List again",
            "Plan it",
        ]
        assert [each["toolCallId"] for each in editor.told("tool_call")] == [
            each["toolCallId"] for each in live.told("tool_call")
        ]
        assert editor.told("plan") == live.told("plan")
        assert editor.text == live.text
        listed = await editor.call("session/list", cwd=str(project))
        assert [each["sessionId"] for each in listed["sessions"]] == [session]
        assert (await editor.call("session/list", cwd="/elsewhere"))["sessions"] == []
        assert (await editor.call("session/list", cursor="nonsense"))["sessions"] == []
        assert (await editor.prompt(session, "Hello"))["stopReason"] == "end_turn"


async def test_a_fork_leaves_its_parent_as_it_is(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        await editor.prompt(session, "Hello")
        forked = await editor.call("session/fork", sessionId=session, cwd=str(project), mcpServers=[])
        assert forked["sessionId"] != session
        await editor.prompt(forked["sessionId"], "More")
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])

    assert [each["content"]["text"] for each in editor.told("user_message_chunk")] == ["Hello"]


async def test_blocks_become_words_and_pictures(home: Path, project: Path, server: ScriptedServer) -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "Look"},
        {"type": "resource", "resource": {"uri": "file:///x/a.py", "text": "print(1)"}},
        {"type": "resource_link", "uri": (project / "note.txt").as_uri(), "name": "note.txt"},
        {"type": "resource_link", "uri": "https://example.invalid/", "name": "page"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
    ]
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        await editor.call("session/prompt", sessionId=session, prompt=blocks)

    body: Any = server.requests[0].json
    sent = str(next(message for message in body["messages"] if message["role"] == "user")["content"])
    for words in ("Look", "a.py", "print(1)", "old words", "https://example.invalid/"):
        assert words in sent


async def test_twenty_sessions_work_side_by_side(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        sleeping = await editor.new(project)
        turn = editor.begin("session/prompt", sessionId=sleeping, prompt=[{"type": "text", "text": "Sleep"}])
        sessions = [await editor.new(project) for _ in range(20)]
        turns = [
            editor.begin("session/prompt", sessionId=one, prompt=[{"type": "text", "text": "Hello"}])
            for one in sessions
        ]
        for each in turns:
            async with asyncio.timeout(60):
                assert (await each)["stopReason"] == "end_turn"
        assert not turn.done()


async def test_a_session_in_which_nothing_was_said_yet_can_be_loaded_later(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
    async with editor_at(home, ENVIRON) as editor:
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert editor.told("user_message_chunk") == []
        await editor.prompt(session, "Hello")
    async with editor_at(home, ENVIRON) as editor:
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert [each["content"]["text"] for each in editor.told("user_message_chunk")] == ["Hello"]
        assert [each["sessionId"] for each in (await editor.call("session/list"))["sessions"]] == [session]


async def test_children_at_work_are_entries_of_their_own_live_and_when_loaded(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON, lambda _method, _params: ALLOW) as editor:
        session = await editor.new(project)
        await editor.prompt(session, "Delegate")
        live = editor
    entries = [each["toolCallId"] for each in live.told("tool_call")]
    delegate, child = entries
    assert child.startswith("child-")
    assert live.told("tool_call")[1]["title"] == f"child: {CHILD}"
    news = [each for each in live.told("tool_call_update") if each["toolCallId"] == child]
    assert "write: note.txt" in news[0]["content"][0]["content"]["text"]
    assert news[-1]["status"] == "completed"
    assert news[-1]["content"][0]["content"]["text"] == "The child has done it."
    assert live.told("tool_call_update")[-1]["toolCallId"] == delegate
    assert live.asked[0][1]["toolCall"]["title"].startswith("[sa-0-")  # whose edit it is
    assert (project / "note.txt").read_text() == "new words\n"
    async with editor_at(home, ENVIRON) as editor:
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert [each["toolCallId"] for each in editor.told("tool_call")] == entries
        assert [each for each in editor.told("tool_call_update") if each["toolCallId"] == child][-1] == news[-1]
        assert [each["sessionId"] for each in (await editor.call("session/list"))["sessions"]] == [session]


async def test_a_cancel_ends_the_entries_of_children_too(home: Path, project: Path) -> None:
    waits = asyncio.Event()

    def answer(_method: str, _params: dict[str, Any]) -> None:
        waits.set()  # and says nothing

    async with editor_at(home, ENVIRON, answer) as editor:
        session = await editor.new(project)
        turn = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Delegate"}])
        await waits.wait()
        editor.cancel(session)
        async with asyncio.timeout(20):
            assert (await turn)["stopReason"] == "cancelled"
        started = {update["toolCallId"] for update in editor.told("tool_call")}
        ended = {update["toolCallId"] for update in editor.told("tool_call_update") if update.get("status")}
    assert started == ended
    assert len(started) == 2
    assert (project / "note.txt").read_text() == "old words\n"


async def test_unsaved_words_are_what_tools_read_and_what_an_edit_is_compared_with(home: Path, project: Path) -> None:
    def answer(method: str, params: dict[str, Any]) -> Any:
        if method == "fs/read_text_file":
            return (
                {"content": "unsaved words\n"} if params["path"].endswith("note.txt") else {"code": 1, "message": "?"}
            )
        return ALLOW

    async with editor_at(home, ENVIRON, answer) as editor:
        await editor.call("initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}})
        session = await editor.new(project)
        await editor.prompt(session, "Read")
        assert "unsaved words" in editor.told("tool_call_update")[-1]["content"][0]["content"]["text"]
        await editor.prompt(session, "/reset")
        await editor.prompt(session, "Read once more")
        assert "unsaved words" in editor.told("tool_call_update")[-1]["content"][0]["content"]["text"]
        await editor.prompt(session, "Patch")

    diff = next(asked for method, asked in editor.asked if method == "session/request_permission")["toolCall"][
        "content"
    ]
    assert (diff[0]["oldText"], diff[0]["newText"]) == ("unsaved words\n", "unsaved letters\n")
    assert (project / "note.txt").read_text() == "unsaved letters\n"


async def test_an_editor_that_did_not_offer_its_buffers_is_not_asked(home: Path, project: Path) -> None:
    async with editor_at(home, ENVIRON) as editor:
        await editor.prompt(await editor.new(project), "Read")

    assert editor.asked == []
    assert "old words" in editor.told("tool_call_update")[-1]["content"][0]["content"]["text"]


async def test_servers_of_the_editor_serve_its_session_alone(home: Path, project: Path, server: ScriptedServer) -> None:
    bare = Path(__file__).parents[2] / "tools" / "mcp" / "bare_server.py"
    given = {"name": "bare", "command": sys.executable, "args": [str(bare)], "env": [{"name": "LANG", "value": "C"}]}
    set_key(home, "mcp_discovery_timeout", "60")  # a busy machine starts a server slowly
    async with editor_at(home, ENVIRON) as editor:
        opened = await editor.call("session/new", cwd=str(project), mcpServers=[given])
        await editor.prompt(opened["sessionId"], "Hello")
        await editor.prompt(opened["sessionId"], "/reset")
        await editor.prompt(opened["sessionId"], "Hello again")
        await editor.prompt(await editor.new(project), "Hello")

    offered = [
        {tool["function"]["name"] for tool in body["tools"]}
        for body in (request.json for request in server.requests)
        if "tools" in body
    ]
    assert all(any(name.startswith("mcp__bare__") for name in names) for names in offered[:-1])
    assert not any(name.startswith("mcp__") for name in offered[-1])


async def test_more_requests_at_once_than_anyone_needs_are_refused_and_a_cancel_is_still_heard(
    home: Path, project: Path
) -> None:
    async with editor_at(home, ENVIRON) as editor:
        session = await editor.new(project)
        turns = [
            editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Sleep"}])
            for _ in range(MOST_REQUESTS + 20)
        ]
        for turn in turns[MOST_REQUESTS:]:
            with pytest.raises(Refused, match="requests are under way"):
                await turn
        await editor.until(lambda update: update["sessionUpdate"] == "tool_call")
        editor.cancel(session)
        async with asyncio.timeout(60):
            assert {(await turn)["stopReason"] for turn in turns[:MOST_REQUESTS]} == {"cancelled"}
        assert (await editor.prompt(session, "Hello"))["stopReason"] == "end_turn"
