"""Guardrails: thresholds of the contract, cycles, and that words alone are no failure."""

import json

import pytest

from hermes.runtime.guardrails import GuardrailConfig, Guardrails
from hermes.types import ResultStatus

FAILED = '{"error": "no"}'


def test_an_exact_failure_is_warned_of_at_two_and_blocked_at_five() -> None:
    rails = Guardrails()
    codes = []
    for _ in range(5):
        assert rails.before("t", {"a": 1}).action == "allow"
        codes.append(rails.after("t", {"a": 1}, FAILED, "failed").code)
    assert codes == ["", *["repeated_exact_failure_warning"] * 4]
    block = rails.before("t", {"a": 1})
    assert (block.action, block.code, block.count) == ("block", "repeated_exact_failure_block", 5)
    assert rails.halted == block
    assert json.loads(block.as_json())["guardrail"]["code"] == "repeated_exact_failure_block"


def test_one_tool_failing_in_other_ways_is_warned_of_at_three_and_halts_at_eight() -> None:
    rails = Guardrails()
    codes = [rails.after("t", {"a": n}, FAILED, "failed").code for n in range(8)]
    assert codes == ["", "", *["same_tool_failure_warning"] * 5, "same_tool_failure_halt"]
    assert rails.halted is not None


def test_a_success_clears_the_failures_of_its_tool() -> None:
    rails = Guardrails()
    for n in range(7):
        rails.after("t", {"a": n}, FAILED, "failed")
    rails.after("t", {"a": 99}, '{"ok": 1}', "ok")
    assert rails.after("t", {"a": 100}, FAILED, "failed").action == "allow"
    assert rails.halted is None


def test_a_reader_that_shows_the_same_is_warned_of_at_two_and_blocked_at_five() -> None:
    rails = Guardrails()
    codes = [rails.after("read", {}, '{"a": 1, "b": 2}', "ok", read_only=True).code for _ in range(5)]
    assert codes == ["", *["idempotent_no_progress_warning"] * 4]
    assert rails.before("read", {}, read_only=True).code == "idempotent_no_progress_block"


def test_any_tool_with_the_same_result_is_told_at_three_and_stopped_at_five() -> None:
    rails = Guardrails()
    codes = [rails.after("terminal", {"c": "x"}, '{"exit_code": 0}', "ok").code for _ in range(5)]
    assert codes == ["", "", *["no_progress_warning"] * 3]
    assert rails.before("terminal", {"c": "x"}).action == "block"


def test_work_between_two_equal_failures_makes_room_again() -> None:
    rails = Guardrails()
    for n in range(12):
        rails.after("patch", {"n": n}, '{"success": true}', "ok")
        assert rails.before("terminal", {"c": "pytest"}).action == "allow"
        rails.after("terminal", {"c": "pytest"}, f'{{"exit_code": 1, "output": "{n} failed"}}', "ok")
        rails.after("terminal", {"c": "true"}, '{"exit_code": 0}', "ok")
    assert rails.halted is None


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_is_told_at_three_rounds_and_halts_at_five(length: int) -> None:
    rails = Guardrails()
    warned = halted = None
    for step in range(length * 6):
        number = step % length
        decision = rails.after(f"t{number}", {"n": number}, f'{{"r": {number}}}', "ok")
        if decision.code == "cycle_warning" and warned is None:
            warned = step // length + 1
        if decision.code == "cycle_halt":
            halted = step // length + 1
            break
    assert (warned, halted) == (3, 5)


def test_a_cycle_that_gets_somewhere_is_none() -> None:
    rails = Guardrails()
    for step in range(60):
        rails.after(f"t{step % 3}", {"n": step % 3}, f'{{"r": {step}}}', "ok")
    assert rails.halted is None


def test_failure_is_structure_not_words() -> None:
    assert not _counts_as_failure("error error Error", "ok")
    assert not _counts_as_failure('{"output": "error", "exit_code": 0}', "ok")
    assert _counts_as_failure('{"exit_code": 2}', "ok")
    assert _counts_as_failure("fine", "unknown")


def _counts_as_failure(content: str, status: ResultStatus) -> bool:
    rails = Guardrails()
    codes = [rails.after("t", {}, content, status).code for _ in range(2)]
    return codes[-1] == "repeated_exact_failure_warning"


def test_configuration_can_switch_stops_and_warnings_off() -> None:
    config = GuardrailConfig.of({"tool_loop_guardrails": {"hard_stop_enabled": False, "warnings_enabled": False}})
    rails = Guardrails(config)
    for _ in range(20):
        assert rails.before("t", {}).action == "allow"
        assert rails.after("t", {}, FAILED, "failed").action == "allow"
    assert GuardrailConfig.of({}) == GuardrailConfig()
    tuned = GuardrailConfig.of({"tool_loop_guardrails": {"hard_stop_after": {"exact_failure": 9}}})
    assert (tuned.hard_stop_after.exact_failure, tuned.hard_stop_after.same_tool_failure) == (9, 8)
