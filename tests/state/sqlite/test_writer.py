"""When commits may run on an event loop, from how long they took."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.state.sqlite import connection, write_file, writer
from hermes.state.sqlite.writer import QUICK_S, SLOWEST_S, pace

QUICK = st.floats(0.00005, QUICK_S / 4)
SLOW = st.floats(SLOWEST_S, 5.0)


@given(QUICK, st.floats(0.0, 60.0))
def test_one_hiccup_does_not_make_a_quick_disk_slow(usual_s: float, hiccup_s: float) -> None:
    assert pace(usual_s, hiccup_s, by_thread=False) < QUICK_S


@given(QUICK, st.lists(SLOW, min_size=4))
def test_a_disk_that_has_become_slow_is_noticed_within_four_commits(usual_s: float, took_s: list[float]) -> None:
    estimate_s = usual_s
    for seconds in took_s:
        estimate_s = pace(estimate_s, seconds, by_thread=False)
    assert estimate_s >= QUICK_S


@given(st.floats(QUICK_S, 5.0), st.lists(SLOW))
def test_a_slow_disk_stays_slow_while_the_thread_writes(estimate_s: float, took_s: list[float]) -> None:
    for seconds in took_s:
        estimate_s = pace(estimate_s, seconds, by_thread=True)
    assert estimate_s >= QUICK_S


@given(QUICK, st.lists(st.floats(0.0, 5.0)))
def test_waits_of_the_thread_do_not_make_a_quick_disk_slow(estimate_s: float, took_s: list[float]) -> None:
    for seconds in took_s:
        estimate_s = pace(estimate_s, seconds, by_thread=True)
    assert estimate_s < QUICK_S


@given(st.floats(QUICK_S, SLOWEST_S), st.lists(st.floats(QUICK_S, 5.0)), st.lists(QUICK, min_size=4, max_size=4))
def test_a_few_quick_commits_among_held_up_ones_bring_the_writing_back_to_the_loop(
    estimate_s: float, held_up_s: list[float], took_s: list[float]
) -> None:
    for quick_s in took_s:
        for seconds in (*held_up_s, quick_s):
            estimate_s = pace(estimate_s, seconds, by_thread=True)
    assert estimate_s < QUICK_S


def test_the_page_of_the_writer_tells_its_numbers() -> None:
    page = (Path(__file__).parents[3] / "docs" / "state-writer.md").read_text(encoding="utf-8")
    told = (
        f"under {writer.QUICK_S * 1000:.0f} ms",
        f"{writer.PATIENCE} times {writer.RETRY_S * 1000:.0f} ms",
        f"takes ≤ {writer.GROUP_LIMIT}",
        f"{write_file.CHECKPOINT_EVERY} commits, or {writer.IDLE_S} s quiet",
        f"strangers for {connection.BUSY_TIMEOUT_MS // 1000} s",
    )
    assert [words for words in told if words not in page] == []
