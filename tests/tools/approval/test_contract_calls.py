"""The contract's functions: one decision in plain code, by session key."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.compat.tools import approval as old
from hermes.tools import approval

SESSION = "contract-session"


@pytest.fixture(autouse=True)
def _session(hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    token = approval.set_current_session_key(SESSION)
    yield
    approval.clear_session(SESSION)
    approval.reset_current_session_key(token)


def check(command: str, answer: Any = "deny", backend: str = "local") -> dict[str, Any]:
    return approval.check_all_command_guards(command, backend, lambda *_, **__: answer)


def test_harmless_commands_need_nobody() -> None:
    assert approval.check_dangerous_command("ls -la", "local") == {"approved": True, "message": None}


def test_nobody_to_ask_means_no() -> None:
    answer = approval.check_all_command_guards("rm -rf build", "local")
    assert (answer["approved"], answer["status"]) == (False, "blocked")
    assert answer["pattern_key"] == answer["description"] == "recursive delete"


@pytest.mark.parametrize("answer", ["deny", "", None, RuntimeError("gone"), "perhaps"])
def test_whatever_is_no_clear_yes_is_a_no(answer: Any) -> None:
    def callback(*_: Any, **__: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert not approval.check_all_command_guards("rm -rf build", "local", callback)["approved"]


def test_once_is_spent_and_session_and_always_last() -> None:
    assert check("rm -rf build", "once")["user_approved"]
    assert not check("rm -rf build")["approved"]
    assert check("rm -rf build", "session")["approved"]
    assert check("rm -rf dist")["approved"]
    approval.clear_session(SESSION)
    assert not check("rm -rf dist")["approved"]
    assert check("rm -rf build", "always")["approved"]
    approval.clear_session(SESSION)
    assert check("rm -rf dist")["approved"]
    assert approval.load_permanent_allowlist() == {"recursive delete @ workspace"}
    approval.save_permanent_allowlist(set())
    assert not check("rm -rf dist")["approved"]


def test_keys_approved_by_hand_count_in_every_place() -> None:
    approval.approve_session(SESSION, "recursive delete")
    assert approval.is_approved(SESSION, "recursive delete")
    assert check("rm -rf build")["approved"]
    assert check("rm -rf /srv/data/x")["approved"]
    assert not approval.is_approved("other", "recursive delete")
    approval.approve_permanent("SQL DROP")
    assert approval.is_approved("other", "SQL DROP")
    assert check('psql -c "DROP TABLE users"')["approved"]


def test_the_floor_and_deny_rules_hold_without_asking_too(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text('approvals: {deny: ["npm publish*"]}\n')
    approval.enable_session_yolo(SESSION)
    assert approval.is_session_yolo_enabled(SESSION)
    assert check("rm -rf build")["approved"]
    floor = check("rm -rf /")
    assert (floor["approved"], floor["hardline"]) == (False, True)
    assert floor["message"].startswith("BLOCKED (hardline):")
    assert check("npm publish --tag x")["user_deny"]
    approval.disable_session_yolo(SESSION)
    assert not check("rm -rf build")["approved"]


def test_asking_can_be_switched_off_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_YOLO_MODE", "1")
    assert check("rm -rf build")["approved"]
    assert check("rm -rf /")["hardline"]


def test_a_container_is_left_alone_unless_the_host_is_mounted(hermes_home: Path) -> None:
    assert check("rm -rf build", backend="docker")["approved"]
    (hermes_home / "config.yaml").write_text("terminal: {docker_volumes: ['/srv:/srv']}\n")
    assert not check("rm -rf build", backend="docker")["approved"]


def test_a_chat_is_told_and_its_answer_counts() -> None:
    told: list[dict[str, Any]] = []

    def notify(facts: dict[str, Any]) -> None:
        told.append(facts)
        threading.Thread(target=approval.resolve_gateway_approval, args=(SESSION, "once")).start()

    approval.register_gateway_notify(SESSION, notify)
    try:
        assert approval.check_all_command_guards("rm -rf build", "local")["approved"]
    finally:
        approval.unregister_gateway_notify(SESSION)
    assert told[0]["pattern_keys"] == ["recursive delete"]
    assert not approval.has_blocking_approval(SESSION)


def test_a_chat_that_never_answers_is_a_no(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("approvals: {gateway_timeout: 0.05}\n")
    approval.register_gateway_notify(SESSION, lambda _: None)
    try:
        assert not approval.check_all_command_guards("rm -rf build", "local")["approved"]
        assert approval.resolve_gateway_approval(SESSION, "always", resolve_all=True) == 0
    finally:
        approval.unregister_gateway_notify(SESSION)


def test_a_chat_session_without_a_listener_waits_for_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_GATEWAY_SESSION", "1")
    answer = approval.check_all_command_guards("rm -rf build", "local")
    assert (answer["approved"], answer["status"]) == (False, "approval_required")


def test_the_choices_of_the_prompt() -> None:
    assert approval.prompt_dangerous_approval("x", "y", approval_callback=lambda *_, **__: "always") == "always"
    callback = lambda *_, allow_permanent: "always" if not allow_permanent else "deny"  # noqa: E731 - one line
    assert approval.prompt_dangerous_approval("x", "y", allow_permanent=False, approval_callback=callback) == "session"
    assert approval.prompt_dangerous_approval("x", "y", timeout_seconds=0.01) == "deny"


def test_a_plugins_rule_is_asked_about_and_its_yes_is_kept() -> None:
    assert not approval.request_tool_approval("deploy", "it touches production")["approved"]
    approval.set_approval_callback(lambda *_, **__: "session")
    try:
        first = approval.request_tool_approval("deploy", "it touches production", rule_key="prod")
    finally:
        approval.set_approval_callback(None)
    assert (first["approved"], first["user_approved"]) == (True, True)
    assert approval.is_approved(SESSION, "plugin_rule:prod")
    assert approval.request_tool_approval("deploy", "it touches production", rule_key="prod") == {
        "approved": True,
        "message": None,
    }


def test_a_script_is_judged_by_what_it_does() -> None:
    assert approval.check_execute_code_guard("print(1)", "local") == {"approved": True, "message": None}
    assert approval.check_execute_code_guard("import shutil\nshutil.rmtree('/')", "local")["hardline"]
    ends = "x = HERMES_CODE_END = 1\nHERMES_CODE_END\nx <<x\nimport shutil; shutil.rmtree('/')\nx\n"
    assert approval.check_execute_code_guard(ends, "local")["hardline"]


def test_consent_to_a_servers_question_is_never_taken_for_granted() -> None:
    assert approval.request_elicitation_consent("Your name?", "a server asks") == "decline"
    approval.set_approval_callback(lambda *_, **__: "once")
    try:
        assert approval.request_elicitation_consent("Your name?", "a server asks") == "accept"
    finally:
        approval.set_approval_callback(None)


def test_files_written_for_hermes_agent_find_every_name() -> None:
    assert {name for name in approval.__all__ if not hasattr(old, name)} == set()
    assert old.check_all_command_guards is approval.check_all_command_guards
