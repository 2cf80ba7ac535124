"""Every option of a conversation does what its help says, or is refused in one sentence."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from hermes.surfaces.cli.app import APP, COMMANDS
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.chat_options import chat_options
from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer, ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def system(server: ScriptedServer, number: int = 0) -> str:
    body = server.requests[number].json
    assert isinstance(body, dict)
    return str(body["messages"][0]["content"])


def test_rules_are_read_unless_they_are_to_be_ignored(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs only.")
    (home / "SOUL.md").write_text("I am the soul.")
    with ServerThread([says("1"), says("2"), says("3")]) as server:
        run("chat", "-q", "x", *model(server))
        run("chat", "-q", "x", "--ignore-rules", *model(server))
        run("chat", "-q", "x", *model(server), HERMES_IGNORE_RULES="1")
    assert "Use tabs only." in system(server)
    assert "I am the soul." in system(server)
    for number in (1, 2):
        assert "Use tabs only." not in system(server, number)
        assert "I am the soul." not in system(server, number)


def test_the_model_is_told_the_session_only_when_asked(run: Run) -> None:
    with ServerThread([says("1"), says("2")]) as server:
        plain = run("chat", "-q", "x", "--json", *model(server))
        told = run("chat", "-q", "x", "--json", "--pass-session-id", *model(server))
    ids = [json.loads(done.stdout.splitlines()[-1])["session_id"] for done in (plain, told)]
    assert ids[0] not in system(server)
    assert ids[1] in system(server, 1)


def test_a_session_carries_where_it_came_from(run: Run) -> None:
    with ServerThread([says("1"), says("2"), says("3")]) as server:
        run("chat", "-q", "mine", *model(server))
        run("chat", "-q", "theirs", "--source", "script", *model(server))
        run("chat", "-q", "more", "--continue", "--source", "script", *model(server))
    rows = json.loads(run("sessions", "list", "--json", "--source", "script").stdout)
    assert [(row["preview"], row["message_count"]) for row in rows] == [("theirs", 4)]


def test_the_time_zone_decides_the_day_the_model_is_told(run: Run) -> None:
    with ServerThread([says("1"), says("2")]) as server:
        for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):  # 26 hours apart: never the same day
            run("chat", "-q", "x", *model(server), HERMES_TIMEZONE=zone)
    days = [system(server, number).partition("Conversation started: ")[2].partition("\n")[0] for number in (0, 1)]
    assert days[0] != days[1]
    bad = run("chat", "-q", "x", "--model", "m", "--base-url", "http://127.0.0.1:9", HERMES_TIMEZONE="Mars/Base")
    assert (bad.returncode, "there is no time zone 'Mars/Base'" in bad.stderr) == (Exit.FAILED, True)


def test_messages_of_a_file_go_before_every_conversation(run: Run, home: Path) -> None:
    (home / "first.json").write_text(
        '[{"role": "user", "content": "Ping?"}, {"role": "assistant", "content": "Pong."}]'
    )
    (home / "config.yaml").write_text("prefill_messages_file: first.json\n")
    with ServerThread([says("1")]) as server:
        done = run("chat", "-q", "Again?", *model(server))
        body = server.requests[0].json
    assert (done.stderr, done.returncode) == ("", 0)
    assert isinstance(body, dict)
    assert [message["content"] for message in body["messages"][1:]] == ["Ping?", "Pong.", "Again?"]
    (home / "first.json").write_text('[{"role": "user"}]')
    bad = run("chat", "-q", "x", "--model", "m", "--base-url", "http://127.0.0.1:9")
    assert (bad.returncode, bad.stderr.count("\n")) == (Exit.FAILED, 1)
    assert "message 1 of" in bad.stderr


def test_every_option_stands_before_and_after_the_command_and_reaches_the_run() -> None:
    @chat_options
    @click.command()
    def only() -> None:
        """Nothing but the options."""

    known = {param.name for param in only.params}
    assert known <= {param.name for param in APP.params}
    assert known <= {param.name for param in COMMANDS.load("chat").params}
    assert known <= set(Wish.__struct_fields__), "an option that no run would look at"


def test_a_person_who_goes_on_is_reminded_of_what_was_said(run: Run, environ: dict[str, str], tmp_path: Path) -> None:
    with ServerThread([says("Flour and patience."), says("Salt.")]) as server:
        run("chat", "-q", "How do I bake bread?", *model(server))
        ours, theirs = pty.openpty()
        words = ["chat", "--continue", "-q", "What else?", *model(server)]
        process = subprocess.Popen(
            [sys.executable, "-m", "hermes.surfaces.cli.main", *words],
            env={**environ, "TERM": "xterm"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            out, _ = process.communicate(timeout=60)
            shown = read_all(ours)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
    assert out == b"Salt.\n"
    assert "2 messages" in shown
    assert shown.index("> How do I bake bread?") < shown.index("  Flour and patience.")


def read_all(number: int) -> str:
    """What the terminal was sent; its other end is closed."""
    text = b""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and select.select([number], [], [], 1)[0]:
        try:
            chunk = os.read(number, 65_536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not chunk:
            break
        text += chunk
    return text.decode()


def test_telling_more_and_telling_nothing_contradict_each_other(run: Run) -> None:
    done = run("chat", "-q", "x", "-v", "-Q")
    assert done.returncode == Exit.USAGE
    assert "--verbose and --quiet contradict each other; use one of them." in done.stderr


def test_toolsets_without_a_name_are_refused_and_not_taken_for_all(run: Run) -> None:
    for words in (("-t", ""), ("-t", " , ")):
        done = run("chat", "-q", "x", *words)
        assert done.returncode == Exit.USAGE
        assert f"--toolsets {words[1]!r} names no toolset; leave it out, or see: hermes tools" in done.stderr
