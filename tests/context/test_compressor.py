"""The default engine by itself: what it keeps, what it sums up, and what it does when no summary can be had."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.context import ContextCompressor, ContextEngine
from hermes.context.compressor import COOL_DOWN_S, SummaryRequest
from hermes.context.limits import NEVER, summary_tokens, tail_tokens, threshold_tokens, tokens_of
from hermes.context.marks import PREFIX
from hermes.context.prune_output import pruned
from hermes.context.summary import SECTIONS, cut, extended, is_summary, parted, with_summary
from hermes.dicts import from_dict, to_dict
from hermes.errors import BudgetExceeded, ProviderError
from hermes.runtime.requests import CONTINUES, NO_ANSWER, OUTCOME_UNKNOWN, build_units
from hermes.types import ImagePart, Message, TextPart, ToolCall, text_of
from tests.models.histories import logs
from tests.runtime.test_requests import check_valid


class Notes:
    """A summariser that says what it was told to, and remembers what it was asked."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> str:
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else "## Active Task\nnotes"
        if isinstance(answer, Exception):
            raise answer
        return answer


def down(text: str = "no connection") -> ProviderError:
    return ProviderError(text, reason="connection")


def exchange(number: int, size: int = 400) -> list[Message]:
    call = ToolCall(f"c{number}", "read_file", json.dumps({"path": f"/srv/{number}.py"}))
    body = f"{number}: " + "x" * size
    return [
        Message(role="user", content=f"question {number}"),
        Message(role="assistant", content=f"looking {number}", tool_calls=(call,)),
        Message(role="tool", content=body, tool_call_id=call.id, tool_name="read_file", status="ok"),
        Message(role="assistant", content=f"answer {number}"),
    ]


def talk(count: int = 30, size: int = 400) -> list[Message]:
    return [message for number in range(count) for message in exchange(number, size)]


def dicts(messages: list[Message]) -> list[dict[str, Any]]:
    return [to_dict(message) for message in messages]


async def shortened(engine: ContextCompressor, messages: list[Message], **more: Any) -> list[Message]:
    return [from_dict(one) for one in await engine.compress(dicts(messages), **more)]


def summary_of(messages: list[Message]) -> Message:
    (found,) = [message for message in messages if is_summary(message)]
    return parted(found)[0]


# -- what stays --------------------------------------------------------------------------------------------------


async def test_the_ends_stay_and_the_middle_becomes_a_summary() -> None:
    past, notes = talk(), Notes("## Active Task\nread the files")
    out = await shortened(ContextCompressor(notes, context_length=200_000, protect_last_n=4), past)

    assert out[0] == past[0]
    assert out[-4:] == past[-4:]
    assert text_of(summary_of(out).content) == f"{PREFIX}\n\n## Active Task\nread the files"
    assert tokens_of(out) < tokens_of(past) / 2
    told = notes.asked[0].text
    assert all(f"## {name}\n" in told for name, _ in SECTIONS)
    assert "[calls read_file]" in told
    assert "question 15" in told


async def test_old_output_becomes_a_line_and_handles_stay_open() -> None:
    call = ToolCall("t1", "terminal", '{"command": "make test"}')
    output = json.dumps({"output": "y" * 900, "exit_code": 2, "full": "hermes://result/terminal-12ab"})
    twice = Message(role="tool", content=output, tool_call_id="t1", tool_name="terminal", status="failed")
    picture = Message(role="user", content=(TextPart("see"), ImagePart("https://127.0.0.1/a.png")))
    long_call = ToolCall("w", "write_file", json.dumps({"path": "a", "content": "z" * 2000, "lines": ["q" * 300]}))
    past = [
        picture,
        Message(role="assistant", tool_calls=(call,)),
        twice,
        Message(role="assistant", tool_calls=(long_call,)),
        Message(role="tool", content="{}", tool_call_id="w", tool_name="write_file"),
    ]
    lean = pruned(past, 5)

    assert lean[0].content == (TextPart("see"), TextPart("[a picture was here]"))
    assert text_of(lean[2].content) == (
        f"[terminal: make test; exit code 2; failed; {len(output)} characters, 1 lines; output left out; "
        "the whole is in hermes://result/terminal-12ab]"
    )
    short = json.loads(lean[3].tool_calls[0].arguments)
    assert short["path"] == "a"
    assert short["content"].endswith("[... 1800 more characters]")
    assert len(short["lines"][0]) < 300
    assert pruned(past, 0) == past


async def test_of_equal_outputs_the_newest_stays() -> None:
    first, second = exchange(1), exchange(2)
    second[2] = Message(role="tool", content=first[2].content, tool_call_id="c2", tool_name="read_file", status="ok")
    lean = pruned([*first, *second], 4)
    assert text_of(lean[2].content) == "[the same output came again later; see there]"
    assert lean[6] == second[2]
    assert pruned([*first, *second], 0) == [*first, *second], "what is protected stays as it is"


async def test_the_question_of_a_long_turn_stays_word_for_word_behind_the_summary() -> None:
    question = Message(role="user", content="Port all two hundred files. Keep tabs.")
    steps = [message for number in range(200) for message in exchange(number)[1:3]]
    out = await shortened(ContextCompressor(Notes(), context_length=128_000), [question, *steps])

    place = out.index(question)
    assert is_summary(out[place - 1])
    assert out[place - 1].role == "assistant"
    assert out[place + 1].role == "assistant"
    assert out[-2:] == steps[-2:]
    assert len(out) < len(steps) / 4


async def test_an_earlier_summary_is_brought_up_to_date_and_not_summed_up_again() -> None:
    notes = Notes("first notes", "second notes")
    engine = ContextCompressor(notes, context_length=200_000, protect_last_n=4)
    once = await shortened(engine, talk())
    again = await shortened(engine, [*once, *talk(20)])

    assert "<notes>\nfirst notes\n</notes>" in notes.asked[1].text
    assert PREFIX not in notes.asked[1].text
    assert text_of(summary_of(again).content) == f"{PREFIX}\n\nsecond notes"
    assert again[:3] == once[:3]


async def test_a_topic_comes_first() -> None:
    notes = Notes()
    await shortened(ContextCompressor(notes), talk(), focus_topic="the parser")
    assert "above all this topic kept: 'the parser'" in notes.asked[0].text


async def test_more_than_the_summariser_reads_reaches_it_in_pieces() -> None:
    notes = Notes(*(f"notes {number}" for number in range(50)))
    engine = ContextCompressor(notes, context_length=200_000, summary_window=4_000, protect_last_n=0)
    out = await shortened(engine, [Message(role="user", content=f"{n} " + "w" * 900) for n in range(100)])

    assert len(notes.asked) > 5
    assert all(len(request.text) < 4_000 * 4 for request in notes.asked)
    assert "<notes>\nnotes 3\n</notes>" in notes.asked[4].text
    assert text_of(summary_of(out).content).endswith(f"notes {len(notes.asked) - 1}")


async def test_a_short_conversation_stays_as_it_is() -> None:
    notes, past = Notes(), dicts(talk(1))
    assert await ContextCompressor(notes).compress(past) is past
    assert not ContextCompressor(notes).has_content_to_compress(past)
    assert notes.asked == []


# -- when no summary can be had ------------------------------------------------------------------------------------


async def test_the_main_model_is_asked_when_the_one_for_summaries_fails() -> None:
    notes = Notes(down(), "from the main one")
    out = await shortened(ContextCompressor(notes), talk())
    assert [request.on_main for request in notes.asked] == [False, True]
    assert text_of(summary_of(out).content).endswith("from the main one")


@pytest.mark.parametrize("answers", [(down(), down("still none")), ("", " \n"), (BudgetExceeded("the cap"),)])
async def test_without_a_summary_nothing_changes_and_it_is_left_alone_for_a_while(answers: Any) -> None:
    now = [1_000.0]
    engine = ContextCompressor(Notes(*answers), context_length=128_000, now=lambda: now[0])
    past = dicts(talk())
    copy = json.dumps(past)

    assert await engine.compress(past) is past
    assert json.dumps(past) == copy
    assert engine.last_error
    assert not engine.should_compress(100_000)
    now[0] += COOL_DOWN_S
    assert engine.should_compress(100_000)
    assert len(await engine.compress(past)) < len(past)
    assert engine.last_error == ""


async def test_two_that_hardly_help_are_the_last() -> None:
    engine = ContextCompressor(Notes(*["n" * 8_000] * 9), context_length=128_000, protect_last_n=200)
    past = dicts([Message(role="user", content="hi " * 40) for _ in range(80)])
    for _ in range(2):
        assert engine.should_compress(100_000)
        await engine.compress(past)
    assert engine.idle_compressions == 2
    assert not engine.should_compress(100_000)
    await engine.compress(dicts(talk(60)))
    assert engine.should_compress(100_000), "one that helps makes up for it"


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_the_threshold_is_a_share_with_a_floor_that_fits_the_window() -> None:
    assert threshold_tokens(1_000_000, 0.5) == 500_000
    assert threshold_tokens(128_000, 0.5) == 64_000
    assert threshold_tokens(100_000, 0.5) == 64_000
    assert threshold_tokens(64_000, 0.5) == 54_400
    assert threshold_tokens(8_000, 0.5) == 6_800
    assert threshold_tokens(0, 0.5) == NEVER
    assert (tail_tokens(100_000, 0.2), tail_tokens(100_000, 0.01), tail_tokens(100_000, 1)) == (20_000, 10_000, 80_000)
    assert [summary_tokens(size, 200_000) for size in (1_000, 20_000, 45_000, 900_000)] == [2_000, 4_000, 9_000, 10_000]
    assert summary_tokens(900_000, 1_000_000) == 12_000


def test_the_public_names_are_the_contracts() -> None:
    engine: ContextEngine = ContextCompressor(Notes())
    assert engine.name == "compressor"
    assert (engine.threshold_percent, engine.protect_first_n, engine.protect_last_n) == (0.5, 3, 20)
    engine.update_model("m", 128_000)
    engine.update_from_response({"prompt_tokens": 70_000, "completion_tokens": 500})
    assert (engine.last_prompt_tokens, engine.last_total_tokens, engine.threshold_tokens) == (70_000, 70_500, 64_000)
    assert engine.should_compress()
    assert engine.get_status()["context_length"] == 128_000
    engine.on_session_reset()
    assert engine.last_prompt_tokens == 0


# -- between its neighbours ------------------------------------------------------------------------------------------

TOOL = (ToolCall("c", "look", "{}"),)


@pytest.mark.parametrize("content", ["yes", None, (TextPart("yes"),)])
async def test_a_summary_between_a_person_and_an_answer_joins_the_answer_and_is_found_again(content: Any) -> None:
    asked, answer = Message(role="user", content="q"), Message(role="assistant", content=content, tool_calls=TOOL)
    out = with_summary("notes", [asked], [answer])
    assert [message.role for message in out] == ["user", "assistant"]
    assert out[1].tool_calls == TOOL
    summary, own = parted(from_dict(to_dict(out[1])))
    assert text_of(summary.content) == f"{PREFIX}\n\nnotes"
    assert (text_of(own.content), own.tool_calls) == (text_of(content), TOOL)
    assert text_of(parted(extended(out[1], "more"))[0].content) == f"{PREFIX}\n\nnotes\n\nmore"


async def test_a_summary_never_joins_a_question_which_may_be_taken_back() -> None:
    said = [Message(role="user", content="q1"), Message(role="assistant", content="a1")]
    out = with_summary("notes", said, [Message(role="user", content="q2")])
    assert [message.role for message in out] == ["user", "assistant", "user"]
    assert (out[0], text_of(out[2].content)) == (said[0], "q2")


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), min_size=4, max_size=40),
    first_n=st.integers(0, 6),
    last=st.integers(0, 3),
    size=st.integers(0, 2_000),
)
async def test_a_compressed_conversation_never_lets_a_side_speak_twice(
    shape: list[int], first_n: int, last: int, size: int
) -> None:
    """Each number is a question: how many rounds of tools its answer took. Cut anywhere, compressed twice."""
    past: list[Message] = []
    for number, rounds in enumerate(shape):
        past.append(Message(role="user", content=f"q{number} " + "w" * size))
        for n in range(rounds):
            call = ToolCall(f"{number}.{n}", "look", "{}")
            past.append(Message(role="assistant", content="", tool_calls=(call,)))
            past.append(Message(role="tool", content="r" * size, tool_call_id=call.id, tool_name="look"))
        past.append(Message(role="assistant", content=f"a{number} " + "v" * size))
    more = past[[place for place, one in enumerate(past) if one.role == "user"][-3] :] if not last else []
    past = past[: len(past) - last]
    engine = ContextCompressor(Notes(), context_length=30_000, protect_first_n=first_n, protect_last_n=3)
    out = await shortened(engine, past)
    for messages in (out, await shortened(engine, [*out, *more])):
        texts = [text_of(message.content) for unit in build_units(messages) for message in unit.messages]
        assert NO_ANSWER not in texts
        assert CONTINUES not in texts[1:], "at the very beginning somebody has to speak first"


# -- any history -----------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(log=logs, repeats=st.integers(1, 12), last_n=st.integers(0, 30), first_n=st.integers(0, 5))
async def test_any_history_gives_one_that_can_be_sent(
    log: list[Message], repeats: int, last_n: int, first_n: int
) -> None:
    past = [*log] * repeats
    engine = ContextCompressor(Notes(), context_length=30_000, protect_last_n=last_n, protect_first_n=first_n)
    given_ = dicts(past)
    out = await engine.compress(given_)

    check_valid(build_units([from_dict(one) for one in out]))
    assert given_ == dicts(past)
    if out is given_:
        return
    assert tokens_of(map(from_dict, out)) < tokens_of(past)
    assert out[-1] == given_[-1] or out[-1]["role"] == "tool"
    asked = [one for one in given_ if one["role"] == "user"]
    assert not asked or asked[-1] in out
    assert sum(is_summary(from_dict(one)) for one in out) == 1


@settings(max_examples=100, deadline=None)
@given(shape=st.lists(st.integers(0, 4), min_size=3, max_size=30), size=st.integers(0, 3_000))
async def test_a_call_and_its_results_are_never_parted(shape: list[int], size: int) -> None:
    past: list[Message] = []
    for number, count in enumerate(shape):
        calls = tuple(ToolCall(f"{number}.{n}", "look", "{}") for n in range(count))
        past.append(Message(role="user", content=f"q{number}"))
        past.append(Message(role="assistant", content=f"a{number}", tool_calls=calls))
        past += [
            Message(role="tool", content=f"{call.id} " + "r" * size, tool_call_id=call.id, tool_name="look")
            for call in calls
        ]
    engine = ContextCompressor(Notes(), context_length=30_000, protect_last_n=3)
    out = await shortened(engine, past)

    open_ids: list[str] = []
    for message in out:
        if message.role == "tool":
            assert open_ids.pop(0) == message.tool_call_id
            continue
        assert not open_ids
        open_ids = [call.id for call in message.tool_calls]
    assert not open_ids
    texts = [text_of(message.content) for unit in build_units(out) for message in unit.messages]
    assert OUTCOME_UNKNOWN not in texts
    again = await shortened(engine, out)
    assert again[-1] == out[-1]
    assert tokens_of(again) <= tokens_of(out)


@given(log=logs, budget=st.integers(0, 500), first=st.integers(0, 4))
def test_the_cut_covers_every_message_once(log: list[Message], budget: int, first: int) -> None:
    where = cut(log, protect_first=first, tail_budget=budget)
    assert 0 <= where.head <= where.tail <= len(log)
    assert where.asked is None or where.head <= where.asked < where.tail
    kept = where.head + len(where.middle(log)) + (where.asked is not None) + len(log) - where.tail
    assert kept == len(log)
