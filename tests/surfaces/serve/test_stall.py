"""A client that stalls costs nobody anything, and sees in the end what everybody has seen."""

import json
from collections.abc import Callable
from pathlib import Path

from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import answering
from tests.surfaces.serve.conftest import Json, Lines, Serve

TURNS = 4
LONG = "A line of many words that go on and on, for as long as it takes to fill what is between two programs.\n" * 4_000


def stored_of(client: Lines) -> list[Json]:
    """The stored events, up to the end of the last turn."""
    found: list[Json] = []
    ends = 0
    while ends < TURNS:
        event = client.event("host.event")
        if event["payload"]["is_stored"]:
            found.append({"number": event["number"], **event["payload"]["event"]})
            ends += event["payload"]["event"]["type"] == "turn_ended"
    return found


def test_one_that_stalls_sees_the_same_stored_events_in_the_same_order(
    serve: Serve, uses_model: Callable[..., None], tmp_path: Path
) -> None:
    script = answering({"Tell": [calls("terminal", command="echo here"), says(LONG)]})
    with ServerThread(script) as model:
        uses_model(model.base_url)
        with serve() as served:
            one, other = served.client(), served.client()
            made = one.ask("session.attach")
            other.ask("session.attach", session_id=made["stored_session_id"])
            stalled = served.socket()
            request = {"id": 1, "method": "session.attach", "params": {"session_id": made["stored_session_id"]}}
            stalled.sendall(json.dumps(request).encode() + b"\n")
            lines = iter(stalled.makefile("rb"))
            while json.loads(next(lines)).get("id") != 1:
                pass
            for number in range(TURNS):
                one.ask("prompt.submit", session_id=made["session_id"], text=f"Tell {number}")
            first, second = stored_of(one), stored_of(other)
            assert first == second
            assert [event["number"] for event in first] == sorted({event["number"] for event in first})
            assert sum(event["type"] == "call_finished" for event in first) == TURNS
            assert stored_of(Lines(stalled.sendall, lines)) == first
