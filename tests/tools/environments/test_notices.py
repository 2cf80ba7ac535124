"""How often a background process may speak up."""

from hermes.tools.environments.background import BackgroundRecord, BackgroundRequest, Breaker, WatchLimit, completion


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_match_in_fifteen_seconds_is_told() -> None:
    clock = Clock()
    limit = WatchLimit(clock)
    assert limit.allow()
    clock.now = 14.9
    assert not limit.allow()
    clock.now = 15.0
    assert limit.allow()


def test_three_noisy_windows_in_a_row_end_the_watching() -> None:
    clock = Clock()
    limit = WatchLimit(clock)
    for window in range(3):
        clock.now = window * 15.0
        assert limit.allow()
        assert not limit.allow()
    assert limit.given_up
    clock.now = 1000.0
    assert not limit.allow()


def test_a_quiet_window_starts_the_count_again() -> None:
    clock = Clock()
    limit = WatchLimit(clock)
    for window, noisy in enumerate([True, True, False, True, True]):
        clock.now = window * 15.0
        assert limit.allow()
        if noisy:
            assert not limit.allow()
    assert not limit.given_up


def test_fifteen_in_ten_seconds_close_the_whole_channel_for_thirty() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert all(breaker.allow() for _ in range(15))
    assert not breaker.allow()
    clock.now = 29.9
    assert not breaker.allow()
    clock.now = 30.0
    assert breaker.allow()


def test_the_message_names_process_command_code_and_the_end_of_the_output() -> None:
    record = BackgroundRecord(id="proc_1", order=BackgroundRequest(command="make all", cwd="/"), pid=1, started_at=0.0)
    text = completion(record, 2, "x" * 5000 + "the end")
    assert text.startswith("[IMPORTANT: background process proc_1 has ended with exit code 2.\nCommand: make all\n")
    assert text.endswith("the end]")
    assert len(text) < 2200
