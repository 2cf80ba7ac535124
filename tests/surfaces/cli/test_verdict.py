"""Every way a turn can end has one exit code, and words with a next step unless it was answered."""

import pytest

from hermes.host.turn_verdict import verdict_of, why_for
from hermes.surfaces.cli.chat.turn_words import exit_code, words_for
from hermes.surfaces.cli.exit_codes import Exit


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"turn_exit_reason": "text_response(finish_reason=stop)", "final_response": "Hi."}, Exit.ANSWERED),
        ({"turn_exit_reason": "fallback_prior_turn_content", "final_response": "Hi."}, Exit.ANSWERED),
        ({"turn_exit_reason": "text_response(finish_reason=stop)", "final_response": " "}, Exit.EMPTY),
        ({"turn_exit_reason": "empty_response_exhausted", "final_response": "(empty)"}, Exit.EMPTY),
        ({"turn_exit_reason": "text_response(finish_reason=content_filter)", "final_response": ""}, Exit.REFUSED),
        ({"turn_exit_reason": "all_retries", "failed": True, "error_reason": "policy_blocked"}, Exit.REFUSED),
        ({"turn_exit_reason": "max_iterations_reached(3/3)", "final_response": "So far."}, Exit.BUDGET),
        ({"turn_exit_reason": "spend_cap_reached", "failed": True, "error": "cap"}, Exit.BUDGET),
        ({"turn_exit_reason": "deadline_exceeded", "failed": True, "error": "late"}, Exit.BUDGET),
        (
            {"turn_exit_reason": "text_response(finish_reason=length)", "partial": True, "final_response": "Half"},
            Exit.BUDGET,
        ),
        ({"turn_exit_reason": "all_retries_exhausted_no_response", "failed": True, "error": "x"}, Exit.PROVIDER),
        ({"turn_exit_reason": "partial_stream_recovery", "partial": True, "final_response": "Half"}, Exit.PROVIDER),
        ({"turn_exit_reason": "guardrail_halt", "final_response": "I stopped."}, Exit.TOOL),
        ({"turn_exit_reason": "local_processing_error(StoreError)", "failed": True, "error": "x"}, Exit.FAILED),
        ({"turn_exit_reason": "interrupted_by_user", "interrupted": True, "final_response": "Ha"}, Exit.CANCELLED),
    ],
)
def test_each_ending_has_its_code(result: dict[str, object], code: Exit) -> None:
    assert exit_code(result) == code
    assert bool(words_for(code, result)) == (code is not Exit.ANSWERED)
    assert ("hermes chat --resume" in words_for(code, result)) == (code not in (Exit.ANSWERED, Exit.FAILED))
    assert words_for(code, result).startswith(why_for(verdict_of(result), result))
    assert "hermes chat" not in why_for(verdict_of(result), result)
