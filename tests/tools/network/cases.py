"""What a session's own network does for commands, case by case: run in a room, where the network is the room's own.

`python -m tests.tools.network.cases NAME`; `test_session_network.py` runs each.
"""

import asyncio
import os
import resource
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from hermes.confinement.plan import PlanRequest
from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.environments.background import BackgroundRequest
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.network.ask_host import NetworkCall
from hermes.tools.network.host_desk import MOST_NOES, MOST_QUESTIONS
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.border import room, run_room

ALLOWED = Decision(allowed=True)


class Person:
    """A gate whose person answers as they are told to, when they are let."""

    def __init__(self, **decision: Any) -> None:
        self.asked: list[Action] = []
        self.withdrawn: list[str] = []
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._decision = Decision(**decision)

    async def decide(self, action: Action, scope: TurnScope) -> Decision:
        if action.details.get("is_unasked"):
            return Decision(allowed=False, decided_by="nobody")
        self.asked.append(action)
        self.is_asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.withdrawn.append(action.text)
            raise
        return self._decision


@asynccontextmanager
async def environment(folder: Path, person: Person | None = None, **more: Any) -> AsyncIterator[LocalEnvironment]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    request = PlanRequest(workspace=str(work), home=str(folder), network=False)
    border = Border(mode="on", level="full", request=request, network="ask", is_network_said=True, **more)
    supervisor = ProcessSupervisor()
    made = LocalEnvironment(
        supervisor,
        str(work),
        LocalOptions(
            env={"PATH": os.environ["PATH"], "HOME": str(folder)}, border=border, processes_folder=folder / "processes"
        ),
    )
    try:
        if person is not None:
            call = Action(kind="command", tool="terminal", text="the command", session_id="s")
            made.asks_for_hosts(NetworkCall(person, call, TurnScope()))
        await made.execute("true", ALLOWED, TurnScope())
        network = made.network
        assert network is not None
        # Names of these tests are known nowhere: they lead to this machine's loopback.
        network._wishes = structs.replace(network._wishes, lookup=lambda *_: ("127.0.0.1",))
        yield made
    finally:
        await made.close()
        await supervisor.close()


@contextmanager
def server(text: bytes = b"words of the server", port: int = 0) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", port))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + text)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


async def a_host_that_a_rule_names_is_reached_without_a_question(tmp_path: Path) -> None:
    person = Person(allowed=False)
    with server() as port:
        async with environment(tmp_path, person, network_hosts=(f"api.test:{port}",)) as made:
            result = await made.execute(f"curl -sS http://api.test:{port}/", ALLOWED, TurnScope())
    assert (result.output, result.notes, person.asked) == ("words of the server", (), [])


async def any_port_is_reached_by_name_and_stays_free_for_a_server(tmp_path: Path) -> None:
    serve = (
        "import socket, sys, time\nfor n in range(50):\n"
        "    try: s = socket.create_server(('0.0.0.0', int(sys.argv[1]))); break\n"
        "    except OSError: time.sleep(0.02)\n"  # until nobody else comes to the listener of the last connection
        "print('listens'); s.settimeout(9); c, _ = s.accept(); c.sendall(b'own'); c.close()\n"
    )
    with server() as port:
        other = port + 1 if port < 65535 else port - 1
        async with environment(tmp_path, network_hosts=("api.test", f"odd.test:{port}")) as made:
            many = f"seq 20 | xargs -P 20 -I% curl -sS -m 9 http://odd.test:{port}/%; curl -sS http://api.test:{port}/"
            result = await made.execute(many, ALLOWED, TurnScope())
            assert result.output == "words of the server" * 21, result
            (tmp_path / "work" / "serve.py").write_text(serve)
            # Nobody is there, which is told; and the port was listened on for that connection alone.
            result = await made.execute(f"curl -sS -m 9 http://api.test:{other}/", ALLOWED, TurnScope())
            assert f"api.test:{other} could not be reached" in result.notes[0]
            both = (
                f"python3 -u serve.py {other} > out & "
                "for i in $(seq 200); do grep -qs listens out && break; sleep 0.05; done; "
                f"curl -s -m 3 http://api.test:{other}/; cat </dev/tcp/127.0.0.1/{other}"
            )
            result = await made.execute(both, ALLOWED, TurnScope())
    assert result.output == "own"
    assert "a program of this session listens on port" in result.notes[0]


async def an_address_that_a_rule_names_is_reached_without_a_name(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="not now", decided_by="person", scope="deny")
    hosts = ("10.9.8.7:8080", "192.0.2.0/24")
    async with environment(tmp_path, person, network_hosts=hosts) as made:
        tried = "for a in 10.9.8.7:8080 192.0.2.5 10.9.8.7:81 10.9.8.6:8080; do curl -sS -m 9 http://$a/; done"
        result = await made.execute(tried, ALLOWED, TurnScope())
        reached = "could not be reached from this machine"  # there is nobody at these addresses
        told = [note.partition(" ")[0] for note in result.notes if reached in note]
        assert told == ["10.9.8.7:8080", "192.0.2.5:80"]
        private = "10.9.8.7:81: it is an address that is not public"
        assert any(private in note for note in result.notes)
    assert person.asked == []  # and the last has no route


async def something_large_comes_whole_both_ways(tmp_path: Path) -> None:
    size = 40_000_000
    with server(bytes(size)) as port:
        async with environment(tmp_path, network_hosts=("api.test",)) as made:
            result = await made.execute(f"curl -sS http://api.test:{port}/ | wc -c", ALLOWED, TurnScope())
            assert result.output.strip() == str(size)
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[int] = []

    def take() -> None:
        connection, _ = listener.accept()
        taken.append(sum(iter(lambda: len(connection.recv(1 << 16)), 0)))
        connection.close()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    async with environment(tmp_path, network_hosts=("api.test",)) as made:
        port = listener.getsockname()[1]
        await made.execute(f"head -c {size} /dev/zero > /dev/tcp/api.test/{port}", ALLOWED, TurnScope())
        await asyncio.to_thread(thread.join, 20)
    listener.close()
    assert taken == [size]


async def a_host_that_the_person_refused_is_told_and_asked_about_once(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="not now", decided_by="person", scope="deny")
    async with environment(tmp_path, person) as made:
        for _ in range(2):
            result = await made.execute("curl -sS -m 5 http://evil.test/", ALLOWED, TurnScope())
            assert result.exit_code != 0
            assert result.notes == (
                "the network refused evil.test:80: the user said no; do not look for another way there",
            )
        assert any("refused    evil.test:80" in line for line in made.network_lines)
    assert [action.text for action in person.asked] == ["evil.test:80"]
    assert "curl -sS -m 5 http://evil.test/" in str(person.asked[0].details["why"])


async def a_rule_that_denies_a_host_wins_over_every_grant(tmp_path: Path) -> None:
    person = Person(allowed=True, decided_by="person", scope="session")
    rules = [{"action": "deny", "tool": "terminal", "hosts": ["*.Evil.test"]}]
    git = tmp_path / "work" / ".git"
    git.mkdir(parents=True)
    (git / "config").write_text('[remote "origin"]\n\turl = http://git.evil.test/x.git\n')
    with server() as port:
        rules.append({"action": "deny", "hosts": [f"localhost:{port}"]})
        more: dict[str, Any] = {"network_hosts": ("*.evil.test", "good.test"), "network_local": (port,)}
        async with environment(tmp_path, person, approvals={"rules": rules}, **more) as made:
            tried = (
                f"for h in named.evil.test git.evil.test 127.0.0.1:{port} asked.evil.test; do curl -sS -m 9 $h; done"
            )
            result = await made.execute(tried, ALLOWED, TurnScope())
            hosts = ("named.evil.test:80", "git.evil.test:80", f"127.0.0.1:{port}", "asked.evil.test:80")
            assert result.notes == tuple(
                f"the network refused {host}: a rule of the user's denies it" for host in hosts
            )
            result = await made.execute(f"curl -sS -m 9 http://good.test:{port}/", ALLOWED, TurnScope())
            assert result.output == "words of the server"
    assert person.asked == []


async def a_rule_that_denies_an_address_holds_for_names_that_lead_there(tmp_path: Path) -> None:
    rules = [{"action": "deny", "hosts": ["127.0.0.*"]}]
    async with environment(tmp_path, network_hosts=("good.test",), approvals={"rules": rules}) as made:
        result = await made.execute("curl -sS -m 9 http://good.test/", ALLOWED, TurnScope())
    assert result.notes == (
        "the network refused good.test:80: it leads to an address that a rule of the user's denies",
    )


async def a_background_process_asks_in_its_own_name(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="no", decided_by="person", scope="deny")
    async with environment(tmp_path, person) as made:
        wants = "until test -e go; do sleep 0.05; done; curl -sS -m 9 http://behind.test/; touch done"
        order = BackgroundRequest(command=wants, cwd=made.cwd, session_id="s")
        started = await made.background.start(order, ALLOWED)
        newest = Action(kind="command", tool="terminal", text="make", session_id="s")
        made.asks_for_hosts(NetworkCall(person, newest, TurnScope()))
        wait = "touch go; until test -e done; do sleep 0.05; done"
        (told,) = (await made.execute(wait, ALLOWED, TurnScope(), timeout_s=20)).notes
        result = await made.execute("curl -sS -m 9 http://front.test/", ALLOWED, TurnScope())
    behind, front = (action.details for action in person.asked)
    assert behind["command"] == wants
    assert f"http://behind.test/ (background process {started.id}) wants" in str(behind["why"])
    assert told.startswith(f"the network refused behind.test:80 to background process {started.id} (until test -e go;")
    assert front["command"] == "make"
    assert result.notes == ("the network refused front.test:80: the user said no; do not look for another way there",)


async def a_script_asks_after_a_call_within_it_has_ended(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="no", decided_by="person", scope="deny")
    async with environment(tmp_path, person) as made:
        inner = TurnScope()
        async with inner:
            call = Action(kind="command", tool="terminal", text="ls", session_id="s")
            made.asks_for_hosts(NetworkCall(person, call, inner))
        await made.execute("curl -sS -m 9 http://later.test/", ALLOWED, TurnScope())
    assert [action.details["command"] for action in person.asked] == ["the command"]


async def the_clock_of_the_command_stands_still_while_a_person_thinks(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="no", decided_by="person", scope="deny")
    person.may_answer.clear()
    async with environment(tmp_path, person) as made, asyncio.TaskGroup() as group:
        run = group.create_task(
            made.execute("curl -sS http://slow.test/; echo went on", ALLOWED, TurnScope(), timeout_s=1.0)
        )
        async with asyncio.timeout(20):
            await person.is_asked.wait()
            done, _ = await asyncio.wait([run], timeout=2.0)
            assert not done
            person.may_answer.set()
            result = await run
    assert not result.timed_out
    assert "went on" in result.output


async def many_connections_to_one_host_are_one_question(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="no", decided_by="person", scope="deny")
    async with environment(tmp_path, person) as made:
        await made.execute("for i in 1 2 3 4 5 6; do curl -sS -m 5 http://one.test/ & done; wait", ALLOWED, TurnScope())
    assert len(person.asked) == 1


async def nobody_is_asked_about_hundreds_of_hosts_in_one_call(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="no", decided_by="person", scope="deny")
    async with environment(tmp_path, person) as made:
        many = "for i in $(seq 60); do curl -sS -m 9 http://n$i.test/ & done; wait"
        await made.execute(many, ALLOWED, TurnScope())
    assert len(person.asked) == MOST_NOES
    person = Person(allowed=True, decided_by="person", scope="once")
    async with environment(tmp_path, person) as made:
        await made.execute(many, ALLOWED, TurnScope())
    assert len(person.asked) == MOST_QUESTIONS


async def after_a_question_that_nobody_answered_there_is_no_other_in_that_call(tmp_path: Path) -> None:
    person = Person(allowed=False, reason="not answered", decided_by="nobody", scope="timeout")
    async with environment(tmp_path, person) as made:
        result = await made.execute("for h in a b c; do curl -s -m 9 http://$h.test/; done", ALLOWED, TurnScope())
        await made.execute("curl -s -m 9 http://d.test/", ALLOWED, TurnScope())
    assert [action.text for action in person.asked] == ["a.test:80", "d.test:80"]
    assert "b.test:80: the last question of this call was not answered (the user can grant" in result.notes[1]


async def nobody_is_asked_about_an_address_that_a_yes_would_not_open(tmp_path: Path) -> None:
    person = Person(allowed=True, decided_by="person", scope="once")
    async with environment(tmp_path, person) as made:
        hosts = "169.254.169.254 10.0.0.1 [::1] [::ffff:10.0.0.1] 0 0177.0.0.1 255.255.255.255 x.localhost"
        tried = f"for h in {hosts}; do curl -s -m 9 -p -x http://127.0.0.1:1080 http://$h/; done"
        result = await made.execute(tried, ALLOWED, TurnScope())
    assert person.asked == []
    assert result.notes[0] == "the network refused 169.254.169.254:80: it is an address that is not public"
    assert "10.0.0.1:80: it is an address that is not public (the user can grant it:" in result.notes[1]
    assert result.notes[2].startswith("the network refused [::1]:80:")


async def a_flood_of_connections_leaves_the_runtime_its_files(tmp_path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
    flood = "import socket\nkept = [socket.socket() for _ in range(400)]\n"
    flood += "for each in kept:\n    each.connect_ex(('127.0.0.1', 1080))\n"  # some are reset at once
    async with environment(tmp_path) as made:
        (tmp_path / "work" / "flood.py").write_text(f"{flood}open('ready', 'w')\ninput()\n")
        held = "mkfifo line; python3 flood.py < line & exec 3> line; until test -e ready; do sleep 0.05; done"
        async with asyncio.TaskGroup() as group:
            run = group.create_task(
                made.execute(f"{held}; until test -e go; do sleep 0.05; done", ALLOWED, TurnScope())
            )
            async with asyncio.timeout(20):
                while not (tmp_path / "work" / "ready").exists():  # noqa: ASYNC110 - a file of another process
                    await asyncio.sleep(0.05)
            open_files = len(os.listdir("/proc/self/fd"))
            (tmp_path / "work" / "go").touch()
            result = await run
    assert result.notes == ("more than 64 connections at once were refused",)
    assert open_files < 512 // 2


async def a_question_goes_with_the_last_program_that_wants_to_know(tmp_path: Path) -> None:
    person = Person(allowed=True, decided_by="person", scope="once")
    person.may_answer.clear()
    with server() as port:
        async with environment(tmp_path, person, network_hosts=(f"api.test:{port}",)) as made:
            both = f"curl -sS -m 0.6 http://gone.test:{port}/ & curl -sS -m 1.2 http://gone.test:{port}/ & wait"
            result = await made.execute(both, ALLOWED, TurnScope())
            assert person.withdrawn == [], "a curl gives up before the other does"
            while not person.withdrawn:  # noqa: ASYNC110 - a fake has no event for it
                await asyncio.sleep(0.05)
            assert (len(person.asked), person.withdrawn) == (1, [f"gone.test:{port}"])
            # Who has only said all there is to say still waits.
            half = (
                "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                "s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); s.shutdown(1); print(s.recv(999)[-6:])\n"
            )
            (tmp_path / "work" / "half.py").write_text(half)
            person.may_answer.clear()
            asyncio.get_running_loop().call_later(1.0, person.may_answer.set)
            result = await made.execute(f"python3 half.py {port}", ALLOWED, TurnScope())
            assert result.output.strip() == "b'server'", result
    assert len(person.asked) == 2


async def a_service_of_this_machine_is_reached_after_one_yes(tmp_path: Path) -> None:
    person = Person(allowed=True, decided_by="person", scope="session")
    with server() as port:
        async with environment(tmp_path, person) as made:
            for _ in range(2):
                result = await made.execute(f"curl -sS http://127.0.0.1:{port}/", ALLOWED, TurnScope())
                assert result.output == "words of the server"
    assert [action.details["reach"] for action in person.asked] == ["local"]


async def a_service_of_this_machine_is_granted_by_name_and_port_however_low(tmp_path: Path) -> None:
    with server() as port, server(port=80) as low, server(port=631) as other:
        more: dict[str, Any] = {"network_hosts": (f"localhost:{port}",), "network_local": (low, other)}
        async with environment(tmp_path, **more) as made:
            tried = f"for p in {port} {low} {other}; do curl -sS -m 9 http://127.0.0.1:$p/; done"
            result = await made.execute(tried, ALLOWED, TurnScope())
    assert (result.output, result.notes) == ("words of the server" * 3, ())


async def without_anybody_to_ask_it_is_a_no(tmp_path: Path) -> None:
    async with environment(tmp_path) as made:
        result = await made.execute("curl -sS -m 5 http://evil.test/", ALLOWED, TurnScope())
    assert result.exit_code != 0
    assert "nobody can be asked" in result.notes[0]
    assert "the user can grant it: --allow-host evil.test" in result.notes[0]


async def hostile_words_end_no_more_than_their_connection(tmp_path: Path) -> None:
    hostile = (
        "python3 - <<'HERE'\nimport os, random, socket\nd = random.Random(1)\n"
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for n in range(300):\n    u.sendto(os.urandom(d.randrange(600)), ('127.0.0.1', 53))\n"
        "for n in range(60):\n    s = socket.create_connection(('127.0.0.1', d.choice((53, 1080))))\n"
        "    s.sendall(d.choice((b'', b'\\5', b'\\4\\1', b'CONNECT ')) + os.urandom(d.randrange(300)))\n"
        "    s.close()\nHERE\n"
    )
    async with environment(tmp_path) as made:
        await made.execute(hostile, ALLOWED, TurnScope())
        result = await made.execute("getent hosts still.test", ALLOWED, TurnScope())
    assert "198.18." in result.output


async def nothing_is_left_when_the_session_ends(tmp_path: Path) -> None:
    def descriptors() -> set[str]:
        return {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_there(fd)}

    async with environment(tmp_path) as made:
        await made.execute("curl -sS -m 5 http://a.test/", ALLOWED, TurnScope())
    for thread in threading.enumerate():
        if thread.name == "hermes-network":
            await asyncio.to_thread(thread.join, 10)
    assert not any(name.startswith("net:[") for name in descriptors())


def _is_there(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


CASES = {
    case.__name__: case
    for case in (
        a_host_that_a_rule_names_is_reached_without_a_question,
        any_port_is_reached_by_name_and_stays_free_for_a_server,
        an_address_that_a_rule_names_is_reached_without_a_name,
        something_large_comes_whole_both_ways,
        a_host_that_the_person_refused_is_told_and_asked_about_once,
        a_rule_that_denies_a_host_wins_over_every_grant,
        a_rule_that_denies_an_address_holds_for_names_that_lead_there,
        a_background_process_asks_in_its_own_name,
        a_script_asks_after_a_call_within_it_has_ended,
        the_clock_of_the_command_stands_still_while_a_person_thinks,
        many_connections_to_one_host_are_one_question,
        nobody_is_asked_about_hundreds_of_hosts_in_one_call,
        after_a_question_that_nobody_answered_there_is_no_other_in_that_call,
        nobody_is_asked_about_an_address_that_a_yes_would_not_open,
        a_flood_of_connections_leaves_the_runtime_its_files,
        a_question_goes_with_the_last_program_that_wants_to_know,
        a_service_of_this_machine_is_reached_after_one_yes,
        a_service_of_this_machine_is_granted_by_name_and_port_however_low,
        without_anybody_to_ask_it_is_a_no,
        hostile_words_end_no_more_than_their_connection,
        nothing_is_left_when_the_session_ends,
    )
}


def main() -> None:
    """Run the cases that are named, each in a folder of its own."""
    room.enter(room.interpreter_folders())
    run_room._leave_first_process()
    for name in sys.argv[1:]:
        folder = Path("/home") / name
        folder.mkdir()
        asyncio.run(CASES[name](folder))


if __name__ == "__main__":
    main()
