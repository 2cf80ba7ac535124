"""What a handler prints: logged under its tool, and the streams of the process come back as they were."""

import sys
from typing import Any

import pytest

from hermes.tools.calling.captured_prints import quiet_prints


class Wrapper:
    """A stream around another, as libraries for coloured output put it in place."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return int(self.stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def test_what_is_printed_belongs_to_the_innermost_tool(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO", logger="hermes.tools.calling.captured_prints")
    streams = sys.stdout, sys.stderr
    with quiet_prints("outer"):
        with quiet_prints("inner"):
            sys.stdout.write("one\n")
        sys.stderr.write("two\n")
    assert (sys.stdout, sys.stderr) == streams
    sys.stdout.write("three\n")
    assert caplog.messages == ["tool 'inner' printed: one", "tool 'outer' printed: two"]
    assert capsys.readouterr() == ("three\n", "")


def test_a_stream_that_a_tool_puts_in_place_stays(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger="hermes.tools.calling.captured_prints")
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back afterwards
    with quiet_prints("t"):
        wrapper: Any = Wrapper(sys.stdout)
        sys.stdout = wrapper
    for _ in range(2):
        with quiet_prints("t"):
            sys.stdout.write("quiet\n")
        assert sys.stdout is wrapper
        sys.stdout.write("loud\n")
    assert caplog.messages == ["tool 't' printed: quiet"] * 2
    assert capsys.readouterr().out == "loud\nloud\n"
